//! What a machine can do at most, as it was measured there, and which of it a recording can be held
//! against. Measuring is the business of `ggprof-peaks`, keeping and finding that of the command.
//!
//! Rates are bytes and operations per second; a multiplication and an addition are two operations,
//! as everywhere. Only reading counts for a memory's rate, because inference reads: weights and
//! caches are read as often as anything is written once.

use ggprof_ggml::DeviceInterface;
use ggprof_trace::{BackendIndex, DeviceType, Process, ProcessIndex, Trace};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The version of the file that is written; readers take what they know of others.
pub const VERSION: u32 = 1;

/// With this part of the best rate, more threads are not worth having.
const KNEE: f64 = 0.95;

/// What one machine can do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Peaks {
    pub version: u32,
    /// Seconds since 1970.
    pub measured_at_unix_s: u64,
    pub cpu: CpuPeaks,
    /// A device that two APIs reach is here twice.
    #[serde(default)]
    pub devices: Vec<DevicePeaks>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CpuPeaks {
    /// As recordings have it.
    pub name: String,
    /// How many of them a program may use at once.
    pub processors: u32,
    /// By number of threads, from one on.
    pub read: Vec<ReadRate>,
    /// With all processors.
    pub compute: Vec<ComputeRate>,
}

/// How fast so many threads together read memory that no cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReadRate {
    pub threads: u32,
    pub bytes_per_s: f64,
}

/// How fast products are summed up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComputeRate {
    pub operands: Operands,
    /// The instructions that did it: `AVX-512 VNNI`, `wgmma`.
    pub by: String,
    pub ops_per_s: f64,
}

/// What is multiplied. Sums are of 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operands {
    F32,
    F16,
    Int8,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DevicePeaks {
    pub api: DeviceApi,
    /// Among the devices of its API, as that counts them.
    pub number: u32,
    /// As its driver calls it, which is what recordings have as the device's description.
    pub name: String,
    /// `None` here and below where it could not be measured; `missing` says why.
    pub read_bytes_per_s: Option<f64>,
    #[serde(default)]
    pub copies: Vec<CopyRate>,
    #[serde(default)]
    pub compute: Vec<ComputeRate>,
    /// A sentence for each thing that could not be measured.
    #[serde(default)]
    pub missing: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceApi {
    Cuda,
    Vulkan,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CopyRate {
    pub direction: LinkDirection,
    pub memory: HostMemory,
    pub bytes_per_s: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkDirection {
    HostToDevice,
    DeviceToHost,
}

/// The memory of the host that a copy reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostMemory {
    /// The device reaches it by itself.
    Pinned,
    /// The driver copies through memory of its own.
    Pageable,
}

/// What one backend's device can do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Roof<'p> {
    pub read_bytes_per_s: Option<f64>,
    pub compute: &'p [ComputeRate],
}

impl Peaks {
    /// What a backend's work can be held against; `None` where its device was not measured.
    pub fn roof_of(&self, trace: &Trace, backend: BackendIndex) -> Option<Roof<'_>> {
        let described = trace.backend(backend);
        if described.device_type == DeviceType::Cpu {
            let cpu = self.cpu_of(trace, described.process)?;
            let read_bytes_per_s = cpu.best_read().map(|best| best.bytes_per_s);
            return Some(Roof { read_bytes_per_s, compute: &cpu.compute });
        }
        let device = self.device_of(trace, backend)?;
        Some(Roof { read_bytes_per_s: device.read_bytes_per_s, compute: &device.compute })
    }

    /// The processor of a process; `None` if that ran on another machine.
    pub fn cpu_of(&self, trace: &Trace, process: Option<ProcessIndex>) -> Option<&CpuPeaks> {
        self.is_of(trace, process).then_some(&self.cpu)
    }

    /// The device of a backend, by the API it uses and the name that the driver gives it; of several
    /// equal ones that with the same number.
    pub fn device_of(&self, trace: &Trace, backend: BackendIndex) -> Option<&DevicePeaks> {
        let backend = trace.backend(backend);
        let (interface, number) = backend.interface()?;
        let api = DeviceApi::of(interface)?;
        let is_it = |device: &&DevicePeaks| {
            let is_named = backend.description.is_empty() || backend.description == device.name;
            device.api == api && is_named && self.is_of(trace, backend.process)
        };
        let mut alike = self.devices.iter().filter(is_it);
        let same_number = alike.clone().find(|device| number == Some(device.number));
        same_number.or_else(|| alike.next())
    }

    /// Whether these are the peaks of the machine that a process ran on. Where they are of none, the
    /// recording is held against another machine, as a whole.
    fn is_of(&self, trace: &Trace, process: Option<ProcessIndex>) -> bool {
        let is_its = |process: &Process| process.cpu == self.cpu.name;
        let process = process.and_then(|process| trace.processes.get(usize::from(process.0)));
        process.is_none_or(is_its) || !trace.processes.iter().any(is_its)
    }

    /// How many of a recording's devices these are the peaks of, its processor being one of them;
    /// `None` if it was made on another machine, or does not say where.
    pub fn fit(&self, trace: &Trace) -> Option<usize> {
        let of_all = trace.provenance.iter().map(|provenance| &provenance.cpu);
        let of_each = trace.processes.iter().map(|process| &process.cpu);
        if self.cpu.name.is_empty() || !of_all.chain(of_each).any(|cpu| *cpu == self.cpu.name) {
            return None;
        }
        // Several processes may use one device.
        let backends = (0..trace.backends.len()).map(|at| BackendIndex(at as u16));
        let devices = backends.filter_map(|backend| self.device_of(trace, backend));
        let devices: BTreeSet<_> = devices.map(|device| (device.api, device.number)).collect();
        Some(1 + devices.len())
    }
}

