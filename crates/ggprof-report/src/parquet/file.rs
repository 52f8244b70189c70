//! A file of Parquet: groups of rows, and the footer that says where what is.

use super::column::{Chunk, Column};
use super::thrift::{Structure, structure};
use super::{Field, Kind};
use std::io::{self, Write};

const MAGIC: &[u8; 4] = b"PAR1";
/// Rows that are in memory at once. Engines share out the work by such groups, and skip those that
/// a question is not about.
const GROUP: usize = 128 * 1024;

// Numbers of the format.
const BOOLEAN: i32 = 0;
const INT64: i32 = 2;
const DOUBLE: i32 = 5;
const BYTE_ARRAY: i32 = 6;
const OPTIONAL: i32 = 1;
const UTF8: i32 = 0;
const TIMESTAMP_MICROS: i32 = 10;

/// What is written of a table beside its rows.
pub(crate) struct Table<R> {
    pub(crate) fields: Vec<Field<R>>,
    /// The column that the rows are ordered by.
    pub(crate) ordered_by: Option<&'static str>,
    /// Keys and values about the whole table.
    pub(crate) about: Vec<(&'static str, String)>,
}

struct Group {
    rows: usize,
    chunks: Vec<Chunk>,
}

/// Writes a table. No more than a group of its rows is kept.
pub(crate) fn write<R>(
    out: &mut dyn Write,
    table: &Table<R>,
    rows: impl IntoIterator<Item = R>,
) -> io::Result<()> {
    out.write_all(MAGIC)?;
    let (mut offset, mut groups) = (MAGIC.len(), Vec::new());
    let mut rows = rows.into_iter().peekable();
    while rows.peek().is_some() {
        let (group, bytes) = group(table, rows.by_ref().take(GROUP), offset)?;
        out.write_all(&bytes)?;
        offset += bytes.len();
        groups.push(group);
    }
    let mut footer = Vec::new();
    structure(&mut footer, |it| describe(it, table, &groups));
    out.write_all(&footer)?;
    out.write_all(&(footer.len() as u32).to_le_bytes())?;
    out.write_all(MAGIC)
}

/// A group of rows and its bytes, the first of which stands at `offset` of the file.
fn group<R>(
    table: &Table<R>,
    rows: impl Iterator<Item = R>,
    offset: usize,
) -> io::Result<(Group, Vec<u8>)> {
    let mut columns: Vec<Column> =
        table.fields.iter().map(|field| Column::new(field.kind)).collect();
    let mut count = 0;
    for row in rows {
        count += 1;
        for (column, field) in columns.iter_mut().zip(&table.fields) {
            column.push((field.of)(&row));
        }
    }
    let mut bytes = Vec::new();
    let chunks = columns.iter().map(|column| column.pages(offset, &mut bytes));
    let chunks = chunks.collect::<io::Result<Vec<_>>>()?;
    Ok((Group { rows: count, chunks }, bytes))
}

fn describe<R>(footer: &mut Structure<'_>, table: &Table<R>, groups: &[Group]) {
    let Table { fields, about, .. } = table;
    footer.int32(1, 2);
    // The first element is the table, the others are its columns.
    let elements: Vec<Option<&Field<R>>> =
        [None].into_iter().chain(fields.iter().map(Some)).collect();
    footer.structures(2, &elements, |it, field| match field {
        Some(field) => describe_column(it, field),
        None => {
            it.bytes(4, b"table");
            it.int32(5, fields.len() as i32);
        }
    });
    footer.int64(3, groups.iter().map(|group| group.rows as i64).sum());
    footer.structures(4, groups, |it, group| describe_group(it, table, group));
    footer.structures(5, about, |it, (key, value)| {
        it.bytes(1, key.as_bytes());
        it.bytes(2, value.as_bytes());
    });
    footer.bytes(6, concat!("ggprof version ", env!("CARGO_PKG_VERSION")).as_bytes());
    // Least and greatest values are by the order of each column's type.
    footer.structures(7, fields, |it, _| it.structure(1, |_| {}));
}

fn describe_column<R>(element: &mut Structure<'_>, field: &Field<R>) {
    element.int32(1, type_of(field.kind));
    element.int32(3, OPTIONAL);
    element.bytes(4, field.name.as_bytes());
    match field.kind {
        Kind::Text => {
            element.int32(6, UTF8);
            element.structure(10, |meaning| meaning.structure(1, |_| {}));
        }
        Kind::Time => {
            element.int32(6, TIMESTAMP_MICROS);
            element.structure(10, |meaning| {
                meaning.structure(8, |time| {
                    time.flag(1, true);
                    time.structure(2, |unit| unit.structure(2, |_| {}));
                });
            });
        }
        Kind::Integer | Kind::FewIntegers | Kind::Real | Kind::Flag => {}
    }
}

fn type_of(kind: Kind) -> i32 {
    match kind {
        Kind::Text => BYTE_ARRAY,
        Kind::Integer | Kind::FewIntegers | Kind::Time => INT64,
        Kind::Real => DOUBLE,
        Kind::Flag => BOOLEAN,
    }
}

fn describe_group<R>(it: &mut Structure<'_>, table: &Table<R>, group: &Group) {
    let Table { fields, ordered_by, .. } = table;
    let columns: Vec<(&Field<R>, &Chunk)> = fields.iter().zip(&group.chunks).collect();
    it.structures(1, &columns, |it, (field, chunk)| {
        // Where the column's own description would be if it stood behind its pages.
        it.int64(2, 0);
        it.structure(3, |it| describe_chunk(it, field, chunk));
    });
    it.int64(2, group.chunks.iter().map(|chunk| chunk.uncompressed_bytes).sum());
    it.int64(3, group.rows as i64);
    let order = ordered_by.and_then(|name| fields.iter().position(|field| field.name == name));
    if let Some(order) = order {
        it.structures(4, &[order as i32], |it, &column| {
            it.int32(1, column);
            it.flag(2, false);
            it.flag(3, false);
        });
    }
    it.int64(6, group.chunks.iter().map(|chunk| chunk.bytes).sum());
}

fn describe_chunk<R>(it: &mut Structure<'_>, field: &Field<R>, chunk: &Chunk) {
    it.int32(1, type_of(field.kind));
    it.int32s(2, &chunk.encodings);
    it.texts(3, &[field.name]);
    it.int32(4, chunk.codec);
    it.int64(5, chunk.values);
    it.int64(6, chunk.uncompressed_bytes);
    it.int64(7, chunk.bytes);
    it.int64(9, chunk.data_offset);
    if let Some(offset) = chunk.dictionary_offset {
        it.int64(11, offset);
    }
    it.structure(12, |it| {
        it.int64(3, chunk.nulls);
        if let Some((least, most)) = &chunk.range {
            it.bytes(5, most);
            it.bytes(6, least);
        }
    });
}
