//! Which thread of a program can be asked to call something: one that is not in the middle of the C
//! library, whose locks it might hold.

use super::maps::Mapping;
use super::processor::WAITING;
use std::io;
use std::path::{Path, PathBuf};

/// A call of the system that a thread is in: its number, and the arguments that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SystemCall {
    pub(super) number: i64,
    pub(super) arguments: [u64; 2],
}

impl SystemCall {
    /// From what the kernel says of a thread: `NUMBER ARGUMENTS… STACK PLACE`.
    fn read(text: &str) -> Option<SystemCall> {
        let mut words = text.split_whitespace();
        let number = words.next()?.parse().ok()?;
        let mut argument = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
        Some(SystemCall { number, arguments: [argument()?, argument()?] })
    }
}

/// The numbers of a process's threads.
pub(super) fn of(pid: u32) -> io::Result<Vec<i32>> {
    let entries = std::fs::read_dir(tasks(pid))?;
    let number =
        |entry: io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    Ok(entries.filter_map(number).collect())
}

fn tasks(pid: u32) -> PathBuf {
    Path::new("/proc").join(pid.to_string()).join("task")
}

/// Threads that wait for something outside of the process, the best first.
pub(super) fn that_wait(pid: u32, maps: &[Mapping]) -> io::Result<Vec<i32>> {
    let mut waiting: Vec<(usize, i32)> = of(pid)?
        .into_iter()
        .filter_map(|thread| {
            let text = std::fs::read_to_string(tasks(pid).join(thread.to_string()).join("syscall"));
            rank(&SystemCall::read(&text.ok()?)?, maps).map(|rank| (rank, thread))
        })
        .collect();
    waiting.sort_unstable();
    Ok(waiting.into_iter().map(|(_, thread)| thread).collect())
}

/// Whether a thread in this call waits for something outside of the process.
pub(super) fn waits(call: &SystemCall, maps: &[Mapping]) -> bool {
    rank(call, maps).is_some()
}

/// How good a thread is that is in this call.
fn rank(call: &SystemCall, maps: &[Mapping]) -> Option<usize> {
    if call.number == libc::SYS_futex {
        let [word, operation] = call.arguments;
        return (is_condition(operation as i32) && !is_of_c_library(maps, word)).then_some(0);
    }
    WAITING.iter().position(|&known| known == call.number).map(|at| at + 1)
}

/// Whether a thread waits for a condition variable, a semaphore or another thread. The locks of the C
/// library, malloc's among them, use the plain call.
fn is_condition(operation: i32) -> bool {
    const COMMAND: i32 = 0x7f;
    operation & COMMAND == libc::FUTEX_WAIT_BITSET
}

/// Whether what a thread waits for is the C library's own or the loader's, whatever the call.
fn is_of_c_library(maps: &[Mapping], word: u64) -> bool {
    let Some(at) = maps.iter().position(|mapping| mapping.memory.contains(&word)) else {
        return true;
    };
    // Variables that begin with 0 are in memory without a file, right behind it.
    let is_behind = |before: &&Mapping| before.memory.end == maps[at].memory.start;
    let before = at.checked_sub(1).map(|before| &maps[before]).filter(is_behind);
    let file = if maps[at].inode == 0 { before } else { Some(&maps[at]) };
    file.is_some_and(|mapping| is_c_library(mapping.file_name()))
}

fn is_c_library(name: &str) -> bool {
    ["libc.so", "libc-2", "ld-", "libpthread"].iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::super::maps;
    use super::*;

    #[test]
    fn threads_that_may_hold_a_lock_are_not_asked() {
        let sleep = format!("{} 0x0 0x0 0x7ffe 0x0 0x0 0x0 0x7ffd 0x7f00", libc::SYS_nanosleep);
        let epoll = format!("{} 0x0 0x0 0x7ffe 0x0 0x0 0x0 0x7ffd 0x7f00", libc::SYS_epoll_pwait);
        let maps = maps::of(std::process::id()).unwrap();
        let rank = |text: &str| rank(&SystemCall::read(text)?, &maps);
        assert!(rank(&sleep) < rank(&epoll));
        let number = libc::SYS_futex;
        let at = |word: u64, operation: i32| {
            format!("{number} {word:#x} {operation:#x} 0x2 0x0 0x0 0x0 0x7f 0x7f")
        };
        let own = 0_u64;
        let futex = |operation| at((&raw const own) as u64, operation);
        assert_eq!(rank(&futex(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG)), None);
        assert_eq!(rank(&futex(libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG)), Some(0));
        // A variable of the C library.
        let waits = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
        let variable = maps.iter().rev().find(|it| is_c_library(it.file_name())).unwrap();
        assert_eq!(rank(&at(variable.memory.end - 8, waits)), None);
        assert_eq!(rank("running"), None);
        assert_eq!(rank(&format!("{} 0x1", libc::SYS_write)), None);
        assert_eq!(rank("-1 0x7ffd 0x7f00"), None);
    }
}
