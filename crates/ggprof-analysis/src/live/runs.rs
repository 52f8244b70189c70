//! Graph runs: how long they take, and what lies between them.

use super::LiveWait;
use ggprof_trace::formats::spool::News;

#[derive(Debug, Default)]
pub(super) struct Runs {
    last_end_ns: Option<u64>,
}

impl Runs {
    /// The longest time between two of them. The last one may go on.
    pub(super) fn longest_gap(&mut self, news: &News, now_ns: u64) -> LiveWait {
        let under_way = news.run_since_ns.map(|start_ns| (start_ns, start_ns));
        let nothing = Some((now_ns, now_ns)).filter(|_| under_way.is_none());
        let nothing = nothing.filter(|_| news.standing.is_going_on());
        let mut longest = LiveWait::default();
        for &(start_ns, end_ns) in news.runs.iter().chain(&under_way) {
            longest = longest.max(self.gap_until(start_ns));
            self.last_end_ns = self.last_end_ns.max(Some(end_ns));
        }
        longest = nothing.map_or(longest, |(now_ns, _)| longest.max(self.gap_until(now_ns)));
        if !news.standing.is_recording {
            // What is computed meanwhile is not seen.
            self.last_end_ns = None;
        }
        longest
    }

    fn gap_until(&self, at_ns: u64) -> LiveWait {
        let start_ns = self.last_end_ns.unwrap_or(at_ns);
        LiveWait { ns: at_ns.saturating_sub(start_ns), start_ns }
    }
}

/// The longest of the runs that ended and the one that is under way: how long, and when it began.
pub(super) fn longest(
    ended: impl Iterator<Item = (u64, u64)>,
    news: &News,
    now_ns: u64,
) -> Option<LiveWait> {
    let under_way = news.run_since_ns.map(|since| (since, now_ns));
    let runs = ended.chain(under_way);
    runs.map(|(start_ns, end)| LiveWait { ns: end.saturating_sub(start_ns), start_ns }).max()
}
