//! Which experts the processor uses. A `MUL_MAT_ID` takes its weights by numbers that an earlier
//! node computed, and the memory of those numbers is used again soon after. So the thread that
//! computes the split, which is the first of ggml's threads, copies them when it comes to the node:
//! all threads have finished what came before, and none changes the numbers while they are used.
//!
//! Where to read is worked out before the split begins, and only memory inside a buffer of the
//! host's is read. Of large batches some tokens are enough, evenly spread.

use std::cell::Cell;
use std::ptr::NonNull;

use ggprof_spool::layout::{self, Covered, CoveredHow, CoveredWhy, ExpertCount, Why};

use super::adopted::Adopted;
use super::coverage::{self, Subject};
use super::host_numbers::{has_numbers, readable};
use super::instance::Instance;
use super::this_thread::ThisThread;
use crate::fault::fault_point;
use crate::ffi::tensor::{Tensor, TensorLayout};
use crate::memory;
use crate::recorder::lane::HeldLane;

/// Numbers that are read for one node at most: reading them takes no longer than recording the
/// ops of a layer.
const MOST_NUMBERS: usize = 512;
/// Numbers of experts have 16 bits in the recording.
const MOST_EXPERTS: i64 = 1 << 16;
/// The source that holds the numbers, and the one with the experts.
const NUMBERS: usize = 2;
const EXPERTS: usize = 0;

/// One choice of experts.
#[derive(Debug)]
struct Choice {
    position: u32,
    experts: u32,
    tokens: usize,
    tokens_read: usize,
    per_token: usize,
    /// The tensor with the numbers of the experts, and the address of its data. Later layers may reuse
    /// that memory.
    tensor: usize,
    data: *const u8,
    token_stride: usize,
    /// The first place for its numbers in `Choices::numbers`.
    first: usize,
    is_read: Cell<bool>,
}

/// The choices of a split. Only one thread uses them: it reads the numbers and writes them down.
#[derive(Debug)]
pub(crate) struct Choices {
    choices: Vec<Choice>,
    numbers: Box<[Cell<i32>]>,
    next: Cell<usize>,
    next_position: Cell<u32>,
}

/// Makes a split's choices known to the hooks on this thread, until this is dropped. A split without any
/// that is computed in the middle of another one hides the other's.
#[derive(Debug)]
pub(super) struct Choosing {
    choices: Option<NonNull<Choices>>,
    outer: *const Choices,
}

impl Choosing {
    /// Nothing is read where no experts are used, or their numbers cannot be read.
    pub(super) fn begin(
        this: &ThisThread,
        lane: &HeldLane<'_>,
        adopted: &Adopted,
        nodes: &[*const u8],
        choosers: &[u32],
    ) -> Choosing {
        match plan(lane, adopted, nodes, choosers) {
            Some(choices) => Choosing::of(this, Some(NonNull::from(Box::leak(Box::new(choices))))),
            None => Choosing::nothing(this),
        }
    }

    pub(super) fn nothing(this: &ThisThread) -> Choosing {
        Choosing::of(this, None)
    }

    fn of(this: &ThisThread, choices: Option<NonNull<Choices>>) -> Choosing {
        let found = choices.map_or(std::ptr::null(), |choices| choices.as_ptr().cast_const());
        Choosing { choices, outer: this.choices.replace(found) }
    }

    /// Writes what was read, when the split was computed.
    pub(super) fn write(&self, lane: &HeldLane<'_>, split: u32) {
        if let Some(choices) = &self.choices {
            // SAFETY: made by `begin`, freed by drop only.
            unsafe { choices.as_ref() }.write(lane, split);
        }
    }
}

impl Drop for Choosing {
    fn drop(&mut self) {
        ThisThread::with(|this| this.choices.set(self.outer));
        if let Some(choices) = self.choices {
            // SAFETY: made by `begin`, on this thread (the value cannot leave it), and nobody finds
            // it any more.
            drop(unsafe { Box::from_raw(choices.as_ptr()) });
        }
    }
}

