//! What sensors of the machine said while the program ran. They are of a whole device, whoever uses
//! it, but for what the system says of one program.

use super::ProcessIndex;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sensor {
    pub quantity: Quantity,
    /// The system's number of the device.
    pub device: u32,
    /// Of the processes of a trace that was made of several recordings; 0 where there is one.
    #[serde(default, skip_serializing_if = "is_first")]
    pub machine: u16,
    /// Of which of several programs it is, if it is of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessIndex>,
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

/// What a sensor measures, by the numbers of the recording file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Quantity {
    /// In Hz.
    DeviceClock = 1,
    DeviceMemoryClock = 2,
    /// In µW.
    DevicePower = 3,
    /// In µJ, since some moment.
    DeviceEnergy = 4,
    /// Bytes in use.
    DeviceMemory = 5,
    /// In percent.
    DeviceUtilisation = 6,
    /// In Hz: the mean over the processors, the lowest and the highest.
    ProcessorClock = 7,
    LowestProcessorClock = 8,
    HighestProcessorClock = 9,
    /// In µJ, since some moment.
    PackageEnergy = 10,
    /// In Hz: the highest that the clock can be set to.
    DeviceClockLimit = 11,
    ProcessorClockLimit = 12,
    /// How many processors the program may use.
    UsableProcessors = 13,
    /// In µs, since some moment: time that processors worked for anybody, for the program and what it
    /// started, and time that the machine did not get from its host.
    MachineTime = 14,
    ProgramTime = 15,
    StolenTime = 16,
    /// In µs, since some moment, summed over processors: time in which the program's control group was not
    /// let run, because it had used up its limit.
    ThrottledTime = 17,
}

impl Quantity {
    /// By their numbers, from 1 on.
    const ALL: [Self; 17] = [
        Self::DeviceClock,
        Self::DeviceMemoryClock,
        Self::DevicePower,
        Self::DeviceEnergy,
        Self::DeviceMemory,
        Self::DeviceUtilisation,
        Self::ProcessorClock,
        Self::LowestProcessorClock,
        Self::HighestProcessorClock,
        Self::PackageEnergy,
        Self::DeviceClockLimit,
        Self::ProcessorClockLimit,
        Self::UsableProcessors,
        Self::MachineTime,
        Self::ProgramTime,
        Self::StolenTime,
        Self::ThrottledTime,
    ];

    /// Whether it is of the program, and not of the machine or one of its devices: others may have other
    /// limits.
    pub fn is_of_program(self) -> bool {
        matches!(self, Self::UsableProcessors | Self::ProgramTime | Self::ThrottledTime)
    }

    pub fn number(self) -> u8 {
        self as u8
    }

    /// `None` for a number that is not known.
    pub fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|quantity| quantity.number() == number)
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

#[cfg(test)]
mod tests {
    use super::Quantity;

    #[test]
    fn every_number_of_the_file_has_its_quantity() {
        for (number, quantity) in (1..).zip(Quantity::ALL) {
            assert_eq!((quantity.number(), Quantity::of(number)), (number, Some(quantity)));
        }
        let after = Quantity::ALL.len() as u8 + 1;
        assert_eq!([Quantity::of(0), Quantity::of(after)], [None; 2]);
    }
}
