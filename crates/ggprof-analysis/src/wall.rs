//! Where the wall time went: each backend is computing, copying or idle, and the three add up to
//! the recording's span. If only the calls that start a backend's work were timed, it may be
//! computing or idle at any time.

use crate::estimates::CopyTimes;
use crate::gaps::{Gaps, within};
use ggprof_trace::{BackendIndex, EventId, EventKind, Gap, Measured, Stretch, TaskKind, Trace};
use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wall {
    /// First start to last end of all events, without gaps in the recording.
    pub start_ns: u64,
    pub wall_ns: u64,
    /// Sum of all times, which counts twice what several backends do at once.
    pub sum_ns: u128,
    /// Time in which at least one backend was computing or copying, as far as known.
    pub active_ns: u64,
    /// Time in which the program waited for the results of a graph run.
    pub waited_ns: u64,
    /// One entry per backend that has events, in the recording's order.
    pub backends: Vec<BackendTime>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendTime {
    pub backend: BackendIndex,
    pub ops: u64,
    pub copies: u64,
    pub ops_ns: u128,
    pub copies_ns: u128,
    /// At least one op was running. Not known where only the starts of work are.
    pub busy_ns: Option<u64>,
    /// A copy was running and no op, in time that was measured or estimated.
    pub copying_ns: u64,
    /// The part of it that is estimated: only the calls that start these copies were timed.
    pub copying_estimated_ns: u64,
    /// Copies of which nothing more than the call is known.
    pub copies_untimed: u64,
    /// Neither.
    pub idle_ns: Option<u64>,
    /// Its process was not recorded then, while others were.
    pub unrecorded_ns: u64,
    /// The rest of the wall time: its process had not begun yet, or was over.
    pub absent_ns: u64,
}

pub fn wall(trace: &Trace) -> Wall {
    let (start_ns, end_ns) = trace.span_ns().unwrap_or_default();
    let gaps = Gaps::of(trace);
    let wall_ns = end_ns - start_ns - within(&gaps.common, start_ns, end_ns);
    let copies = CopyTimes::of(trace);
    let mut backends = counts(trace, &copies);
    let mut active = Occupied::default();
    by_start(trace, &copies, |stretch, times| {
        let own = gaps.of_backend(trace, stretch.backend);
        let together = Together::new(times, own);
        active.add(&together, own);
        let is_op = stretch.kind == EventKind::Op;
        backends[usize::from(stretch.backend.0)].add(is_op, &together, own);
    });
    let times: Vec<BackendTime> = backends
        .into_iter()
        .enumerate()
        .filter(|(_, counted)| counted.ops.count + counted.copies.count > 0)
        .map(|(at, counted)| {
            let backend = BackendIndex(at as u16);
            let own = within(gaps.of_backend(trace, backend), start_ns, end_ns);
            let recorded_ns = (end_ns - start_ns - own).min(wall_ns);
            let absent_ns = absent_ns(trace, backend, &gaps, (start_ns, end_ns)).min(recorded_ns);
            let unrecorded_ns = wall_ns - recorded_ns;
            let there_ns = recorded_ns - absent_ns;
            BackendTime { unrecorded_ns, absent_ns, ..counted.finish(backend, there_ns) }
        })
        .collect();
    let sum_ns = times.iter().map(|time| time.ops_ns + time.copies_ns).sum();
    let active_ns = active.total_ns;
    let waited_ns = waited_ns(trace, start_ns..end_ns, &gaps.common);
    Wall { start_ns, wall_ns, sum_ns, active_ns, waited_ns, backends: times }
}

/// How long a backend's process was not there, without gaps of its recording.
fn absent_ns(
    trace: &Trace,
    backend: BackendIndex,
    gaps: &Gaps,
    (start_ns, end_ns): (u64, u64),
) -> u64 {
    let process = trace.backend(backend).process;
    let process = process.and_then(|process| trace.processes.get(usize::from(process.0)));
    let Some((from_ns, to_ns)) = process.and_then(|process| process.there_ns) else { return 0 };
    let own = gaps.of_backend(trace, backend);
    let missing = |from: u64, to: u64| to.saturating_sub(from) - within(own, from, to.max(from));
    let (from_ns, to_ns) = (from_ns.clamp(start_ns, end_ns), to_ns.clamp(start_ns, end_ns));
    missing(start_ns, from_ns) + missing(to_ns, end_ns)
}

/// Hands over when events were at work, by the starts, and those of a stretch together where nothing
/// else begins between them. Between its kernels an op does nothing.
fn by_start(trace: &Trace, copies: &CopyTimes, mut each: impl FnMut(&Stretch, &[(u64, u64)])) {
    let is_timed = |stretch: &Stretch, at: u32| {
        stretch.kind == EventKind::Op || !copies.is_untimed(trace, &trace.events.get(EventId(at)))
    };
    if trace.device_work.is_empty() && trace.events.starts().is_sorted() {
        let mut times = Vec::new();
        for (stretch, events) in trace.events.stretches() {
            times.clear();
            let all = trace.events.spans(events.clone());
            match stretch.kind {
                EventKind::Op => times.extend(all),
                EventKind::Copy => times.extend(
                    events.zip(all).filter(|(at, _)| is_timed(stretch, *at)).map(|it| it.1),
                ),
            }
            each(stretch, &times);
        }
        return;
    }
    let mut pieces: Vec<(u64, u64, u32)> = Vec::with_capacity(trace.events.len());
    for (stretch, events) in trace.events.stretches() {
        let all = events.clone().zip(trace.events.spans(events));
        for (at, (start_ns, end_ns)) in all.filter(|(at, _)| is_timed(stretch, *at)) {
            let work = trace.work_for(EventId(at));
            pieces.extend(work.iter().map(|it| (it.start_ns, it.start_ns + it.duration_ns, at)));
            pieces.extend(work.is_empty().then_some((start_ns, end_ns, at)));
        }
    }
    // Stable, because that sort is quick with runs that are in order already.
    pieces.sort_by_key(|piece| piece.0);
    for (start_ns, end_ns, at) in pieces {
        each(trace.events.stretch_of(EventId(at)), &[(start_ns, end_ns)]);
    }
}

/// What can be told without regard to overlap.
fn counts(trace: &Trace, copies: &CopyTimes) -> Vec<Counted> {
    let mut backends: Vec<Counted> = Vec::new();
    backends.resize_with(trace.backends.len(), Counted::default);
    for (stretch, events) in trace.events.stretches() {
        let counted = &mut backends[usize::from(stretch.backend.0)];
        match stretch.kind {
            EventKind::Op => counted.count_ops(trace, events),
            EventKind::Copy => counted.count_copies(trace, copies, events),
        }
    }
    backends
}

fn waited_ns(trace: &Trace, span: Range<u64>, gaps: &[Gap]) -> u64 {
    let waits = trace.host_tasks.iter().filter(|task| task.what == TaskKind::Wait);
    let times = waits.map(|wait| {
        let end_ns = wait.start_ns.saturating_add(wait.duration_ns);
        let inside = |ns: u64| ns.clamp(span.start, span.end);
        (inside(wait.start_ns), inside(end_ns))
    });
    let mut times: Vec<(u64, u64)> = times.collect();
    times.sort_unstable();
    let mut waited = Occupied::default();
    times.into_iter().for_each(|(start_ns, end_ns)| waited.add_one(start_ns, end_ns, gaps));
    waited.total_ns
}

/// The events of one backend.
#[derive(Default)]
struct Counted {
    ops: CountAndTime,
    copies: CountAndTime,
    /// How many of the ops are calls that only start work.
    calls: u64,
    /// What copies are estimated to have taken that were timed by their calls, and how many of
    /// them nothing can be said of.
    estimated_ns: f64,
    untimed: u64,
    /// By ops, and by ops or copies.
    busy: Occupied,
    occupied: Occupied,
}

#[derive(Default)]
struct CountAndTime {
    count: u64,
    total_ns: u128,
}

impl Counted {
    fn count_ops(&mut self, trace: &Trace, ops: Range<u32>) {
        let measured = trace.events.measured_of(ops.clone()).iter();
        self.calls += measured.filter(|&&it| it == Measured::HostCall).count() as u64;
        self.ops.count += ops.len() as u64;
        self.ops.total_ns += trace.events.charges_of(ops).map(u128::from).sum::<u128>();
    }

    fn count_copies(&mut self, trace: &Trace, times: &CopyTimes, copies: Range<u32>) {
        self.copies.count += copies.len() as u64;
        for copy in copies.map(|at| trace.events.get(EventId(at))) {
            if !times.is_untimed(trace, &copy) {
                self.copies.total_ns += u128::from(copy.charged_ns);
                continue;
            }
            match times.mean_ns(trace, &copy) {
                Some(mean_ns) => self.estimated_ns += mean_ns,
                None => self.untimed += 1,
            }
        }
    }

    /// Whether it is known when the ops ran.
    fn is_known(&self) -> bool {
        self.ops.count == 0 || self.calls < self.ops.count
    }

    fn add(&mut self, is_op: bool, together: &Together<'_>, gaps: &[Gap]) {
        if is_op && !self.is_known() {
            return;
        }
        if is_op {
            self.busy.add(together, gaps);
        }
        self.occupied.add(together, gaps);
    }

    /// Of the wall time, a part was recorded of its process.
    fn finish(self, backend: BackendIndex, recorded_ns: u64) -> BackendTime {
        let known = self.is_known();
        let (busy_ns, occupied_ns) = (self.busy.total_ns, self.occupied.total_ns);
        // There is no more of it than is left.
        let left_ns = recorded_ns.saturating_sub(occupied_ns);
        let copying_estimated_ns = (self.estimated_ns.round() as u64).min(left_ns);
        BackendTime {
            backend,
            ops: self.ops.count,
            copies: self.copies.count,
            ops_ns: self.ops.total_ns,
            copies_ns: self.copies.total_ns,
            busy_ns: known.then_some(busy_ns),
            copying_ns: occupied_ns - busy_ns + copying_estimated_ns,
            copying_estimated_ns,
            copies_untimed: self.untimed,
            idle_ns: known.then(|| left_ns - copying_estimated_ns),
            unrecorded_ns: 0,
            absent_ns: 0,
        }
    }
}

/// Time that intervals cover together, which come by their starts.
#[derive(Default)]
struct Occupied {
    until_ns: u64,
    /// Without what lies in gaps, which are no part of the wall time.
    total_ns: u64,
}

/// Intervals by their starts, and what they cover.
struct Together<'t> {
    times: &'t [(u64, u64)],
    covered: Occupied,
}

