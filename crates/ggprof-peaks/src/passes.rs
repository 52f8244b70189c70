//! Repeats a piece of work, alone or on several threads at once, and keeps the best rate.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The fewest passes, however long one takes.
const LEAST_PASSES: u32 = 8;

/// The shortest time of passes that are repeated for so long, in seconds.
pub(crate) fn shortest<E>(
    time: Duration,
    mut pass: impl FnMut() -> Result<(), E>,
) -> Result<f64, E> {
    // The first pass brings up clocks and maps pages: it is not counted.
    pass()?;
    let mut best = f64::INFINITY;
    let begin = Instant::now();
    for passes in 1.. {
        let start = Instant::now();
        pass()?;
        best = best.min(start.elapsed().as_secs_f64());
        if passes >= LEAST_PASSES && begin.elapsed() >= time {
            break;
        }
    }
    Ok(best)
}

/// Passes of several threads. Each pass lasts from the first thread's start to the last one's end,
/// which the threads note themselves: whoever only waits for them may be woken late.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Together {
    pub(crate) threads: usize,
    pub(crate) time: Duration,
}

impl Together {
    /// The most per second that the threads did together in a pass. `work` gets the thread's
    /// number and which part of the work to do, and tells how much that was.
    pub(crate) fn best_rate(self, work: &(dyn Fn(usize, Part) -> u64 + Sync)) -> f64 {
        let (barrier, is_over) = (Barrier::new(self.threads + 1), AtomicBool::new(false));
        let (pass, begin) = (Pass::default(), Instant::now());
        std::thread::scope(|scope| {
            for thread in 0..self.threads {
                let (barrier, is_over, pass) = (&barrier, &is_over, &pass);
                scope.spawn(move || {
                    for number in 0.. {
                        barrier.wait();
                        if is_over.load(Relaxed) {
                            break;
                        }
                        pass.add(begin, || work(thread, Part::of_pass(number)));
                        barrier.wait();
                    }
                });
            }
            let mut best: f64 = 0.0;
            for passes in 0.. {
                pass.reset();
                // They begin, and all have finished.
                barrier.wait();
                barrier.wait();
                // The first brings up clocks and maps pages.
                if passes > 0 {
                    best = best.max(pass.rate());
                }
                if passes >= LEAST_PASSES && begin.elapsed() >= self.time {
                    break;
                }
            }
            is_over.store(true, Relaxed);
            barrier.wait();
            best
        })
    }
}

/// What a pass is over. On a busy machine only short passes are ever undisturbed; with many threads
/// only long ones, because they do not begin at the same moment. So all kinds take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) number: usize,
    pub(crate) of: usize,
}

impl Part {
    /// Everything, then an eighth after the other, then the parts of these.
    fn of_pass(pass: usize) -> Part {
        match pass % (1 + 8 + 64) {
            0 => Part { number: 0, of: 1 },
            at @ 1..=8 => Part { number: at - 1, of: 8 },
            at => Part { number: at - 9, of: 64 },
        }
    }
}

/// What all threads did in a pass. The barriers around it order the accesses.
#[derive(Debug, Default)]
struct Pass {
    first_start_ns: AtomicU64,
    last_end_ns: AtomicU64,
    done: AtomicU64,
}

impl Pass {
    fn reset(&self) {
        self.first_start_ns.store(u64::MAX, Relaxed);
        self.last_end_ns.store(0, Relaxed);
        self.done.store(0, Relaxed);
    }

    fn add(&self, begin: Instant, work: impl FnOnce() -> u64) {
        self.first_start_ns.fetch_min(begin.elapsed().as_nanos() as u64, Relaxed);
        let done = work();
        self.last_end_ns.fetch_max(begin.elapsed().as_nanos() as u64, Relaxed);
        self.done.fetch_add(done, Relaxed);
    }

    fn rate(&self) -> f64 {
        let ns = self.last_end_ns.load(Relaxed).saturating_sub(self.first_start_ns.load(Relaxed));
        self.done.load(Relaxed) as f64 * 1e9 / ns.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_work_in_passes_and_their_work_adds_up() {
        let (passes, work) = (AtomicU64::new(0), AtomicU64::new(0));
        let together = Together { threads: 3, time: Duration::ZERO };
        let rate = together.best_rate(&|thread, _| {
            passes.fetch_add(u64::from(thread == 0), Relaxed);
            work.fetch_add(1, Relaxed);
            std::thread::sleep(Duration::from_millis(1));
            thread as u64
        });
        assert_eq!(passes.load(Relaxed), u64::from(LEAST_PASSES) + 1);
        assert_eq!(work.load(Relaxed), 3 * passes.load(Relaxed));
        // 0 + 1 + 2 in a millisecond or more.
        assert!(rate > 0.0 && rate <= 3000.0, "{rate}");
    }

    #[test]
    fn parts_cover_everything() {
        let parts: Vec<Part> = (0..73).map(Part::of_pass).collect();
        for of in [1, 8, 64] {
            let numbers = parts.iter().filter(|part| part.of == of).map(|part| part.number);
            assert!(numbers.eq(0..of));
        }
        assert_eq!(Part::of_pass(73), parts[0]);
    }

    #[test]
    fn a_failing_pass_ends_it() {
        let mut passes = 0;
        let ended = shortest(Duration::ZERO, || {
            passes += 1;
            if passes == 3 { Err("lost") } else { Ok(()) }
        });
        assert_eq!((ended, passes), (Err("lost"), 3));
    }
}
