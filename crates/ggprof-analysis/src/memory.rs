//! How much memory the program had for tensors: whose, what for, and when it was most.

use ggprof_ggml::is_of_cache;
use ggprof_trace::{Backend, Buffer, BufferUsage, FreeMemory, Trace};

/// What memory is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    Weights,
    /// Keys and values, or a recurrent model's states.
    Cache,
    /// What graphs compute with.
    Compute,
    Other,
}

#[derive(Debug)]
pub struct Memory {
    pub devices: Vec<DeviceMemory>,
    /// By machine, device, kind of memory and purpose.
    pub uses: Vec<MemoryUse>,
}

#[derive(Debug)]
pub struct DeviceMemory {
    /// The number of the machine that the device is in.
    pub machine: u16,
    pub device: String,
    pub amount: Amount,
    /// How much there was from each of these moments on.
    pub steps: Vec<Level>,
}

#[derive(Debug)]
pub struct MemoryUse {
    pub machine: u16,
    pub device: String,
    pub type_name: String,
    pub purpose: Purpose,
    pub amount: Amount,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    pub ns: u64,
    pub bytes: u128,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount {
    /// How many buffers there were, those that were freed included.
    pub buffers: u64,
    /// When the last event ended: at the very end programs free everything.
    pub at_end: u128,
    pub peak: Level,
}

/// What is left of a device's memory, and all that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    pub free_bytes: u64,
    pub total_bytes: u64,
}

/// What was free of a backend's device when a program last asked, less what programs have had since.
/// `None` where none asked.
pub fn left(trace: &Trace, backend: &Backend) -> Option<Left> {
    let device = (trace.machine_of(backend.process), backend.device_label());
    let is_its = |told: &&FreeMemory| (trace.machine_of(told.process), &*told.device) == device;
    let told = trace.free_memory.iter().filter(is_its).max_by_key(|told| told.at_ns)?;
    let had_at = |ns: u64| -> u128 {
        let there = |buffer: &&Buffer| device_of(trace, buffer) == device && buffer.lives_at(ns);
        trace.buffers.iter().filter(there).map(|buffer| u128::from(buffer.bytes)).sum()
    };
    let free = u128::from(told.free_bytes) + had_at(told.at_ns);
    let free = free.saturating_sub(had_at(end_ns(trace))).min(told.total_bytes.into());
    Some(Left { free_bytes: free as u64, total_bytes: told.total_bytes })
}

/// When the last event ended: at the very end programs free everything.
fn end_ns(trace: &Trace) -> u64 {
    let last_birth = trace.buffers.iter().map(|buffer| buffer.born_ns).max();
    trace.span_ns().map(|(_, end)| end).or(last_birth).unwrap_or(0)
}

pub fn purpose(buffer: &Buffer) -> Purpose {
    match buffer.usage {
        BufferUsage::Weights => Purpose::Weights,
        BufferUsage::Compute => Purpose::Compute,
        _ if is_of_cache(&buffer.tensor) => Purpose::Cache,
        BufferUsage::Any | BufferUsage::Unknown => Purpose::Other,
    }
}

pub fn memory(trace: &Trace) -> Memory {
    let end_ns = end_ns(trace);
    let by_device = grouped(&trace.buffers, |buffer| device_of(trace, buffer));
    let devices = by_device.into_iter().map(|((machine, device), of)| {
        let steps = steps(&of);
        let amount = amount(&of, &steps, end_ns);
        DeviceMemory { machine, device: device.to_owned(), amount, steps }
    });
    let key = |buffer: &Buffer| {
        let (machine, device) = device_of(trace, buffer);
        (machine, device.to_owned(), buffer.type_name.clone(), purpose(buffer))
    };
    let by_use = grouped(&trace.buffers, key);
    let uses = by_use.into_iter().map(|((machine, device, type_name, purpose), of)| {
        let amount = amount(&of, &steps(&of), end_ns);
        MemoryUse { machine, device, type_name, purpose, amount }
    });
    Memory { devices: devices.collect(), uses: uses.collect() }
}

/// The machine and the name of the device that a buffer is in.
fn device_of<'b>(trace: &Trace, buffer: &'b Buffer) -> (u16, &'b str) {
    (trace.machine_of(buffer.process), &buffer.device)
}

/// Buffers with the same key, in the order of the keys.
fn grouped<'b, K: Ord>(
    buffers: &'b [Buffer],
    key: impl Fn(&'b Buffer) -> K,
) -> Vec<(K, Vec<&'b Buffer>)> {
    let mut groups: std::collections::BTreeMap<K, Vec<&Buffer>> = Default::default();
    for buffer in buffers {
        groups.entry(key(buffer)).or_default().push(buffer);
    }
    groups.into_iter().collect()
}

fn amount(buffers: &[&Buffer], steps: &[Level], end_ns: u64) -> Amount {
    let living = buffers.iter().filter(|buffer| buffer.lives_at(end_ns));
    // The first of several: a peak is reached once.
    let highest = steps.iter().rev().max_by_key(|step| step.bytes);
    Amount {
        buffers: buffers.len() as u64,
        at_end: living.map(|buffer| u128::from(buffer.bytes)).sum(),
        peak: highest.copied().unwrap_or(Level { ns: 0, bytes: 0 }),
    }
}

