//! How the time of a token grows with its context.
//!
//! Every graph run of a prompt or a generation is a point: how many keys its tokens attend to, how
//! long it took, and how long its attention took. Points are put together by depth, because single
//! ones are noisy, and medians of these give the slope. Where another kernel or another backend
//! computes attention from some depth on, the way of attention changes.
//!
//! The depth comes from the positions of the batch. Where these are not known, it is the size of the
//! cache that attention is given, which is padded.

use crate::attention::{Attended, cells_of, step_of};
use crate::percentiles::percentile;
use crate::phases::{PhaseKind, Phases};
use ggprof_trace::{BackendIndex, Event, StringId, Trace, done};
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// The most rows that one kind of phase is divided into.
const MOST_RANGES: u64 = 10;
/// Fewer tokens than this lie together.
const LEAST_RANGE: u64 = 16;

#[derive(Debug, Clone, PartialEq)]
pub struct ByDepth {
    /// Prompts or generation.
    pub kind: PhaseKind,
    /// How many sequences generate at once; one for prompts.
    pub sequences: u64,
    /// Depths are positions; else the sizes of a padded cache.
    pub is_exact: bool,
    /// By depth.
    pub points: Vec<RunAtDepth>,
    pub ranges: Vec<DepthRange>,
    /// What a token takes more for a thousand more before it, in nanoseconds.
    pub token_slope: Option<f64>,
    /// The same of attention alone.
    pub attention_slope: Option<f64>,
    /// Where attention is computed otherwise from then on.
    pub changes: Vec<AttentionChange>,
}

/// A backend, and its kernel if kernels were recorded.
type By = (BackendIndex, Option<StringId>);

/// One graph run. Times are those of one token; of one step, if several sequences generate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunAtDepth {
    pub depth: u64,
    /// When the run began.
    pub start_ns: u64,
    /// Tokens that it computed.
    pub tokens: u64,
    pub token_ns: u64,
    /// `None` if the ops of the run are not known.
    pub attention_ns: Option<u64>,
    /// What computed attention: backends and kernels, in order.
    by: Vec<By>,
}

/// Points of about one depth.
#[derive(Debug, Clone, PartialEq)]
pub struct DepthRange {
    /// Least and greatest depth of the points.
    pub from: u64,
    pub to: u64,
    pub runs: u64,
    /// Medians.
    pub depth: u64,
    pub token_ns: u64,
    pub attention_ns: Option<u64>,
}

/// Attention is computed otherwise from here on.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionChange {
    /// The least depth of the points behind it.
    pub depth: u64,
    pub before: AttentionBy,
    pub after: AttentionBy,
}

/// What computed attention, and the median of its time on that side of the change.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionBy {
    pub backends: Vec<BackendIndex>,
    pub kernels: Vec<StringId>,
    pub attention_ns: u64,
}

/// One entry for prompts and one for each number of sequences that generate, as far as there are any
/// with attention.
pub fn depth(trace: &Trace, phases: &Phases) -> Vec<ByDepth> {
    let attended = Attended::of(trace);
    let attention = attention_of_runs(trace);
    let done = done(trace);
    let mut kinds: BTreeMap<(PhaseKind, u64), (bool, Vec<RunAtDepth>)> = BTreeMap::new();
    for (at, run) in (0u32..).zip(&trace.graph_runs) {
        let id = ggprof_trace::GraphRunId(at);
        let kind = phases.kind_of_run(Some(id));
        if !matches!(kind, PhaseKind::Prompt | PhaseKind::Generation) {
            continue;
        }
        let found = attention.get(&at);
        let exact = attended.depth(id);
        let Some(depth) = exact.or_else(|| found?.cells) else { continue };
        let tokens = attended.tokens(id).or(phases.tokens_of_run[at as usize]).unwrap_or(1).max(1);
        let (sequences, parts) = if kind == PhaseKind::Prompt { (1, tokens) } else { (tokens, 1) };
        let entry = kinds.entry((kind, sequences)).or_insert((true, Vec::new()));
        entry.0 &= exact.is_some();
        entry.1.push(RunAtDepth {
            depth,
            start_ns: run.start_ns,
            tokens,
            token_ns: done[at as usize].saturating_sub(run.start_ns) / parts,
            attention_ns: found.map(|attention| attention.ns / parts),
            by: found.map_or(Vec::new(), |attention| attention.by.clone()),
        });
    }
    kinds.into_iter().map(|(of, (is_exact, points))| ByDepth::of(of, is_exact, points)).collect()
}

/// The attention of one graph run.
#[derive(Debug, Default)]
struct RunAttention {
    ns: u64,
    /// Cells of the largest cache.
    cells: Option<u64>,
    by: Vec<By>,
}

