//! What sensors of the machine said while the program ran. They are of a whole device, whoever uses
//! it.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sensor {
    pub quantity: Quantity,
    /// The system's number of the device.
    pub device: u32,
    /// Of the processes of a trace that was made of several recordings; 0 where there is one.
    #[serde(default, skip_serializing_if = "is_first")]
    pub machine: u16,
    /// The device's name.
    pub name: String,
    /// There is such a sensor, but the user may not read it.
    pub is_forbidden: bool,
    /// How far readings are apart.
    pub every_ns: u64,
    /// When it was read, in order.
    pub times_ns: Vec<u64>,
    /// One for each time.
    pub values: Vec<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Quantity {
    /// In Hz.
    DeviceClock,
    DeviceMemoryClock,
    /// In µW.
    DevicePower,
    /// In µJ, since some moment.
    DeviceEnergy,
    /// Bytes in use.
    DeviceMemory,
    /// In percent.
    DeviceUtilisation,
    /// In Hz: the mean over the processors, the lowest and the highest.
    ProcessorClock,
    LowestProcessorClock,
    HighestProcessorClock,
    /// In µJ, since some moment.
    PackageEnergy,
    /// In Hz: the highest that the clock can be set to.
    DeviceClockLimit,
    ProcessorClockLimit,
    /// How many processors the program may use.
    UsableProcessors,
    /// In µs, since some moment: time that processors worked for anybody, for the program and what it
    /// started, and time that the machine did not get from its host.
    MachineTime,
    ProgramTime,
    StolenTime,
}

impl Quantity {
    /// By the numbers of the recording file; `None` for one that is not known.
    pub fn of(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::DeviceClock,
            2 => Self::DeviceMemoryClock,
            3 => Self::DevicePower,
            4 => Self::DeviceEnergy,
            5 => Self::DeviceMemory,
            6 => Self::DeviceUtilisation,
            7 => Self::ProcessorClock,
            8 => Self::LowestProcessorClock,
            9 => Self::HighestProcessorClock,
            10 => Self::PackageEnergy,
            11 => Self::DeviceClockLimit,
            12 => Self::ProcessorClockLimit,
            13 => Self::UsableProcessors,
            14 => Self::MachineTime,
            15 => Self::ProgramTime,
            16 => Self::StolenTime,
            _ => return None,
        })
    }
}

fn is_first(machine: &u16) -> bool {
    *machine == 0
}

impl Sensor {
    /// Whether there is a value for each time, and the times are in order.
    pub fn is_whole(&self) -> bool {
        self.times_ns.len() == self.values.len() && self.times_ns.is_sorted()
    }
}
