//! Reads memory that is larger than all caches, each thread its own part.

use crate::passes::{Part, Together};
use std::fs;

const MEGABYTE: usize = 1 << 20;
const LEAST: usize = 512 * MEGABYTE;
/// So that a pass of a millisecond or more remains for each thread.
const LEAST_PER_THREAD: usize = 32 * MEGABYTE;
/// So much more than the caches hold, that what a pass leaves in them does not count.
const TIMES_THE_CACHE: usize = 8;
/// A share of the free memory that nobody misses for some seconds.
const OF_FREE_MEMORY: usize = 4;
/// The largest page that Linux is built with.
const PAGE: usize = 64 << 10;

/// Memory whose every page was written once, so that each is really there.
pub(super) struct Memory {
    words: Vec<u64>,
}

impl Memory {
    pub(super) fn for_threads(threads: usize) -> Self {
        // Zeros by the allocator: the pages come with the first write.
        let mut words = vec![0; size(threads) / size_of::<u64>()];
        prefer_large_pages(&mut words);
        let part = words.len().div_ceil(threads);
        std::thread::scope(|scope| {
            // By as many threads as will read, so that the pages lie in all memories of the machine.
            for part in words.chunks_mut(part) {
                scope.spawn(|| part.fill(1));
            }
        });
        Self { words }
    }

    /// Bytes per second of so many threads together.
    pub(super) fn read_rate(&self, together: Together) -> f64 {
        let part = self.words.len().div_ceil(together.threads);
        let parts: Vec<&[u64]> = self.words.chunks(part).collect();
        together.best_rate(&|thread, part| {
            let words = piece(parts[thread], part);
            read(words);
            size_of_val(words) as u64
        })
    }
}

/// Pieces follow each other, so that no cache holds one when it comes again.
fn piece(words: &[u64], part: Part) -> &[u64] {
    words.chunks(words.len().div_ceil(part.of)).nth(part.number).unwrap_or(words)
}

/// With small pages, looking up addresses would be part of what is measured.
fn prefer_large_pages(words: &mut [u64]) {
    let range = words.as_mut_ptr_range();
    let begin = (range.start as usize).next_multiple_of(PAGE);
    let bytes = (range.end as usize).saturating_sub(begin) / PAGE * PAGE;
    // SAFETY: pages within the slice; the call changes only how the kernel backs them, and where it
    // cannot, nothing.
    unsafe { libc::madvise(begin as *mut libc::c_void, bytes, libc::MADV_HUGEPAGE) };
}

/// Loads every word.
fn read(words: &[u64]) {
    #[cfg(target_arch = "x86_64")]
    super::x86_64::load(words);
    #[cfg(not(target_arch = "x86_64"))]
    super::portable::load(words);
}

fn size(threads: usize) -> usize {
    let wanted = LEAST.max(threads * LEAST_PER_THREAD).max(TIMES_THE_CACHE * last_level_caches());
    wanted.min((free_memory() / OF_FREE_MEMORY).max(LEAST))
}

/// Bytes of all caches that several processors share, each counted once.
fn last_level_caches() -> usize {
    let mut caches = std::collections::BTreeMap::new();
    for processor in fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten() {
        let cache = processor.path().join("cache/index3");
        let text = |name: &str| fs::read_to_string(cache.join(name)).ok();
        if let (Some(users), Some(size)) = (text("shared_cpu_list"), text("size")) {
            let kilobytes = size.trim().trim_end_matches('K').parse().unwrap_or(0);
            caches.insert(users, 1024usize.saturating_mul(kilobytes));
        }
    }
    caches.values().sum()
}

fn free_memory() -> usize {
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    kilobytes.unwrap_or(0usize).saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_read_than_caches_hold_and_less_than_is_free() {
        assert!(size(1) >= LEAST);
        assert!(size(100_000) <= (free_memory() / OF_FREE_MEMORY).max(LEAST) + LEAST);
    }
}