fn attention_of_runs(trace: &Trace) -> HashMap<u32, RunAttention> {
    // Of nodes that are attention.
    let of_node = |node| step_of(trace, node).map(|_| cells_of(trace, node));
    let cells: Vec<Option<Option<u64>>> = trace.nodes.ids().map(of_node).collect();
    let mut runs: HashMap<u32, RunAttention> = HashMap::new();
    for event in trace.events.iter().filter(Event::is_op) {
        let (Some(cells), Some(run)) = (cells[event.node.0 as usize], event.graph_run) else {
            continue;
        };
        let attention = runs.entry(run.0).or_default();
        attention.ns += event.charged_ns;
        attention.cells = attention.cells.max(cells);
        let work = trace.work_for(event.id);
        // Of several kernels the longest is the one that computes it.
        let kernel = work.iter().max_by_key(|work| work.charged_ns).map(|work| work.name);
        if !attention.by.contains(&(event.backend, kernel)) {
            attention.by.push((event.backend, kernel));
        }
    }
    runs.values_mut().for_each(|attention| attention.by.sort_unstable());
    runs
}

impl ByDepth {
    fn of(
        (kind, sequences): (PhaseKind, u64),
        is_exact: bool,
        mut points: Vec<RunAtDepth>,
    ) -> Self {
        points.sort_by_key(|point| (point.depth, point.start_ns));
        let (ranges, changes) = (ranges(&points), changes(&points));
        Self {
            kind,
            sequences,
            is_exact,
            token_slope: slope(&ranges, &changes, |range| Some(range.token_ns)),
            attention_slope: slope(&ranges, &changes, |range| range.attention_ns),
            changes,
            ranges,
            points,
        }
    }
}

/// Neighbouring depths together, in ranges of one power of two.
fn ranges(points: &[RunAtDepth]) -> Vec<DepthRange> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    let width = (last.depth - first.depth) / MOST_RANGES;
    let width = width.next_power_of_two().max(LEAST_RANGE);
    points
        .chunk_by(|one, other| one.depth / width == other.depth / width)
        .map(|points| DepthRange {
            from: points[0].depth,
            to: points[points.len() - 1].depth,
            runs: points.len() as u64,
            depth: points[points.len() / 2].depth,
            token_ns: median(points.iter().map(|point| point.token_ns)).unwrap_or(0),
            attention_ns: median(points.iter().filter_map(|point| point.attention_ns)),
        })
        .collect()
}

fn median(values: impl Iterator<Item = u64>) -> Option<u64> {
    let mut values: Vec<u64> = values.collect();
    (!values.is_empty()).then(|| percentile(&mut values, 50))
}

/// The median of the slopes between any two ranges, per thousand tokens: a few that were disturbed
/// do not matter. A change of the way is no slope, so both lie on the same side of it. `None` if there are fewer
/// than three such slopes.
fn slope(
    ranges: &[DepthRange],
    changes: &[AttentionChange],
    time: impl Fn(&DepthRange) -> Option<u64>,
) -> Option<f64> {
    let changes_before = |depth: u64| changes.iter().filter(|change| change.depth <= depth).count();
    let known: Vec<(f64, f64, usize)> = ranges
        .iter()
        .filter(|range| changes_before(range.from) == changes_before(range.to))
        .filter_map(|range| {
            Some((range.depth as f64, time(range)? as f64, changes_before(range.from)))
        })
        .collect();
    let mut slopes = Vec::new();
    for (at, one) in known.iter().enumerate() {
        let others = known[at + 1..].iter().filter(|other| other.2 == one.2);
        slopes.extend(others.map(|other| (other.1 - one.1) / (other.0 - one.0)));
    }
    slopes.sort_by(f64::total_cmp);
    let middle = slopes.get(slopes.len() / 2).filter(|_| slopes.len() > 2)?;
    Some(middle * 1000.0)
}

/// Where all that follows is computed otherwise than what came before. A kernel that is used now and
/// then, on both sides, makes no change; nor does the smaller rest of a prompt, so only runs with the
/// usual number of tokens count.
fn changes(points: &[RunAtDepth]) -> Vec<AttentionChange> {
    let usual = median(points.iter().map(|point| point.tokens));
    let is_told = |point: &&RunAtDepth| !point.by.is_empty() && Some(point.tokens) == usual;
    let known: Vec<&RunAtDepth> = points.iter().filter(is_told).collect();
    // The first and the last place of each way.
    let mut places: HashMap<&[By], (usize, usize)> = HashMap::new();
    for (at, point) in known.iter().enumerate() {
        places.entry(&point.by).or_insert((at, at)).1 = at;
    }
    let is_change = |at: &usize| {
        let (before, after) = (&known[at - 1].by[..], &known[*at].by[..]);
        let goes_on = known[*at].depth > known[at - 1].depth;
        goes_on && before != after && places[before].1 < *at && places[after].0 == *at
    };
    let bounds: Vec<usize> = (1..known.len()).filter(is_change).collect();
    let ends = bounds.iter().skip(1).copied().chain([known.len()]);
    let starts = [0].into_iter().chain(bounds.iter().copied());
    bounds
        .iter()
        .zip(starts.zip(ends))
        .map(|(&at, (start, end))| AttentionChange {
            depth: known[at].depth,
            before: computed(&known[start..at]),
            after: computed(&known[at..end]),
        })
        .collect()
}

