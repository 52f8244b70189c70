//! Documents as markdown, to be pasted into an issue.

use super::console::printable;
use crate::document::{Point, sentence};
use crate::{Align, Block, Cell, Document, Table};
use std::fmt::Write;

pub fn markdown(document: &Document) -> String {
    let mut out = String::new();
    for block in &document.blocks {
        match block {
            Block::Heading { text, .. } => {
                let gap = if out.is_empty() { "" } else { "\n" };
                let _ = writeln!(out, "{gap}### {}\n", escape(text));
            }
            Block::Fact { title, values, .. } => {
                let _ = writeln!(out, "- {title}: {}", escape(&sentence(values, ", ")));
            }
            Block::Warning(text) => {
                let _ = writeln!(out, "> **Warning:** {}\n", escape(text));
            }
            Block::Table(table) => self::table(&mut out, table),
            Block::Note { text, .. } => {
                let _ = writeln!(out, "{}\n", escape(text));
            }
            Block::Points { points, .. } => self::points(&mut out, points),
        }
    }
    out
}

fn points(out: &mut String, points: &[Point]) {
    for (number, point) in (1..).zip(points.iter().filter(|point| !point.is_again)) {
        let _ = writeln!(out, "{number}. {}", escape(&point.text));
        for (title, line) in &point.lines {
            let _ = writeln!(out, "   - {title}: {}", escape(line));
        }
    }
}

fn table(out: &mut String, table: &Table) {
    let words: Vec<Vec<String>> =
        table.rows.iter().map(|row| row.iter().map(Cell::words).collect()).collect();
    let has_content = |at: usize| words.is_empty() || words.iter().any(|row| !row[at].is_empty());
    let shown: Vec<usize> = (0..table.columns.len())
        .filter(|&at| !table.columns[at].title.is_empty() && has_content(at))
        .collect();
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    out.push_str(&line(shown.iter().map(|&at| table.columns[at].title.to_owned()).collect()));
    let rule = |&at: &usize| match table.columns[at].align {
        Align::Left => ":---".to_owned(),
        Align::Right => "---:".to_owned(),
    };
    out.push_str(&line(shown.iter().map(rule).collect()));
    for (row, words) in table.rows.iter().zip(&words) {
        let cell = |&at: &usize| match &row[at] {
            Cell::Code(text) if !text.is_empty() => code(text),
            _ => escape(words[at].trim()),
        };
        out.push_str(&line(shown.iter().map(cell).collect()));
    }
}

/// What can be copied as it is. In a span of code only its end and that of the cell mean something.
fn code(text: &str) -> String {
    let text = printable(text);
    match text.contains(['`', '|']) {
        true => escape(&text),
        false => format!("`{text}`"),
    }
}

/// Text that stays text: it cannot end a cell, become HTML or formatting.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '~' => out.extend(['\\', c]),
            // Would mention a person or an issue where the table is pasted.
            '@' | '#' => {
                out.push(c);
                out.push_str("&#8203;");
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Column;
    use expect_test::expect;

    #[test]
    fn tables_and_hostile_names() {
        let mut document = Document::default();
        document.heading("x", "Operations");
        document.blocks.push(Block::Warning("1 record was left out.".into()));
        document.table(Table {
            key: "x",
            columns: vec![
                Column::left("op", "operation", 0),
                Column::right("hidden", "", 0),
                Column::right("n", "count", 1),
            ],
            rows: vec![
                vec![Cell::text("MUL_MAT"), Cell::Nothing, Cell::Count(1200)],
                vec![Cell::text("a|b\n<img> @you"), Cell::Nothing, Cell::Nothing],
                vec![Cell::Code("ADD(ne=[1,2])".into()), Cell::Nothing, Cell::Nothing],
                vec![Cell::Code("a`|b".into()), Cell::Nothing, Cell::Nothing],
            ],
        });
        expect![[r#"
            ### Operations

            > **Warning:** 1 record was left out.

            | operation | count |
            | :--- | ---: |
            | MUL\_MAT | 1,200 |
            | a\|b\\u{a}&lt;img&gt; @&#8203;you |  |
            | `ADD(ne=[1,2])` |  |
            | a\`\|b |  |
        "#]]
        .assert_eq(&markdown(&document));
    }
}