/// One step for each moment at which something changes.
fn steps(buffers: &[&Buffer]) -> Vec<Level> {
    let births = buffers.iter().map(|buffer| (buffer.born_ns, i128::from(buffer.bytes)));
    let died = |buffer: &&Buffer| Some((buffer.died_ns?, -i128::from(buffer.bytes)));
    let mut changes: Vec<(u64, i128)> = births.chain(buffers.iter().filter_map(died)).collect();
    changes.sort_unstable();
    let mut steps: Vec<Level> = Vec::new();
    let mut bytes: i128 = 0;
    for (ns, change) in changes {
        bytes += change;
        // Never below zero once all changes of a moment are in.
        let step = Level { ns, bytes: bytes.max(0) as u128 };
        match steps.last_mut() {
            Some(last) if last.ns == ns => *last = step,
            _ => steps.push(step),
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::{Process, ProcessIndex};

    fn buffer(usage: BufferUsage, tensor: &str, bytes: u64, life: (u64, Option<u64>)) -> Buffer {
        Buffer {
            device: "CPU".into(),
            type_name: "CPU".into(),
            usage,
            bytes,
            tensor: tensor.into(),
            born_ns: life.0,
            died_ns: life.1,
            process: None,
        }
    }

    /// Of 1000 bytes 900 were free when the program had 30 of them; now it has 30 freed and 220 more.
    #[test]
    fn what_the_program_had_since_is_not_free() {
        let mut trace = ggprof_trace::text_fixture::parse("backend 0 CPU cpu\nop CPU ADD 50..90");
        trace.buffers = vec![
            buffer(BufferUsage::Compute, "", 30, (5, Some(40))),
            buffer(BufferUsage::Weights, "", 220, (20, Some(95))),
        ];
        assert_eq!(left(&trace, &trace.backends[0]), None);
        trace.free_memory = vec![FreeMemory {
            device: "CPU".into(),
            free_bytes: 900,
            total_bytes: 1000,
            at_ns: 10,
            process: None,
        }];
        assert_eq!(
            left(&trace, &trace.backends[0]),
            Some(Left { free_bytes: 710, total_bytes: 1000 })
        );
    }

    #[test]
    fn peaks_are_of_what_lives_at_the_same_time() {
        let mut trace = ggprof_trace::text_fixture::parse("backend 0 CPU cpu\nop CPU ADD 50..90");
        trace.buffers = vec![
            buffer(BufferUsage::Weights, "", 100, (10, None)),
            buffer(BufferUsage::Compute, "", 30, (20, Some(40))),
            // Made as the other one is freed: never both.
            buffer(BufferUsage::Compute, "", 20, (40, Some(95))),
            buffer(BufferUsage::Any, "cache_k_l0", 7, (60, Some(80))),
            buffer(BufferUsage::Any, "", 5, (92, None)),
        ];
        let memory = memory(&trace);
        let uses: Vec<_> = memory.uses.iter().map(|one| (one.purpose, one.amount)).collect();
        let of = |buffers, at_end, ns, bytes| Amount { buffers, at_end, peak: Level { ns, bytes } };
        assert_eq!(
            uses,
            [
                (Purpose::Weights, of(1, 100, 10, 100)),
                (Purpose::Cache, of(1, 0, 60, 7)),
                (Purpose::Compute, of(2, 20, 20, 30)),
                (Purpose::Other, of(1, 0, 92, 5)),
            ]
        );
        assert_eq!(memory.devices[0].amount, of(5, 120, 20, 130));
        let steps: Vec<_> = memory.devices[0].steps.iter().map(|it| (it.ns, it.bytes)).collect();
        assert_eq!(
            steps,
            [(10, 100), (20, 130), (40, 120), (60, 127), (80, 120), (92, 125), (95, 105)]
        );
    }

    /// A device of the same name is another one there; processes of one machine share it.
    #[test]
    fn each_machine_has_its_own_memory() {
        let mut trace = ggprof_trace::text_fixture::parse("backend 0 CPU cpu\nop CPU ADD 50..90");
        let machines = [0, 1, 1];
        trace.processes =
            machines.map(|machine| Process { machine, ..Process::default() }).to_vec();
        let of = |process: u16, bytes| Buffer {
            process: Some(ProcessIndex(process)),
            ..buffer(BufferUsage::Weights, "", bytes, (10, None))
        };
        trace.buffers = vec![of(0, 100), of(1, 30), of(2, 7)];
        let told = |process, free_bytes| FreeMemory {
            device: "CPU".into(),
            free_bytes,
            total_bytes: 1000,
            at_ns: 5,
            process: Some(ProcessIndex(process)),
        };
        trace.free_memory = vec![told(0, 500), told(1, 800)];
        let memory = memory(&trace);
        let peaks = |(machine, amount): (u16, Amount)| (machine, amount.peak.bytes);
        let devices: Vec<_> =
            memory.devices.iter().map(|it| peaks((it.machine, it.amount))).collect();
        let uses: Vec<_> = memory.uses.iter().map(|it| peaks((it.machine, it.amount))).collect();
        assert_eq!(devices, [(0, 100), (1, 37)]);
        assert_eq!(uses, devices);
        let left_of = |process| {
            let process = Some(ProcessIndex(process));
            left(&trace, &Backend { process, ..trace.backends[0].clone() }).unwrap().free_bytes
        };
        assert_eq!([0, 1, 2].map(left_of), [400, 763, 763]);
    }

    #[test]
    fn no_sum_is_too_large() {
        let buffers = vec![buffer(BufferUsage::Any, "", u64::MAX, (0, None)); 3];
        let trace = Trace { buffers, ..Trace::default() };
        assert_eq!(memory(&trace).devices[0].amount.peak.bytes, 3 * u128::from(u64::MAX));
    }
}