/// What computed some points of one kind, the last one's way.
fn computed(points: &[&RunAtDepth]) -> AttentionBy {
    let by = points.last().map_or(&[][..], |point| &point.by);
    let mut backends: Vec<BackendIndex> = by.iter().map(|(backend, _)| *backend).collect();
    backends.dedup();
    AttentionBy {
        backends,
        kernels: by.iter().filter_map(|(_, kernel)| *kernel).collect(),
        attention_ns: median(points.iter().filter_map(|point| point.attention_ns)).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases::phases;
    use ggprof_trace::text_fixture;
    use std::fmt::Write;

    /// A generation of one token after the other, whose attention takes `time` at a position.
    fn generation(
        positions: impl Iterator<Item = u64>,
        time: impl Fn(u64) -> u64,
        kernel: impl Fn(u64) -> &'static str,
    ) -> Vec<ByDepth> {
        let mut text = "backend 0 GPU gpu\n".to_owned();
        for (run, position) in positions.enumerate() {
            let start = run as u64 * 1_000_000;
            let (end, middle) = (start + 500_000, start + time(position));
            let cells = (position + 256) / 256 * 256;
            writeln!(
                text,
                "batch {start}..{end} 0:{position}+1!1
                 run {start}..{end} batch={run}
                 op GPU FLASH_ATTN_EXT {start}..{middle} node_1 run={run} measured=device \
                     f32[64,32,1] <- f32[64,1,32] f16[64,{cells},8] f16[64,{cells},8]
                 kernel {} {start}..{middle}
                 op GPU MUL_MAT {middle}..{} x run={run} measured=device
                 kernel mul_mat_vec {middle}..{}",
                kernel(position),
                middle + 1000,
                middle + 1000,
            )
            .unwrap();
        }
        let trace = text_fixture::parse(&text);
        depth(&trace, &phases(&trace))
    }

    #[test]
    fn time_grows_by_so_much_for_a_thousand_tokens() {
        // Twenty nanoseconds a token, and one run that was disturbed.
        let time = |position: u64| if position == 700 { 90_000 } else { 2000 + 20 * position };
        let found = generation(0..1000, time, |_| "flash_attn_ext_vec");
        let generation = found.iter().find(|it| it.kind == PhaseKind::Generation).unwrap();
        assert!(generation.is_exact);
        let slope = generation.attention_slope.unwrap();
        assert!((slope - 20_000.0).abs() < 200.0, "{slope}");
        assert!(generation.changes.is_empty());
        assert!(generation.ranges.len() as u64 <= MOST_RANGES + 1);
        let first = &generation.ranges[0];
        assert_eq!((first.from, first.to), (1, 127));
        assert_eq!(first.attention_ns, Some(2000 + 20 * (first.depth - 1)));
    }

    #[test]
    fn another_kernel_from_some_depth_on_is_a_change() {
        let kernel = |position: u64| if position < 512 { "flash_vec" } else { "flash_tile" };
        let time = |position: u64| if position < 512 { 4000 + position } else { 9000 + position };
        let found = generation(0..600, time, kernel);
        let generation_depth = found.last().unwrap();
        let [change] = &generation_depth.changes[..] else { panic!("{:?}", found) };
        assert_eq!((change.depth, change.after.attention_ns), (513, 9000 + 555));
        // The change itself is no slope.
        assert_eq!(generation_depth.attention_slope, Some(1000.0));
        assert_ne!(change.before.kernels, change.after.kernels);
        assert_eq!(change.before.backends, change.after.backends);
        // One that comes and goes is none.
        let found =
            generation(0..600, time, |at| if at % 7 == 0 { "flash_tile" } else { "flash_vec" });
        assert!(found.last().unwrap().changes.is_empty());
    }

    #[test]
    fn without_positions_the_cache_tells_and_short_recordings_tell_no_slope() {
        let trace = text_fixture::parse(
            "backend 0 CPU cpu
             run 0..100
             op CPU GET_ROWS 0..1 embd run=0 f32[8,1] <- f32[8,9] i32[1]
             op CPU MUL_MAT 1..5 kq-0 run=0 f32[256,1,4] <- f16[8,256,4] f32[8,1,4]
             op CPU SOFT_MAX 5..7 kq_soft_max-0 run=0 f32[256,1,4] <- f32[256,1,4]
             op CPU MUL_MAT 7..9 kqv-0 run=0 f32[8,1,4] <- f16[256,8,4] f32[256,1,4]
             op CPU MUL_MAT 9..90 result_output run=0 f32[9,1] <- f32[8,9] f32[8,1]",
        );
        let found = depth(&trace, &phases(&trace));
        let [generation] = &found[..] else { panic!("{found:?}") };
        assert_eq!((generation.is_exact, generation.attention_slope), (false, None));
        let point = &generation.points[0];
        assert_eq!((point.depth, point.token_ns, point.attention_ns), (256, 100, Some(8)));
    }
}
