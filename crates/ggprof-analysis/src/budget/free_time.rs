//! Time that nothing has been found for yet.

/// Spans of time without overlap, in order.
pub(super) struct FreeTime {
    spans: Vec<(u64, u64)>,
    /// Room for what will be left after the next claims.
    room: Vec<(u64, u64)>,
}

impl FreeTime {
    pub(super) fn new(span: (u64, u64)) -> Self {
        Self { spans: vec![span], room: Vec::new() }
    }

    /// Takes what is still free of each claim (start, end, whose), which come by their starts.
    /// `taken` hears of each piece.
    pub(super) fn take<T: Copy>(
        &mut self,
        mut claims: impl Iterator<Item = (u64, u64, T)>,
        mut taken: impl FnMut(T, u64, u64),
    ) {
        let Some(first) = claims.next() else { return };
        let Self { spans: free, room: left } = self;
        // The span that is looked at; those from `kept` on before it are free as they were.
        let (mut at, mut kept) = (0, 0);
        // Where the rest of it begins, if some of it was taken; then nothing before it is kept.
        let mut rest_from = None;
        std::iter::once(first).chain(claims).for_each(|(start, end, whose)| {
            while let Some(&(whole_start, free_end)) = free.get(at) {
                if free_end <= start {
                    left.extend(rest_from.take().map(|from| (from, free_end)));
                    at += 1;
                    continue;
                }
                let free_start = rest_from.unwrap_or(whole_start);
                let (from, to) = (free_start.max(start), free_end.min(end));
                if from >= to {
                    break;
                }
                taken(whose, from, to);
                if rest_from.is_none() {
                    if kept < at {
                        left.extend_from_slice(&free[kept..at]);
                    }
                    kept = at + 1;
                }
                if free_start < from {
                    left.push((free_start, from));
                }
                rest_from = (to < free_end).then_some(to);
                at += usize::from(to == free_end);
                if to == end {
                    break;
                }
            }
        });
        left.extend(rest_from.map(|from| (from, free[at].1)));
        left.extend_from_slice(&free[kept..]);
        std::mem::swap(&mut self.spans, &mut self.room);
        self.room.clear();
    }

    pub(super) fn total_ns(&self) -> u64 {
        self.spans.iter().map(|(start, end)| end - start).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_taken_once() {
        let mut free = FreeTime::new((0, 100));
        let mut pieces = Vec::new();
        let claims = [(10, 30, 'a'), (10, 10, 'z'), (20, 40, 'b'), (25, 35, 'c'), (90, 120, 'd')];
        free.take(claims.into_iter(), |whose, start, end| pieces.push((whose, start, end)));
        assert_eq!(pieces, [('a', 10, 30), ('b', 30, 40), ('d', 90, 100)]);
        assert_eq!((&free.spans[..], free.total_ns()), (&[(0, 10), (40, 90)][..], 60));
        pieces.clear();
        let claims = [(0, 5, 'e'), (7, 45, 'f'), (200, 300, 'g')];
        free.take(claims.into_iter(), |whose, start, end| pieces.push((whose, start, end)));
        assert_eq!(pieces, [('e', 0, 5), ('f', 7, 10), ('f', 40, 45)]);
        assert_eq!(free.spans, [(5, 7), (45, 90)]);
    }

    /// Nanosecond by nanosecond, with claims that are drawn at random.
    #[test]
    fn nothing_is_lost_and_nothing_is_taken_twice() {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        for _ in 0..500 {
            let mut free = FreeTime::new((0, 200));
            let mut is_free = [true; 200];
            for _ in 0..4 {
                let claim = |_| (next(220), next(30));
                let mut claims: Vec<(u64, u64, ())> =
                    (0..5).map(claim).map(|(start, ns)| (start, start + ns, ())).collect();
                claims.sort();
                free.take(claims.iter().copied(), |(), start, end| {
                    let taken = &mut is_free[start as usize..end as usize];
                    assert!(taken.iter().all(|free| *free));
                    taken.fill(false);
                });
                for (start, end, ()) in &claims {
                    assert!((*start..(*end).min(200)).all(|ns| !is_free[ns as usize]));
                }
                let left = free.spans.iter().flat_map(|(start, end)| *start..*end);
                let expected = (0..200).filter(|ns| is_free[*ns as usize]);
                assert!(left.eq(expected), "{:?}", free.spans);
            }
        }
    }
}
