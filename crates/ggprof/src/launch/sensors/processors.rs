//! The processors' time: how much of it all programs of the machine use, how much of it the recorded
//! one, and how much that may use.

use super::limits::{Throttled, allowed_processors};
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
    root: PathBuf,
    proc: PathBuf,
    program: Processes,
    /// By the launcher, and so by what it starts: in its control group, too.
    usable: Option<u64>,
    /// What was found by the last search.
    found: Found,
}

/// Which processes are the program's: these and those that they start.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Processes {
    /// What this process starts.
    Started,
    /// One that was running before.
    Running { pid: u32 },
}

/// The program's processes. To search for them takes longer than everything else here.
#[derive(Debug, Default)]
struct Found {
    processes: Option<Vec<u32>>,
    busiest: Option<Busiest>,
    /// How many processors that one may use, and how long it was not let run.
    usable: Option<u64>,
    throttled: Throttled,
    /// How many the machine had begun before the search. While these are as many, there are no others.
    begun: Option<u64>,
}

/// What the kernel says of a process.
struct Stat {
    name: String,
    /// Ticks, by it and those that it has waited for.
    used: u64,
    threads: u64,
}

/// The process that worked most. What it may use is asked again if it has become another program or has begun
/// threads: that takes long where there are many.
#[derive(Debug, PartialEq, Eq)]
struct Busiest {
    process: u32,
    name: String,
    threads: u64,
}

impl Busiest {
    fn of(process: u32, Stat { name, threads, .. }: Stat) -> Busiest {
        Busiest { process, name, threads }
    }
}

impl Processors {
    /// `None` where the kernel tells nothing.
    pub(super) fn below(root: &Path, program: Processes) -> Option<Processors> {
        let usable = match program {
            Processes::Started => Some(std::thread::available_parallelism().ok()?.get() as u64),
            Processes::Running { .. } => None,
        };
        let machine = Machine::below(root)?;
        let found = Found::default();
        let (root, proc) = (root.to_path_buf(), root.join("proc"));
        Some(Processors { machine, root, proc, program, usable, found })
    }

    /// Of the program and what it started, in ticks.
    fn program_ticks(&mut self, begun: Option<u64>) -> Option<u64> {
        if begun.is_none() || begun != self.found.begun {
            self.found = self.search(begun);
        }
        let processes = self.found.processes.as_ref()?;
        Some(processes.iter().map(|&process| self.stat(process).map_or(0, |stat| stat.used)).sum())
    }

