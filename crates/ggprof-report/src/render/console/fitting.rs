//! Which columns of a table fit into a terminal, and how wide each may be.

use super::{GAP, width};
use crate::{Align, Table};

/// Enough of a cut-off last column to be worth showing: it holds the shapes.
const LEAST_OF_LAST: usize = 12;

/// The same of another column with long texts, which tell rows apart.
const LEAST_OF_TEXT: usize = 28;

/// A column that says something in fewer of the rows than this gives way to others first.
const NEARLY_EMPTY: f64 = 1.0 / 3.0;
const GIVES_WAY: u8 = 3;

/// The columns that are shown with their widths, and those that are not.
pub(super) struct Fitting {
    pub(super) columns: Vec<(usize, usize)>,
    pub(super) left_out: Vec<usize>,
}

impl Fitting {
    /// Columns that say the same in every row are given up first, then those of the highest rank number.
    /// Long texts are cut off before any column goes.
    pub(super) fn of(table: &Table, rows: &[Vec<String>], limit: Option<usize>) -> Self {
        let has_content = |at: &usize| rows.iter().any(|row| !row[*at].is_empty());
        let mut columns: Vec<usize> = (0..table.columns.len())
            .filter(|&at| !table.columns[at].title.is_empty())
            .filter(|at| rows.is_empty() || has_content(at))
            .collect();
        let full = |at: usize| width(&table.columns[at], rows.iter().map(|row| row[at].as_str()));
        let mut left_out: Vec<usize> = Vec::new();
        let Some(limit) = limit else {
            let columns = columns.into_iter().map(|at| (at, full(at))).collect();
            return Self { columns, left_out };
        };
        let widths = loop {
            let least = least_widths(table, &columns, full);
            let needed: usize = least.iter().map(|width| GAP.len() + width).sum();
            let least_important = columns.iter().copied().max_by_key(|&at| rank(table, rows, at));
            match least_important {
                Some(at) if needed > limit && rank(table, rows, at) > 0 => {
                    columns.retain(|&column| column != at);
                    left_out.push(at);
                }
                _ => break widen(&columns, least, limit.saturating_sub(needed), full),
            }
        };
        left_out.sort_unstable();
        Self { columns: columns.into_iter().zip(widths).collect(), left_out }
    }
}

/// How important a column is, for this table: 0 stays in any case.
fn rank(table: &Table, rows: &[Vec<String>], at: usize) -> u8 {
    let says_one_thing = rows.len() > 1 && rows.iter().all(|row| row[at] == rows[0][at]);
    let filled = rows.iter().filter(|row| !row[at].is_empty()).count();
    let is_nearly_empty = (filled as f64) < NEARLY_EMPTY * rows.len() as f64;
    match table.columns[at].rank {
        0 => 0,
        _ if says_one_thing => u8::MAX,
        rank if is_nearly_empty => rank.saturating_add(GIVES_WAY),
        rank => rank,
    }
}

/// The widths where long texts are cut off: the last column, and the widest of the others.
fn least_widths(table: &Table, columns: &[usize], full: impl Fn(usize) -> usize) -> Vec<usize> {
    let is_text = |at: usize| table.columns[at].align == Align::Left;
    let last = columns.last().copied().filter(|&at| is_text(at));
    let others = columns.iter().copied().filter(|&at| is_text(at) && Some(at) != last);
    let widest = others.max_by_key(|&at| full(at));
    let least = |&at: &usize| match at {
        at if Some(at) == last => full(at).min(LEAST_OF_LAST),
        at if Some(at) == widest => full(at).min(LEAST_OF_TEXT),
        at => full(at),
    };
    columns.iter().map(least).collect()
}

/// Gives the room that is left to the texts that were cut off.
fn widen(
    columns: &[usize],
    mut widths: Vec<usize>,
    mut left: usize,
    full: impl Fn(usize) -> usize,
) -> Vec<usize> {
    for (&at, width) in columns.iter().zip(&mut widths) {
        let more = (full(at) - *width).min(left);
        *width += more;
        left -= more;
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Column;

    fn shown(columns: Vec<Column>, rows: &[&[&str]], limit: usize) -> Vec<(&'static str, usize)> {
        let table = Table { key: "x", columns, rows: Vec::new() };
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|&cell| cell.to_owned()).collect()).collect();
        let fitting = Fitting::of(&table, &rows, Some(limit));
        fitting.columns.iter().map(|&(at, width)| (table.columns[at].title, width)).collect()
    }

    #[test]
    fn what_is_nearly_empty_gives_way() {
        let columns = vec![
            Column::left("op", "op", 0),
            Column::right("estimated", "estimated", 1),
            Column::right("avg", "avg", 2),
        ];
        let rows: [&[&str]; 4] = [
            &["ADD", "", "10 ns"],
            &["MUL", "", "20 ns"],
            &["GLU", "", "3 ns"],
            &["copy", "1", "4 ns"],
        ];
        assert_eq!(shown(columns, &rows, 16), [("op", 4), ("avg", 5)]);
    }

    #[test]
    fn long_texts_are_cut_off_before_columns_go() {
        let columns = vec![
            Column::left("shape", "sources", 0),
            Column::right("total", "total", 0),
            Column::left("backend", "backend", 2),
        ];
        let long = "[128, 256, 32] f32 x [128, 256, 8] f16 x [128, 256, 8] f16";
        let rows: [&[&str]; 2] = [&[long, "10 ns", "CPU"], &["[1] f32", "3 ns", "CUDA0"]];
        assert_eq!(shown(columns, &rows, 60), [("sources", 42), ("total", 5), ("backend", 7)]);
    }
}
