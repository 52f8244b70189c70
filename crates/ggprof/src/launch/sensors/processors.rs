//! The processors' time: how much of it all programs of the machine use, how much of it the recorded
//! one, and how many processors that may use.

use super::{Described, Quantity, Source};
use std::fs;
use std::path::{Path, PathBuf};

/// More descendants than this are not followed.
const MOST_PROCESSES: usize = 256;

/// The kernel's count of what all processors did.
#[derive(Debug)]
pub(super) struct Machine {
    file: PathBuf,
    /// The unit in which the kernel tells processor time.
    tick_us: u64,
}

/// Since the machine was started; times in ticks.
struct MachineTimes {
    busy: u64,
    idle: u64,
    stolen: u64,
    /// Processes and threads that were begun; `None` where the kernel does not tell.
    begun: Option<u64>,
}

impl Machine {
    /// `None` where the kernel tells nothing.
    pub(super) fn below(root: &Path) -> Option<Machine> {
        let tick_us = 1_000_000_u64.checked_div(rustix::param::clock_ticks_per_second())?;
        let machine = Machine { file: root.join("proc/stat"), tick_us };
        machine.times().map(|_| machine)
    }

    fn times(&self) -> Option<MachineTimes> {
        let text = fs::read_to_string(&self.file).ok()?;
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let [user, nice, system, idle, waiting, irq, softirq, stolen, ..] = ticks[..] else {
            return None;
        };
        let busy = user + nice + system + irq + softirq;
        let begun = text.lines().find_map(|line| line.strip_prefix("processes ")?.parse().ok());
        Some(MachineTimes { busy, idle: idle + waiting, stolen, begun })
    }

    /// Time of all processors in which they had nothing to do.
    pub(super) fn idle_ns(&self) -> Option<u64> {
        Some(self.times()?.idle.saturating_mul(self.tick_us * 1000))
    }
}

#[derive(Debug)]
pub(super) struct Processors {
    machine: Machine,
    proc: PathBuf,
    usable: u64,
    /// Whose descendants the program and all it starts are.
    launcher: u32,
    /// What was found by the last search.
    found: Found,
}

/// The launcher's descendants. To search for them takes longer than everything else here.
#[derive(Debug, Default)]
struct Found {
    processes: Option<Vec<u32>>,
    /// How many the machine had begun before the search. While these are as many, there are no others.
    begun: Option<u64>,
}

impl Processors {
    /// `None` where the kernel tells nothing.
    pub(super) fn below(root: &Path) -> Option<Processors> {
        let usable = std::thread::available_parallelism().ok()?.get() as u64;
        let machine = Machine::below(root)?;
        let launcher = std::process::id();
        let found = Found::default();
        Some(Processors { machine, proc: root.join("proc"), usable, launcher, found })
    }

    /// Of the program and what it started, in ticks.
    fn program(&mut self, begun: Option<u64>) -> Option<u64> {
        if begun.is_none() || begun != self.found.begun {
            self.found = Found { processes: self.descendants(), begun };
        }
        let processes = self.found.processes.as_ref()?;
        Some(processes.iter().map(|&process| self.used(process).unwrap_or(0)).sum())
    }

    fn descendants(&self) -> Option<Vec<u32>> {
        let mut processes = self.children(self.launcher)?;
        let mut at = 0;
        while at < processes.len().min(MOST_PROCESSES) {
            processes.extend(self.children(processes[at]).unwrap_or_default());
            at += 1;
        }
        processes.truncate(MOST_PROCESSES);
        Some(processes)
    }

