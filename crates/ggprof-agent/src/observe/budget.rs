//! How much of a program's time sampling may take.

/// A share of the time since the first call, and how much of it was taken.
#[derive(Debug)]
pub(crate) struct Budget {
    permille: u64,
    began_ns: Option<u64>,
    spent_ns: u64,
    /// The part of what was taken that could not be avoided.
    unchosen_ns: u64,
}

impl Budget {
    pub(crate) const fn new(permille: u32) -> Budget {
        Budget { permille: permille as u64, began_ns: None, spent_ns: 0, unchosen_ns: 0 }
    }

    pub(crate) fn spend(&mut self, took_ns: u64) {
        self.spent_ns += took_ns;
    }

    /// Takes time for something that is done anyway, but never more than half of the budget: the
    /// other half stays for what can be chosen.
    pub(crate) fn spend_unchosen(&mut self, took_ns: u64, now_ns: u64) {
        let room_ns = (self.earned_ns(now_ns) / 2).saturating_sub(self.unchosen_ns);
        self.unchosen_ns += took_ns.min(room_ns);
        self.spent_ns += took_ns.min(room_ns);
    }

    /// Whether so much can be taken now, given an advance on the budget.
    pub(crate) fn allows(&mut self, cost_ns: u64, advance_ns: u64, now_ns: u64) -> bool {
        self.spent_ns + cost_ns <= self.earned_ns(now_ns) + advance_ns
    }

    fn earned_ns(&mut self, now_ns: u64) -> u64 {
        let began_ns = *self.began_ns.get_or_insert(now_ns);
        now_ns.saturating_sub(began_ns).saturating_mul(self.permille) / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_time_and_an_advance() {
        let mut budget = Budget::new(10);
        assert!(!budget.allows(1, 0, 5000), "the time begins here");
        assert!(budget.allows(5, 5, 5000));
        budget.spend(5);
        assert!(!budget.allows(5, 0, 5999));
        assert!(budget.allows(5, 0, 6000), "a hundredth of a thousand");
        assert!(!budget.allows(1, 0, 0), "a clock that goes back earns nothing");
    }

    #[test]
    fn what_was_not_chosen_leaves_half_for_what_is() {
        let mut budget = Budget::new(10);
        assert!(budget.allows(0, 0, 0));
        for _ in 0..100 {
            budget.spend_unchosen(1, 1000);
        }
        assert!(budget.allows(5, 0, 1000) && !budget.allows(6, 0, 1000));
    }
}
