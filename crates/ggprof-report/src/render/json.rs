//! Documents as JSON: the same facts and tables, with raw numbers.

use crate::document::{Fact, Point};
use crate::{Block, Cell, Document, Table};
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
        point.plain_lines().map(|(key, line)| ((*key).to_owned(), Value::from(line.as_str())));
    let text = [("text".to_owned(), Value::from(point.text.as_str()))];
    text.into_iter().chain(values).chain(lines).collect()
}

/// Values with one key are a list: always where there may be several, else if there are.
fn fact(values: &[Fact]) -> Value {
    let mut members = Map::new();
    for fact in values {
        let (key, value) = (fact.key.to_owned(), fact.value.json());
        match (members.get_mut(&key), fact.is_listed) {
            (Some(Value::Array(list)), _) => list.push(value),
            (Some(one), _) => *one = Value::Array(vec![one.take(), value]),
            (None, true) => _ = members.insert(key, Value::Array(vec![value])),
            (None, false) => _ = members.insert(key, value),
        }
    }
    Value::Object(members)
}

/// Rows that are parts of others are in a list of those: `fusions` of an op's row.
fn rows(table: &Table) -> Value {
    let object = |row: &[Cell], is_part: bool| -> Map<String, Value> {
        let members = table.columns.iter().zip(row);
        let members = members.filter(|(column, _)| is_part || !column.is_part);
        members.map(|(column, cell)| (column.key.to_owned(), cell.json())).collect()
    };
    let part = table.columns.iter().find(|column| column.is_part);
    let rows = table.whole_rows().into_iter().map(|(row, parts)| {
        let mut row = object(row, false);
        if let Some(part) = part {
            let parts = parts.into_iter().map(|row| Value::Object(object(row, true))).collect();
            row.insert(format!("{}s", part.key), parts);
        }
        Value::Object(row)
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Column;
    use expect_test::expect;

    #[test]
    fn parts_are_in_the_rows_they_are_counted_with_and_no_value_is_lost() {
        let mut document = Document::default();
        let observed = |text: &str| Fact::listed("observed", Cell::text(text), "{}");
        document.fact("coverage", "observed", vec![observed("CPU: ops"), observed("GPU: ops")]);
        let version = |text: &str| Fact::new("version", Cell::text(text), "{}");
        document.fact("ggml", "ggml", vec![version("0.27"), version("0.28")]);
        let part = Cell::Named { words: "  of it ADD+MUL".into(), name: "ADD".into() };
        document.table(Table {
            key: "operations",
            columns: vec![Column::left("op", "operation", 0), Column::part("fusion")],
            rows: vec![
                vec![Cell::text("ADD"), Cell::Nothing],
                vec![part, Cell::text("ADD+MUL")],
                vec![Cell::text("MUL"), Cell::Nothing],
            ],
        });
        expect![[r#"
            {
              "coverage": {
                "observed": [
                  "CPU: ops",
                  "GPU: ops"
                ]
              },
              "ggml": {
                "version": [
                  "0.27",
                  "0.28"
                ]
              },
              "operations": [
                {
                  "op": "ADD",
                  "fusions": [
                    {
                      "op": "ADD",
                      "fusion": "ADD+MUL"
                    }
                  ]
                },
                {
                  "op": "MUL",
                  "fusions": []
                }
              ],
              "warnings": []
            }
        "#]]
        .assert_eq(&json(&[document]));
    }
}
