//! Which nodes are attention, and what it has to do: every token attends to itself and to those before it in its sequence.
//!
//! The tensors of flash attention are larger than that. The cache is padded to a multiple of 256
//! cells, and a prompt's tokens do not see those behind them: a mask hides both. Where the positions
//! of a batch are known, the work is what is attended to. How much a kernel saves of the rest is its
//! own affair.

use crate::sequences::Sequences;
use crate::work::Work;
use ggprof_ggml::{AttentionStep, attention_step};
use ggprof_trace::{
    BatchFunction, BatchId, Event, EventKind, GraphRunId, NodeId, Signature, Tensor, Trace,
};

/// What a node does of attention; `None` for all others.
pub(crate) fn step_of(trace: &Trace, node: NodeId) -> Option<AttentionStep> {
    attention_step(trace.op_name(node), trace.tensor_name(node))
}

/// Cells of the cache that a node of attention looks at, padded, if its shapes tell them.
pub(crate) fn cells_of(trace: &Trace, node: NodeId) -> Option<u64> {
    let signature = trace.signature(node);
    let (tensor, at) = match step_of(trace, node)? {
        AttentionStep::Whole => (signature.sources.get(1)?.tensor, 1),
        AttentionStep::SoftMax => (signature.output, 0),
        AttentionStep::Scores | AttentionStep::Values => return None,
    };
    u64::try_from(tensor.ne[at]).ok().filter(|_| tensor.is_known())
}

/// Which positions each graph run computed, as far as that is known.
#[derive(Debug, Default)]
pub struct Attended {
    runs: Vec<Vec<Positions>>,
    /// Whether each node is attention.
    is_attention: Vec<bool>,
}

/// Tokens of one sequence, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Positions {
    /// Position of the first.
    first: u64,
    tokens: u64,
}

impl Positions {
    /// Pairs of a token and one that it attends to, of which at most so many are kept.
    fn pairs(&self, cells: u64) -> Option<u128> {
        let (first, tokens) = (u128::from(self.first), u128::from(self.tokens));
        let cells = u128::from(cells);
        // Tokens before the cache is full see one more each.
        let growing = tokens.min(cells.saturating_sub(first));
        let sum = growing.checked_mul(2 * first + growing + 1)? / 2;
        sum.checked_add((tokens - growing).checked_mul(cells)?)
    }

    fn keys(&self, cells: u64) -> u64 {
        self.first.saturating_add(self.tokens).min(cells)
    }
}

impl Attended {
    pub fn of(trace: &Trace) -> Self {
        if trace.batches.is_empty() {
            return Self::default();
        }
        let is_whole = |id| step_of(trace, id) == Some(AttentionStep::Whole);
        let is_attention: Vec<bool> = trace.nodes.ids().map(is_whole).collect();
        let queries = queries(trace, &is_attention);
        let mut runs_of_batch: Vec<Vec<usize>> = vec![Vec::new(); trace.batches.len()];
        for (at, run) in trace.graph_runs.iter().enumerate() {
            if let Some(BatchId(batch)) = run.batch {
                runs_of_batch[batch as usize].push(at);
            }
        }
        let mut runs = vec![Vec::new(); trace.graph_runs.len()];
        let mut sequences = Sequences::default();
        let mut changes = trace.context_changes.iter().peekable();
        for (batch, runs_of_it) in trace.batches.iter().zip(runs_of_batch) {
            while let Some(change) = changes.next_if(|change| change.at_ns <= batch.start_ns) {
                sequences.change(change);
            }
            let parts = sequences.take(batch, false).parts;
            let positions: Vec<Positions> = parts
                .iter()
                .map(|part| Positions { first: part.first, tokens: part.tokens })
                .collect();
            if batch.function == BatchFunction::Decode {
                share_out(&positions, &runs_of_it, &queries, &mut runs);
            }
        }
        Self { runs, is_attention }
    }

    /// What a graph run's tokens attend to: of several sequences the most keys. `None` if it is not known.
    pub fn depth(&self, run: GraphRunId) -> Option<u64> {
        let positions = self.runs.get(run.0 as usize)?;
        positions.iter().map(|it| it.keys(u64::MAX)).max()
    }

