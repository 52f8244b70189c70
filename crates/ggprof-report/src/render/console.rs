//! Documents for a terminal: aligned, no wider than the terminal, and without control characters.

mod fitting;

use crate::document::{Fact, Point, sentence};
use crate::{Align, Block, Cell, Column, Document, Table};
use fitting::Fitting;
use std::borrow::Cow;
use std::fmt::Write;

/// How the terminal wants it.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Columns that are visible; `None` where nothing needs to fit.
    pub width: Option<usize>,
    pub colour: bool,
}

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const YELLOW: &str = "\x1b[33m";
const RESET: &str = "\x1b[0m";

/// Space between two columns of a table.
const GAP: &str = "  ";

pub fn console(document: &Document, style: &Style) -> String {
    let mut out = String::new();
    for block in &document.blocks {
        match block {
            Block::Heading { text, .. } => {
                let gap = if out.is_empty() { "" } else { "\n" };
                let text = printable(text);
                let _ = writeln!(out, "{gap}{}", style.paint(BOLD, &text));
            }
            Block::Fact { title, values, .. } => fact(&mut out, title, values, style),
            Block::Warning(text) => warning(&mut out, text, style),
            Block::Table(table) => self::table(&mut out, table, style),
            Block::Note { text, .. } => {
                paragraph(&mut out, "  ", text, style);
            }
            Block::Points { points, .. } => self::points(&mut out, points, style),
        }
    }
    out
}

fn fact(out: &mut String, title: &str, values: &[Fact], style: &Style) {
    let indent = " ".repeat(length(title) + GAP.len());
    let width = style.width.unwrap_or(usize::MAX).saturating_sub(indent.len()).max(20);
    // Lines break behind the values, and inside of those only that are too long for a line.
    let sentence = sentence(values, " · ");
    let values: Vec<String> =
        sentence
            .split(" · ")
            .map(|value| {
                if length(value) + 2 > width { value.into() } else { value.replace(' ', "\u{a0}") }
            })
            .collect();
    for (at, line) in wrap(&printable(&values.join("\u{a0}· ")), width).iter().enumerate() {
        let before = match at {
            0 => format!("{}{GAP}", style.paint(DIM, title)),
            _ => indent.clone(),
        };
        let _ = writeln!(out, "{before}{}", line.replace('\u{a0}', " "));
    }
}

fn warning(out: &mut String, text: &str, style: &Style) {
    let width = style.width.unwrap_or(usize::MAX).saturating_sub(2).max(20);
    for (at, line) in wrap(&printable(text), width).iter().enumerate() {
        let mark = if at == 0 { "! " } else { "  " };
        let _ = writeln!(out, "{}", style.paint(YELLOW, &format!("{mark}{line}")));
    }
}

fn points(out: &mut String, points: &[Point], style: &Style) {
    for (number, point) in (1..).zip(points.iter().filter(|point| !point.is_again)) {
        let mark = format!("{number:>2}. ");
        paragraph(out, &style.paint(BOLD, &mark), &point.text, style);
        for (title, line) in &point.lines {
            let mark = format!("    {}  ", style.paint(DIM, &format!("{title:>7}")));
            paragraph(out, &mark, line, style);
        }
    }
}

/// Text behind a mark, which later lines leave room for.
fn paragraph(out: &mut String, mark: &str, text: &str, style: &Style) {
    let indent = visible(mark);
    let width = style.width.unwrap_or(usize::MAX).saturating_sub(indent).max(20);
    for (at, line) in wrap(&printable(text), width).iter().enumerate() {
        match at {
            0 => _ = writeln!(out, "{mark}{line}"),
            _ => _ = writeln!(out, "{}{line}", " ".repeat(indent)),
        }
    }
}

/// How many columns text takes whose colours are ours.
fn visible(text: &str) -> usize {
    let codes = [BOLD, DIM, RESET];
    length(&codes.iter().fold(text.to_owned(), |text, code| text.replace(code, "")))
}

/// Breaks text between words, so that no line is longer than `width`.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && length(line) + 1 + length(word) > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

fn table(out: &mut String, table: &Table, style: &Style) {
    let rows: Vec<Vec<String>> = table.rows.iter().map(|row| words(row)).collect();
    let Fitting { columns, left_out } = Fitting::of(table, &rows, style.width);
    let line = |cells: &dyn Fn(usize) -> String| {
        let mut line = String::new();
        for &(at, width) in &columns {
            let cell = shorten(&cells(at), Some(width));
            let space = " ".repeat(width.saturating_sub(length(&cell)));
            match table.columns[at].align {
                Align::Left => line.push_str(&format!("{GAP}{cell}{space}")),
                Align::Right => line.push_str(&format!("{GAP}{space}{cell}")),
            }
        }
        shorten(line.trim_end(), style.width)
    };
    let head = line(&|at| table.columns[at].title.to_owned());
    let _ = writeln!(out, "{}", style.paint(DIM, &head));
    for row in &rows {
        let _ = writeln!(out, "{}", line(&|at| row[at].clone()));
    }
    if !left_out.is_empty() && !rows.is_empty() {
        let titles: Vec<&str> = left_out.iter().map(|&at| table.columns[at].title).collect();
        let width = style.width.unwrap_or(usize::MAX).saturating_sub(GAP.len()).max(20);
        for line in wrap(&format!("too wide to show: {}", titles.join(", ")), width) {
            let _ = writeln!(out, "{}", style.paint(DIM, &format!("{GAP}{line}")));
        }
    }
}