impl DeviceApi {
    fn of(interface: DeviceInterface) -> Option<Self> {
        match interface {
            DeviceInterface::Cuda => Some(Self::Cuda),
            DeviceInterface::Vulkan => Some(Self::Vulkan),
            DeviceInterface::Hip => None,
        }
    }
}

impl CpuPeaks {
    /// The fewest threads that reach the highest rate.
    pub fn best_read(&self) -> Option<ReadRate> {
        self.read.iter().copied().reduce(|best, rate| match rate.bytes_per_s > best.bytes_per_s {
            true => rate,
            false => best,
        })
    }

    /// From how many threads on reading gets no faster.
    pub fn knee(&self) -> Option<ReadRate> {
        let best = self.best_read()?;
        self.read.iter().copied().find(|rate| rate.bytes_per_s >= KNEE * best.bytes_per_s)
    }

    /// The rate of so many threads, as measured for the next lower number.
    pub fn read_with(&self, threads: u32) -> Option<f64> {
        let fewer = self.read.iter().rev().find(|rate| rate.threads <= threads);
        fewer.map(|rate| rate.bytes_per_s)
    }
}

impl DevicePeaks {
    pub fn copy_rate(&self, direction: LinkDirection, memory: HostMemory) -> Option<f64> {
        let is_it = |rate: &&CopyRate| rate.direction == direction && rate.memory == memory;
        self.copies.iter().find(is_it).map(|rate| rate.bytes_per_s)
    }
}

