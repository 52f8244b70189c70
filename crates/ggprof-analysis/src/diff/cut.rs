//! Cuts a recording into phases that are compared, and these into blocks of consecutive steps.

use super::key::Activity;
use crate::gaps::gaps;
use crate::phases::{PhaseKind, Phases};
use crate::step::Step;
use ggprof_trace::{GraphRunId, TaskKind, Trace};
use hashbrown::HashMap;
use std::ops::Range;

/// More different phases than this are taken together by their kind.
const MOST_PHASES: usize = 8;

/// Into so many blocks of consecutive steps a phase is cut at most, to see how much it varies.
const MOST_BLOCKS: usize = 32;

/// Into how many blocks so many steps are cut. What disturbs a step disturbs the next, so a block has
/// several: the cube root of their number, by which block bootstraps come closest to the truth as
/// there are more of them.
fn blocks_of(steps: usize) -> usize {
    let each = (steps.max(1) as f64).cbrt();
    ((steps as f64 / each) as usize).min(MOST_BLOCKS)
}

const NONE: u32 = u32::MAX;

/// Phases with the same name, or of the same kind.
pub(super) struct Group {
    pub(super) kind: PhaseKind,
    pub(super) label: Option<String>,
    pub(super) wall_ns: u64,
    /// Units of each step.
    pub(super) steps: Vec<u64>,
    pub(super) block_units: Vec<u64>,
}

/// Neighbouring events with the same phase and block.
pub(super) struct PhasePiece {
    pub(super) phase: u32,
    pub(super) block: u32,
    pub(super) events: Range<u32>,
}

pub(super) struct Cut<'p> {
    phases: &'p Phases,
    pub(super) groups: Vec<Group>,
    group_of_phase: Vec<u32>,
    block_of_run: Vec<u32>,
    /// When each phase's steps begin, and their blocks.
    steps_of_phase: Vec<Vec<(u64, u32)>>,
}

impl<'p> Cut<'p> {
    pub(super) fn new(phases: &'p Phases) -> Self {
        let (mut groups, group_of_phase) = groups(phases);
        let mut steps_of_group: Vec<Vec<&Step>> = vec![Vec::new(); groups.len()];
        let phase_of = |step: &Step| phases.phase_of_run[step.runs[0] as usize];
        for step in &phases.steps {
            let group = group_of_phase[phase_of(step) as usize];
            if let Some(steps) = steps_of_group.get_mut(group as usize) {
                steps.push(step);
            }
        }
        let mut block_of_run = vec![NONE; phases.phase_of_run.len()];
        let mut steps_of_phase = vec![Vec::new(); phases.phases.len()];
        for (group, steps) in groups.iter_mut().zip(steps_of_group) {
            let blocks = blocks_of(steps.len());
            group.block_units = vec![0; blocks];
            for (at, step) in steps.iter().enumerate() {
                let units = units(group.kind, step);
                let block = at * blocks / steps.len();
                group.steps.push(units);
                group.block_units[block] += units;
                step.runs.iter().for_each(|&run| block_of_run[run as usize] = block as u32);
                steps_of_phase[phase_of(step) as usize].push((step.start_ns, block as u32));
            }
        }
        Self { phases, groups, group_of_phase, block_of_run, steps_of_phase }
    }

    /// The events of phases that are compared, by phase: those of a graph run belong to the phase of
    /// that, others to the one that they happened in.
    pub(super) fn pieces(&self, trace: &Trace) -> Vec<PhasePiece> {
        let mut pieces = Vec::new();
        for (stretch, events) in trace.events.stretches() {
            match stretch.graph_run {
                Some(run) => pieces.extend(self.piece_of_run(run, events)),
                None => self.cut_by_time(trace, events, &mut pieces),
            }
        }
        pieces.sort_by_key(|piece| piece.phase);
        pieces
    }

    fn piece_of_run(&self, run: GraphRunId, events: Range<u32>) -> Option<PhasePiece> {
        let phase = *self.phases.phase_of_run.get(run.0 as usize)?;
        let block = self.block_of_run[run.0 as usize];
        self.is_compared(phase).then_some(PhasePiece { phase, block, events })
    }

