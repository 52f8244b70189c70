//! Positions of tokens, where no call of libllama says them: programs and libraries that contain it hide
//! the call. Every `ROPE` turns vectors by the positions of their tokens, which are one of the graph's
//! inputs: numbers in the host's memory, or a copy of those that the scheduler has just made. They are
//! read once per graph run, when the first split with such a node begins.
//!
//! Neighbours whose positions follow each other are of one sequence. Two sequences that happen to stand at
//! following positions look like one.

use ggprof_spool::layout::{
    BATCH_FROM_POSITIONS, BATCH_MOST_SEQUENCES, BATCH_OUTPUTS_UNSAID, BATCH_PARTLY_KNOWN,
    BATCH_SEQUENCE_BYTES, BatchBegin, BatchEnd, BatchSequence,
};

use super::batches;
use super::contexts;
use super::host_numbers::{has_numbers, readable};
use super::instance::Instance;
use super::nodes_of_op::NodesOfOp;
use super::this_thread::ThisThread;
use crate::fault::fault_point;
use crate::ffi::api::Pointer;
use crate::ffi::tensor::{Tensor, TensorLayout};
use crate::recorder::lane::HeldLane;

/// The source of a `ROPE` that holds the positions.
const POSITIONS: usize = 1;
/// More tokens than any program computes at once: reading them takes as long as recording some ops.
const MOST_TOKENS: usize = 1 << 14;

/// A split of a recorded run is about to be computed.
pub(super) fn note(
    this: &ThisThread,
    lane: &HeldLane<'_>,
    instance: &Instance,
    (nodes, shape): (&[*const u8], u32),
    ropes: &mut NodesOfOp,
) {
    if !this.call.get().is_null() || this.positions_call.get() != 0 {
        return;
    }
    let Some((layout, _)) = &instance.layouts else { return };
    let Some(&rope) = ropes.of(b"ROPE", shape, instance, layout, nodes).first() else { return };
    let Some(&node) = nodes.get(rope as usize) else { return };
    // SAFETY: a node of the graph that ggml is about to compute, of this instance.
    let node = unsafe { Tensor::new(node, layout) };
    let Some(sequences) = read(this, instance, layout, node) else { return };
    fault_point!();
    let call = batches::next_call();
    this.positions_call.set(call);
    write(this, lane, call, &sequences);
}

/// A recorded run of this thread has ended.
pub(super) fn note_end(this: &ThisThread, lane: &HeldLane<'_>, status: i32, ticks: u64) {
    let call = this.positions_call.replace(0);
    if call != 0 {
        lane.put(&BatchEnd { call, status, ticks, ..Default::default() }.encode());
    }
}

fn read(
    this: &ThisThread,
    instance: &Instance,
    layout: &TensorLayout,
    node: Tensor<'_>,
) -> Option<Vec<BatchSequence>> {
    let positions = node.source(POSITIONS)?;
    let tokens = usize::try_from(node.ne()[2]).ok().filter(|it| (1..=MOST_TOKENS).contains(it))?;
    let source = this.copied_from(positions.address()).map(|source| {
        // SAFETY: the scheduler copied it for this very run, until whose end it holds its inputs.
        unsafe { Tensor::new(source as *const u8, layout) }
    });
    let mut found = [Some(positions), source].into_iter().flatten();
    let data = found.find_map(|it| {
        // A tensor with several positions for each token, as models of images have, is left alone.
        let is_plain = it.ne() == [tokens as i64, 1, 1, 1] && it.nb()[0] == size_of::<i32>() as u64;
        let is_wanted = is_plain && has_numbers(instance, it);
        readable(instance, it, tokens * size_of::<i32>()).filter(|_| is_wanted)
    })?;
    let position = |at: usize| {
        // SAFETY: inside a buffer of the host's (`readable`), which holds the graph's inputs while
        // ggml computes it.
        unsafe { data.add(at * size_of::<i32>()).cast::<i32>().read_unaligned() }
    };
    sequences((0..tokens).map(position))
}

/// Stretches of positions that follow each other. `None` where these are no positions.
fn sequences(positions: impl Iterator<Item = i32>) -> Option<Vec<BatchSequence>> {
    let mut found: Vec<BatchSequence> = Vec::new();
    for position in positions {
        if position < 0 {
            return None;
        }
        match found.last_mut() {
            Some(sequence) if sequence.last.checked_add(1) == Some(position) => {
                sequence.last = position;
                sequence.tokens += 1;
            }
            _ => {
                let sequence = found.len() as i32;
                let (first, last, tokens) = (position, position, 1);
                found.push(BatchSequence { sequence, first, last, tokens, outputs: 0 });
            }
        }
    }
    Some(found)
}

fn write(this: &ThisThread, lane: &HeldLane<'_>, call: u32, sequences: &[BatchSequence]) {
    let is_partly_known = sequences.len() > BATCH_MOST_SEQUENCES;
    let partly_known = if is_partly_known { BATCH_PARTLY_KNOWN } else { 0 };
    let listed = &sequences[..sequences.len().min(BATCH_MOST_SEQUENCES)];
    let begin = BatchBegin {
        flags: BATCH_FROM_POSITIONS | BATCH_OUTPUTS_UNSAID | partly_known,
        call,
        context: context(this),
        os_thread: this.os_thread(),
        tokens: sequences.iter().map(|sequence| sequence.tokens).sum(),
        sequences: listed.len() as u32,
        ticks: this.run_start.get(),
        ..Default::default()
    };
    let mut tail = Vec::with_capacity(listed.len() * BATCH_SEQUENCE_BYTES);
    listed.iter().for_each(|sequence| tail.extend_from_slice(&sequence.encode()));
    lane.put_long(&mut begin.encode(), &tail);
}

/// Each scheduler stands for a context of its own.
fn context(this: &ThisThread) -> u32 {
    contexts::number(this.scheduler.get() as Pointer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(positions: &[i32]) -> Option<Vec<(i32, i32, u32)>> {
        let sequences = sequences(positions.iter().copied())?;
        Some(sequences.iter().map(|it| (it.first, it.last, it.tokens)).collect())
    }

    #[test]
    fn stretches_of_positions_are_sequences() {
        assert_eq!(found(&[0, 1, 2]), Some(vec![(0, 2, 3)]));
        assert_eq!(found(&[7, 7, 3, 0, 1]), Some(vec![(7, 7, 1), (7, 7, 1), (3, 3, 1), (0, 1, 2)]));
        assert_eq!(found(&[0, -1]), None);
        assert_eq!(found(&[i32::MAX, 0]), Some(vec![(i32::MAX, i32::MAX, 1), (0, 0, 1)]));
    }
}
