//! How far the device's times can be off the host's clock. CUPTI does not say, but cause and effect
//! do: no work begins before the host asked for it, and none ends after the host has waited for it.

/// Waits of the host that are kept until the records of the work before arrive.
const MOST_WAITS: usize = 256;

/// The bounds of the error since they were last taken.
#[derive(Debug, Default)]
pub(crate) struct ClockBound {
    /// The shortest time from a call to the start of its work.
    lead_ns: Option<u64>,
    last_end_ns: u64,
    /// When the host had waited for all work, and the last end before that.
    waits: Vec<(u64, u64)>,
}

impl ClockBound {
    /// A piece of work; `called_ns` is 0 where its call is not known.
    pub(crate) fn note(&mut self, called_ns: u64, start_ns: u64, end_ns: u64) {
        if called_ns != 0 {
            let lead_ns = start_ns.saturating_sub(called_ns);
            self.lead_ns = Some(self.lead_ns.map_or(lead_ns, |shortest| shortest.min(lead_ns)));
        }
        self.last_end_ns = self.last_end_ns.max(end_ns);
        let next = self.waits.partition_point(|(waited_ns, _)| *waited_ns < end_ns);
        if let Some((_, last_end_ns)) = self.waits.get_mut(next) {
            *last_end_ns = (*last_end_ns).max(end_ns);
        }
    }

    /// The host has waited for all work there was.
    pub(crate) fn waited(&mut self, now_ns: u64) {
        if self.waits.len() == MOST_WAITS {
            self.waits.remove(0);
        }
        self.waits.push((now_ns, 0));
    }

    /// The last moment that is known of the device, and the bound of its error. Resets both.
    pub(crate) fn take(&mut self) -> Option<(u64, u64)> {
        let bound = std::mem::take(self);
        let waits = bound.waits.iter().filter(|(_, last_end_ns)| *last_end_ns != 0);
        let lag_ns = waits.map(|(waited_ns, last_end_ns)| waited_ns - last_end_ns).min();
        let widest = bound.lead_ns.into_iter().chain(lag_ns).max()?;
        (bound.last_end_ns != 0).then_some((bound.last_end_ns, widest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_way_on_either_side_bounds_the_error() {
        let mut bound = ClockBound::default();
        bound.waited(10_000);
        bound.waited(20_000);
        bound.note(1_000, 1_700, 9_000);
        bound.note(11_000, 11_300, 19_400);
        assert_eq!(bound.take(), Some((19_400, 600)));
        assert_eq!(bound.take(), None, "nothing new is known");
    }

    #[test]
    fn one_side_alone_is_what_there_is() {
        let mut bound = ClockBound::default();
        bound.note(0, 500, 900);
        assert_eq!(bound.take(), None);
        bound.note(100, 500, 900);
        assert_eq!(bound.take(), Some((900, 400)));
    }
}