    fn cut_by_time(&self, trace: &Trace, events: Range<u32>, pieces: &mut Vec<PhasePiece>) {
        let of_others = pieces.len();
        for (at, (start_ns, _)) in events.clone().zip(trace.events.spans(events)) {
            let phase = self.phase_at(start_ns).filter(|&phase| self.is_compared(phase));
            let Some(phase) = phase else { continue };
            let block = self.block_at(phase, start_ns);
            match pieces[of_others..].last_mut() {
                Some(last) if (last.phase, last.block, last.events.end) == (phase, block, at) => {
                    last.events.end += 1;
                }
                _ => pieces.push(PhasePiece { phase, block, events: at..at + 1 }),
            }
        }
    }

    fn is_compared(&self, phase: u32) -> bool {
        self.group_of(phase) != NONE
    }

    fn phase_at(&self, ns: u64) -> Option<u32> {
        let behind = self.phases.phases.partition_point(|phase| phase.start_ns <= ns);
        let before = behind.checked_sub(1)?;
        (ns < self.phases.phases[before].end_ns).then_some(before as u32)
    }

    pub(super) fn group_of(&self, phase: u32) -> u32 {
        self.group_of_phase[phase as usize]
    }

    fn block_at(&self, phase: u32, ns: u64) -> u32 {
        let steps = &self.steps_of_phase[phase as usize];
        let behind = steps.partition_point(|(start_ns, _)| *start_ns <= ns);
        steps.get(behind.saturating_sub(1)).map_or(0, |(_, block)| *block)
    }

    /// What was going on in each phase that is compared, apart from ops.
    pub(super) fn backgrounds(&self, trace: &Trace) -> Vec<Background> {
        let mut marks: Vec<Vec<Mark>> = vec![Vec::new(); self.phases.phases.len()];
        let mut mark = |phase: u32, going: Going, start_ns: u64, end_ns: u64| {
            if end_ns > start_ns {
                let marks = &mut marks[phase as usize];
                marks.push(Mark { ns: start_ns, going, begins: true });
                marks.push(Mark { ns: end_ns, going, begins: false });
            }
        };
        for (run, &phase) in trace.graph_runs.iter().zip(&self.phases.phase_of_run) {
            mark(phase, Going::Run, run.start_ns, run.end_ns);
        }
        for step in self.phases.steps.iter().filter(|step| !step.is_guess) {
            let phase = self.phases.phase_of_run[step.runs[0] as usize];
            mark(phase, Going::Call, step.start_ns, step.end_ns);
        }
        for wait in trace.host_tasks.iter().filter(|task| task.what == TaskKind::Wait) {
            let run = wait.graph_run.and_then(|run| self.phases.phase_of_run.get(run.0 as usize));
            let phase = run.copied().or_else(|| self.phase_at(wait.start_ns));
            let end_ns = wait.start_ns.saturating_add(wait.duration_ns);
            phase.into_iter().for_each(|it| mark(it, Going::Wait, wait.start_ns, end_ns));
        }
        for gap in gaps(trace) {
            if let Some(phase) = self.phase_at(gap.start_ns) {
                mark(phase, Going::Unrecorded, gap.start_ns, gap.end_ns);
            }
        }
        let steps = marks.into_iter().zip(&self.steps_of_phase);
        steps.map(|(marks, steps)| Background::of(marks, steps)).collect()
    }
}

