//! Divides a span of time among what happened in it, so that every nanosecond counts once.
//!
//! Of what computes at the same time, each has an equal part, or the part that its device's time was
//! charged to it with. Copies have the time in which nothing computes.

/// More at once than any machine computes; a file with more must not take for ever.
const MOST_AT_ONCE: usize = 64;

/// Something that takes time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Span {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    /// How large its part is of time that it has in common with others.
    pub(super) weight: f64,
    pub(super) is_copy: bool,
    /// What it belongs to.
    pub(super) owner: u32,
}

/// Gives `take` each piece of `from..to`, in order: whose it is, from when to when. The owner is
/// `None` where there is none. Spans come by their start.
pub(super) fn divide(
    spans: impl Iterator<Item = Span>,
    (from_ns, to_ns): (u64, u64),
    mut take: impl FnMut(Option<u32>, u64, u64),
) {
    let mut active: Vec<Span> = Vec::new();
    let mut now_ns = from_ns;
    // Within the iterator, because most come from one that joins others.
    spans.for_each(|span| {
        let start_ns = span.start_ns.clamp(from_ns, to_ns);
        advance(&mut active, &mut now_ns, start_ns, &mut take);
        if span.end_ns.min(to_ns) <= start_ns {
            return;
        }
        if active.len() == MOST_AT_ONCE {
            active.remove(0);
        }
        active.push(Span { end_ns: span.end_ns.min(to_ns), ..span });
    });
    advance(&mut active, &mut now_ns, to_ns, &mut take);
}

/// Divides what lies before `until_ns`.
fn advance(
    active: &mut Vec<Span>,
    now_ns: &mut u64,
    until_ns: u64,
    take: &mut impl FnMut(Option<u32>, u64, u64),
) {
    while *now_ns < until_ns {
        let next_end = active.iter().map(|span| span.end_ns).min();
        let to_ns = next_end.map_or(until_ns, |end_ns| end_ns.min(until_ns));
        match active[..] {
            [] => take(None, *now_ns, to_ns),
            [alone] => take(Some(alone.owner), *now_ns, to_ns),
            _ => share(active, *now_ns, to_ns, take),
        }
        *now_ns = to_ns;
        active.retain(|span| span.end_ns > to_ns);
    }
}

fn share(active: &[Span], from_ns: u64, to_ns: u64, take: &mut impl FnMut(Option<u32>, u64, u64)) {
    let only_copies = active.iter().all(|span| span.is_copy);
    let has_part = |span: &&Span| only_copies || !span.is_copy;
    let all: f64 = active.iter().filter(has_part).map(|span| span.weight).sum();
    let length = (to_ns - from_ns) as f64;
    let (mut seen, mut given_ns) = (0.0, from_ns);
    let last = active.iter().rposition(|span| has_part(&span)).unwrap_or(0);
    for (at, span) in active.iter().enumerate().filter(|(_, span)| has_part(span)) {
        // By running sums, so that the parts add up to the whole.
        seen += span.weight;
        let until_ns = match at == last {
            true => to_ns,
            false => (from_ns + (length * seen / all) as u64).clamp(given_ns, to_ns),
        };
        take(Some(span.owner), given_ns, until_ns);
        given_ns = until_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn span(owner: u32, start_ns: u64, end_ns: u64) -> Span {
        Span { start_ns, end_ns, weight: 1.0, is_copy: false, owner }
    }

    #[track_caller]
    fn check(spans: &[Span], expected: &[(Option<u32>, u64)]) {
        let mut found: BTreeMap<Option<u32>, u64> = BTreeMap::new();
        divide(spans.iter().copied(), (0, 100), |owner, from_ns, to_ns| {
            *found.entry(owner).or_default() += to_ns - from_ns;
        });
        assert_eq!(found.values().sum::<u64>(), 100);
        found.retain(|_, ns| *ns > 0);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn one_after_the_other() {
        check(&[span(1, 10, 30), span(2, 30, 40)], &[(None, 70), (Some(1), 20), (Some(2), 10)]);
        check(&[], &[(None, 100)]);
    }

    #[test]
    fn at_the_same_time() {
        check(&[span(1, 0, 60), span(2, 20, 80)], &[(None, 20), (Some(1), 40), (Some(2), 40)]);
        let [mut one, mut other] = [span(1, 0, 50), span(2, 0, 50)];
        (one.weight, other.weight) = (0.2, 0.8);
        check(&[one, other], &[(None, 50), (Some(1), 10), (Some(2), 40)]);
        (one.weight, other.weight) = (0.0, 0.0);
        check(&[one, other], &[(None, 50), (Some(2), 50)]);
    }

    #[test]
    fn a_copy_has_what_nothing_computes_in() {
        let copy = Span { is_copy: true, ..span(3, 10, 50) };
        check(
            &[span(1, 0, 20), copy, span(2, 40, 60)],
            &[(None, 40), (Some(1), 20), (Some(2), 20), (Some(3), 20)],
        );
    }

    #[test]
    fn what_lies_outside_does_not_count() {
        check(
            &[span(1, 0, 1), span(2, 90, 900), span(3, 200, 300)],
            &[(None, 89), (Some(1), 1), (Some(2), 10)],
        );
    }

    #[test]
    fn more_at_once_than_there_can_be() {
        let spans: Vec<Span> = (0..1000).map(|at| span(at, 0, 100)).collect();
        let mut sum = 0;
        divide(spans.into_iter(), (0, 100), |_, from_ns, to_ns| sum += to_ns - from_ns);
        assert_eq!(sum, 100);
    }
}
