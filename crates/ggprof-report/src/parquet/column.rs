//! The values of a column in one group of rows, and the pages that they become.

use super::thrift::structure;
use super::{Kind, Value, packed};
use flate2::Compression;
use flate2::write::GzEncoder;
use hashbrown::HashMap;
use std::io::{self, Write};

// Numbers of the format.
const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const DELTA_BINARY_PACKED: i32 = 5;
const RLE_DICTIONARY: i32 = 8;
const UNCOMPRESSED: i32 = 0;
const GZIP: i32 = 2;

/// A column while a group of rows is filled.
pub(super) struct Column {
    values: Values,
    /// 1 for each row that has a value.
    present: Vec<u32>,
}

enum Values {
    Texts(Dictionary<String>),
    FewIntegers(Dictionary<i64>),
    Integers(Vec<i64>),
    Reals(Vec<f64>),
    Flags(Vec<bool>),
}

/// Distinct values in the order of their first use, and which of them each row has.
struct Dictionary<T> {
    lookup: HashMap<T, u32>,
    entries: Vec<T>,
    rows: Vec<u32>,
}

impl<T> Default for Dictionary<T> {
    fn default() -> Self {
        Self { lookup: HashMap::new(), entries: Vec::new(), rows: Vec::new() }
    }
}

/// What the file's footer says of a column of a group.
pub(super) struct Chunk {
    pub(super) codec: i32,
    pub(super) encodings: Vec<i32>,
    pub(super) values: i64,
    pub(super) dictionary_offset: Option<i64>,
    pub(super) data_offset: i64,
    pub(super) bytes: i64,
    pub(super) uncompressed_bytes: i64,
    pub(super) nulls: i64,
    /// The least and the greatest value.
    pub(super) range: Option<(Vec<u8>, Vec<u8>)>,
}

impl Column {
    pub(super) fn new(kind: Kind) -> Self {
        let values = match kind {
            Kind::Text => Values::Texts(Dictionary::default()),
            Kind::FewIntegers => Values::FewIntegers(Dictionary::default()),
            Kind::Integer | Kind::Time => Values::Integers(Vec::new()),
            Kind::Real => Values::Reals(Vec::new()),
            Kind::Flag => Values::Flags(Vec::new()),
        };
        Self { values, present: Vec::new() }
    }

    pub(super) fn push(&mut self, value: Value<'_>) {
        self.present.push((value != Value::Nothing).into());
        match (&mut self.values, value) {
            (_, Value::Nothing) => {}
            (Values::Texts(it), Value::Text(text)) => match it.lookup.get(text) {
                Some(&entry) => it.rows.push(entry),
                None => it.add(text.to_owned()),
            },
            (Values::FewIntegers(it), Value::Integer(number)) => match it.lookup.get(&number) {
                Some(&entry) => it.rows.push(entry),
                None => it.add(number),
            },
            (Values::Integers(it), Value::Integer(number)) => it.push(number),
            (Values::Reals(it), Value::Real(number)) => it.push(number),
            (Values::Flags(it), Value::Flag(flag)) => it.push(flag),
            (_, value) => unreachable!("{value:?} is not of its column's kind"),
        }
    }

    /// Appends the pages to `out`, whose first byte stands at `offset` of the file.
    pub(super) fn pages(&self, offset: usize, out: &mut Vec<u8>) -> io::Result<Chunk> {
        let mut pages: Vec<Page> = Vec::new();
        pages.extend(self.dictionary());
        pages.push(self.data());
        let encodings = pages.iter().map(|page| page.encoding).chain([RLE]).collect();
        let plain: usize = pages.iter().map(|page| page.body.len()).sum();
        let packed = pages.iter().map(|page| gzip(&page.body)).collect::<io::Result<Vec<_>>>()?;
        // A few bytes only grow by being compressed.
        let is_packed = packed.iter().map(Vec::len).sum::<usize>() < plain;
        let (begin, mut offsets) = (out.len(), Vec::new());
        let mut heads = 0;
        for (page, packed) in pages.iter().zip(&packed) {
            let body = if is_packed { packed } else { &page.body };
            let at = out.len();
            offsets.push((offset + at) as i64);
            page.head(body.len(), out);
            heads += out.len() - at;
            out.extend_from_slice(body);
        }
        Ok(Chunk {
            codec: if is_packed { GZIP } else { UNCOMPRESSED },
            encodings,
            values: self.present.len() as i64,
            dictionary_offset: (offsets.len() > 1).then(|| offsets[0]),
            data_offset: *offsets.last().unwrap_or(&0),
            bytes: (out.len() - begin) as i64,
            uncompressed_bytes: (heads + plain) as i64,
            nulls: self.present.iter().filter(|&&present| present == 0).count() as i64,
            range: self.range(),
        })
    }