    fn children(&self, process: u32) -> Option<Vec<u32>> {
        let mut children = Vec::new();
        for thread in fs::read_dir(self.proc.join(process.to_string()).join("task")).ok()? {
            let text = fs::read_to_string(thread.ok()?.path().join("children")).ok()?;
            children.extend(text.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
        }
        Some(children)
    }

    /// By a process and those that it has waited for.
    fn used(&self, process: u32) -> Option<u64> {
        let text = fs::read_to_string(self.proc.join(process.to_string()).join("stat")).ok()?;
        // The second field is the program's name in parentheses, which may hold anything.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        fields.get(11..15)?.iter().map(|word| word.parse::<u64>().ok()).sum()
    }
}

impl Source for Processors {
    fn sensors(&self) -> Vec<Described> {
        let quantities = [
            Quantity::UsableProcessors,
            Quantity::MachineTime,
            Quantity::ProgramTime,
            Quantity::StolenTime,
        ];
        quantities.map(Described::of_processors).to_vec()
    }

    fn read(&mut self) -> Vec<Option<u64>> {
        let tick_us = self.machine.tick_us;
        let times = self.machine.times();
        let program = self.program(times.as_ref().and_then(|times| times.begun));
        let (machine, stolen) = times.map(|times| (times.busy, times.stolen)).unzip();
        let microseconds = |ticks: u64| ticks.saturating_mul(tick_us);
        let times = [machine, program, stolen].map(|ticks| ticks.map(microseconds));
        [Some(self.usable)].into_iter().chain(times).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, file: &str, text: &str) {
        let path = root.join("proc").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_program_and_what_it_started() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "stat", "cpu  10 1 20 500 5 2 3 7 0 0\ncpu0 1 2 3\n");
        let me = std::process::id();
        put(root.path(), &format!("{me}/task/{me}/children"), "1000001 ");
        put(root.path(), "1000001/task/1000001/children", "");
        put(root.path(), "1000001/task/1000002/children", "1000003\n");
        put(root.path(), "1000003/task/1000003/children", "");
        let stat = |name: &str, times: &str| {
            format!("1 ({name}) S 1 1 1 0 -1 4194560 1 2 3 4 {times} 20 0 4 0 100")
        };
        put(root.path(), "1000001/stat", &stat("a) (b", "5 6 1 0"));
        put(root.path(), "1000003/stat", &stat("c", "100 0 0 0"));
        let mut source = Processors::below(root.path()).unwrap();
        let (usable, tick_us) = (source.usable, source.machine.tick_us);
        let read = [usable, 36 * tick_us, 112 * tick_us, 7 * tick_us].map(Some);
        assert_eq!(source.read(), read);
        assert_eq!(source.sensors().len(), read.len());
    }

    #[test]
    fn descendants_are_searched_for_when_something_was_begun() {
        let root = tempfile::tempdir().unwrap();
        let begun = |count: u32| {
            let text = format!(
                "cpu  10 1 20 500 5 2 3 7 0 0\nintr 7 8\nprocesses {count}\nprocs_running 2\n"
            );
            put(root.path(), "stat", &text);
        };
        let me = std::process::id();
        let children = format!("{me}/task/{me}/children");
        for process in ["1000001", "1000003"] {
            put(root.path(), &format!("{process}/task/{process}/children"), "");
            put(
                root.path(),
                &format!("{process}/stat"),
                "1 (a) S 1 1 1 0 -1 4 1 2 3 4 5 0 0 0 20 0 4",
            );
        }
        begun(7);
        put(root.path(), &children, "1000001");
        let mut source = Processors::below(root.path()).unwrap();
        let tick_us = source.machine.tick_us;
        assert_eq!(source.read()[2], Some(5 * tick_us));
        put(root.path(), &children, "1000001 1000003");
        assert_eq!(source.read()[2], Some(5 * tick_us));
        begun(8);
        assert_eq!(source.read()[2], Some(10 * tick_us));
    }

    #[test]
    fn where_the_kernel_tells_nothing() {
        let root = tempfile::tempdir().unwrap();
        assert!(Processors::below(root.path()).is_none());
        put(root.path(), "stat", "cpu  10 1 20 500 5 2 3 7 0 0\n");
        assert_eq!(Processors::below(root.path()).unwrap().read()[2], None);
    }
}