impl Roof<'_> {
    pub fn ops_per_s(&self, operands: Operands) -> Option<f64> {
        let of = self.compute.iter().filter(|rate| rate.operands == operands);
        of.map(|rate| rate.ops_per_s).reduce(f64::max)
    }

    /// The highest of all, which nothing can exceed.
    pub fn most_ops_per_s(&self) -> Option<f64> {
        self.compute.iter().map(|rate| rate.ops_per_s).reduce(f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::{Provenance, text_fixture};

    fn cpu(rates: &[f64]) -> CpuPeaks {
        let read =
            (1..).zip(rates).map(|(threads, &bytes_per_s)| ReadRate { threads, bytes_per_s });
        CpuPeaks { name: "A CPU".into(), processors: 4, read: read.collect(), compute: Vec::new() }
    }

    fn device(api: DeviceApi, number: u32, name: &str) -> DevicePeaks {
        DevicePeaks {
            api,
            number,
            name: name.to_owned(),
            read_bytes_per_s: Some(f64::from(number)),
            copies: Vec::new(),
            compute: Vec::new(),
            missing: Vec::new(),
        }
    }

    #[test]
    fn the_knee_is_where_more_threads_give_little() {
        let peaks = cpu(&[10e9, 19e9, 20e9, 19.5e9]);
        assert_eq!(peaks.best_read().map(|rate| rate.threads), Some(3));
        assert_eq!(peaks.knee().map(|rate| rate.threads), Some(2));
        assert_eq!(peaks.read_with(16), Some(19.5e9));
        assert_eq!(peaks.read_with(0), None);
        assert_eq!(cpu(&[]).knee(), None);
    }

    #[test]
    fn a_backend_finds_its_device() {
        let devices = vec![
            device(DeviceApi::Cuda, 0, "NVIDIA H200"),
            device(DeviceApi::Cuda, 1, "NVIDIA H200"),
            device(DeviceApi::Cuda, 2, "NVIDIA L4"),
            device(DeviceApi::Vulkan, 5, "NVIDIA H200"),
        ];
        let peaks = Peaks { version: 1, measured_at_unix_s: 0, cpu: cpu(&[1.0]), devices };
        let found = |backend: &str| {
            let trace = text_fixture::parse(&format!("backend 0 {backend}"));
            peaks.roof_of(&trace, BackendIndex(0)).and_then(|roof| roof.read_bytes_per_s)
        };
        assert_eq!(found("CUDA1 gpu NVIDIA H200"), Some(1.0));
        // Programs may hide devices, which changes the numbers of the others.
        assert_eq!(found("CUDA0 gpu NVIDIA L4"), Some(2.0));
        assert_eq!(found("Vulkan0 gpu NVIDIA H200"), Some(5.0));
        assert_eq!(found("CUDA0 gpu NVIDIA A100"), None);
        assert_eq!(found("ROCm0 gpu NVIDIA H200"), None);
        assert_eq!(found("CPU cpu whatever"), Some(1.0));
    }

    /// Backends of several processes are called after these, too.
    #[test]
    fn the_backends_of_several_processes_find_their_devices() {
        let devices = vec![device(DeviceApi::Cuda, 7, "NVIDIA H200")];
        let peaks = Peaks { version: 1, measured_at_unix_s: 0, cpu: cpu(&[1.0]), devices };
        let both = ggprof_trace::merge(vec![process("A CPU", 0), process("A CPU", 0)]).unwrap();
        assert_eq!(rates(&peaks, &both), [Some(7.0), Some(1.0), Some(7.0), Some(1.0)]);
        assert_eq!(peaks.fit(&both), Some(2), "they share the device");
    }

    /// One that uses a device, started at some time of day.
    fn process(cpu: &str, started_s: u64) -> Trace {
        let text = "backend 0 CUDA0 gpu NVIDIA H200\nbackend 1 CPU cpu\n\
                    op CUDA0 ADD 0..10 a f32[4] <- f32[4]";
        let provenance = Provenance {
            cpu: cpu.into(),
            clock_anchors: vec![(0, (1 + started_s) * 1_000_000_000)],
            ..Provenance::default()
        };
        Trace { provenance: Some(provenance), ..text_fixture::parse(text) }
    }

    fn rates(peaks: &Peaks, trace: &Trace) -> Vec<Option<f64>> {
        let backends = (0..trace.backends.len()).map(|at| BackendIndex(at as u16));
        backends.map(|it| peaks.roof_of(trace, it)?.read_bytes_per_s).collect()
    }

    /// Another machine may have another processor, and reach the same kind of device in another way.
    #[test]
    fn of_two_machines_only_the_measured_one_has_peaks() {
        let devices = vec![device(DeviceApi::Cuda, 7, "NVIDIA H200")];
        let peaks = Peaks { version: 1, measured_at_unix_s: 0, cpu: cpu(&[1.0]), devices };
        for (machines, expected, fit) in [
            (["A CPU", "B CPU"], [Some(7.0), Some(1.0), None, None], Some(2)),
            (["B CPU", "A CPU"], [None, None, Some(7.0), Some(1.0)], Some(2)),
            // As somebody asked for whose machine is none of them.
            (["B CPU", "C CPU"], [Some(7.0), Some(1.0), Some(7.0), Some(1.0)], None),
        ] {
            let processes = [process(machines[0], 0), process(machines[1], 500)];
            let merged = ggprof_trace::merge(processes.into()).unwrap();
            assert_eq!(rates(&peaks, &merged), expected, "{machines:?}");
            assert_eq!(peaks.fit(&merged), fit, "{machines:?}");
        }
    }

    #[test]
    fn peaks_of_another_machine_do_not_fit() {
        let devices = vec![device(DeviceApi::Cuda, 0, "NVIDIA H200")];
        let peaks = Peaks { version: 1, measured_at_unix_s: 0, cpu: cpu(&[1.0]), devices };
        let mut trace = text_fixture::parse("backend 0 CUDA0 gpu NVIDIA H200\nbackend 1 CPU cpu");
        assert_eq!(peaks.fit(&trace), None);
        trace.provenance = Some(Provenance { cpu: "A CPU".into(), ..Provenance::default() });
        assert_eq!(peaks.fit(&trace), Some(2));
        trace.provenance = Some(Provenance { cpu: "B CPU".into(), ..Provenance::default() });
        assert_eq!(peaks.fit(&trace), None);
    }
}
