//! What a report consists of, independent of how it is shown.

use crate::units;

#[derive(Debug, Default)]
pub struct Document {
    pub blocks: Vec<Block>,
}

#[derive(Debug)]
pub enum Block {
    /// Names the part that follows. The key is what JSON calls the part.
    Heading {
        key: &'static str,
        text: String,
    },
    /// Something about the recording, with the name JSON knows it by.
    Fact {
        key: &'static str,
        title: &'static str,
        values: Vec<Fact>,
    },
    /// A sentence that must not be overlooked.
    Warning(String),
    Table(Table),
    /// Sentences in an order, each with what belongs to it.
    Points {
        key: &'static str,
        points: Vec<Point>,
    },
    /// A sentence of its own, with its name in JSON.
    Note {
        key: &'static str,
        text: String,
    },
}

/// A sentence, and lines below it that say more.
#[derive(Debug, Clone)]
pub struct Point {
    pub text: String,
    /// What a line is about, and the line.
    pub lines: Vec<(&'static str, String)>,
    /// For programs.
    pub values: Vec<(&'static str, Cell)>,
    /// It says the same as one above, of something else, and people read of it there.
    pub is_again: bool,
}

/// One value of a fact, in words and as JSON has it.
#[derive(Debug)]
pub struct Fact {
    pub key: &'static str,
    pub value: Cell,
    /// `{}` stands for the value; nothing is shown if it is empty.
    pub words: &'static str,
    /// There may be several with this key: JSON has them in a list.
    pub is_listed: bool,
}

#[derive(Debug, Clone)]
pub struct Table {
    /// What JSON calls the table.
    pub key: &'static str,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
}

#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Name in JSON and CSV, with the unit of the raw number.
    pub key: &'static str,
    /// Name for people; a column without one is only in JSON and CSV.
    pub title: &'static str,
    pub align: Align,
    /// Columns with low numbers stay when a terminal is narrow.
    pub rank: u8,
    /// A row with something here is a part of the row above it, and counted there.
    pub is_part: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// A value that is shown to people in one way and to programs in another.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Nothing,
    Text(String),
    /// Something to be copied as it is.
    Code(String),
    /// Words for people, and the name that programs know.
    Named {
        words: String,
        name: String,
    },
    Count(u128),
    /// A number without a unit, such as an id.
    Number(i64),
    /// Whether something is so.
    Flag(bool),
    Nanos(f64),
    /// Nanoseconds more or less, shown with the sign.
    Change(f64),
    /// A fraction of one more or less, shown with the sign.
    ShareChange(f64),
    /// How likely something is.
    Chance(f64),
    /// How often something happens, which need not be a whole number.
    Times(f64),
    Bytes(u128),
    /// A fraction of one.
    Share(f64),
    GigabytesPerSecond(f64),
    GigaflopsPerSecond(f64),
    /// Of whole numbers.
    GigaopsPerSecond(f64),
    NanosPerByte(f64),
    TokensPerSecond(f64),
    /// Operations per byte.
    Intensity(f64),
    /// Nanoseconds since 1970, shown as the time of day.
    Clock(u64),
    /// The same with the day, shown to the second.
    Date(u64),
    /// The same with the day, as exact as the time of day.
    Moment(u64),
    Hertz(f64),
    Watts(f64),
    Joules(f64),
}

impl Point {
    /// Lines for programs: what is among the values as well has words for people.
    pub(crate) fn plain_lines(&self) -> impl Iterator<Item = &(&'static str, String)> {
        let is_value = |title: &str| self.values.iter().any(|(key, _)| *key == title);
        self.lines.iter().filter(move |(title, _)| !is_value(title))
    }
}

impl Document {
    /// Puts other words for those of the recording, wherever they stand.
    pub fn reword(&mut self, reword: &dyn Fn(&str) -> String) {
        for block in &mut self.blocks {
            block.reword(reword);
        }
    }
}

impl Block {
    fn reword(&mut self, reword: &dyn Fn(&str) -> String) {
        match self {
            Self::Heading { text, .. } | Self::Note { text, .. } | Self::Warning(text) => {
                *text = reword(text);
            }
            Self::Fact { values, .. } => {
                values.iter_mut().for_each(|fact| fact.value.reword(reword));
            }
            Self::Table(table) => {
                table.rows.iter_mut().flatten().for_each(|cell| cell.reword(reword));
            }
            Self::Points { points, .. } => points.iter_mut().for_each(|it| it.reword(reword)),
        }
    }
}

impl Point {
    fn reword(&mut self, reword: &dyn Fn(&str) -> String) {
        self.text = reword(&self.text);
        self.lines.iter_mut().for_each(|(_, line)| *line = reword(line));
        self.values.iter_mut().for_each(|(_, cell)| cell.reword(reword));
    }
}

impl Cell {
    fn reword(&mut self, reword: &dyn Fn(&str) -> String) {
        match self {
            Self::Text(text) | Self::Code(text) => *text = reword(text),
            Self::Named { words, name } => (*words, *name) = (reword(words), reword(name)),
            _ => {}
        }
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub fn or_nothing<T>(value: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Nothing, cell)
    }

