//! Where one recording has gaps: graph runs that the program computed and that were not recorded, because
//! recording was stopped, or had made room for newer ones.

use crate::done::done;
use crate::model::{Extent, Gap, GraphRun, Trace};

impl Trace {
    /// By time. What is missing before the first recorded run is none of them.
    pub fn numbered_gaps(&self) -> Vec<Gap> {
        self.gaps_between(&[])
    }

    /// Those of the recording alone: what was left out on request is none.
    pub fn recording_gaps(&self) -> Vec<Gap> {
        self.gaps_between(&self.left_out)
    }

    /// Between the runs that are here and some others, each of which ends with its results.
    fn gaps_between(&self, others: &[GraphRun]) -> Vec<Gap> {
        let numbers = self.graph_runs.iter().chain(others).filter_map(|run| run.number);
        if is_complete(numbers) {
            return Vec::new();
        }
        let done = done(self);
        let here = self.graph_runs.iter().zip(done);
        let others = others.iter().map(|run| (run, run.end_ns));
        let mut runs: Vec<(u64, u64, u64)> = here
            .chain(others)
            .filter_map(|(run, done_ns)| Some((run.number?, run.start_ns, done_ns)))
            .collect();
        runs.sort_unstable();
        let mut gaps: Vec<Gap> = Vec::new();
        let mut latest_ns = 0;
        for pair in runs.windows(2) {
            let [(before, _, done_ns), (after, start_ns, _)] = [pair[0], pair[1]];
            latest_ns = done_ns.max(latest_ns);
            if after - before > 1 && start_ns > latest_ns {
                gaps.push(Gap { start_ns: latest_ns, end_ns: start_ns, runs: after - before - 1 });
            }
        }
        gaps
    }

    /// Graph runs of the program before the first one that was recorded.
    pub fn runs_before(&self) -> u64 {
        before_first(&mut self.graph_runs.iter())
    }

    /// The same, what was left out on request not counted.
    pub fn recorded_runs_before(&self) -> u64 {
        before_first(&mut self.graph_runs.iter().chain(&self.left_out))
    }

    /// All times of which nothing is known, beside other processes that were recorded then.
    pub(crate) fn unknown_times(&self) -> Vec<Gap> {
        let mut gaps = self.numbered_gaps();
        let first_run = self.graph_runs.iter().map(|run| run.start_ns);
        // The call that it is part of began before it.
        let first_ns = first_run.chain(self.span_ns().map(|(start_ns, _)| start_ns)).min();
        let runs = self.runs_before();
        if let Some(end_ns) = first_ns.filter(|_| runs > 0) {
            gaps.insert(0, Gap { start_ns: 0, end_ns, runs });
        }
        if self.went_on()
            && let Some(start_ns) = done(self).into_iter().max()
        {
            gaps.push(Gap { start_ns, end_ns: u64::MAX, runs: 0 });
        }
        gaps
    }

    /// Whether the program went on when its recording had ended.
    fn went_on(&self) -> bool {
        let extent = self.provenance.as_ref().map(|it| it.extent);
        matches!(extent, Some(Extent::Stopped | Extent::Snapshot))
    }

    /// When the process was there beside others: from its first sign of life to its last. Its sensors
    /// are read as long as it runs.
    pub(crate) fn there_ns(&self) -> Option<(u64, u64)> {
        let runs = self.graph_runs.iter().zip(done(self)).map(|(run, ns)| (run.start_ns, ns));
        let anchors = self.provenance.iter().flat_map(|it| &it.clock_anchors);
        let read = self.sensors.iter().filter_map(|it| it.times_ns.first().zip(it.times_ns.last()));
        let batches = self.batches.iter().map(|it| (it.start_ns, it.end_ns.unwrap_or(it.start_ns)));
        let sent = self.transfers.iter().map(|it| (it.start_ns, it.end_ns));
        let signs = runs
            .chain(anchors.map(|(ns, _)| (*ns, *ns)))
            .chain(read.map(|(first, last)| (*first, *last)))
            .chain(batches)
            .chain(sent)
            .chain(self.span_ns());
        let (first_ns, last_ns) = signs
            .reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
            .filter(|(first_ns, last_ns)| first_ns <= last_ns)?;
        let start_ns = if self.runs_before() > 0 { 0 } else { first_ns };
        Some((start_ns, if self.went_on() { u64::MAX } else { last_ns }))
    }
}

