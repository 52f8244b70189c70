//! The tables of a document as comma-separated values, with raw numbers.

use crate::document::Point;
use crate::{Block, Cell, Column, Document, Table};
use ggprof_trace::formats::csv::field;
use std::borrow::Cow;

/// One table. If the document has several, it has the columns of all of them, and the first column
/// says which table a row is of. Rows that are parts of others are left out, so that a column can be
/// added up.
pub fn csv(document: &Document) -> String {
    let tables: Vec<Cow<'_, Table>> = document.blocks.iter().filter_map(table_of).collect();
    let mut keys: Vec<&str> = Vec::new();
    for column in tables.iter().flat_map(|table| &table.columns) {
        if !column.is_part && !keys.contains(&column.key) {
            keys.push(column.key);
        }
    }
    let names_tables = tables.len() > 1;
    let first = names_tables.then_some("table");
    let mut out = line(first.into_iter().chain(keys.iter().copied()).map(str::to_owned));
    for table in &tables {
        let place = |key: &&str| table.columns.iter().position(|column| column.key == *key);
        let places: Vec<Option<usize>> = keys.iter().map(place).collect();
        for (row, _) in table.whole_rows() {
            let cells = places.iter().map(|&at| at.map_or(String::new(), |at| cell(&row[at])));
            let first = names_tables.then(|| table.key.to_owned());
            out.push_str(&line(first.into_iter().chain(cells)));
        }
    }
    out
}

/// Sentences are rows of a table, too: what programs get of each, and the lines below it.
fn table_of(block: &Block) -> Option<Cow<'_, Table>> {
    let (key, points) = match block {
        Block::Table(table) => return Some(Cow::Borrowed(table)),
        Block::Points { key, points } => (*key, points),
        _ => return None,
    };
    let mut columns: Vec<Column> = Vec::new();
    let keys = |point: &Point| {
        let lines = point.lines.iter().map(|(title, _)| *title);
        point.values.iter().map(|(key, _)| *key).chain(lines).collect::<Vec<_>>()
    };
    for key in points.iter().flat_map(keys) {
        if columns.iter().all(|column| column.key != key) {
            columns.push(Column::left(key, key, 0));
        }
    }
    let row = |point: &Point| {
        let cell = |column: &Column| {
            let value = point.values.iter().find(|(key, _)| *key == column.key);
            let line = point.lines.iter().find(|(title, _)| *title == column.key);
            let line = line.map(|(_, text)| Cell::text(text));
            value.map(|(_, cell)| cell.clone()).or(line).unwrap_or(Cell::Nothing)
        };
        columns.iter().map(cell).collect()
    };
    let rows = points.iter().map(row).collect();
    Some(Cow::Owned(Table { key, columns, rows }))
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("{}\n", cells.collect::<Vec<_>>().join(","))
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Nothing => String::new(),
        Cell::Text(text) | Cell::Code(text) | Cell::Named { name: text, .. } => field(text.trim()),
        other => other.json().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_tables_are_one() {
        let op = |name: &str, ns: f64| vec![Cell::text(name), Cell::Nothing, Cell::Nanos(ns)];
        let of_it = vec![Cell::text("  of it"), Cell::text("ADD+MUL"), Cell::Nanos(4.0)];
        let columns = vec![
            Column::left("op", "operation", 0),
            Column::part("fusion"),
            Column::right("total_ns", "total", 0),
        ];
        let rows = vec![op("ADD", 9.0), of_it, op("=MUL", 1.0)];
        let mut document = Document::default();
        document.table(Table { key: "operations", columns, rows });
        assert_eq!(csv(&document), "op,total_ns\nADD,9\n'=MUL,1\n");
        let columns = vec![Column::left("layer", "layer", 0), Column::right("total_ns", "", 0)];
        let rows = vec![vec![Cell::Number(3), Cell::Nanos(10.0)]];
        document.table(Table { key: "layers", columns, rows });
        assert_eq!(
            csv(&document),
            "table,op,total_ns,layer\noperations,ADD,9,\noperations,'=MUL,1,\nlayers,,10,3\n"
        );
        assert_eq!(csv(&Document::default()), "\n");
    }

    #[test]
    fn sentences_are_rows() {
        let mut document = Document::default();
        let point = |rule: &str, line: Option<&str>| Point {
            text: "for people".to_owned(),
            lines: line.map(|line| ("try", line.to_owned())).into_iter().collect(),
            values: vec![("rule", Cell::text(rule))],
            is_again: false,
        };
        document.points("findings", vec![point("R1", None), point("R2", Some("two, or 3"))]);
        assert_eq!(csv(&document), "rule,try\nR1,\nR2,\"two, or 3\"\n");
    }
}