fn groups(phases: &Phases) -> (Vec<Group>, Vec<u32>) {
    let is_compared = |kind: PhaseKind| kind != PhaseKind::WarmUp;
    let labels: Vec<String> = phases.phases.iter().map(|phase| phase.label()).collect();
    let mut different: Vec<&String> = labels.iter().collect();
    different.sort();
    different.dedup();
    let by_label = different.len() <= MOST_PHASES;
    let mut places: HashMap<(PhaseKind, Option<&String>), u32> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    let mut group_of_phase = Vec::with_capacity(labels.len());
    for (phase, label) in phases.phases.iter().zip(&labels) {
        if !is_compared(phase.kind) {
            group_of_phase.push(NONE);
            continue;
        }
        let label = Some(label).filter(|_| by_label);
        let place = *places.entry((phase.kind, label)).or_insert_with(|| {
            let (wall_ns, steps, block_units) = (0, Vec::new(), Vec::new());
            let label = label.cloned();
            groups.push(Group { kind: phase.kind, label, wall_ns, steps, block_units });
            groups.len() as u32 - 1
        });
        groups[place as usize].wall_ns += phase.wall_ns();
        group_of_phase.push(place);
    }
    (groups, group_of_phase)
}

/// Tokens, or graph runs where there are no tokens.
fn units(kind: PhaseKind, step: &Step) -> u64 {
    match kind {
        PhaseKind::Graph => step.runs.len() as u64,
        _ => step.kept_tokens(),
    }
}

/// What may be going on; what comes first hides what comes later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Going {
    Unrecorded,
    Wait,
    Run,
    Call,
}

const GOING: [(Going, Option<Activity>); 4] = [
    (Going::Unrecorded, None),
    (Going::Wait, Some(Activity::Waiting)),
    (Going::Run, Some(Activity::InRun)),
    (Going::Call, Some(Activity::InCall)),
];

#[derive(Debug, Clone, Copy)]
struct Mark {
    ns: u64,
    going: Going,
    begins: bool,
}

/// What was going on in a phase, from moment to moment.
pub(super) struct Background {
    segments: Vec<Segment>,
    next: usize,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    start_ns: u64,
    /// `None` where nothing was recorded.
    activity: Option<Activity>,
    block: u32,
}

impl Background {
    fn of(mut marks: Vec<Mark>, steps: &[(u64, u32)]) -> Self {
        marks.sort_by_key(|mark| mark.ns);
        let mut steps = steps.iter().peekable();
        let mut block = steps.peek().map_or(0, |(_, block)| *block);
        let mut open = [0_u32; GOING.len()];
        let mut segments = vec![Segment { start_ns: 0, activity: Some(Activity::Program), block }];
        let mut push = |start_ns: u64, activity, block| {
            segments.push(Segment { start_ns, activity, block });
        };
        let activity = |open: &[u32; GOING.len()]| {
            let going = open.iter().position(|&count| count > 0);
            going.map_or(Some(Activity::Program), |at| GOING[at].1)
        };
        for mark in marks {
            while let Some((start_ns, next)) = steps.next_if(|step| step.0 <= mark.ns) {
                block = *next;
                push(*start_ns, activity(&open), block);
            }
            let at = GOING.iter().position(|(going, _)| *going == mark.going).unwrap_or(0);
            open[at] = if mark.begins { open[at] + 1 } else { open[at].saturating_sub(1) };
            push(mark.ns, activity(&open), block);
        }
        Self { segments, next: 0 }
    }

    /// Gives `take` what was going on between two moments; the moments come in order.
    pub(super) fn between(
        &mut self,
        from_ns: u64,
        to_ns: u64,
        mut take: impl FnMut(Activity, u32, u64),
    ) {
        let is_over = |next: Option<&Segment>| next.is_some_and(|next| next.start_ns <= from_ns);
        while is_over(self.segments.get(self.next + 1)) {
            self.next += 1;
        }
        let mut now_ns = from_ns;
        for (at, segment) in self.segments.iter().enumerate().skip(self.next) {
            if now_ns >= to_ns {
                break;
            }
            let end_ns = self.segments.get(at + 1).map_or(to_ns, |next| next.start_ns.min(to_ns));
            if let Some(activity) = segment.activity.filter(|_| end_ns > now_ns) {
                take(activity, segment.block, end_ns - now_ns);
            }
            now_ns = now_ns.max(end_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_has_several_steps() {
        let found = [0, 1, 2, 8, 22, 23, 24, 27, 64, 100, 181, 10_000].map(blocks_of);
        assert_eq!(found, [0, 1, 1, 4, 7, 8, 8, 9, 16, 21, 31, 32]);
    }
}
