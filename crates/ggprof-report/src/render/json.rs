//! Documents as JSON: the same facts and tables, with raw numbers.

use crate::document::{Fact, Point};
use crate::{Block, Document, Table};
use serde_json::{Map, Value};

/// One object; each fact and each table is a member of it.
pub fn json(documents: &[Document]) -> String {
    let mut members = Map::new();
    let mut warnings: Vec<Value> = Vec::new();
    for block in documents.iter().flat_map(|document| &document.blocks) {
        match block {
            Block::Heading { .. } => {}
            Block::Note { key, text } => {
                members.insert((*key).to_owned(), Value::from(text.as_str()));
            }
            Block::Points { key, points } => {
                members.insert((*key).to_owned(), points.iter().map(point).collect());
            }
            Block::Warning(text) => {
                let text = Value::from(text.as_str());
                if !warnings.contains(&text) {
                    warnings.push(text);
                }
            }
            Block::Fact { key, values, .. } => {
                members.insert((*key).to_owned(), fact(values));
            }
            Block::Table(table) => match (members.get_mut(table.key), rows(table)) {
                // A table in several parts.
                (Some(Value::Array(before)), Value::Array(more)) => before.extend(more),
                (_, rows) => {
                    members.insert(table.key.to_owned(), rows);
                }
            },
        }
    }
    members.insert("warnings".to_owned(), Value::Array(warnings));
    let mut text = serde_json::to_string_pretty(&members).unwrap_or_default();
    text.push('\n');
    text
}

fn point(point: &Point) -> Value {
    let values = point.values.iter().map(|(key, cell)| ((*key).to_owned(), cell.json()));
    let lines =
        point.lines.iter().map(|(key, line)| ((*key).to_owned(), Value::from(line.as_str())));
    let text = [("text".to_owned(), Value::from(point.text.as_str()))];
    text.into_iter().chain(values).chain(lines).collect()
}

fn fact(values: &[Fact]) -> Value {
    values.iter().map(|value| (value.key.to_owned(), value.value.json())).collect()
}

fn rows(table: &Table) -> Value {
    let object = |row: &Vec<crate::Cell>| -> Value {
        let members = table.columns.iter().zip(row);
        members.map(|(column, cell)| (column.key.to_owned(), cell.json())).collect()
    };
    table.rows.iter().map(object).collect()
}
