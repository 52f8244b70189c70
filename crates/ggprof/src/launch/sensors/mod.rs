//! Clocks, power, energy and memory of the machine's devices, read now and then while the program
//! runs: by this process, which only waits, so that the program has nothing to do with it.
//!
//! Nothing is begun before the program has been started: what a vendor's library opens must not
//! be there for the program to inherit. And nobody waits for a sensor: a driver that hangs keeps
//! a thread, and nothing else.

mod cpufreq;
mod limits;
// Calls a vendor's library, which is loaded if there is one.
#[allow(unsafe_code)]
mod nvml;
mod processors;
mod rapl;
mod samples;
mod turns;

pub(crate) use processors::Processes;
pub(crate) use samples::Samples;

use super::now_ns;
use ggprof_spool::layout::SENSOR_FORBIDDEN;
use ggprof_trace::Quantity;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use processors::Machine;
use turns::Turns;

/// Often enough for a phase of a second; what takes long is read less often (`turns`).
const EVERY: Duration = Duration::from_millis(100);
/// How long the end of the program's report may wait for a last reading.
const PATIENCE: Duration = Duration::from_millis(500);

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
    /// Begins to read what there is of the machine and the program. The samples are another's as well.
    pub(crate) fn read_into(samples: Arc<Mutex<Samples>>, program: Processes) -> Sensors {
        let (until, is_over) = channel();
        let (ending, ended) = channel();
        let into = samples.clone();
        std::thread::spawn(move || {
            let _ending: Sender<()> = ending;
            let root = Path::new("/");
            read(Turns::new(all(root, program), Machine::below(root)), &into, &is_over);
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
fn all(root: &Path, program: Processes) -> Vec<Box<dyn Source>> {
    let others: [Option<Box<dyn Source>>; 3] = [
        cpufreq::CpuFreq::below(root).map(|source| Box::new(source) as _),
        rapl::Rapl::below(root).map(|source| Box::new(source) as _),
        processors::Processors::below(root, program).map(|source| Box::new(source) as _),
    ];
    nvml::load().into_iter().chain(others.into_iter().flatten()).collect()
}

/// Which figures of the machine can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Readable {
    /// Names of devices whose driver tells clock, power, energy and memory: those of each that it tells.
    pub(crate) devices: Vec<(String, Vec<&'static str>)>,
    pub(crate) has_processor_clock: bool,
    pub(crate) processor_energy: Energy,
}

/// Whether the energy of the processors can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Energy {
    Readable,
    /// The counter is there, but for the administrator only.
    Forbidden,
    Absent,
}

/// Asks each sensor once.
pub(crate) fn readable(root: &Path) -> Readable {
    let mut readable = Readable {
        devices: Vec::new(),
        has_processor_clock: false,
        processor_energy: Energy::Absent,
    };
    for sensor in all(root, Processes::Started).iter().flat_map(|source| source.sensors()) {
        readable.add(sensor);
    }
    readable
}

impl Readable {
    fn add(&mut self, sensor: Described) {
        let figure = match sensor.quantity {
            Quantity::ProcessorClock => {
                self.has_processor_clock = true;
                return;
            }
            Quantity::PackageEnergy if sensor.is_forbidden => {
                self.processor_energy = Energy::Forbidden;
                return;
            }
            Quantity::PackageEnergy => {
                self.processor_energy = Energy::Readable;
                return;
            }
            Quantity::DeviceClock => "clock",
            Quantity::DevicePower => "power",
            Quantity::DeviceEnergy => "energy",
            Quantity::DeviceMemory => "memory",
            _ => return,
        };
        // As reports call it.
        let name = format!("GPU {} {}", sensor.device, sensor.name).trim_end().to_owned();
        match self.devices.iter_mut().find(|(known, _)| *known == name) {
            Some((_, figures)) => figures.push(figure),
            None => self.devices.push((name, vec![figure])),
        }
    }
}

/// Reads now, then again and again, and once more when it is over.
fn read(mut turns: Turns, into: &Mutex<Samples>, is_over: &Receiver<()>) {
    let sensors = turns.sensors();
    if sensors.iter().all(|sensor| sensor.is_forbidden) {
        return;
    }
    lock(into).begin(sensors, EVERY);
    loop {
        let values = turns.read();
        let every = lock(into).add(now_ns(), values);
        let is_last = is_over.recv_timeout(every) == Err(RecvTimeoutError::Disconnected);
        if is_last {
            let values = turns.read_all();
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
        read(Turns::new(vec![], None), &samples, &is_over);
        assert!(cpufreq::CpuFreq::below(root.path()).is_none());
        assert!(rapl::Rapl::below(root.path()).is_none());
        assert!(lock(&samples).is_empty());
        drop(until);
    }

    #[test]
    fn what_can_be_read_is_told() {
        let sensor = |quantity, name: &str, is_forbidden| Described {
            quantity,
            device: 0,
            name: name.to_owned(),
            is_forbidden,
        };
        let mut readable = readable(tempfile::tempdir().unwrap().path());
        readable.devices.clear();
        assert_eq!(
            (readable.has_processor_clock, readable.processor_energy),
            (false, Energy::Absent)
        );
        readable.add(sensor(Quantity::DeviceClock, "A", false));
        readable.add(sensor(Quantity::DeviceMemoryClock, "A", false));
        readable.add(sensor(Quantity::DevicePower, "A", false));
        readable.add(sensor(Quantity::PackageEnergy, "package-0", true));
        assert_eq!(readable.devices, [("GPU 0 A".to_owned(), vec!["clock", "power"])]);
        assert_eq!(readable.processor_energy, Energy::Forbidden);
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
        read(Turns::new(vec![Box::new(source)], None), &samples, &is_over);
        assert_eq!(lock(&samples).rows(), 2);
    }
}
