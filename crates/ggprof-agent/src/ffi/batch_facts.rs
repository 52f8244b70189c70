//! What a batch holds: how many tokens, of which sequences and at which positions, and how many results
//! are asked for. Whoever knows a batch counts its tokens here, one by one.

use ggprof_spool::layout::{BATCH_MOST_SEQUENCES, BATCH_PARTLY_KNOWN, BatchSequence};

#[derive(Debug)]
pub(crate) struct BatchFacts {
    pub(crate) flags: u8,
    pub(crate) tokens: u32,
    pub(crate) outputs: u32,
    pub(crate) sequences: Vec<BatchSequence>,
}

impl BatchFacts {
    /// The facts of a batch with so many tokens, none of which is counted yet.
    pub(crate) fn new(tokens: u32) -> BatchFacts {
        BatchFacts { flags: 0, tokens, outputs: 0, sequences: Vec::new() }
    }

    /// Of one about which nothing more is known.
    pub(crate) fn unread(tokens: u32) -> BatchFacts {
        BatchFacts { flags: BATCH_PARTLY_KNOWN, ..BatchFacts::new(tokens) }
    }

    /// Counts a token for one of its sequences.
    pub(crate) fn count(
        &mut self,
        places: &mut Places,
        sequence: i32,
        position: i32,
        wants_output: bool,
    ) {
        let known = places.find(sequence, &self.sequences);
        let has_room = self.sequences.len() < BATCH_MOST_SEQUENCES;
        if sequence < 0 || known.is_none() && !has_room {
            self.flags |= BATCH_PARTLY_KNOWN;
            return;
        }
        let place = known.unwrap_or(self.sequences.len());
        if known.is_none() {
            let (first, last) = (position, position);
            let (tokens, outputs) = (0, 0);
            self.sequences.push(BatchSequence { sequence, first, last, tokens, outputs });
            places.note(sequence, place);
        }
        let entry = &mut self.sequences[place];
        entry.first = entry.first.min(position);
        entry.last = entry.last.max(position);
        entry.tokens += 1;
        entry.outputs += u32::from(wants_output);
    }
}

/// Where sequences are in the list, by the lowest byte of their numbers. Each token is looked up, and one
/// may be of all sequences, so there must be no search. Only where numbers share a byte, there is: libllama
/// numbers sequences from 0, and has as many as a record lists.
#[derive(Debug)]
pub(crate) struct Places([u16; 1 << u8::BITS]);

impl Places {
    pub(crate) fn new() -> Places {
        Places([0; 1 << u8::BITS])
    }

    fn find(&self, sequence: i32, list: &[BatchSequence]) -> Option<usize> {
        let is_it = |other: &BatchSequence| other.sequence == sequence;
        let place = usize::from(self.0[usize::from(sequence as u8)]).checked_sub(1)?;
        match list.get(place).is_some_and(is_it) {
            true => Some(place),
            false => list.iter().rposition(is_it),
        }
    }

    fn note(&mut self, sequence: i32, place: usize) {
        self.0[usize::from(sequence as u8)] = place as u16 + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A token of each sequence, again and again.
    fn counted(sequences: impl Iterator<Item = i32> + Clone, times: i32) -> BatchFacts {
        let (mut facts, mut places) = (BatchFacts::new(0), Places::new());
        for position in 0..times {
            for sequence in sequences.clone() {
                facts.count(&mut places, sequence, position, position == 0);
            }
        }
        facts
    }

    #[test]
    fn all_sequences_that_libllama_can_have_are_listed() {
        let facts = counted(0..256, 3);
        assert_eq!((facts.flags, facts.sequences.len()), (0, 256));
        for (at, entry) in (0..).zip(&facts.sequences) {
            let BatchSequence { sequence, first, last, tokens, outputs } = *entry;
            assert_eq!((sequence, first, last, tokens, outputs), (at, 0, 2, 3, 1));
        }
        assert_eq!(counted(0..257, 2).flags, BATCH_PARTLY_KNOWN);
    }

    #[test]
    fn sequences_whose_numbers_end_alike_are_told_apart() {
        let numbers = [3, 3 + 256, 3 + 512, 1_000_000];
        let facts = counted(numbers.into_iter(), 2);
        let listed: Vec<_> = facts.sequences.iter().map(|it| (it.sequence, it.tokens)).collect();
        assert_eq!((facts.flags, listed), (0, numbers.map(|it| (it, 2)).to_vec()));
    }
}
