//! The numbers by which the recorded program's ggml knows its ops. They move between versions, so
//! whatever hands ops to another ggml asks by name.

use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpNumbers {
    /// `None` for an op that two copies of ggml in one program number differently.
    numbers: BTreeMap<String, Option<u32>>,
}

impl OpNumbers {
    pub fn insert(&mut self, op: &str, number: u32) {
        match self.numbers.get_mut(op) {
            Some(known) if *known == Some(number) => {}
            Some(known) => *known = None,
            None => _ = self.numbers.insert(op.to_owned(), Some(number)),
        }
    }

    pub fn get(&self, op: &str) -> Option<u32> {
        *self.numbers.get(op)?
    }

    /// All that are known, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        self.numbers.iter().filter_map(|(op, number)| Some((op.as_str(), (*number)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::OpNumbers;

    #[test]
    fn a_number_that_is_disputed_is_none() {
        let mut numbers = OpNumbers::default();
        for (op, number) in [("ADD", 2), ("ADD", 2), ("MUL", 6), ("MUL", 7), ("MUL", 6)] {
            numbers.insert(op, number);
        }
        assert_eq!(
            (numbers.get("ADD"), numbers.get("MUL"), numbers.get("DIV")),
            (Some(2), None, None)
        );
        assert_eq!(numbers.iter().collect::<Vec<_>>(), [("ADD", 2)]);
    }
}
