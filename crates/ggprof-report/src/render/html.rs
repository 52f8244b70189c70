//! Documents as a self-contained page of tables.

use crate::document::sentence;
use crate::{Align, Block, Document, Table};
use std::fmt::Write;

/// Nothing may be loaded and nothing may run: names come from files that strangers made.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:14px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:90rem;padding:0 1rem}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums;display:block;overflow-x:auto}\
th,td{padding:.15rem .6rem;text-align:left;white-space:nowrap}\
.r{text-align:right}\
thead th{border-bottom:1px solid;font-weight:600}\
tbody tr:nth-child(even){background:#8882}\
.warning{border-left:4px solid #c60;padding:.3rem .8rem;background:#c601}";

pub fn html(document: &Document, title: &str) -> String {
    let title = escape(title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
    );
    for block in &document.blocks {
        let _ = match block {
            Block::Heading { text, .. } => writeln!(out, "<h2>{}</h2>", escape(text)),
            Block::Warning(text) => writeln!(out, "<p class=\"warning\">{}</p>", escape(text)),
            Block::Fact { title, values, .. } => {
                writeln!(out, "<p>{title}: {}</p>", escape(&sentence(values, " · ")))
            }
            Block::Table(table) => {
                self::table(&mut out, table);
                Ok(())
            }
        };
    }
    out.push_str("</body>\n</html>\n");
    out
}

fn table(out: &mut String, table: &Table) {
    let shown: Vec<usize> =
        (0..table.columns.len()).filter(|&at| !table.columns[at].title.is_empty()).collect();
    let cell = |tag: &str, at: usize, text: &str| {
        let class = if table.columns[at].align == Align::Right { " class=\"r\"" } else { "" };
        format!("<{tag}{class}>{}</{tag}>", escape(text))
    };
    let line = |cells: String| format!("<tr>{cells}</tr>\n");
    out.push_str("<table>\n<thead>\n");
    out.push_str(&line(shown.iter().map(|&at| cell("th", at, table.columns[at].title)).collect()));
    out.push_str("</thead>\n<tbody>\n");
    for row in &table.rows {
        out.push_str(&line(shown.iter().map(|&at| cell("td", at, &row[at].words())).collect()));
    }
    out.push_str("</tbody>\n</table>\n");
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cell, Column};

    #[test]
    fn hostile_names_stay_text() {
        let hostile = "</script><img src=x onerror=\"alert('1')\">";
        let mut document = Document::default();
        document.heading("x", hostile);
        document.blocks.push(Block::Warning(hostile.into()));
        document.table(Table {
            key: "x",
            columns: vec![Column::left("op", "op", 0)],
            rows: vec![vec![Cell::text(hostile)]],
        });
        let page = html(&document, hostile);
        assert!(!page.contains("<img") && !page.contains("</script"), "{page}");
        assert_eq!(page.matches("&lt;img src=x onerror=&quot;").count(), 4);
    }
}