    /// How many tokens a graph run computed. `None` if it is not known.
    pub fn tokens(&self, run: GraphRunId) -> Option<u64> {
        let positions = self.runs.get(run.0 as usize).filter(|it| !it.is_empty())?;
        Some(positions.iter().map(|it| it.tokens).sum())
    }

    /// Whether the work of a node's events depends on their positions.
    #[inline]
    pub(crate) fn varies(&self, node: NodeId) -> bool {
        self.is_attention.get(node.0 as usize).copied().unwrap_or(false)
    }

    /// The work of an event of attention; `None` if it is of another op, or if its positions are not
    /// known.
    pub fn work(&self, trace: &Trace, event: &Event) -> Option<Work> {
        if !self.varies(event.node) {
            return None;
        }
        let positions = self.runs.get(event.graph_run?.0 as usize)?;
        let signature = trace.signature(event.node);
        if positions.is_empty() {
            return None;
        }
        let tokens: u64 = positions.iter().map(|it| it.tokens).sum();
        if queries_of(signature)? != tokens || !signature.members.is_empty() {
            return None;
        }
        work_of(trace, signature, positions)
    }
}

/// How many tokens' queries the attention of each graph run has.
fn queries(trace: &Trace, is_attention: &[bool]) -> Vec<Option<u64>> {
    let mut queries = vec![None; trace.graph_runs.len()];
    let nodes = trace.events.nodes();
    for (stretch, events) in trace.events.stretches() {
        let run = stretch.graph_run.filter(|_| stretch.kind == EventKind::Op);
        let Some(place) = run.and_then(|run| queries.get_mut(run.0 as usize)) else { continue };
        let nodes = &nodes[events.start as usize..events.end as usize];
        let attention = nodes.iter().filter(|node| is_attention[node.0 as usize]);
        let mut known = attention.filter_map(|&node| queries_of(trace.signature(node)));
        if place.is_none() {
            *place = known.next();
        }
    }
    queries
}

fn queries_of(signature: &Signature) -> Option<u64> {
    let [_, tokens, _, streams] = signature.sources.first()?.tensor.ne;
    u64::try_from(tokens).ok()?.checked_mul(u64::try_from(streams).ok()?)
}

/// Gives each run of a batch its positions. A large prompt is computed in parts, in order; how
/// several sequences are divided among several runs is not known.
fn share_out(
    positions: &[Positions],
    runs_of_it: &[usize],
    queries: &[Option<u64>],
    runs: &mut [Vec<Positions>],
) {
    match (positions, runs_of_it) {
        (positions, &[run]) => runs[run] = positions.to_vec(),
        (&[whole], several) => {
            let mut first = whole.first;
            for &run in several {
                // A part that is not known leaves the rest unknown, too.
                let Some(tokens) = queries[run] else { return };
                runs[run] = vec![Positions { first, tokens }];
                first = first.saturating_add(tokens);
            }
        }
        _ => {}
    }
}