    /// `None` for columns without one, and where there is no value.
    fn dictionary(&self) -> Option<Page> {
        let (entries, body) = match &self.values {
            Values::Texts(it) => (it.entries.len(), plain_texts(&it.entries)),
            Values::FewIntegers(it) => (it.entries.len(), plain_integers(&it.entries)),
            _ => return None,
        };
        let page = Page { kind: DICTIONARY_PAGE, encoding: PLAIN, values: entries, body };
        (entries > 0).then_some(page)
    }

    fn data(&self) -> Page {
        let mut levels = Vec::new();
        packed::runs(&mut levels, &self.present, 1);
        let mut body = (levels.len() as u32).to_le_bytes().to_vec();
        body.append(&mut levels);
        let encoding = match &self.values {
            Values::Texts(it) => entries_of_rows(&mut body, &it.rows, it.entries.len()),
            Values::FewIntegers(it) => entries_of_rows(&mut body, &it.rows, it.entries.len()),
            Values::Integers(it) if !it.is_empty() => {
                packed::differences(&mut body, it);
                DELTA_BINARY_PACKED
            }
            Values::Integers(_) => PLAIN,
            Values::Reals(it) => {
                it.iter().for_each(|number| body.extend_from_slice(&number.to_le_bytes()));
                PLAIN
            }
            Values::Flags(it) => {
                let byte = |flags: &[bool]| {
                    flags.iter().rev().fold(0u8, |byte, &flag| byte << 1 | u8::from(flag))
                };
                body.extend(it.chunks(8).map(byte));
                PLAIN
            }
        };
        Page { kind: DATA_PAGE, encoding, values: self.present.len(), body }
    }

    fn range(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let integers = |values: &[i64]| {
            let (least, most) = (values.iter().min()?, values.iter().max()?);
            Some((least.to_le_bytes().to_vec(), most.to_le_bytes().to_vec()))
        };
        match &self.values {
            Values::Integers(it) => integers(it),
            Values::FewIntegers(it) => integers(&it.entries),
            Values::Texts(it) => {
                let (least, most) = (it.entries.iter().min()?, it.entries.iter().max()?);
                Some((least.clone().into_bytes(), most.clone().into_bytes()))
            }
            Values::Reals(_) | Values::Flags(_) => None,
        }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Dictionary<T> {
    fn add(&mut self, value: T) {
        let entry = self.entries.len() as u32;
        self.entries.push(value.clone());
        self.lookup.insert(value, entry);
        self.rows.push(entry);
    }
}

/// Which entry of the dictionary each row has; without rows, nothing.
fn entries_of_rows(body: &mut Vec<u8>, rows: &[u32], entries: usize) -> i32 {
    if rows.is_empty() {
        return PLAIN;
    }
    let width = packed::width_of(entries as u64 - 1).max(1);
    body.push(width as u8);
    packed::runs(body, rows, width);
    RLE_DICTIONARY
}

fn plain_texts(texts: &[String]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for text in texts {
        bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

fn plain_integers(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::with_capacity(bytes.len() / 2), Compression::fast());
    packer.write_all(bytes)?;
    packer.finish()
}

struct Page {
    kind: i32,
    encoding: i32,
    values: usize,
    body: Vec<u8>,
}

impl Page {
    fn head(&self, stored_bytes: usize, out: &mut Vec<u8>) {
        structure(out, |page| {
            page.int32(1, self.kind);
            page.int32(2, self.body.len() as i32);
            page.int32(3, stored_bytes as i32);
            let is_dictionary = self.kind == DICTIONARY_PAGE;
            page.structure(if is_dictionary { 7 } else { 5 }, |head| {
                head.int32(1, self.values as i32);
                head.int32(2, self.encoding);
                if !is_dictionary {
                    // How it is said which rows have a value; and which repeat, which is unused.
                    head.int32(3, RLE);
                    head.int32(4, RLE);
                }
            });
        });
    }
}