fn words(row: &[Cell]) -> Vec<String> {
    row.iter().map(|cell| printable(&cell.words()).into_owned()).collect()
}

fn width<'a>(column: &Column, cells: impl Iterator<Item = &'a str>) -> usize {
    cells.map(length).chain([length(column.title)]).max().unwrap_or(0)
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn shorten(line: &str, limit: Option<usize>) -> String {
    match limit {
        Some(limit) if length(line) > limit && limit > 0 => {
            line.chars().take(limit - 1).chain(['…']).collect()
        }
        _ => line.to_owned(),
    }
}

/// Text without anything a terminal would obey: names come from files that strangers made.
/// Control characters and those that turn the direction of writing are shown as codes.
pub fn printable(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if obeyed(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

impl Style {
    /// No colours and no limit: for files and pipes.
    pub const PLAIN: Self = Self { width: None, colour: false };

    fn paint<'a>(&self, colour: &str, text: &'a str) -> Cow<'a, str> {
        if self.colour { Cow::Owned(format!("{colour}{text}{RESET}")) } else { Cow::Borrowed(text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn example() -> Document {
        let mut document = Document::default();
        document.heading("x", "Head \x1b[31mred");
        document.blocks.push(Block::Warning("one two three four five six seven".into()));
        document.table(Table {
            key: "x",
            columns: vec![
                Column::left("op", "operation", 0),
                Column::right("n", "count", 1),
                Column::right("hidden", "", 0),
                Column::left("shape", "shape", 2),
            ],
            rows: vec![
                vec![
                    Cell::text("MUL_MAT"),
                    Cell::Count(12345),
                    Cell::Number(1),
                    Cell::text("[4096, 4096]"),
                ],
                vec![Cell::text("a\nb"), Cell::Nothing, Cell::Number(2), Cell::text("[1]")],
            ],
        });
        document
    }

    #[test]
    fn wide() {
        expect![[r#"
            Head \u{1b}[31mred
            ! one two three four five six seven
              operation   count  shape
              MUL_MAT    12,345  [4096, 4096]
              a\u{a}b            [1]
        "#]]
        .assert_eq(&console(&example(), &Style::PLAIN));
    }

    #[test]
    fn narrow() {
        let style = Style { width: Some(22), colour: false };
        expect![[r#"
            Head \u{1b}[31mred
            ! one two three four
              five six seven
              operation   count
              MUL_MAT    12,345
              a\u{a}b
              too wide to show:
              shape
        "#]]
        .assert_eq(&console(&example(), &style));
    }

    #[test]
    fn facts_break_behind_values_and_inside_of_long_ones() {
        let mut document = Document::default();
        let values = ["one two", "a value that is longer than a line", "three four"];
        let fact = |text| Fact { key: "x", value: Cell::text(text), words: "{}", is_listed: true };
        document.fact("x", "seen", values.map(fact).into());
        let style = Style { width: Some(26), colour: false };
        expect![[r#"
            seen  one two · a value
                  that is longer than
                  a line · three four
        "#]]
        .assert_eq(&console(&document, &style));
    }

    #[test]
    fn of_an_empty_table_nothing_is_left_out() {
        let mut document = example();
        let Some(Block::Table(table)) = document.blocks.last_mut() else { panic!("its table") };
        table.rows.clear();
        let text = console(&document, &Style { width: Some(22), colour: false });
        assert!(text.ends_with("  operation  count\n"), "{text}");
    }

    /// The name of the one backend says less than anything else.
    #[test]
    fn what_says_the_same_in_every_row_goes_first() {
        let mut document = Document::default();
        document.table(Table {
            key: "x",
            columns: vec![
                Column::left("op", "operation", 0),
                Column::left("backend", "backend", 1),
                Column::right("wait", "waiting", 2),
                Column::right("min", "min", 7),
            ],
            rows: [("ADD", "70.0%", "1 ns"), ("MUL", "3.0%", "2 ns")]
                .map(|(op, wait, min)| [op, "CPU", wait, min].map(Cell::text).to_vec())
                .to_vec(),
        });
        let style = Style { width: Some(30), colour: false };
        let expected = [
            "  operation  waiting   min",
            "  ADD          70.0%  1 ns",
            "  MUL           3.0%  2 ns",
            "  too wide to show: backend",
        ];
        let text = console(&document, &style);
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn colour_is_only_ours() {
        let text = console(&example(), &Style { width: None, colour: true });
        assert!(text.starts_with("\x1b[1mHead \\u{1b}[31mred\x1b[0m\n"), "{text}");
    }

    #[test]
    fn nothing_a_terminal_obeys_gets_through() {
        assert_eq!(printable("Qcur-0 µ"), "Qcur-0 µ");
        assert_eq!(printable("a\x07\u{9b}\u{202e}b"), "a\\u{7}\\u{9b}\\u{202e}b");
    }
}
