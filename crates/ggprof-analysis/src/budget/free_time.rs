//! Time that nothing has been found for yet.

/// Stretches of time without overlap, in order.
pub(super) struct FreeTime(Vec<(u64, u64)>);

impl FreeTime {
    pub(super) fn new(span: (u64, u64)) -> Self {
        Self(vec![span])
    }

    /// Takes what is still free of each claim (start, end, whose), which come by their starts.
    /// `taken` hears of each piece.
    pub(super) fn take<T: Copy>(
        &mut self,
        claims: impl Iterator<Item = (u64, u64, T)>,
        mut taken: impl FnMut(T, u64, u64),
    ) {
        let mut left = Vec::with_capacity(self.0.len());
        let mut free = std::mem::take(&mut self.0).into_iter();
        let mut current = free.next();
        for (start, end, whose) in claims {
            while let Some((free_start, free_end)) = current {
                if free_end <= start {
                    left.push((free_start, free_end));
                    current = free.next();
                    continue;
                }
                let (from, to) = (free_start.max(start), free_end.min(end));
                if from >= to {
                    break;
                }
                taken(whose, from, to);
                if free_start < from {
                    left.push((free_start, from));
                }
                current = if to < free_end { Some((to, free_end)) } else { free.next() };
                if to == end {
                    break;
                }
            }
        }
        left.extend(current);
        left.extend(free);
        self.0 = left;
    }

    pub(super) fn total_ns(&self) -> u64 {
        self.0.iter().map(|(start, end)| end - start).sum()
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
        assert_eq!((&free.0[..], free.total_ns()), (&[(0, 10), (40, 90)][..], 60));
        pieces.clear();
        let claims = [(0, 5, 'e'), (7, 45, 'f'), (200, 300, 'g')];
        free.take(claims.into_iter(), |whose, start, end| pieces.push((whose, start, end)));
        assert_eq!(pieces, [('e', 0, 5), ('f', 7, 10), ('f', 40, 45)]);
        assert_eq!(free.0, [(5, 7), (45, 90)]);
    }
}
