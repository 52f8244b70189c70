//! What a process may use of the processors: those that its threads are allowed on, and what the limit of
//! its control group leaves of them.

use std::fs;
use std::path::{Path, PathBuf};

/// More threads are not asked where they may run.
const MOST_THREADS: usize = 256;

/// How many processors the threads of a process may run on together, by its directory in `/proc`. Each of
/// them may be kept to one.
pub(super) fn allowed_processors(process: &Path) -> Option<u64> {
    let mut all: Vec<u32> = Vec::new();
    for thread in fs::read_dir(process.join("task")).ok()?.take(MOST_THREADS) {
        let mask = thread.ok().and_then(|thread| allowed(&thread.path())).unwrap_or_default();
        all.resize(all.len().max(mask.len()), 0);
        all.iter_mut().zip(mask).for_each(|(all, mask)| *all |= mask);
    }
    let count = all.iter().map(|word| u64::from(word.count_ones())).sum();
    Some(count).filter(|&count| count > 0)
}

/// A bit for each processor.
fn allowed(thread: &Path) -> Option<Vec<u32>> {
    let text = fs::read_to_string(thread.join("status")).ok()?;
    let mask = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed:"))?;
    mask.trim().split(',').map(|word| u32::from_str_radix(word, 16).ok()).collect()
}

/// Where the kernel counts how long a process was not let run, because its control group, or one that this
/// is in, had used up its limit.
#[derive(Debug, Default)]
pub(super) struct Throttled {
    files: Vec<PathBuf>,
}

impl Throttled {
    /// By the directory of the process in `/proc`.
    pub(super) fn of(root: &Path, process: &Path) -> Throttled {
        let text = fs::read_to_string(process.join("cgroup")).unwrap_or_default();
        let groups = text.lines().filter_map(|line| group_of_processors(root, line));
        let files = groups.flat_map(|(mount, path)| files(&mount, &path));
        Throttled { files: files.filter(|file| microseconds(file).is_some()).collect() }
    }

    /// The kernel counts each processor. Of groups inside of each other the one counts that was held longest:
    /// what holds the outer one may hold the inner one as well.
    pub(super) fn microseconds(&self) -> Option<u64> {
        self.files.iter().filter_map(|file| microseconds(file)).max()
    }
}

/// Where the groups are that limit processors, and which one it is: `0::/user.slice`, or
/// `4:cpu,cpuacct:/docker/1` in older systems.
fn group_of_processors(root: &Path, line: &str) -> Option<(PathBuf, PathBuf)> {
    let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
    let mounts = root.join("sys/fs/cgroup");
    let mount = match controllers {
        "" => mounts,
        _ if controllers.split(',').any(|name| name == "cpu") => mounts.join(controllers),
        _ => return None,
    };
    Some((mount, PathBuf::from(path.trim_start_matches('/'))))
}

/// Of the group and of those that it is in. A container may not see its own, but one in its place.
fn files(mount: &Path, group: &Path) -> Vec<PathBuf> {
    group.ancestors().map(|group| mount.join(group).join("cpu.stat")).collect()
}

/// `throttled_usec` in microseconds, or `throttled_time` in nanoseconds in older systems.
fn microseconds(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(key, _)| *key == name)?.1.trim().parse::<u64>().ok()
    };
    value("throttled_usec").or_else(|| Some(value("throttled_time")? / 1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn threads_that_are_kept_apart_use_several_processors() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(allowed_processors(root.path()), None);
        for (thread, mask) in [(1, "00000001,00000000"), (2, "00000000,00000002")] {
            let text = format!("Name:\ta\nCpus_allowed:\t{mask}\nCpus_allowed_list:\t0-1\n");
            put(root.path(), &format!("task/{thread}/status"), &text);
        }
        assert_eq!(allowed_processors(root.path()), Some(2));
    }

    #[test]
    fn limits_of_both_kinds_of_control_groups() {
        let root = tempfile::tempdir().unwrap();
        let throttled = |groups: &str| {
            put(root.path(), "proc/7/cgroup", groups);
            Throttled::of(root.path(), &root.path().join("proc/7")).microseconds()
        };
        put(root.path(), "sys/fs/cgroup/a/b/cpu.stat", "usage_usec 9\nthrottled_usec 30\n");
        put(root.path(), "sys/fs/cgroup/a/cpu.stat", "nr_throttled 1\nthrottled_usec 40\n");
        put(root.path(), "sys/fs/cgroup/cpu.stat", "usage_usec 9\n");
        put(root.path(), "sys/fs/cgroup/cpu,cpuacct/c/cpu.stat", "throttled_time 50000\n");
        assert_eq!(throttled("0::/a/b\n"), Some(40));
        assert_eq!(throttled("0::/\n"), None);
        assert_eq!(throttled("5:memory:/a\n4:cpu,cpuacct:/c\n1:cpuset:/a\n"), Some(50));
        assert_eq!(throttled(""), None);
    }
}
