//! Columns of numbers as bytes: what compresses well and decodes without a library.
//!
//! A column is cut into planes: the low bytes of all its numbers, then the next bytes, and
//! so on, as many as its largest number needs. High bytes hardly change from one event to
//! the next, and so cost next to nothing once they stand side by side. Columns that grow or
//! repeat are stored as differences to the number before.

use serde_json::{Value, json};

#[derive(Debug, Default)]
pub(super) struct Columns {
    bytes: Vec<u8>,
    described: Vec<Value>,
}

impl Columns {
    /// Numbers as they are.
    pub(super) fn plain(&mut self, name: &str, numbers: impl Iterator<Item = u64>) {
        let numbers: Vec<u64> = numbers.collect();
        self.add(name, "plain", &numbers, &numbers);
    }

    /// Numbers as differences, where each is close to the one before.
    pub(super) fn steps(&mut self, name: &str, numbers: impl Iterator<Item = u64>) {
        let numbers: Vec<u64> = numbers.collect();
        let before = std::iter::once(0).chain(numbers.iter().copied());
        let steps: Vec<u64> =
            numbers.iter().zip(before).map(|(&number, before)| step(before, number)).collect();
        self.add(name, "steps", &numbers, &steps);
    }

    /// The descriptions, in order, and the bytes.
    pub(super) fn finish(self) -> (Value, Vec<u8>) {
        (Value::from(self.described), self.bytes)
    }

    fn add(&mut self, name: &str, coding: &str, numbers: &[u64], stored: &[u64]) {
        let largest = |of: &[u64]| of.iter().copied().max().unwrap_or(0);
        let width = (64 - largest(stored).leading_zeros()).div_ceil(8);
        self.described.push(json!({
            "name": name,
            "coding": coding,
            "width": width,
            "length": numbers.len(),
            // What does not fit 32 bits becomes a floating point number in the page.
            "wide": largest(numbers) > u64::from(u32::MAX),
        }));
        self.bytes.reserve(stored.len() * width as usize);
        for plane in 0..width {
            self.bytes.extend(stored.iter().map(|number| (number >> (8 * plane)) as u8));
        }
    }
}

/// A difference with its sign in the lowest bit: 0, -1, 1, -2, … become 0, 1, 2, 3, …
fn step(before: u64, number: u64) -> u64 {
    let difference = number.wrapping_sub(before) as i64;
    ((difference << 1) ^ (difference >> 63)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_and_steps() {
        let mut columns = Columns::default();
        columns.plain("a", [1, 0x0203, 0].into_iter());
        columns.steps("b", [10, 9, 11].into_iter());
        columns.plain("none", [0, 0].into_iter());
        columns.plain("empty", std::iter::empty());
        columns.plain("far", [u64::MAX].into_iter());
        let (described, bytes) = columns.finish();
        assert_eq!(bytes[..6], [1, 3, 0, 0, 2, 0]);
        assert_eq!(bytes[6..9], [20, 1, 4]);
        assert_eq!(bytes[9..], [255; 8]);
        let widths: Vec<u64> = described
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["width"].as_u64().unwrap())
            .collect();
        assert_eq!(widths, [2, 1, 0, 0, 8]);
        assert_eq!(described[4]["wide"], true);
    }
}
