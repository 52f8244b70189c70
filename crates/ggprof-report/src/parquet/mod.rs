//! Writes Parquet, which engines for many recordings read: flat tables of columns that may be empty.
//!
//! Of the format, only what such tables need: one page per column in each group of rows, strings and
//! numbers of few values by dictionary, other numbers by their differences, all of it compressed, and
//! the least and the greatest value of each, so that readers fetch only what they ask for. (The crate
//! that writes all of Parquet brings twenty others, some of them in two versions.)

mod column;
mod file;
mod packed;
mod thrift;

pub(crate) use file::{Table, write};

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Integer,
    /// Integers that repeat.
    FewIntegers,
    Real,
    Flag,
    /// Microseconds since 1970; not every engine reads nanoseconds as a time.
    Time,
}

impl Kind {
    /// The type as SQL calls it.
    #[cfg(test)]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer | Self::FewIntegers => "bigint",
            Self::Real => "double",
            Self::Flag => "boolean",
            Self::Time => "timestamp",
        }
    }
}

/// A column of a table whose rows are made from an `R`.
#[derive(Debug)]
pub(crate) struct Field<R> {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// What it means; the documentation says the same.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test compares it with the documentation"))]
    pub(crate) what: &'static str,
    pub(crate) of: fn(&R) -> Value<'_>,
}

impl<R> Field<R> {
    pub(crate) fn text(name: &'static str, what: &'static str, of: fn(&R) -> Value<'_>) -> Self {
        Self { name, kind: Kind::Text, what, of }
    }

    pub(crate) fn integer(name: &'static str, what: &'static str, of: fn(&R) -> Value<'_>) -> Self {
        Self { name, kind: Kind::Integer, what, of }
    }

    pub(crate) fn few(name: &'static str, what: &'static str, of: fn(&R) -> Value<'_>) -> Self {
        Self { name, kind: Kind::FewIntegers, what, of }
    }

    pub(crate) fn real(name: &'static str, what: &'static str, of: fn(&R) -> Value<'_>) -> Self {
        Self { name, kind: Kind::Real, what, of }
    }

    pub(crate) fn flag(name: &'static str, what: &'static str, of: fn(&R) -> Value<'_>) -> Self {
        Self { name, kind: Kind::Flag, what, of }
    }

    pub(crate) fn time(name: &'static str, what: &'static str, of: fn(&R) -> Value<'_>) -> Self {
        Self { name, kind: Kind::Time, what, of }
    }
}

/// A value of a row. It must be of its column's kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    Nothing,
    Text(&'a str),
    Integer(i64),
    Real(f64),
    Flag(bool),
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

impl From<bool> for Value<'_> {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<u32> for Value<'_> {
    fn from(number: u32) -> Self {
        Self::Integer(number.into())
    }
}

/// SQL's integers have a sign. No time or size of a recording is as large as their limit.
impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u128> for Value<'_> {
    fn from(number: u128) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nothing, Into::into)
    }
}
