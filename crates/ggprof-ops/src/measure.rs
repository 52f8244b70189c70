//! How long a trial takes, with what it reads in the cache and without.

use crate::device::{self, Device};
use crate::plan::{Plan, Prepared};
use crate::trial::{Node, Trial, TrialTime};
use std::time::{Duration, Instant};

/// A call takes so long at least, so that beginning and ending it is little against it. On the
/// processor that is little, and another program may take its turn in a longer call.
const LEAST_CALL_NS: f64 = 4e6;
const LEAST_CALL_OF_CPU_NS: f64 = 5e5;
const MOST_REPEATS: usize = 1024;
const MOST_COPIES: u64 = 256;
const LEAST_CALLS: usize = 5;

/// Computes a trial until there is something to say. The error is a clause: why it could not be.
pub fn measure(trial: &Trial) -> Result<TrialTime, String> {
    keep_freed_memory();
    device::silence(&trial.libraries.base);
    let device = Device::open(trial)?;
    let prepared = Prepared::new(&device, trial)?;
    let limit = Duration::from_millis(trial.measure_ms);
    let once_ns = once(&prepared, trial)?;
    let call_ns = if device.is_processor() { LEAST_CALL_OF_CPU_NS } else { LEAST_CALL_NS };
    let repeats = ((call_ns / once_ns).ceil() as usize).clamp(1, MOST_REPEATS);
    Ok(TrialTime {
        // The same again and again.
        warm_ns: median_of(&prepared.plan(1, 1, repeats)?, None, limit)?,
        cold_ns: cold(&device, &prepared, trial, (once_ns, repeats), limit)?,
        weight_memory: prepared.special.as_ref().map(|(name, _)| name.clone()),
        version: device.version(),
    })
}

/// A device in software allocates memory for every call of a kernel. In a program that has freed a
/// large block, as those that load a model have, glibc keeps what is freed; in a fresh process it gives
/// it back to the system, and every call waits for the pages again.
fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    for (limit, bytes) in [(libc::M_MMAP_THRESHOLD, 32 << 20), (libc::M_TRIM_THRESHOLD, 64 << 20)] {
        // SAFETY: limits of the allocator, which takes any number and may refuse it.
        unsafe { libc::mallopt(limit, bytes) };
    }
}

/// What it takes about, after it was tried once.
fn once(prepared: &Prepared<'_>, trial: &Trial) -> Result<f64, String> {
    let plan = prepared.plan(1, 1, 2)?;
    if !plan.is_supported() {
        return Err(format!("{} does not support it", trial.device));
    }
    plan.compute()?;
    let [first, second] = [plan.compute()?, plan.compute()?];
    Ok(first.into_iter().chain(second).fold(f64::INFINITY, f64::min).max(1.0))
}

/// Each time with another copy of all it reads. Before the copies come round again, more than the
/// caches hold was touched.
fn cold(
    device: &Device,
    prepared: &Prepared<'_>,
    trial: &Trial,
    (once_ns, repeats): (f64, usize),
    limit: Duration,
) -> Result<f64, String> {
    let bytes = prepared.source_bytes().max(1);
    let room = device.free_bytes() / 2;
    let copies = (trial.cold_bytes / bytes + 1).min(MOST_COPIES).min(room / bytes);
    // Of slow ops no more than can be computed in the time; then something else empties the caches.
    let copies = copies.min((limit.as_nanos() as f64 / once_ns) as u64).max(1);
    let repeats = repeats.min(copies as usize);
    let graphs = (copies as usize / repeats).max(1);
    let plan = prepared.plan(graphs * repeats, graphs, repeats)?;
    let is_enough = (graphs * repeats) as u64 * bytes > trial.cold_bytes;
    let flushing = if is_enough { None } else { Some(flushing(trial)) };
    let flushing = flushing.as_ref().map(|trial| Prepared::new(device, trial)).transpose()?;
    let flush = flushing.as_ref().map(|prepared| prepared.plan(1, 1, 1)).transpose()?;
    median_of(&plan, flush.as_ref(), limit)
}

/// An op that touches more than the caches hold, on every thread.
fn flushing(trial: &Trial) -> Trial {
    const ROW: i64 = 1024;
    let rows = (trial.cold_bytes as i64 / (4 * ROW)).max(1);
    let node = Node::scale([ROW, rows, 1, 1]);
    Trial { nodes: vec![node], weight_memory: Vec::new(), ..trial.clone() }
}

/// What one computation takes in the middle of several calls.
fn median_of(plan: &Plan<'_>, flush: Option<&Plan<'_>>, limit: Duration) -> Result<f64, String> {
    plan.compute()?;
    let start = Instant::now();
    let mut times = Vec::new();
    while times.len() < LEAST_CALLS || start.elapsed() < limit {
        if let Some(flush) = flush {
            flush.compute()?;
        }
        times.extend(plan.compute()?);
    }
    times.sort_unstable_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
