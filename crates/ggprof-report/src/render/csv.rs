//! The tables of a document as comma-separated values, with raw numbers.

use crate::{Cell, Document, Table};
use ggprof_trace::formats::csv::field;

/// All tables, a blank line between two.
pub fn csv(document: &Document) -> String {
    document.tables().map(table).collect::<Vec<_>>().join("\n")
}

fn table(table: &Table) -> String {
    let head: Vec<&str> = table.columns.iter().map(|column| column.key).collect();
    let mut out = format!("{}\n", head.join(","));
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(cell).collect();
        out.push_str(&cells.join(","));
        out.push('\n');
    }
    out
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Nothing => String::new(),
        Cell::Text(text) => field(text.trim()),
        other => other.json().to_string(),
    }
}