impl<'t> Together<'t> {
    fn new(times: &'t [(u64, u64)], gaps: &[Gap]) -> Self {
        let mut covered = Occupied::default();
        times.iter().for_each(|&(start_ns, end_ns)| covered.add_one(start_ns, end_ns, gaps));
        Self { times, covered }
    }
}

impl Occupied {
    fn add(&mut self, together: &Together<'_>, gaps: &[Gap]) {
        let Together { times, covered } = together;
        match times.first() {
            // Most often nothing from before reaches into them.
            Some((start_ns, _)) if *start_ns >= self.until_ns => {
                self.total_ns += covered.total_ns;
                self.until_ns = self.until_ns.max(covered.until_ns);
            }
            _ => times.iter().for_each(|&(start_ns, end_ns)| self.add_one(start_ns, end_ns, gaps)),
        }
    }

    #[inline]
    fn add_one(&mut self, start_ns: u64, end_ns: u64, gaps: &[Gap]) {
        let from_ns = start_ns.max(self.until_ns);
        if end_ns > from_ns {
            self.total_ns += end_ns - from_ns - within(gaps, from_ns, end_ns);
            self.until_ns = end_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::{Process, ProcessIndex, text_fixture};

    /// Per backend: busy, copying and idle time.
    #[track_caller]
    fn check(events: &str, expected: &[(u64, u64, u64)]) {
        let backends = "backend 0 GPU gpu\nbackend 1 CPU cpu\nbackend 2 NPU accel\n";
        let trace = text_fixture::parse(&format!("{backends}{events}"));
        let wall = wall(&trace);
        let times: Vec<_> = wall
            .backends
            .iter()
            .map(|time| {
                let known = |ns: Option<u64>| ns.expect("the work itself was timed");
                (known(time.busy_ns), time.copying_ns, known(time.idle_ns))
            })
            .collect();
        assert_eq!(times, expected);
        for (busy, copying, idle) in times {
            assert_eq!(busy + copying + idle, wall.wall_ns);
        }
    }

    #[test]
    fn parts_sum_to_the_wall_time() {
        check(
            "op GPU MUL_MAT 10..20
             op CPU GET_ROWS 0..5
             copy GPU H2D 5..9 64
             op GPU ADD 25..30",
            &[(15, 4, 11), (5, 0, 25)],
        );
    }

    #[test]
    fn overlap_counts_once_and_computing_hides_copying() {
        check(
            "op GPU MUL_MAT 0..10
             op GPU ADD 5..15
             op GPU ADD 6..7
             copy GPU H2D 12..20 64
             copy GPU H2D 13..18 64",
            &[(15, 5, 0)],
        );
    }

    #[test]
    fn a_process_is_not_idle_while_it_is_not_recorded() {
        let mut trace = text_fixture::parse(
            "backend 0 GPU gpu
             backend 1 CPU cpu
             op GPU ADD 0..10
             op GPU ADD 90..100
             op CPU ADD 30..40
             op CPU ADD 60..65",
        );
        let missing = |gaps: &[(u64, u64)]| Process {
            gaps: gaps
                .iter()
                .map(|&(start_ns, end_ns)| Gap { start_ns, end_ns, runs: 1 })
                .collect(),
            ..Process::default()
        };
        trace.processes = vec![missing(&[(10, 90)]), missing(&[(0, 20), (70, u64::MAX)])];
        for (at, backend) in (0..).zip(&mut trace.backends) {
            backend.process = Some(ProcessIndex(at));
        }
        let wall = wall(&trace);
        // From 10 to 20 and from 70 to 90 nothing is known of either.
        assert_eq!(wall.wall_ns, 70);
        let times = |it: &BackendTime| (it.busy_ns.unwrap(), it.idle_ns.unwrap(), it.unrecorded_ns);
        let times: Vec<_> = wall.backends.iter().map(times).collect();
        assert_eq!(times, [(20, 0, 50), (15, 35, 20)]);
    }

    #[test]
    fn a_process_is_not_idle_before_it_began_and_after_it_was_over() {
        let mut trace = text_fixture::parse(
            "backend 0 GPU gpu
             backend 1 CPU cpu
             op GPU ADD 0..10
             op GPU ADD 20..30
             op CPU ADD 80..100",
        );
        let there = |from, to| Process { there_ns: Some((from, to)), ..Process::default() };
        trace.processes = vec![there(0, 35), there(75, u64::MAX)];
        // What is not recorded is not absent as well.
        trace.processes[1].gaps = vec![Gap { start_ns: 0, end_ns: 5, runs: 0 }];
        for (at, backend) in (0..).zip(&mut trace.backends) {
            backend.process = Some(ProcessIndex(at));
        }
        let times = |it: &BackendTime| {
            (it.busy_ns.unwrap(), it.idle_ns.unwrap(), it.absent_ns, it.unrecorded_ns)
        };
        let times: Vec<_> = wall(&trace).backends.iter().map(times).collect();
        assert_eq!(times, [(20, 15, 65, 0), (20, 5, 70, 5)]);
    }

    #[test]
    fn touching_zero_length_and_no_events() {
        check("op GPU ADD 0..5\nop GPU ADD 5..10\nop GPU VIEW 7..7", &[(10, 0, 0)]);
        check("op GPU VIEW 7..7", &[(0, 0, 0)]);
        check("", &[]);
    }

    /// A call of eight microseconds starts a copy of one.
    #[test]
    fn the_time_of_a_call_is_not_the_devices() {
        check(
            "op GPU ADD 0..10 measured=device
             copy GPU H2D 10..11 64 measured=device
             copy GPU H2D 20..28 64 measured=host_call
             copy GPU H2D 30..38 4096 measured=host_call
             op GPU ADD 90..100 measured=device",
            &[(20, 2, 78)],
        );
    }

    /// A copy between graph runs belongs to none.
    #[test]
    fn what_happens_in_a_gap_is_no_part_of_the_wall_time() {
        check(
            "run 0..10 number=1
             run 90..100 number=5
             op GPU ADD 0..10 run=0
             copy GPU H2D 50..95 64
             op GPU ADD 98..100 run=1",
            &[(12, 5, 3)],
        );
    }

    #[test]
    fn active_time_is_the_union_over_backends() {
        let trace = text_fixture::parse(
            "backend 0 GPU gpu
             backend 1 CPU cpu
             op GPU ADD 0..10
             op CPU ADD 5..15
             op CPU ADD 20..30",
        );
        let wall = wall(&trace);
        assert_eq!((wall.wall_ns, wall.active_ns, wall.sum_ns), (30, 25, 30));
    }

    #[test]
    fn a_backend_of_which_only_calls_are_known_is_neither_busy_nor_idle() {
        let trace = text_fixture::parse(
            "backend 0 GPU gpu
             op GPU SPLIT 0..10 x measured=host_call
             copy GPU H2D 5..25 100 y
             op GPU SPLIT 90..100 x measured=host_call
             wait 10..40 run=0
             wait 30..60 run=0
             wait 95..200 run=1",
        );
        let wall = wall(&trace);
        let time = &wall.backends[0];
        assert_eq!((time.busy_ns, time.copying_ns, time.idle_ns), (None, 20, None));
        assert_eq!(wall.waited_ns, 50 + 5);
    }
}
