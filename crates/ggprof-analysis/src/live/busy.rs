//! How much of the time each backend computes and copies, look by look. Time is counted once, however
//! many threads or streams are busy, and whenever it is told of: devices tell later.

use super::{BackendNow, Counters};
use ggprof_trace::formats::spool::News;
use ggprof_trace::{BackendIndex, DeviceType, Trace};
use hashbrown::HashMap;

#[derive(Debug, Default)]
pub(super) struct Busy {
    backends: HashMap<BackendIndex, Backend>,
}

#[derive(Debug, Default)]
struct Backend {
    computed: Covered,
    /// Computing or copying.
    occupied: Covered,
    is_timed: bool,
}

/// Time up to a moment, that was added up.
#[derive(Debug, Default)]
struct Covered {
    until_ns: u64,
}

impl Covered {
    /// What spans, sorted, add to it.
    fn add(&mut self, spans: &[(u64, u64)]) -> u64 {
        let mut sum = 0;
        for &(start, end) in spans {
            sum += end.saturating_sub(start.max(self.until_ns));
            self.until_ns = self.until_ns.max(end);
        }
        sum
    }
}

impl Busy {
    pub(super) fn take(
        &mut self,
        descriptions: &Trace,
        news: &News,
        now_ns: u64,
        interval_ns: u64,
        counters: &mut Counters,
    ) -> Vec<BackendNow> {
        let mut spans: HashMap<BackendIndex, [Vec<(u64, u64)>; 2]> = HashMap::new();
        for &(backend, start, end) in &news.busy {
            spans.entry(backend).or_default()[0].push((start, end));
        }
        for &(backend, since) in &news.computing {
            spans.entry(backend).or_default()[0].push((since, now_ns));
        }
        for copy in news.copies.iter().filter(|copy| copy.is_timed) {
            spans.entry(copy.backend).or_default()[1].push((copy.start_ns, copy.end_ns));
        }
        for copy in &news.copies {
            let name = &descriptions.backend(copy.backend).name;
            counters.of_backend(name).copied_bytes += copy.bytes;
        }
        for &backend in spans.keys() {
            self.backends.entry(backend).or_default();
        }
        let mut now: Vec<(BackendIndex, BackendNow)> = Vec::new();
        for (&index, backend) in &mut self.backends {
            let described = descriptions.backend(index);
            let [busy, copies] = spans.remove(&index).unwrap_or_default();
            backend.is_timed |= !busy.is_empty();
            let (busy_ns, copying_ns) = backend.take(busy, copies);
            let of_it = counters.of_backend(&described.name);
            of_it.busy_ns += busy_ns;
            of_it.copying_ns += copying_ns;
            let share = |ns: u64| (ns as f64 / interval_ns as f64).min(1.0);
            let is_known = backend.is_timed || described.device_type == DeviceType::Cpu;
            let busy = is_known.then(|| share(busy_ns));
            let copying = share(copying_ns).min(1.0 - busy.unwrap_or(0.0));
            now.push((index, BackendNow { name: described.name.clone(), busy, copying }));
        }
        now.sort_by_key(|(index, _)| index.0);
        now.into_iter().map(|(_, backend)| backend).collect()
    }
}

impl Backend {
    fn take(&mut self, mut busy: Vec<(u64, u64)>, copies: Vec<(u64, u64)>) -> (u64, u64) {
        busy.sort_unstable();
        let busy_ns = self.computed.add(&busy);
        busy.extend(copies);
        busy.sort_unstable();
        let occupied_ns = self.occupied.add(&busy);
        (busy_ns, occupied_ns.saturating_sub(busy_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_counted_once() {
        let mut backend = Backend::default();
        assert_eq!(backend.take(vec![(10, 20), (0, 12)], vec![(15, 30)]), (20, 10));
        // It goes on, and some of it was counted.
        assert_eq!(backend.take(vec![(15, 50)], vec![]), (30, 20 - 20));
        assert_eq!(backend.take(vec![], vec![]), (0, 0));
    }
}
