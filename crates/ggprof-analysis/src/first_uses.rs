//! First uses of a device's kernels: drivers load or compile a kernel then, before it runs or as part
//! of its time.

use crate::gaps::missing_before;
use ggprof_trace::{BackendIndex, DeviceWork, SignatureId, StringId, Trace, WorkKind};
use hashbrown::HashMap;

/// A device that does nothing for so long before a kernel's first use waits for the kernel, and a first
/// use that takes so much longer than later ones contains that.
pub(crate) const LOADING_NS: u64 = 50_000;

/// From so many later uses it is told how long a kernel takes.
const LATER_USES: usize = 15;

/// A kernel with what it computes: one name may stand for several.
type Kernel = (BackendIndex, StringId, SignatureId);

#[derive(Debug, Default)]
pub(crate) struct FirstUses {
    /// For each piece of device work whether it is the first use of its kernel.
    is_first: Vec<bool>,
    /// First uses that took longer than later ones: the place of the work, and by how much; by place.
    longer: Vec<(u32, u64)>,
}

impl FirstUses {
    pub(crate) fn of(trace: &Trace) -> Self {
        // Whether the recording begins where the program began to compute.
        let is_from_the_start = missing_before(trace) == 0 && !trace.is_part;
        let mut is_first = Vec::with_capacity(trace.device_work.len());
        let mut used: HashMap<Kernel, Use> = HashMap::new();
        for (place, work) in (0..).zip(&trace.device_work) {
            let is_new = work.kind == WorkKind::Kernel && {
                let of_kernel = used.entry(kernel(trace, work)).or_default();
                of_kernel.add(place, work.duration_ns)
            };
            is_first.push(work.first_use || (is_new && is_from_the_start));
        }
        let longer = used.values().filter(|it| is_first[it.first as usize]);
        let mut longer: Vec<(u32, u64)> =
            longer.filter_map(|it| Some((it.first, it.longer_by()?))).collect();
        longer.sort();
        Self { is_first, longer }
    }

    pub(crate) fn is_first(&self, place: u32) -> bool {
        self.is_first.get(place as usize).copied().unwrap_or(false)
    }

    /// By how much the first use of a kernel took longer than later ones; 0 for all other work.
    pub(crate) fn longer_by(&self, place: u32) -> u64 {
        let found = self.longer.binary_search_by_key(&place, |(place, _)| *place);
        found.map_or(0, |at| self.longer[at].1)
    }

    /// First uses that took longer, with by how much.
    pub(crate) fn longer<'t>(
        &self,
        trace: &'t Trace,
    ) -> impl Iterator<Item = (&'t DeviceWork, u64)> {
        self.longer.iter().map(|&(place, ns)| (&trace.device_work[place as usize], ns))
    }
}

impl FirstUses {
    /// First uses that their device waited for, in a graph run, with how long.
    pub(crate) fn waited_for<'t>(&self, trace: &'t Trace) -> Vec<(&'t DeviceWork, u64)> {
        let mut places: Vec<u32> = (0..trace.device_work.len() as u32).collect();
        let work = |place: u32| &trace.device_work[place as usize];
        places.sort_by_key(|&place| work(place).start_ns);
        let mut busy_until: HashMap<BackendIndex, u64> = HashMap::new();
        let mut waits = Vec::new();
        for place in places {
            let work = work(place);
            let event = trace.events.get(work.event);
            let run = event.graph_run.and_then(|run| trace.graph_runs.get(run.0 as usize));
            let from_ns = busy_until.entry(event.backend).or_default();
            let since_ns = run.map(|run| work.start_ns.saturating_sub(run.start_ns.max(*from_ns)));
            if let Some(waited_ns) = since_ns.filter(|&ns| self.is_first(place) && ns >= LOADING_NS)
            {
                waits.push((work, waited_ns));
            }
            *from_ns = (*from_ns).max(work.start_ns.saturating_add(work.duration_ns));
        }
        waits
    }
}

fn kernel(trace: &Trace, work: &DeviceWork) -> Kernel {
    let event = trace.events.get(work.event);
    (event.backend, work.name, trace.node(event.node).signature)
}

/// How long a kernel took, first and later.
#[derive(Debug, Default)]
struct Use {
    first: u32,
    first_ns: Option<u64>,
    later_ns: Vec<u64>,
}

impl Use {
    /// Whether it is the first.
    fn add(&mut self, place: u32, ns: u64) -> bool {
        match self.first_ns {
            None => (self.first, self.first_ns) = (place, Some(ns)),
            // Others cannot have taken longer by enough.
            Some(first_ns) if first_ns < LOADING_NS || self.later_ns.len() == LATER_USES => {}
            Some(_) => {
                self.later_ns.push(ns);
            }
        }
        self.first == place
    }

    /// `None` if it did not take longer, or nothing is known to compare it with.
    fn longer_by(&self) -> Option<u64> {
        let mut later_ns = self.later_ns.clone();
        later_ns.sort();
        let usual_ns = *later_ns.get(later_ns.len() / 2)?;
        let longer_ns = self.first_ns?.saturating_sub(usual_ns);
        // Every kernel takes a little longer or shorter than usual.
        (longer_ns >= LOADING_NS && longer_ns >= usual_ns).then_some(longer_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    #[test]
    fn a_first_use_that_took_longer_than_the_next() {
        let op = |at: u64, name: &str, ns: u64| {
            let end = at + ns;
            format!(
                "op GPU MUL_MAT {at}..{end} Qcur-0 f32[8] <- f32[8,8] measured=device\n\
                 kernel {name} {at}..{end}\n"
            )
        };
        let text = format!(
            "backend 0 GPU gpu\n{}{}{}{}{}{}",
            op(0, "long", 900_000),
            op(1_000_000, "long", 100_000),
            op(2_000_000, "long", 120_000),
            op(3_000_000, "usual", 120_000),
            op(4_000_000, "usual", 100_000),
            op(5_000_000, "once", 900_000),
        );
        let trace = text_fixture::parse(&text);
        let uses = FirstUses::of(&trace);
        let found: Vec<_> = uses.longer(&trace).map(|(work, ns)| (work.start_ns, ns)).collect();
        assert_eq!(found, [(0, 780_000)]);
        assert_eq!((uses.longer_by(0), uses.longer_by(5)), (780_000, 0));
        let first: Vec<bool> = (0..6).map(|place| uses.is_first(place)).collect();
        assert_eq!(first, [true, false, false, true, false, true]);
    }
}
