//! Thrift's compact protocol, as Parquet writes what it says about its data.

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const INT32: u8 = 5;
const INT64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A structure while its fields are written, which must be in the order of their numbers.
pub(super) struct Structure<'o> {
    out: &'o mut Vec<u8>,
    last: u8,
}

/// Appends a structure whose fields `fill` writes.
pub(super) fn structure(out: &mut Vec<u8>, fill: impl FnOnce(&mut Structure<'_>)) {
    fill(&mut Structure { out, last: 0 });
    out.push(0);
}

impl Structure<'_> {
    /// Numbers of Parquet's fields are so close to each other that their difference fits.
    fn field(&mut self, number: u8, kind: u8) {
        self.out.push((number - self.last) << 4 | kind);
        self.last = number;
    }

    pub(super) fn flag(&mut self, number: u8, flag: bool) {
        self.field(number, if flag { TRUE } else { FALSE });
    }

    pub(super) fn int32(&mut self, number: u8, value: i32) {
        self.field(number, INT32);
        signed(self.out, value.into());
    }

    pub(super) fn int64(&mut self, number: u8, value: i64) {
        self.field(number, INT64);
        signed(self.out, value);
    }

    pub(super) fn bytes(&mut self, number: u8, bytes: &[u8]) {
        self.field(number, BINARY);
        binary(self.out, bytes);
    }

    pub(super) fn structure(&mut self, number: u8, fill: impl FnOnce(&mut Structure<'_>)) {
        self.field(number, STRUCT);
        structure(self.out, fill);
    }

    pub(super) fn structures<T>(
        &mut self,
        number: u8,
        items: &[T],
        fill: impl Fn(&mut Structure<'_>, &T),
    ) {
        self.list(number, STRUCT, items.len());
        items.iter().for_each(|item| structure(self.out, |it| fill(it, item)));
    }

    pub(super) fn int32s(&mut self, number: u8, values: &[i32]) {
        self.list(number, INT32, values.len());
        values.iter().for_each(|&value| signed(self.out, value.into()));
    }

    pub(super) fn texts(&mut self, number: u8, texts: &[&str]) {
        self.list(number, BINARY, texts.len());
        texts.iter().for_each(|text| binary(self.out, text.as_bytes()));
    }

    fn list(&mut self, number: u8, kind: u8, length: usize) {
        self.field(number, LIST);
        match u8::try_from(length) {
            Ok(short @ 0..15) => self.out.push(short << 4 | kind),
            _ => {
                self.out.push(0xf0 | kind);
                unsigned(self.out, length as u64);
            }
        }
    }
}

fn binary(out: &mut Vec<u8>, bytes: &[u8]) {
    unsigned(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Seven bits a byte, the lowest first.
pub(super) fn unsigned(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The sign in the lowest bit, so that small negative numbers are short, too.
pub(super) fn signed(out: &mut Vec<u8>, value: i64) {
    unsigned(out, (value << 1 ^ value >> 63) as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let written = |value| {
            let mut out = Vec::new();
            signed(&mut out, value);
            out
        };
        assert_eq!([written(0), written(-1), written(1)], [[0], [1], [2]]);
        assert_eq!(written(64), [0x80, 1]);
        assert_eq!(written(i64::MIN), [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
    }

    #[test]
    fn structures_name_the_difference_of_their_fields_numbers() {
        let mut out = Vec::new();
        structure(&mut out, |it| {
            it.int32(1, 3);
            it.texts(4, &["ab"]);
            it.flag(6, true);
            it.structure(7, |it| it.flag(2, false));
            it.int32s(8, &[0; 15]);
        });
        let expected: &[u8] = &[
            0x15, 6, // field 1, an integer
            0x39, 0x18, 2, b'a', b'b', // field 4, a list of one string
            0x21, // field 6, true
            0x1c, 0x22, 0, // field 7, a structure with field 2, false
            0x19, 0xf5, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, // field 8, a long list
            0,
        ];
        assert_eq!(out, expected);
    }
}
