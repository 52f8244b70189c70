//! Where the wall time went: each backend is computing, copying or idle, and the three add up to
//! the recording's span. If only the calls that start a backend's work were timed, it may be
//! computing or idle at any time.

use crate::estimates::CopyTimes;
use crate::gaps::{Gap, gaps, recorded_ns, within};
use ggprof_trace::{BackendIndex, EventId, EventKind, Measured, TaskKind, Trace};
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
}

pub fn wall(trace: &Trace) -> Wall {
    let (start_ns, end_ns) = trace.span_ns().unwrap_or_default();
    let (wall_ns, gaps) = (recorded_ns(trace), gaps(trace));
    let copies = CopyTimes::of(trace);
    let mut backends = counts(trace, &copies);
    let mut active = Covered::default();
    by_start(trace, |event, start_ns, end_ns| {
        let event = trace.events.get(event);
        if copies.is_untimed(&event) {
            return;
        }
        active.add(start_ns, end_ns, &gaps);
        backends[usize::from(event.backend.0)].add(event.is_op(), (start_ns, end_ns), &gaps);
    });
    let times: Vec<BackendTime> = backends
        .into_iter()
        .enumerate()
        .filter(|(_, counted)| counted.ops.count + counted.copies.count > 0)
        .map(|(at, counted)| counted.finish(BackendIndex(at as u16), wall_ns))
        .collect();
    let sum_ns = times.iter().map(|time| time.ops_ns + time.copies_ns).sum();
    let active_ns = active.total_ns;
    let waited_ns = waited_ns(trace, start_ns..end_ns, &gaps);
    Wall { start_ns, wall_ns, sum_ns, active_ns, waited_ns, backends: times }
}

/// Hands over when each event was at work, by the starts. Between its kernels an op does nothing.
fn by_start(trace: &Trace, mut each: impl FnMut(EventId, u64, u64)) {
    let starts = trace.events.starts();
    let mut whole = |at: u32| {
        let start_ns = starts[at as usize];
        each(EventId(at), start_ns, start_ns + trace.events.duration(EventId(at)));
    };
    let all = 0..trace.events.len() as u32;
    if !trace.device_work.is_empty() {
        let mut pieces: Vec<(u64, u64, u32)> = Vec::new();
        for at in all {
            let work = trace.work_for(EventId(at));
            pieces.extend(work.iter().map(|it| (it.start_ns, it.start_ns + it.duration_ns, at)));
            if work.is_empty() {
                let start_ns = starts[at as usize];
                pieces.push((start_ns, start_ns + trace.events.duration(EventId(at)), at));
            }
        }
        pieces.sort_by_key(|piece| piece.0);
        pieces.into_iter().for_each(|(start_ns, end_ns, at)| each(EventId(at), start_ns, end_ns));
    } else if starts.is_sorted() {
        all.for_each(whole);
    } else {
        // Stable, because that sort is quick with runs that are in order already.
        let mut order: Vec<u32> = all.collect();
        order.sort_by_key(|&at| starts[at as usize]);
        order.into_iter().for_each(&mut whole);
    }
}

/// What can be told without regard to overlap.
fn counts(trace: &Trace, copies: &CopyTimes) -> Vec<Counted> {
    let mut backends: Vec<Counted> = Vec::new();
    backends.resize_with(trace.backends.len(), Counted::default);
    for (stretch, events) in trace.events.stretches() {
        let counted = &mut backends[usize::from(stretch.backend.0)];
        let kind = match stretch.kind {
            EventKind::Op => &mut counted.ops,
            EventKind::Copy => &mut counted.copies,
        };
        kind.count += events.len() as u64;
        for event in events.map(|at| trace.events.in_stretch(at, stretch)) {
            counted.calls += u64::from(event.is_op() && event.measured == Measured::HostCall);
            if !copies.is_untimed(&event) {
                kind.total_ns += u128::from(event.charged_ns);
                continue;
            }
            match copies.mean_ns(trace, &event) {
                Some(mean_ns) => counted.estimated_ns += mean_ns,
                None => counted.untimed += 1,
            }
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
    let mut waited = Covered::default();
    times.into_iter().for_each(|(start_ns, end_ns)| waited.add(start_ns, end_ns, gaps));
    waited.total_ns
}

/// The events of one backend.
#[derive(Default)]
struct Counted {
    ops: Kind,
    copies: Kind,
    /// How many of the ops are calls that only start work.
    calls: u64,
    /// What copies are estimated to have taken that were timed by their calls, and how many of
    /// them nothing can be said of.
    estimated_ns: f64,
    untimed: u64,
    /// By ops, and by ops or copies.
    busy: Covered,
    occupied: Covered,
}

#[derive(Default)]
struct Kind {
    count: u64,
    total_ns: u128,
}

impl Counted {
    /// Whether it is known when the ops ran.
    fn is_known(&self) -> bool {
        self.ops.count == 0 || self.calls < self.ops.count
    }

    fn add(&mut self, is_op: bool, (start_ns, end_ns): (u64, u64), gaps: &[Gap]) {
        if is_op && !self.is_known() {
            return;
        }
        if is_op {
            self.busy.add(start_ns, end_ns, gaps);
        }
        self.occupied.add(start_ns, end_ns, gaps);
    }

    fn finish(self, backend: BackendIndex, wall_ns: u64) -> BackendTime {
        let known = self.is_known();
        let (busy_ns, occupied_ns) = (self.busy.total_ns, self.occupied.total_ns);
        // There is no more of it than is left.
        let left_ns = wall_ns.saturating_sub(occupied_ns);
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
        }
    }
}

/// Time that intervals cover together, which come by their starts.
#[derive(Default)]
struct Covered {
    until_ns: u64,
    /// Without what lies in gaps, which are no part of the wall time.
    total_ns: u64,
}

impl Covered {
    #[inline]
    fn add(&mut self, start_ns: u64, end_ns: u64, gaps: &[Gap]) {
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
    use ggprof_trace::text_fixture;

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