    /// For people.
    pub fn words(&self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Text(text) | Self::Code(text) | Self::Named { words: text, .. } => text.clone(),
            Self::Count(count) => units::count(*count),
            Self::Number(number) => number.to_string(),
            Self::Flag(is_so) => if *is_so { "yes" } else { "no" }.to_owned(),
            Self::Nanos(ns) => units::duration(*ns),
            Self::Change(ns) => units::signed(*ns, units::duration),
            Self::ShareChange(fraction) => units::signed(*fraction, units::share),
            Self::Chance(chance) => format!("{chance:.3}"),
            Self::Times(times) => units::times(*times),
            Self::Bytes(bytes) => units::bytes(*bytes as f64),
            Self::Share(fraction) => units::share(*fraction),
            Self::GigabytesPerSecond(rate) => units::bandwidth(*rate),
            Self::GigaflopsPerSecond(rate) => units::compute(*rate),
            Self::GigaopsPerSecond(rate) => units::integer_compute(*rate),
            Self::NanosPerByte(rate) => units::time_per_byte(*rate),
            Self::TokensPerSecond(rate) => units::token_rate(*rate),
            Self::Intensity(intensity) => format!("{intensity:.1}"),
            Self::Clock(unix_ns) => units::clock(*unix_ns),
            Self::Date(unix_ns) => units::date(*unix_ns),
            Self::Moment(unix_ns) => units::moment(*unix_ns),
            Self::Hertz(clock) => units::frequency(*clock),
            Self::Watts(power) => units::power(*power),
            Self::Joules(energy) => units::energy(*energy),
        }
    }

    /// For programs, in the unit that the column's key names.
    pub fn json(&self) -> serde_json::Value {
        use serde_json::Value;
        match self {
            Self::Nothing => Value::Null,
            Self::Text(text) | Self::Code(text) | Self::Named { name: text, .. } => {
                Value::from(text.as_str())
            }
            Self::Count(number) | Self::Bytes(number) => match u64::try_from(*number) {
                Ok(number) => Value::from(number),
                Err(_) => Value::from(*number as f64),
            },
            Self::Number(number) => Value::from(*number),
            Self::Flag(is_so) => Value::from(*is_so),
            Self::Clock(unix_ns) | Self::Date(unix_ns) | Self::Moment(unix_ns) => {
                Value::from(*unix_ns)
            }
            Self::Nanos(number)
                if number.fract() == 0.0 && (0.0..2f64.powi(53)).contains(number) =>
            {
                Value::from(*number as u64)
            }
            Self::Nanos(number)
            | Self::Change(number)
            | Self::ShareChange(number)
            | Self::Chance(number)
            | Self::Times(number)
            | Self::Share(number)
            | Self::GigabytesPerSecond(number)
            | Self::GigaflopsPerSecond(number)
            | Self::GigaopsPerSecond(number)
            | Self::NanosPerByte(number)
            | Self::TokensPerSecond(number)
            | Self::Intensity(number)
            | Self::Hertz(number)
            | Self::Watts(number)
            | Self::Joules(number) => Value::from(*number),
        }
    }
}

impl Document {
    pub fn heading(&mut self, key: &'static str, text: impl Into<String>) {
        self.blocks.push(Block::Heading { key, text: text.into() });
    }

    pub fn fact(&mut self, key: &'static str, title: &'static str, values: Vec<Fact>) {
        self.blocks.push(Block::Fact { key, title, values });
    }

    pub fn points(&mut self, key: &'static str, points: Vec<Point>) {
        self.blocks.push(Block::Points { key, points });
    }

    pub fn note(&mut self, key: &'static str, text: impl Into<String>) {
        self.blocks.push(Block::Note { key, text: text.into() });
    }

    pub fn table(&mut self, table: Table) {
        self.blocks.push(Block::Table(table));
    }

    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Table(table) => Some(table),
            _ => None,
        })
    }
}

impl Table {
    /// Each row with those that are a part of it.
    pub(crate) fn whole_rows(&self) -> Vec<(&[Cell], Vec<&[Cell]>)> {
        let part = self.columns.iter().position(|column| column.is_part);
        let mut whole: Vec<(&[Cell], Vec<&[Cell]>)> = Vec::new();
        for row in &self.rows {
            let is_part = part.is_some_and(|at| row.get(at) != Some(&Cell::Nothing));
            match whole.last_mut().filter(|_| is_part) {
                Some((_, parts)) => parts.push(row),
                None => whole.push((row, Vec::new())),
            }
        }
        whole
    }
}

/// The values of a fact in words, without those that say nothing.
pub(crate) fn sentence(values: &[Fact], separator: &str) -> String {
    let words = values.iter().map(Fact::words).filter(|words| !words.is_empty());
    words.collect::<Vec<_>>().join(separator)
}

impl Fact {
    pub fn new(key: &'static str, value: Cell, words: &'static str) -> Self {
        Self { key, value, words, is_listed: false }
    }

    /// One of several with the same key.
    pub fn listed(key: &'static str, value: Cell, words: &'static str) -> Self {
        Self { key, value, words, is_listed: true }
    }

    /// The value in its words; empty if there is no value.
    fn words(&self) -> String {
        match self.value {
            Cell::Nothing => String::new(),
            _ => self.words.replace("{}", &self.value.words()),
        }
    }
}

impl Column {
    pub const fn left(key: &'static str, title: &'static str, rank: u8) -> Self {
        Self { key, title, align: Align::Left, rank, is_part: false }
    }

    pub const fn right(key: &'static str, title: &'static str, rank: u8) -> Self {
        Self { key, title, align: Align::Right, rank, is_part: false }
    }

    /// Says what a row is of the row above; for programs.
    pub const fn part(key: &'static str) -> Self {
        Self { key, title: "", align: Align::Left, rank: u8::MAX, is_part: true }
    }
}
