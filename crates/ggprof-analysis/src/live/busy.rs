//! How much of the time each backend computes and copies, look by look. Time is counted once, however
//! many threads or streams are busy, and whenever it is told of: devices tell later.

use super::{BackendNow, Counters, Idle};
use ggprof_trace::formats::spool::News;
use ggprof_trace::{BackendIndex, DeviceType, Trace};
use hashbrown::HashMap;

#[derive(Debug, Default)]
pub(super) struct Busy {
    backends: HashMap<BackendIndex, Backend>,
    has_looked: bool,
}

#[derive(Debug, Default)]
struct Backend {
    computed: AddedUp,
    /// Computing or copying.
    occupied: AddedUp,
    is_timed: bool,
}

/// Time up to a moment, that was added up.
#[derive(Debug, Default)]
struct AddedUp {
    until_ns: u64,
}

impl AddedUp {
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
        inside: &[(u64, u64)],
        window: (u64, u64),
        counters: &mut Counters,
    ) -> Vec<BackendNow> {
        let interval_ns = window.1.saturating_sub(window.0).max(1);
        let mut seen = seen(news, window.1);
        for copy in &news.copies {
            let name = &descriptions.backend(copy.backend).name;
            counters.of_backend(name).copied_bytes += copy.bytes;
        }
        for &backend in seen.keys() {
            self.backends.entry(backend).or_default();
        }
        // There is more to see at the first look than the window.
        let is_first = !std::mem::replace(&mut self.has_looked, true);
        let work: Vec<(BackendIndex, (u64, u64))> = seen
            .iter()
            .flat_map(|(&backend, seen)| seen.all().map(move |span| (backend, span)))
            .collect();
        let mut now: Vec<(BackendIndex, BackendNow)> = Vec::new();
        for (&index, backend) in &mut self.backends {
            let described = descriptions.backend(index);
            let seen = seen.remove(&index).unwrap_or_default();
            backend.is_timed |= !seen.computing.is_empty();
            let inside_window = is_first.then(|| seen.inside(window));
            let (busy_ns, copying_ns) = backend.take(seen.computing, seen.copying);
            let of_it = counters.of_backend(&described.name);
            of_it.busy_ns += busy_ns;
            of_it.copying_ns += copying_ns;
            let (busy_ns, copying_ns) = inside_window.unwrap_or((busy_ns, copying_ns));
            let share = |ns: u64| (ns as f64 / interval_ns as f64).min(1.0);
            let is_known = backend.is_timed || described.device_type == DeviceType::Cpu;
            let busy = is_known.then(|| share(busy_ns));
            let copying = share(copying_ns).min(1.0 - busy.unwrap_or(0.0));
            let own = work.iter().filter(|(backend, _)| *backend == index).map(|(_, span)| *span);
            let all = work.iter().map(|(_, span)| *span);
            let idle = idle([own.collect(), all.collect(), inside.to_vec()], window);
            let name = described.name.clone();
            now.push((index, BackendNow { name, busy, copying, idle }));
        }
        now.sort_by_key(|(index, _)| index.0);
        now.into_iter().map(|(_, backend)| backend).collect()
    }
}

/// When a backend computed and copied, as far as a look tells.
#[derive(Debug, Default)]
struct Seen {
    computing: Vec<(u64, u64)>,
    copying: Vec<(u64, u64)>,
}

fn seen(news: &News, now_ns: u64) -> HashMap<BackendIndex, Seen> {
    let mut seen: HashMap<BackendIndex, Seen> = HashMap::new();
    for &(backend, start, end) in &news.busy {
        seen.entry(backend).or_default().computing.push((start, end));
    }
    for &(backend, since) in &news.computing {
        seen.entry(backend).or_default().computing.push((since, now_ns));
    }
    for copy in news.copies.iter().filter(|copy| copy.is_timed) {
        seen.entry(copy.backend).or_default().copying.push((copy.start_ns, copy.end_ns));
    }
    seen
}

impl Seen {
    fn all(&self) -> impl Iterator<Item = (u64, u64)> {
        self.computing.iter().chain(&self.copying).copied()
    }

    /// How much of a window it computed, and how much it only copied.
    fn inside(&self, window: (u64, u64)) -> (u64, u64) {
        let computing = covered(self.computing.clone(), window);
        (computing, covered(self.all().collect(), window) - computing)
    }
}

/// Of the time of a backend's own work, of all work, and of graph runs and calls.
fn idle([own, all, mut inside]: [Vec<(u64, u64)>; 3], window: (u64, u64)) -> Idle {
    inside.extend(&all);
    let [own, all, inside] = [own, all, inside].map(|spans| covered(spans, window));
    let share = |ns: u64| ns as f64 / window.1.saturating_sub(window.0).max(1) as f64;
    Idle {
        elsewhere: share(all - own),
        between_ops: share(inside - all),
        outside: share(window.1.saturating_sub(window.0) - inside),
    }
}

/// How much of a window spans cover.
fn covered(mut spans: Vec<(u64, u64)>, (from, to): (u64, u64)) -> u64 {
    spans.iter_mut().for_each(|(start, end)| {
        (*start, *end) = ((*start).clamp(from, to), (*end).clamp(from, to));
    });
    spans.sort_unstable();
    AddedUp::default().add(&spans)
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

    #[test]
    fn idle_time_is_something_else() {
        let own = vec![(100, 120), (110, 130)];
        let all = vec![(150, 160), (100, 120), (110, 130), (90, 105)];
        let inside = vec![(100, 170)];
        let found = idle([own, all, inside], (100, 200));
        assert_eq!(found, Idle { elsewhere: 0.1, between_ops: 0.3, outside: 0.3 });
    }
}