    fn processes(&self) -> Option<Vec<u32>> {
        let mut processes = match self.program {
            Processes::Started => self.children(std::process::id())?,
            Processes::Running { pid } => vec![pid],
        };
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

    /// What the program may use is what its busiest process may: others, such as `taskset`, came before it.
    fn search(&mut self, begun: Option<u64>) -> Found {
        let processes = self.processes();
        let known = |process: &u32| Some((*process, self.stat(*process)?));
        let all = processes.iter().flatten().filter_map(known);
        let busiest = all.max_by_key(|(_, stat)| stat.used);
        let busiest = busiest.map(|(process, stat)| Busiest::of(process, stat));
        let before = std::mem::take(&mut self.found);
        if busiest == before.busiest {
            return Found { processes, begun, ..before };
        }
        let directory = busiest.as_ref().map(|it| self.proc.join(it.process.to_string()));
        let usable = directory.as_deref().and_then(allowed_processors);
        let usable = [usable, self.usable].into_iter().flatten().min();
        let throttled = directory.map(|process| Throttled::of(&self.root, &process));
        Found { processes, busiest, usable, throttled: throttled.unwrap_or_default(), begun }
    }

    fn stat(&self, process: u32) -> Option<Stat> {
        let text = fs::read_to_string(self.proc.join(process.to_string()).join("stat")).ok()?;
        // The second field is the program's name in parentheses, which may hold anything.
        let (before, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |word: &&str| word.parse::<u64>().ok();
        let used = fields.get(11..15)?.iter().map(number).sum::<Option<u64>>()?;
        let threads = fields.get(17).and_then(number).unwrap_or(0);
        Some(Stat { name: before.to_owned(), used, threads })
    }
}

impl Source for Processors {
    fn sensors(&self) -> Vec<Described> {
        let quantities = [
            Quantity::UsableProcessors,
            Quantity::MachineTime,
            Quantity::ProgramTime,
            Quantity::StolenTime,
            Quantity::ThrottledTime,
        ];
        quantities.map(Described::of_processors).to_vec()
    }

    fn read(&mut self) -> Vec<Option<u64>> {
        let tick_us = self.machine.tick_us;
        let times = self.machine.times();
        let program = self.program_ticks(times.as_ref().and_then(|times| times.begun));
        let (machine, stolen) = times.map(|times| (times.busy, times.stolen)).unzip();
        let microseconds = |ticks: u64| ticks.saturating_mul(tick_us);
        let times = [machine, program, stolen].map(|ticks| ticks.map(microseconds));
        let usable = self.found.usable.or(self.usable);
        let throttled = self.found.throttled.microseconds();
        [usable].into_iter().chain(times).chain([throttled]).collect()
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
        let mut source = Processors::below(root.path(), Processes::Started).unwrap();
        let (usable, tick_us) = (source.usable.unwrap(), source.machine.tick_us);
        let read = [usable, 36 * tick_us, 112 * tick_us, 7 * tick_us].map(Some);
        let read = [&read[..], &[None]].concat();
        assert_eq!(source.read(), read);
        assert_eq!(source.sensors().len(), read.len());
    }

    /// It is no child of whoever looks.
    #[test]
    fn a_program_that_was_running_before() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "stat", "cpu  10 1 20 500 5 2 3 7 0 0\n");
        let stat = |times: &str| format!("1 (a) S 1 1 1 0 -1 4 1 2 3 4 {times} 20 0 4");
        put(root.path(), "1000001/task/1000001/children", "1000003 ");
        put(root.path(), "1000001/task/1000001/status", "Cpus_allowed:\tf0\n");
        put(root.path(), "1000001/stat", &stat("5 6 1 0"));
        put(root.path(), "1000003/task/1000003/children", "");
        put(root.path(), "1000003/stat", &stat("1 0 0 0"));
        let program = Processes::Running { pid: 1000001 };
        let mut source = Processors::below(root.path(), program).unwrap();
        let tick_us = source.machine.tick_us;
        assert_eq!(source.read()[0], Some(4));
        assert_eq!(source.read()[2], Some(13 * tick_us));
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
        let mut source = Processors::below(root.path(), Processes::Started).unwrap();
        let tick_us = source.machine.tick_us;
        assert_eq!(source.read()[2], Some(5 * tick_us));
        put(root.path(), &children, "1000001 1000003");
        assert_eq!(source.read()[2], Some(5 * tick_us));
        begun(8);
        assert_eq!(source.read()[2], Some(10 * tick_us));
    }

    /// `taskset` was between the launcher and the program; its threads are kept apart.
    #[test]
    fn processors_that_the_busiest_process_may_use() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "stat", "cpu  10 1 20 500 5 2 3 7 0 0\n");
        let me = std::process::id();
        put(root.path(), &format!("{me}/task/{me}/children"), "1000001 1000002");
        let process = |id: u32, used: u32, masks: &[&str]| {
            put(
                root.path(),
                &format!("{id}/stat"),
                &format!("1 (a) S 1 1 1 0 -1 4 1 2 3 4 {used} 0 0 0 20 0 4"),
            );
            for (thread, mask) in (id..).zip(masks) {
                let text = format!("Name:\ta\nCpus_allowed:\t{mask}\nCpus_allowed_list:\t0-1\n");
                put(root.path(), &format!("{id}/task/{thread}/status"), &text);
                put(root.path(), &format!("{id}/task/{thread}/children"), "");
            }
        };
        process(1000001, 7, &["ffffffff,ffffffff"]);
        process(1000002, 900, &["00000001,00000000", "00000000,00000002"]);
        let mut source = Processors::below(root.path(), Processes::Started).unwrap();
        source.usable = Some(64);
        assert_eq!(source.read()[0], Some(2));
        process(1000001, 901, &["ffffffff,ffffffff"]);
        assert_eq!(source.read()[0], Some(64));
        // A quota of the control group is not in the masks.
        source = Processors::below(root.path(), Processes::Started).unwrap();
        source.usable = Some(3);
        assert_eq!(source.read()[0], Some(3));
    }

    #[test]
    fn where_the_kernel_tells_nothing() {
        let root = tempfile::tempdir().unwrap();
        assert!(Processors::below(root.path(), Processes::Started).is_none());
        put(root.path(), "stat", "cpu  10 1 20 500 5 2 3 7 0 0\n");
        assert_eq!(Processors::below(root.path(), Processes::Started).unwrap().read()[2], None);
    }
}