/// Plans which numbers to read, and where; `None` if there are none to read.
fn plan(
    lane: &HeldLane<'_>,
    adopted: &Adopted,
    nodes: &[*const u8],
    choosers: &[u32],
) -> Option<Choices> {
    if choosers.is_empty() {
        return None;
    }
    let instance = adopted.instance()?;
    let (layout, _) = instance.layouts.as_ref()?;
    let why = why_not(adopted, layout);
    cover(lane, adopted, why);
    fault_point!();
    let choices = Choices::planned(instance, layout, nodes, choosers);
    (why.is_none() && !choices.choices.is_empty()).then_some(choices)
}

/// Why the numbers cannot be read.
fn why_not(adopted: &Adopted, layout: &TensorLayout) -> Option<Why<'static>> {
    if !adopted.sees_ops() {
        return Some(Why::plain(CoveredWhy::NotAnnounced));
    }
    let detail = "the offset of a tensor's data pointer was not found";
    (layout.data == 0).then_some(Why { code: CoveredWhy::LayoutNotFound, detail })
}

fn cover(lane: &HeldLane<'_>, adopted: &Adopted, not: Option<Why<'_>>) {
    if !adopted.is_new_to_experts() {
        return;
    }
    let told = not.map_or((CoveredHow::Probed, Why::UNTOLD), |why| (CoveredHow::Not, why));
    coverage::say(lane, Subject::Backend(adopted.id()), Covered::Experts, told);
}

impl Choices {
    fn planned(
        instance: &Instance,
        layout: &TensorLayout,
        nodes: &[*const u8],
        choosers: &[u32],
    ) -> Choices {
        let mut choices: Vec<Choice> = Vec::with_capacity(choosers.len());
        let mut room = 0;
        for &position in choosers {
            let Some(&node) = nodes.get(position as usize) else { continue };
            // SAFETY: a node of the graph that ggml is about to compute, of this instance.
            let tensor = unsafe { Tensor::new(node, layout) };
            let Some(numbers) = tensor.source(NUMBERS) else { continue };
            // Several nodes of a layer use the same numbers, one after the other.
            if choices.iter().rev().any(|known| known.tensor == numbers.address()) {
                continue;
            }
            if let Some(choice) = Choice::of(instance, tensor, numbers, (position, room)) {
                room += choice.tokens_read * choice.per_token;
                choices.push(choice);
            }
        }
        let next_position = choices.first().map_or(u32::MAX, |choice| choice.position);
        let mut numbers = Vec::new();
        memory::made_room(numbers.try_reserve_exact(room));
        numbers.resize(room, Cell::new(0));
        let numbers = numbers.into_boxed_slice();
        let (next, next_position) = (Cell::new(0), Cell::new(next_position));
        Choices { choices, numbers, next, next_position }
    }

    /// The thread is about to compute the node at this position.
    ///
    /// # Hot path: no allocation, no locks, no panics
    #[inline(always)]
    pub(crate) fn meet(&self, position: u32) {
        if position >= self.next_position.get() {
            self.read(position);
        }
    }

    #[cold]
    fn read(&self, position: u32) {
        while let Some(choice) = self.choices.get(self.next.get()) {
            if choice.position > position {
                self.next_position.set(choice.position);
                return;
            }
            if choice.position == position {
                choice.read(&self.numbers);
            }
            self.next.set(self.next.get() + 1);
        }
        self.next_position.set(u32::MAX);
    }

    fn write(&self, lane: &HeldLane<'_>, split: u32) {
        let mut counts = Vec::new();
        for choice in self.choices.iter().filter(|choice| choice.is_read.get()) {
            let all = choice.first..choice.first + choice.tokens_read * choice.per_token;
            let Some(numbers) = self.numbers.get(all) else { continue };
            count(numbers, choice.experts as usize, &mut counts);
            let record = layout::ExpertUse {
                split,
                position: choice.position,
                experts: choice.experts,
                tokens: choice.tokens as u32,
                tokens_read: choice.tokens_read as u32,
                count: counts.len() as u32,
                ..Default::default()
            };
            let tail: Vec<u8> = counts.iter().flat_map(ExpertCount::encode).collect();
            lane.put_long(&mut record.encode(), &tail);
        }
    }
}

