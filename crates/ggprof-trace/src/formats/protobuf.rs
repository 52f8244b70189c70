//! Writes messages of Protocol Buffers: fields with their numbers, and messages inside of messages.
//! The writers of formats that use it know the numbers.

/// A message that is being written.
#[derive(Debug, Default, Clone)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

/// How a value is stored, in the lowest bits of its key.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH: u32 = 2;

impl Message {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Also for booleans and the numbers of enums.
    pub(super) fn number(&mut self, field: u32, value: u64) -> &mut Self {
        self.key(field, VARINT);
        self.varint(value);
        self
    }

    pub(super) fn fixed64(&mut self, field: u32, value: u64) -> &mut Self {
        self.key(field, FIXED64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn double(&mut self, field: u32, value: f64) -> &mut Self {
        self.fixed64(field, value.to_bits())
    }

    pub(super) fn text(&mut self, field: u32, text: &str) -> &mut Self {
        self.raw(field, text.as_bytes())
    }

    /// A message that was written before.
    pub(super) fn message(&mut self, field: u32, message: &Message) -> &mut Self {
        self.raw(field, &message.bytes)
    }

    /// A message that is written here.
    pub(super) fn with(&mut self, field: u32, write: impl FnOnce(&mut Message)) -> &mut Self {
        let mut message = Message::default();
        write(&mut message);
        self.message(field, &message)
    }

    /// The fields of another message, as if they were written here.
    pub(super) fn append(&mut self, message: &Message) -> &mut Self {
        self.bytes.extend_from_slice(&message.bytes);
        self
    }

    /// Numbers one after the other in one field.
    pub(super) fn packed(&mut self, field: u32, values: &[u64]) -> &mut Self {
        let mut message = Message::default();
        values.iter().for_each(|&value| message.varint(value));
        self.message(field, &message)
    }

    fn raw(&mut self, field: u32, bytes: &[u8]) -> &mut Self {
        self.key(field, LENGTH);
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
        self
    }

    fn key(&mut self, field: u32, kind: u32) {
        self.varint(u64::from(field << 3 | kind));
    }

    /// Seven bits a byte, the lowest first; all but the last byte have their highest bit set.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

/// Reads messages again, for tests of the writers.
#[cfg(test)]
pub(super) mod read {
    /// A field's number and what is in it.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(in crate::formats) enum Value<'b> {
        Number(u64),
        Bytes(&'b [u8]),
    }

    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (first, rest) = bytes.split_first().expect("a whole number");
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                break;
            }
        }
        value
    }

    pub(in crate::formats) fn fields(mut bytes: &[u8]) -> Vec<(u32, Value<'_>)> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let value = match key & 7 {
                0 => Value::Number(varint(&mut bytes)),
                1 => {
                    let (number, rest) = bytes.split_first_chunk().expect("eight bytes");
                    bytes = rest;
                    Value::Number(u64::from_le_bytes(*number))
                }
                2 => {
                    let length = varint(&mut bytes) as usize;
                    let (value, rest) = bytes.split_at(length);
                    bytes = rest;
                    Value::Bytes(value)
                }
                other => panic!("no writer here uses {other}"),
            };
            fields.push(((key >> 3) as u32, value));
        }
        fields
    }

    pub(in crate::formats) fn packed(mut bytes: &[u8]) -> Vec<u64> {
        let mut values = Vec::new();
        while !bytes.is_empty() {
            values.push(varint(&mut bytes));
        }
        values
    }

    /// All values of one field.
    pub(in crate::formats) fn all<'b>(bytes: &'b [u8], field: u32) -> Vec<Value<'b>> {
        let fields = fields(bytes).into_iter().filter(|(number, _)| *number == field);
        fields.map(|(_, value)| value).collect()
    }

    pub(in crate::formats) fn number(bytes: &[u8], field: u32) -> Option<u64> {
        all(bytes, field).into_iter().find_map(|value| match value {
            Value::Number(number) => Some(number),
            Value::Bytes(_) => None,
        })
    }

    pub(in crate::formats) fn messages(bytes: &[u8], field: u32) -> Vec<&[u8]> {
        let only_bytes = |value| match value {
            Value::Bytes(bytes) => Some(bytes),
            Value::Number(_) => None,
        };
        all(bytes, field).into_iter().filter_map(only_bytes).collect()
    }

    pub(in crate::formats) fn text(bytes: &[u8], field: u32) -> Option<&str> {
        messages(bytes, field).first().map(|text| std::str::from_utf8(text).expect("text"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes from the description of the encoding.
    #[test]
    fn as_the_encoding_is_described() {
        let mut message = Message::default();
        message.number(1, 150).text(2, "testing").with(3, |inner| _ = inner.number(1, 150));
        message.packed(6, &[3, 270, 86_942]).number(5, -2i64 as u64).fixed64(7, 1);
        let expected = [
            &[0x08, 0x96, 0x01][..],
            &[0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67],
            &[0x1a, 0x03, 0x08, 0x96, 0x01],
            &[0x32, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05],
            &[0x28, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            &[0x39, 1, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(message.bytes(), expected.concat());
        assert_eq!(read::number(message.bytes(), 5), Some(-2i64 as u64));
        assert_eq!(read::packed(read::messages(message.bytes(), 6)[0]), [3, 270, 86_942]);
    }
}
