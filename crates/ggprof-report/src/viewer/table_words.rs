//! Tables of documents for pages, in the words that people read: what programs want is in other formats.

use crate::{Align, Cell, Table};
use serde_json::{Value, json};

/// Columns up to a rank, without those that say nothing.
pub(super) fn table(table: &Table, most_rank: u8) -> Value {
    let words: Vec<Vec<String>> =
        table.rows.iter().map(|row| row.iter().map(Cell::words).collect()).collect();
    let is_shown = |at: &usize| {
        let column = &table.columns[*at];
        let is_wanted = !column.title.is_empty() && column.rank <= most_rank;
        is_wanted && words.iter().any(|row| !row[*at].is_empty())
    };
    let shown: Vec<usize> = (0..table.columns.len()).filter(is_shown).collect();
    let column = |&at: &usize| {
        let column = &table.columns[at];
        json!({"title": column.title, "right": column.align == Align::Right})
    };
    let row = |words: &Vec<String>| -> Vec<String> {
        shown.iter().map(|&at| words[at].clone()).collect()
    };
    json!({
        "columns": shown.iter().map(column).collect::<Vec<_>>(),
        "rows": words.iter().map(row).collect::<Vec<_>>(),
    })
}
