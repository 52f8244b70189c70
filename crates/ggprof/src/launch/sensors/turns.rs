//! Which sources are read when. What takes long is read rarely: a counter of energy takes some drivers
//! four milliseconds, and calls of the program to the same driver may have to wait for it. Where the
//! programs of the machine need every processor, a thread of theirs stands while a source is read, and
//! with it all threads that wait for it, so it is read even more rarely then.

use super::super::now_ns;
use super::processors::Machine;
use super::{Described, Source};
use rustix::time::{ClockId, clock_gettime};

/// The part of a processor's time that reading a source may take: a hundredth, and where no processor is
/// idle a thousandth.
const PART: u64 = 100;
const PART_WITHOUT_IDLE: u64 = 1000;

pub(super) struct Turns {
    sources: Vec<Turn>,
    machine: Option<Machine>,
    /// When its idle time was read last, and how much it was.
    before: Option<(u64, u64)>,
}

struct Turn {
    source: Box<dyn Source>,
    sensors: usize,
    /// When it was read last, and how long that took; before the first time it is due.
    read_ns: Option<u64>,
    took_ns: u64,
}

impl Turns {
    pub(super) fn new(sources: Vec<Box<dyn Source>>, machine: Option<Machine>) -> Turns {
        let turn = |source: Box<dyn Source>| {
            let sensors = source.sensors().len();
            Turn { source, sensors, read_ns: None, took_ns: 0 }
        };
        Turns { sources: sources.into_iter().map(turn).collect(), machine, before: None }
    }

    pub(super) fn sensors(&self) -> Vec<Described> {
        self.sources.iter().flat_map(|turn| turn.source.sensors()).collect()
    }

    /// A value for each sensor whose turn it is.
    pub(super) fn read(&mut self) -> Vec<Option<u64>> {
        let now_ns = now_ns();
        let part = if self.one_was_idle(now_ns) { PART } else { PART_WITHOUT_IDLE };
        self.sources.iter_mut().flat_map(|turn| turn.read(now_ns, part)).collect()
    }

    /// A value for each sensor.
    pub(super) fn read_all(&mut self) -> Vec<Option<u64>> {
        self.sources.iter_mut().flat_map(|turn| turn.source.read()).collect()
    }

    /// Whether the processors were idle, since it was asked before, for as long as one of them can be.
    fn one_was_idle(&mut self, now_ns: u64) -> bool {
        let idle_ns = self.machine.as_ref().and_then(Machine::idle_ns);
        let before = std::mem::replace(&mut self.before, idle_ns.map(|idle_ns| (now_ns, idle_ns)));
        let Some(((then_ns, idle_then), idle_ns)) = before.zip(idle_ns) else { return false };
        idle_ns.saturating_sub(idle_then) >= now_ns.saturating_sub(then_ns)
    }
}

impl Turn {
    fn read(&mut self, now_ns: u64, part: u64) -> Vec<Option<u64>> {
        if self.read_ns.is_some_and(|read_ns| now_ns < read_ns + self.took_ns * part) {
            return vec![None; self.sensors];
        }
        let begun = used_ns();
        let values = self.source.read();
        self.read_ns = Some(now_ns);
        self.took_ns = used_ns().saturating_sub(begun);
        values
    }
}

/// Processor time of this thread, in the program and in the kernel.
fn used_ns() -> u64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::super::Quantity;
    use super::*;
    use std::fs;
    use std::path::Path;

    /// Computes for so long when it is read.
    struct Slow {
        ns: u64,
        readings: u64,
    }

    impl Source for Slow {
        fn sensors(&self) -> Vec<Described> {
            vec![Described::of_processors(Quantity::MachineTime)]
        }

        fn read(&mut self) -> Vec<Option<u64>> {
            let begun = used_ns();
            while used_ns() < begun + self.ns {}
            self.readings += 1;
            vec![Some(self.readings)]
        }
    }

    fn idle_for(root: &Path, ticks: u64) {
        fs::create_dir_all(root.join("proc")).unwrap();
        fs::write(root.join("proc/stat"), format!("cpu  10 1 20 {ticks} 5 2 3 7 0 0\n")).unwrap();
    }

    #[test]
    fn what_takes_long_is_read_rarely() {
        let root = tempfile::tempdir().unwrap();
        idle_for(root.path(), 0);
        let slow = |ns| Box::new(Slow { ns, readings: 0 }) as Box<dyn Source>;
        let sources = vec![slow(0), slow(9_000_000)];
        let mut turns = Turns::new(sources, Machine::below(root.path()));
        let ago = |turns: &mut Turns, seconds: u64| {
            turns.sources[0].took_ns = 0;
            turns.sources[1].read_ns = Some(now_ns().saturating_sub(seconds * 1_000_000_000));
        };
        assert_eq!(turns.read(), [Some(1), Some(1)]);
        // No processor was idle: nine seconds have to pass.
        ago(&mut turns, 2);
        assert_eq!(turns.read(), [Some(2), None]);
        assert_eq!(turns.read_all(), [Some(3), Some(2)]);
        // More idle time than has passed: nine tenths of a second.
        idle_for(root.path(), 1 << 40);
        ago(&mut turns, 0);
        assert_eq!(turns.read(), [Some(4), None]);
        idle_for(root.path(), 1 << 41);
        ago(&mut turns, 2);
        assert_eq!(turns.read(), [Some(5), Some(3)]);
    }
}
