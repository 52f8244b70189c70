//! The processor: how fast 1 to n threads read memory, and how fast all of them multiply.

#[cfg(target_arch = "x86_64")]
mod amx;
mod compute;
mod portable;
mod read;
#[cfg(target_arch = "x86_64")]
mod x86_64;

use crate::passes::Together;
use ggprof_analysis::peaks::{CpuPeaks, ReadRate};
use std::fs;
use std::num::NonZero;
use std::time::Duration;

/// Up to here every number of threads is measured, from here on every fourth part more.
const ALL_UP_TO: usize = 16;
/// So many threads that want to run at the same time are no accident.
const BUSY: f64 = 0.7;
/// For reading with all numbers of threads, and for each of them: a neighbour's burst must not cover
/// it, and nobody waits for a minute.
const ALL_READING: Duration = Duration::from_secs(8);
const LEAST_TIME: Duration = Duration::from_millis(300);
const MOST_TIME: Duration = Duration::from_millis(2500);

pub(crate) fn measure(say: &dyn Fn(&str)) -> CpuPeaks {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    let memory = read::Memory::for_threads(processors);
    let counts = thread_counts(processors);
    let time = (ALL_READING / counts.len() as u32).clamp(LEAST_TIME, MOST_TIME);
    let read = |&threads: &usize| {
        say(&format!("CPU: reading memory with {threads} of {processors} threads"));
        let bytes_per_s = memory.read_rate(Together { threads, time });
        ReadRate { threads: threads as u32, bytes_per_s }
    };
    let rates = counts.iter().map(read).collect();
    drop(memory);
    say("CPU: multiplying");
    let compute = compute::rates(Together { threads: processors, time: MOST_TIME });
    CpuPeaks { name: name(), processors: processors as u32, read: rates, compute }
}

fn thread_counts(processors: usize) -> Vec<usize> {
    let next = |&last: &usize| {
        let step = if last < ALL_UP_TO { 1 } else { last / 4 };
        (last < processors).then(|| (last + step).min(processors))
    };
    std::iter::successors(Some(1), next).collect()
}

/// A sentence if other programs need the processors themselves.
pub(crate) fn disturbance() -> Option<String> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let load: f64 = text.split(' ').next()?.parse().ok()?;
    (load >= BUSY).then(|| {
        format!(
            "other programs keep this machine busy (load {load}), so what several threads do may \
             come out too low. Measure again when it is quiet."
        )
    })
}

/// As the agent writes it into recordings.
fn name() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    ggprof_spool::cpu_name::of_cpuinfo(&info)
}

#[cfg(test)]
mod tests {
    use super::thread_counts;

    #[test]
    fn few_threads_are_all_tried_and_many_in_steps() {
        assert_eq!(thread_counts(1), [1]);
        assert_eq!(thread_counts(4), [1, 2, 3, 4]);
        let many = thread_counts(64);
        assert_eq!(many[..17], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20]);
        assert_eq!(many[17..], [25, 31, 38, 47, 58, 64]);
    }
}
