//! Clocks, power, energy and memory of the machine's devices, read now and then while the program
//! runs: by this process, which only waits, so that the program has nothing to do with it.
//!
//! Nothing is begun before the program has been started: what a vendor's library opens must not
//! be there for the program to inherit. And nobody waits for a sensor: a driver that hangs keeps
//! a thread, and nothing else.

mod cpufreq;
// Calls a vendor's library, which is loaded if there is one.
#[allow(unsafe_code)]
mod nvml;
mod processors;
mod rapl;
mod samples;

pub(crate) use samples::Samples;

use super::now_ns;
use ggprof_spool::layout::SENSOR_FORBIDDEN;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Often enough for a phase of a second, and too rare to be felt.
const EVERY: Duration = Duration::from_millis(100);
/// How long the end of the program's report may wait for a last reading.
const PATIENCE: Duration = Duration::from_millis(500);

/// What sensors measure, by the numbers of the recording file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Quantity {
    DeviceClock = 1,
    DeviceMemoryClock = 2,
    DevicePower = 3,
    DeviceEnergy = 4,
    DeviceMemory = 5,
    DeviceUtilisation = 6,
    ProcessorClock = 7,
    LowestProcessorClock = 8,
    HighestProcessorClock = 9,
    PackageEnergy = 10,
    DeviceClockLimit = 11,
    ProcessorClockLimit = 12,
    UsableProcessors = 13,
    MachineTime = 14,
    ProgramTime = 15,
    StolenTime = 16,
}

/// A sensor as it is described in the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Described {
    quantity: Quantity,
    /// The system's number of the device.
    device: u32,
    name: String,
    is_forbidden: bool,
}

impl Described {
    /// Of all processors together.
    fn of_processors(quantity: Quantity) -> Described {
        Described { quantity, device: 0, name: "CPU".to_owned(), is_forbidden: false }
    }

    fn flags(&self) -> u32 {
        if self.is_forbidden { SENSOR_FORBIDDEN } else { 0 }
    }
}

/// Some sensors that are read together.
trait Source {
    fn sensors(&self) -> Vec<Described>;

    /// A value for each of them, `None` where it has none just now.
    fn read(&mut self) -> Vec<Option<u64>>;
}

/// Reads until it is dropped.
pub(crate) struct Sensors {
    samples: Arc<Mutex<Samples>>,
    /// Dropped to end the reading.
    until: Option<Sender<()>>,
    ended: Receiver<()>,
}

impl Sensors {
    /// Begins to read what there is. The samples are another's as well.
    pub(crate) fn read_into(samples: Arc<Mutex<Samples>>) -> Sensors {
        let (until, is_over) = channel();
        let (ending, ended) = channel();
        let into = samples.clone();
        std::thread::spawn(move || {
            let _ending: Sender<()> = ending;
            read(all(Path::new("/")), &into, &is_over);
        });
        Sensors { samples, until: Some(until), ended }
    }
}

impl Drop for Sensors {
    fn drop(&mut self) {
        self.until = None;
        let ended = self.ended.recv_timeout(PATIENCE);
        if ended == Err(RecvTimeoutError::Timeout) {
            // It may still come to its end; what it would add is not wanted any more.
            lock(&self.samples).close();
        }
    }
}

/// All sources below this root, in the order of the report.
fn all(root: &Path) -> Vec<Box<dyn Source>> {
    let sources: [Option<Box<dyn Source>>; 4] = [
        nvml::Nvml::load().map(|source| Box::new(source) as _),
        cpufreq::CpuFreq::below(root).map(|source| Box::new(source) as _),
        rapl::Rapl::below(root).map(|source| Box::new(source) as _),
        processors::Processors::below(root).map(|source| Box::new(source) as _),
    ];
    sources.into_iter().flatten().collect()
}

/// Reads now, then again and again, and once more when it is over.
fn read(mut sources: Vec<Box<dyn Source>>, into: &Mutex<Samples>, is_over: &Receiver<()>) {
    let sensors: Vec<Described> = sources.iter().flat_map(|source| source.sensors()).collect();
    if sensors.iter().all(|sensor| sensor.is_forbidden) {
        return;
    }
    lock(into).begin(sensors, EVERY);
    loop {
        let values = sources.iter_mut().flat_map(|source| source.read()).collect();
        let every = lock(into).add(now_ns(), values);
        let is_last = is_over.recv_timeout(every) == Err(RecvTimeoutError::Disconnected);
        if is_last {
            let values = sources.iter_mut().flat_map(|source| source.read()).collect();
            lock(into).add(now_ns(), values);
            return;
        }
    }
}

pub(super) fn lock(samples: &Mutex<Samples>) -> std::sync::MutexGuard<'_, Samples> {
    samples.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn nothing_is_begun_where_nothing_can_be_read() {
        let root = tempfile::tempdir().unwrap();
        let samples = Mutex::new(Samples::default());
        let (until, is_over) = channel::<()>();
        // Were there a sensor, this would go on for ever.
        read(vec![], &samples, &is_over);
        assert!(cpufreq::CpuFreq::below(root.path()).is_none());
        assert!(rapl::Rapl::below(root.path()).is_none());
        assert!(lock(&samples).is_empty());
        drop(until);
    }

    #[test]
    fn the_last_reading_is_of_the_end() {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("sys/devices/system/cpu/cpu0/cpufreq");
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("scaling_cur_freq"), "1000000\n").unwrap();
        let source = cpufreq::CpuFreq::below(root.path()).unwrap();
        let (until, is_over) = channel::<()>();
        drop(until);
        let samples = Mutex::new(Samples::default());
        read(vec![Box::new(source)], &samples, &is_over);
        assert_eq!(lock(&samples).rows(), 2);
    }
}
