//! How much several runs of the same differ.

use super::diff_words as words;
use crate::{Cell, Column, Document, Table};
use ggprof_analysis::diff::{Ledger, Spread, spreads};

const COLUMNS: [Column; 8] = [
    Column::left("phase", "phase", 0),
    Column::left("unit", "per", 1),
    Column::right("runs", "runs", 0),
    Column::right("median_ns", "median", 0),
    Column::right("lowest_ns", "lowest", 1),
    Column::right("highest_ns", "highest", 1),
    Column::right("spread", "spread", 0),
    Column::right("units_per_s", "speed", 2),
];

pub fn repeated(ledgers: &[Ledger]) -> Document {
    let mut document = Document::default();
    document.heading("runs", format!("Time per token of {} runs", ledgers.len()));
    let rows = spreads(ledgers).iter().map(row).collect();
    document.table(Table { key: "runs", columns: COLUMNS.to_vec(), rows });
    document
}

fn row(spread: &Spread) -> Vec<Cell> {
    let speed = Some(1e9 / spread.median_ns).filter(|speed| speed.is_finite());
    vec![
        Cell::Text(words::phase(&spread.phase)),
        Cell::text(words::unit(spread.phase.kind)),
        Cell::Count(spread.runs as u128),
        Cell::Nanos(spread.median_ns),
        Cell::Nanos(spread.lowest_ns),
        Cell::Nanos(spread.highest_ns),
        Cell::or_nothing(spread.share(), Cell::Share),
        Cell::or_nothing(speed.filter(|_| spread.has_tokens()), Cell::TokensPerSecond),
    ]
}
