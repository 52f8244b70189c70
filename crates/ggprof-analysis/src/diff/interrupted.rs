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

/// Interruptions are rare. If more than one of so many calls takes that much longer, it is the op that
/// sometimes does.
const ONE_OF: usize = 10;

/// The median time of each kind of call; `None` where calls that take longer are no interruptions.
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
            if times.len() < LEAST_CALLS {
                return None;
            }
            let usual_ns = percentile(times, 50);
            let longer = times.iter().filter(|&&ns| longer_by(usual_ns, ns) > 0).count();
            (longer <= (times.len() / ONE_OF).max(1)).then_some(usual_ns)
        };
        Self((0..kinds).map(usual).collect())
    }

    /// How much longer than usual an interrupted call took; 0 for others.
    pub(super) fn longer_by(&self, kind: usize, ns: u64) -> u64 {
        self.0[kind].map_or(0, |usual_ns| longer_by(usual_ns, ns))
    }
}

fn longer_by(usual_ns: u64, ns: u64) -> u64 {
    let longer_ns = ns.saturating_sub(usual_ns);
    let is_much = longer_ns >= LONGER_BY_NS && longer_ns >= usual_ns / LONGER_BY_PART;
    if is_much { longer_ns } else { 0 }
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

    /// A regression that shows in some calls only belongs to its op.
    #[test]
    fn what_happens_often_is_no_interruption() {
        for (slow, longer_ns) in [(10, 200_000), (11, 0), (30, 0)] {
            let calls = (0..100).map(|at| (0, if at < slow { 300_000 } else { 100_000 }));
            let usual = Usual::of(1, || calls.clone());
            assert_eq!(usual.longer_by(0, 300_000), longer_ns, "{slow}");
        }
    }
}