fn work_of(trace: &Trace, signature: &Signature, positions: &[Positions]) -> Option<Work> {
    let source = |at: usize| signature.sources.get(at).map(|source| source.tensor);
    let (q, k, v) = (source(0)?, source(1)?, source(2)?);
    let length = |tensor: &Tensor, at: usize| u64::try_from(tensor.ne[at]).ok();
    let cells = length(&k, 1)?;
    let pairs = positions.iter().try_fold(0u128, |sum, it| sum.checked_add(it.pairs(cells)?))?;
    let keys: u64 = positions.iter().map(|it| it.keys(cells)).sum();
    let per_pair = 2 * (length(&k, 0)?.checked_add(length(&v, 0)?)?);
    let flops = pairs.checked_mul(u128::from(per_pair.checked_mul(length(&q, 2)?)?))?;
    let rows = |tensor: &Tensor| {
        let ne = [tensor.ne[0], i64::try_from(keys).ok()?, tensor.ne[2], 1];
        trace.types.bytes_of(&Tensor { type_id: tensor.type_id, ne })
    };
    // Of the mask, what is not hidden.
    let mask = match source(3).filter(Tensor::is_known) {
        None => 0,
        Some(mask) => {
            let ne = [i64::try_from(pairs).ok()?, 1, 1, 1];
            trace.types.bytes_of(&Tensor { type_id: mask.type_id, ne })?
        }
    };
    let bytes = [trace.types.bytes_of(&q)?, rows(&k)?, rows(&v)?, mask];
    Some(Work {
        flops: u64::try_from(flops).ok(),
        bytes_read: bytes.into_iter().try_fold(0u64, u64::checked_add),
        bytes_written: trace.types.bytes_of(&signature.output),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    #[track_caller]
    fn check(text: &str, expected: &[Option<(u64, u64)>]) {
        let trace = text_fixture::parse(&format!("backend 0 CPU cpu\n{text}"));
        let attended = Attended::of(&trace);
        let found: Vec<_> = trace
            .events
            .iter()
            .map(|event| {
                let work = attended.work(&trace, &event)?;
                Some((work.flops?, work.bytes_read?))
            })
            .collect();
        assert_eq!(found, expected);
    }

    const CACHE: &str = "f16[64,256,8] f16[64,256,8]";

    #[test]
    fn a_token_attends_to_those_before_it_and_not_to_the_padding() {
        // At position 9, ten keys of 256.
        check(
            &format!(
                "batch 0..9 0:9+1!1
                 run 0..9 batch=0
                 op CPU FLASH_ATTN_EXT 0..1 x run=0 f32[64,32,1] <- f32[64,1,32] {CACHE} f16[256,1]
                 op CPU ADD 1..2 y run=0"
            ),
            &[Some((2 * 32 * 10 * 128, 64 * 32 * 4 + 2 * 10 * 64 * 8 * 2 + 10 * 2)), None],
        );
    }

    #[test]
    fn a_prompt_attends_to_itself_as_far_as_it_is_there() {
        let pairs = 1 + 2 + 3 + 4;
        let op = format!(
            "op CPU FLASH_ATTN_EXT 0..1 x run=0 f32[64,32,4] <- f32[64,4,32] {CACHE} f16[256,4]"
        );
        let bytes = 64 * 4 * 32 * 4 + 2 * 4 * 64 * 8 * 2 + pairs * 2;
        check(
            &format!("batch 0..9 0:0+4!1\nrun 0..9 batch=0\n{op}"),
            &[Some((2 * 32 * pairs * 128, bytes))],
        );
        // Two sequences in one batch.
        check(
            &format!("batch 0..9 0:0+2!1 1:0+2!1\nrun 0..9 batch=0\n{op}"),
            &[Some((2 * 32 * 6 * 128, bytes - 4 * 2))],
        );
        // Other tokens than the batch has; a batch that is not known.
        check(&format!("batch 0..9 0:0+3!1\nrun 0..9 batch=0\n{op}"), &[None]);
        check(&format!("run 0..9\n{op}"), &[None]);
    }

    #[test]
    fn parts_of_a_prompt_go_on_where_the_one_before_ended() {
        let op = |run: u32, tokens: u32| {
            format!(
                "op CPU FLASH_ATTN_EXT 0..1 x run={run} f32[1,1,{tokens}] <- f32[1,{tokens},1] \
                 f32[1,256,1] f32[1,256,1]"
            )
        };
        let flops = |pairs: u64| 2 * pairs * 2;
        check(
            &format!(
                "batch 0..9 0:1+5!1\nrun 0..4 batch=0\nrun 4..9 batch=0\n{}\n{}",
                op(0, 3),
                op(1, 2)
            ),
            &[Some((flops(2 + 3 + 4), 12 + 2 * 4 * 4)), Some((flops(5 + 6), 8 + 2 * 6 * 4))],
        );
    }

    #[test]
    fn no_more_is_attended_to_than_is_kept() {
        for (first, tokens, cells, pairs) in
            [(0, 4, 256, 10), (9, 1, 256, 10), (9, 1, 8, 8), (6, 4, 8, 7 + 8 + 8 + 8)]
        {
            assert_eq!(Positions { first, tokens }.pairs(cells), Some(pairs), "{first}+{tokens}");
        }
        assert_eq!(Positions { first: u64::MAX, tokens: 1 }.pairs(7), Some(7));
    }
}
