//! When the results of a call are there. Where a device computes them, the call may return long before,
//! and what tells is how long the program waits for them; [`done`](crate::done()) does it for recordings.

use hashbrown::HashMap;

/// A wait comes with the next look, unless the device has that much to do. Where waits are not seen,
/// calls that nothing follows must not be kept for ever.
const WAITED_FOR_WITHIN_NS: u64 = 60_000_000_000;

#[derive(Debug, Default)]
pub(super) struct Results {
    /// By call, what it left to a device.
    left: HashMap<u32, Left>,
    awaited: Vec<Returned>,
}

/// Work of a scheduler, handed over until a time.
#[derive(Debug, Clone, Copy)]
struct Left {
    scheduler: u32,
    at_ns: u64,
}

/// A call that has returned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Returned {
    pub(super) call: u32,
    pub(super) context: u32,
    pub(super) at_ns: u64,
}

/// The program waited for a scheduler.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    pub(super) scheduler: u32,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
}

impl Results {
    /// Part of a graph was handed to a device, which goes on with it.
    pub(super) fn leave(&mut self, call: u32, scheduler: u32, at_ns: u64) {
        self.left.insert(call, Left { scheduler, at_ns });
    }

    pub(super) fn are_awaited(&self) -> bool {
        !self.left.is_empty()
    }

    /// The calls whose results are there, and since when. What a context computes next begins when it
    /// could go on.
    pub(super) fn take(
        &mut self,
        returned: impl Iterator<Item = Returned>,
        begun: &[(u32, u64)],
        waits: &[Wait],
        now_ns: u64,
    ) -> Vec<(u32, u64)> {
        self.awaited.extend(returned);
        let (left, mut there) = (&mut self.left, Vec::new());
        self.awaited.retain(|it| {
            let of_it = left.get(&it.call).copied();
            let of_context = begun.iter().filter(|(context, _)| *context == it.context);
            let next_ns = of_context.map(|(_, at_ns)| *at_ns).filter(|at_ns| *at_ns >= it.at_ns);
            let next_ns = next_ns.min();
            let is_its = |wait: &&Wait| {
                let is_before_next = next_ns.is_none_or(|next_ns| wait.start_ns < next_ns);
                of_it.is_some_and(|left| {
                    wait.scheduler == left.scheduler && wait.start_ns >= left.at_ns
                }) && is_before_next
            };
            let waited = waits.iter().filter(is_its).min_by_key(|wait| wait.start_ns);
            let is_old = it.at_ns + WAITED_FOR_WITHIN_NS < now_ns;
            let is_there = of_it.is_none() || waited.is_some() || next_ns.is_some() || is_old;
            if is_there {
                left.remove(&it.call);
                let waited_ns = waited.map_or(0, |wait| wait.end_ns);
                there.push((it.call, it.at_ns.max(waited_ns)));
            }
            !is_there
        });
        there
    }

    /// Ends may be among what was missed.
    pub(super) fn clear(&mut self) {
        self.left.clear();
    }
}
