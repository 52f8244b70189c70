//! Where the wall time went: each backend is computing, copying or idle, and the three add up to
//! the recording's span. If only the calls that start a backend's work were timed, it may be
//! computing or idle at any time.

use crate::estimates::CopyTimes;
use crate::gaps::{Gap, gaps, recorded_ns, within};
use ggprof_trace::{BackendIndex, Event, EventKind, Measured, TaskKind, Trace};
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
    let mut backends: Vec<Spans> = Vec::new();
    backends.resize_with(trace.backends.len(), Spans::default);
    let copies = CopyTimes::of(trace);
    for event in trace.events.iter() {
        let spans = &mut backends[usize::from(event.backend.0)];
        if copies.is_untimed(&event) {
            spans.copies.count += 1;
            match copies.mean_ns(trace, &event) {
                Some(mean_ns) => spans.estimated_ns += mean_ns,
                None => spans.untimed += 1,
            }
        } else {
            spans.add(trace, &event);
        }
    }
    let mut active = Coverage::default();
    let mut times = Vec::new();
    for (at, spans) in backends.into_iter().enumerate() {
        if spans.ops.count + spans.copies.count == 0 {
            continue;
        }
        active.add_all(&spans.ops.spans);
        active.add_all(&spans.copies.spans);
        times.push(spans.finish(BackendIndex(at as u16), wall_ns, &gaps));
    }
    let sum_ns = times.iter().map(|time| time.ops_ns + time.copies_ns).sum();
    let active_ns = active.total_ns(&gaps);
    let waited_ns = waited_ns(trace, start_ns..end_ns, &gaps);
    Wall { start_ns, wall_ns, sum_ns, active_ns, waited_ns, backends: times }
}

fn waited_ns(trace: &Trace, span: Range<u64>, gaps: &[Gap]) -> u64 {
    let waits = trace.host_tasks.iter().filter(|task| task.what == TaskKind::Wait);
    let within = waits.map(|wait| {
        let end_ns = wait.start_ns.saturating_add(wait.duration_ns);
        let inside = |ns: u64| ns.clamp(span.start, span.end);
        (inside(wait.start_ns), inside(end_ns))
    });
    let mut waited = Coverage::default();
    waited.add_all(&within.collect::<Vec<_>>());
    waited.total_ns(gaps)
}

/// The events of one backend as intervals.
#[derive(Default)]
struct Spans {
    ops: Kind,
    copies: Kind,
    /// How many of the ops are calls that only start work.
    calls: u64,
    /// What copies are estimated to have taken that were timed by their calls, and how many of
    /// them nothing can be said of.
    estimated_ns: f64,
    untimed: u64,
}

#[derive(Default)]
struct Kind {
    count: u64,
    total_ns: u128,
    spans: Vec<(u64, u64)>,
}

impl Spans {
    fn add(&mut self, trace: &Trace, event: &Event) {
        let kind = match event.kind {
            EventKind::Op => &mut self.ops,
            EventKind::Copy => &mut self.copies,
        };
        self.calls += u64::from(event.is_op() && event.measured == Measured::HostCall);
        kind.count += 1;
        kind.total_ns += u128::from(event.charged_ns);
        // Between its kernels an op does nothing.
        let work = trace.work_for(event.id);
        kind.spans
            .extend(work.iter().map(|work| (work.start_ns, work.start_ns + work.duration_ns)));
        if work.is_empty() {
            kind.spans.push((event.start_ns, event.end_ns()));
        }
    }

    fn finish(self, backend: BackendIndex, wall_ns: u64, gaps: &[Gap]) -> BackendTime {
        let mut coverage = Coverage::default();
        let known = self.ops.count == 0 || self.calls < self.ops.count;
        if known {
            coverage.add_all(&self.ops.spans);
        }
        let busy_ns = coverage.total_ns(gaps);
        coverage.add_all(&self.copies.spans);
        let occupied_ns = coverage.total_ns(gaps);
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

/// Intervals without overlap, in order.
#[derive(Default)]
struct Coverage(Vec<(u64, u64)>);

impl Coverage {
    fn add_all(&mut self, spans: &[(u64, u64)]) {
        self.0.extend_from_slice(spans);
        // Stable, because that sort is quick with runs that are in order already.
        self.0.sort();
        self.0.dedup_by(|next, last| {
            let joins = next.0 <= last.1;
            if joins {
                last.1 = last.1.max(next.1);
            }
            joins
        });
    }

    /// Without what lies in gaps, which are no part of the wall time.
    fn total_ns(&self, gaps: &[Gap]) -> u64 {
        self.0.iter().map(|&(start, end)| end - start - within(gaps, start, end)).sum()
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
