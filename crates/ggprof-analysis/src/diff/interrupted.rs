//! Calls that took much longer than others of their kind: the system had given the processor to
//! something else, or memory had to be fetched from afar. What they took beyond the usual is no
//! property of the op, and would hide what is.

use crate::percentiles::percentile;

/// Interrupts, and moments in which another program has the processor, take at least as long.
const LONGER_BY_NS: u64 = 100_000;

/// And ops that take long vary by more than that.
const LONGER_BY_PART: u64 = 2;

/// Too few to tell what is usual.
const LEAST_CALLS: usize = 5;

/// The median time of each kind of call.
pub(super) struct Usual(Vec<Option<u64>>);

impl Usual {
    /// From all calls, each with its kind.
    pub(super) fn of<I: Iterator<Item = (usize, u64)>>(
        kinds: usize,
        calls: impl Fn() -> I,
    ) -> Self {
        let mut ends = vec![0; kinds + 1];
        calls().for_each(|(kind, _)| ends[kind + 1] += 1);
        for at in 1..ends.len() {
            ends[at] += ends[at - 1];
        }
        let starts = ends.clone();
        let mut times = vec![0; starts[kinds]];
        for (kind, ns) in calls() {
            times[ends[kind]] = ns;
            ends[kind] += 1;
        }
        let usual = |kind: usize| {
            let times = &mut times[starts[kind]..starts[kind + 1]];
            (times.len() >= LEAST_CALLS).then(|| percentile(times, 50))
        };
        Self((0..kinds).map(usual).collect())
    }

    /// How much longer than usual an interrupted call took; 0 for others.
    pub(super) fn longer_by(&self, kind: usize, ns: u64) -> u64 {
        let Some(usual_ns) = self.0[kind] else { return 0 };
        let longer_ns = ns.saturating_sub(usual_ns);
        let is_interrupted = longer_ns >= LONGER_BY_NS && longer_ns >= usual_ns / LONGER_BY_PART;
        if is_interrupted { longer_ns } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_usual() {
        let calls = [(0, 1000), (0, 1100), (0, 900), (0, 5_000_000), (0, 1000), (1, 9_000_000)];
        let usual = Usual::of(2, || calls.into_iter());
        assert_eq!(usual.longer_by(0, 5_000_000), 4_999_000);
        assert_eq!(usual.longer_by(0, 90_000), 0);
        assert_eq!(usual.longer_by(0, 10), 0);
        // There is nothing to compare it with.
        assert_eq!(usual.longer_by(1, 9_000_000), 0);
        let long = [(0, 10_000_000); 5];
        let usual = Usual::of(1, || long.into_iter());
        assert_eq!(usual.longer_by(0, 12_000_000), 0);
        assert_eq!(usual.longer_by(0, 16_000_000), 6_000_000);
    }
}
