//! Divides a device's time among pieces of work, so that sums count no time twice.
//!
//! Work that overlaps earlier work is charged only with the time that it adds. Pieces with exactly
//! the same interval were timed together, because nothing keeps them apart. They share the interval
//! in proportion to the bytes of their tensors; such a share is marked as an estimate.
//!
//! If nothing kept the work of several ops apart, the time that one adds says little about the time
//! it took, even if each has its own interval: a device that writes timestamps in order makes the
//! work beside the first op look very short. So these shares are estimates too.

/// One piece of work, as far as charging needs it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    /// Which op it belongs to: pieces of one op need not be told apart.
    pub(super) owner: (u32, Option<u32>),
    /// How large a part it gets of an interval that it has in common with others.
    pub(super) weight: u64,
    /// Other ops' work may have run beside it.
    pub(super) beside: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) ns: u64,
    /// Shared out by weight or by order, not measured.
    pub(super) estimated: bool,
}

/// The share of each piece of one engine, in the order given.
pub(super) fn shares(pieces: &[Piece]) -> Vec<Share> {
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by_key(|&at| (pieces[at].start_ns, pieces[at].end_ns));
    let mut shares = vec![Share::default(); pieces.len()];
    let mut charged_until = 0;
    let same = |a: &usize, b: &usize| {
        (pieces[*a].start_ns, pieces[*a].end_ns) == (pieces[*b].start_ns, pieces[*b].end_ns)
    };
    for together in order.chunk_by(same) {
        let Piece { start_ns, end_ns, owner, .. } = pieces[together[0]];
        let adds = end_ns.saturating_sub(start_ns.max(charged_until));
        let estimated = together.iter().any(|&at| pieces[at].owner != owner);
        let weights: u128 = together.iter().map(|&at| weight(&pieces[at])).sum();
        let (mut seen, mut given) = (0, 0);
        for &at in together {
            // By running sums, so that the parts add up to the whole.
            seen += weight(&pieces[at]);
            let until = (u128::from(adds) * seen / weights) as u64;
            shares[at] = Share { ns: until - given, estimated: estimated || pieces[at].beside };
            given = until;
        }
        charged_until = charged_until.max(end_ns);
    }
    shares
}

fn weight(piece: &Piece) -> u128 {
    u128::from(piece.weight.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pieces: &[(u64, u64, u32, u64)], expected: &[(u64, bool)]) {
        let pieces: Vec<Piece> = pieces
            .iter()
            .map(|&(start_ns, end_ns, node, weight)| Piece {
                start_ns,
                end_ns,
                owner: (1, Some(node)),
                weight,
                beside: false,
            })
            .collect();
        let found: Vec<_> =
            shares(&pieces).iter().map(|share| (share.ns, share.estimated)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn apart_and_overlapping() {
        check(&[(0, 10, 1, 0), (20, 30, 2, 0)], &[(10, false), (10, false)]);
        check(
            &[(0, 10, 1, 0), (5, 15, 2, 0), (6, 8, 3, 0), (14, 20, 4, 0)],
            &[(10, false), (5, false), (0, false), (5, false)],
        );
        check(&[(20, 30, 1, 0), (0, 25, 2, 0)], &[(5, false), (25, false)]);
    }

    #[test]
    fn timed_together() {
        check(&[(0, 10, 1, 1), (0, 10, 2, 3)], &[(2, true), (8, true)]);
        check(&[(0, 10, 1, 1), (0, 10, 1, 3)], &[(2, false), (8, false)]);
        check(&[(0, 10, 1, 0), (0, 10, 2, 0), (0, 10, 3, 0)], &[(3, true), (3, true), (4, true)]);
        check(&[], &[]);
    }
}
