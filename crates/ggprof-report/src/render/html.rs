//! Documents as HTML without a script, for the part of a page that only says something.

use super::console::printable;
use crate::document::{Point, sentence};
use crate::{Align, Block, Cell, Document, Table};
use std::fmt::Write;

pub fn html(document: &Document) -> String {
    let mut out = String::new();
    for block in &document.blocks {
        let _ = match block {
            Block::Heading { text, .. } => writeln!(out, "<h2>{}</h2>", escape(text)),
            Block::Fact { title, values, .. } => {
                writeln!(out, "<p><b>{title}</b> {}</p>", escape(&sentence(values, " · ")))
            }
            Block::Warning(text) => writeln!(out, "<p><strong>{}</strong></p>", escape(text)),
            Block::Table(table) => writeln!(out, "{}", self::table(table)),
            Block::Note { text, .. } => writeln!(out, "<p>{}</p>", escape(text)),
            Block::Points { points, .. } => writeln!(out, "{}", self::points(points)),
        };
    }
    out
}

fn points(points: &[Point]) -> String {
    let line = |(title, line): &(&str, String)| format!("<br>{title}: {}", escape(line));
    let point = |point: &Point| {
        let lines: String = point.lines.iter().map(line).collect();
        format!("<li>{}{lines}</li>\n", escape(&point.text))
    };
    let points = points.iter().filter(|point| !point.is_again);
    format!("<ol>\n{}</ol>", points.map(point).collect::<String>())
}

fn table(table: &Table) -> String {
    let words: Vec<Vec<String>> =
        table.rows.iter().map(|row| row.iter().map(Cell::words).collect()).collect();
    let has_content = |at: &usize| words.iter().any(|row| !row[*at].is_empty());
    let shown: Vec<usize> = (0..table.columns.len())
        .filter(|&at| !table.columns[at].title.is_empty())
        .filter(has_content)
        .collect();
    let class = |at: usize| match table.columns[at].align {
        Align::Left => "",
        Align::Right => " class=\"right\"",
    };
    let row = |tag: &str, cell: &dyn Fn(usize) -> String| {
        let cells =
            shown.iter().map(|&at| format!("<{tag}{}>{}</{tag}>", class(at), escape(&cell(at))));
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let head = row("th", &|at| table.columns[at].title.to_owned());
    let rows: String = words.iter().map(|words| row("td", &|at| words[at].clone())).collect();
    format!("<table>\n{head}{rows}</table>")
}

/// Text that stays text.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Column;

    #[test]
    fn names_stay_text() {
        let mut document = Document::default();
        document.heading("x", "<b>");
        let columns = vec![Column::left("op", "op", 0), Column::right("n", "count", 0)];
        let rows = vec![vec![Cell::text("<script>\"&"), Cell::Count(1200)]];
        document.table(Table { key: "x", columns, rows });
        assert_eq!(
            html(&document),
            "<h2>&lt;b&gt;</h2>\n<table>\n<tr><th>op</th><th class=\"right\">count</th></tr>\n\
             <tr><td>&lt;script&gt;&quot;&amp;</td><td class=\"right\">1,200</td></tr>\n</table>\n"
        );
    }
}