impl Choice {
    /// `None` where the numbers are not where they can be read.
    fn of(
        instance: &Instance,
        node: Tensor<'_>,
        numbers: Tensor<'_>,
        (position, first): (u32, usize),
    ) -> Option<Choice> {
        let experts = node.source(EXPERTS)?.ne()[2];
        let ([per_token, tokens, ..], strides) = (numbers.ne(), numbers.nb());
        let is_plain = strides[0] == size_of::<i32>() as u64
            && (1..=MOST_NUMBERS as i64).contains(&per_token)
            && (1..=i64::from(u32::MAX)).contains(&tokens)
            && (1..=MOST_EXPERTS).contains(&experts);
        if !is_plain || !has_numbers(instance, numbers) {
            return None;
        }
        let (per_token, tokens) = (per_token as usize, tokens as usize);
        let choice = Choice {
            position,
            experts: experts as u32,
            tokens,
            tokens_read: tokens.min(MOST_NUMBERS / per_token),
            per_token,
            tensor: numbers.address(),
            data: numbers.data() as *const u8,
            token_stride: strides[1] as usize,
            first,
            is_read: Cell::new(false),
        };
        choice.is_inside(instance, numbers).then_some(choice)
    }

    /// Whether all that could be read lies inside a buffer of the host's.
    fn is_inside(&self, instance: &Instance, numbers: Tensor<'_>) -> bool {
        let bytes = (self.tokens - 1)
            .checked_mul(self.token_stride)
            .and_then(|before| before.checked_add(self.per_token * size_of::<i32>()));
        bytes.is_some_and(|bytes| readable(instance, numbers, bytes).is_some())
    }

    /// Runs inside ggml's loop: never allocates.
    fn read(&self, numbers: &[Cell<i32>]) {
        let rows = numbers.get(self.first..).unwrap_or_default().chunks_exact(self.per_token);
        for (row, to) in rows.take(self.tokens_read).enumerate() {
            let token = row * self.tokens / self.tokens_read;
            for (at, to) in to.iter().enumerate() {
                let offset = token * self.token_stride + at * size_of::<i32>();
                // SAFETY: inside a buffer of the host's (`is_inside`), which ggml holds while it
                // computes. Its threads only read there now.
                to.set(unsafe { self.data.add(offset).cast::<i32>().read_unaligned() });
            }
        }
        self.is_read.set(true);
    }
}

/// Counts how often each expert is among the numbers. Numbers that are no expert's are left out.
fn count(numbers: &[Cell<i32>], experts: usize, counts: &mut Vec<ExpertCount>) {
    counts.clear();
    let valid = numbers.iter().filter_map(|number| usize::try_from(number.get()).ok());
    let valid = valid.filter(|&expert| expert < experts);
    if numbers.len() >= experts {
        let mut uses = vec![0_u16; experts];
        valid.for_each(|expert| uses[expert] = uses[expert].saturating_add(1));
        let used = (0..).zip(uses).filter(|(_, uses)| *uses > 0);
        counts.extend(used.map(|(expert, uses)| ExpertCount { expert, uses }));
        return;
    }
    for expert in valid.map(|expert| expert as u16) {
        match counts.iter_mut().find(|count| count.expert == expert) {
            Some(count) => count.uses = count.uses.saturating_add(1),
            None => counts.push(ExpertCount { expert, uses: 1 }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(numbers: &[i32], experts: usize) -> Vec<(u16, u16)> {
        let numbers: Vec<Cell<i32>> = numbers.iter().copied().map(Cell::new).collect();
        let mut counts = Vec::new();
        count(&numbers, experts, &mut counts);
        counts.iter().map(|count| (count.expert, count.uses)).collect()
    }

    #[test]
    fn experts_are_counted_in_two_ways_with_one_result() {
        assert_eq!(counted(&[3, 1, 3], 128), [(3, 2), (1, 1)]);
        assert_eq!(counted(&[3, 1, 3, 0], 4), [(0, 1), (1, 1), (3, 2)]);
        assert_eq!(counted(&[-1, 4, 7], 4), []);
        assert_eq!(counted(&[-1, 4, 1, 9, 1], 4), [(1, 2)]);
    }
}