fn before_first(runs: &mut dyn Iterator<Item = &GraphRun>) -> u64 {
    runs.filter_map(|run| run.number).min().map_or(0, |first| first.saturating_sub(1))
}

/// Whether no number is missing between the first and the last.
fn is_complete(numbers: impl Iterator<Item = u64>) -> bool {
    let (mut count, mut ends) = (0, None);
    for number in numbers {
        let (first, last) = ends.unwrap_or((number, number));
        ends = Some((number.min(first), number.max(last)));
        count += 1;
    }
    ends.is_none_or(|(first, last): (u64, u64)| last - first == count - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Provenance;
    use crate::text_fixture;

    const PART: &str = "backend 0 CPU cpu
        run 5..10 number=3
        run 12..20 number=4
        run 90..99 number=9
        op CPU ADD 5..6 x run=0";

    #[test]
    fn missing_numbers_are_gaps() {
        let trace = text_fixture::parse(PART);
        assert_eq!(trace.numbered_gaps(), [Gap { start_ns: 20, end_ns: 90, runs: 4 }]);
        assert_eq!(trace.runs_before(), 2);
    }

    #[test]
    fn beside_others_nothing_is_known_before_and_after() {
        let mut trace = text_fixture::parse(PART);
        let between = Gap { start_ns: 20, end_ns: 90, runs: 4 };
        let before = Gap { start_ns: 0, end_ns: 5, runs: 2 };
        assert_eq!(trace.unknown_times(), [before, between]);
        trace.provenance = Some(Provenance { extent: Extent::Stopped, ..Provenance::default() });
        let after = Gap { start_ns: 99, end_ns: u64::MAX, runs: 0 };
        assert_eq!(trace.unknown_times(), [before, between, after]);
    }

    #[test]
    fn a_recording_lasts_as_long_as_the_calls_that_its_ops_are_part_of() {
        let ops =
            "backend 0 CPU cpu\nbatch 2..30 0:0+1!1\nrun 5..20 batch=0\nop CPU ADD 9..10 x run=0";
        assert_eq!(text_fixture::parse(ops).span_ns(), Some((2, 30)));
        let ops = ops.replace(" batch=0", "");
        assert_eq!(text_fixture::parse(&ops).span_ns(), Some((5, 20)));
    }

    #[test]
    fn a_process_is_there_from_its_first_sign_of_life_to_its_last() {
        let mut trace = text_fixture::parse("backend 0 CPU cpu\nrun 30..40\nbatch 20..45 0:0+1!1");
        assert_eq!(trace.there_ns(), Some((20, 45)));
        let clock_anchors = vec![(15, 1_000_000)];
        trace.provenance = Some(Provenance { clock_anchors, ..Provenance::default() });
        assert_eq!(trace.there_ns(), Some((15, 45)));
        trace.graph_runs[0].number = Some(3);
        trace.provenance = Some(Provenance { extent: Extent::Stopped, ..Provenance::default() });
        assert_eq!(trace.there_ns(), Some((0, u64::MAX)));
        assert_eq!(Trace::default().there_ns(), None);
    }

    #[test]
    fn numbers_of_damaged_files_do_no_harm() {
        let trace = text_fixture::parse(
            "backend 0 CPU cpu
             run 5..10 number=0
             run 12..20 number=18446744073709551615",
        );
        let gap = Gap { start_ns: 10, end_ns: 12, runs: u64::MAX - 1 };
        assert_eq!((trace.numbered_gaps(), trace.runs_before()), (vec![gap], 0));
    }

    #[test]
    fn without_numbers_there_are_none() {
        let trace = text_fixture::parse("backend 0 CPU cpu\nrun 0..10\nrun 90..99");
        assert_eq!((trace.numbered_gaps(), trace.runs_before()), (vec![], 0));
    }
}
