//! The clocks of the processors, as the kernel tells them.

use super::{Described, Quantity, Source};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Of more processors so many are read, evenly chosen: on large machines all of them would take
/// a part of a millisecond each time.
const MOST: usize = 32;

#[derive(Debug)]
pub(super) struct CpuFreq {
    files: Vec<File>,
    /// The highest clock of any processor.
    limit_khz: Option<u64>,
}

impl CpuFreq {
    /// `None` where the kernel tells nothing, as in most virtual machines.
    pub(super) fn below(root: &Path) -> Option<CpuFreq> {
        let directory = root.join("sys/devices/system/cpu");
        let entries = std::fs::read_dir(directory).ok()?.flatten();
        let mut limit_khz = None;
        let mut processors: Vec<(u32, File)> = entries
            .filter_map(|entry| {
                let number = entry.file_name().to_str()?.strip_prefix("cpu")?.parse().ok()?;
                let file = File::open(entry.path().join("cpufreq/scaling_cur_freq")).ok()?;
                let limit = File::open(entry.path().join("cpufreq/cpuinfo_max_freq"));
                limit_khz = limit.ok().and_then(|file| kilohertz(&file)).max(limit_khz);
                kilohertz(&file).map(|_| (number, file))
            })
            .collect();
        processors.sort_by_key(|(number, _)| *number);
        let apart = processors.len().div_ceil(MOST).max(1);
        let files: Vec<File> =
            processors.into_iter().step_by(apart).map(|(_, file)| file).collect();
        (!files.is_empty()).then_some(CpuFreq { files, limit_khz })
    }
}

impl Source for CpuFreq {
    fn sensors(&self) -> Vec<Described> {
        let quantities = [
            Quantity::ProcessorClock,
            Quantity::LowestProcessorClock,
            Quantity::HighestProcessorClock,
            Quantity::ProcessorClockLimit,
        ];
        quantities.map(Described::of_processors).to_vec()
    }

    fn read(&mut self) -> Vec<Option<u64>> {
        let clocks: Vec<u64> = self.files.iter().filter_map(kilohertz).collect();
        let hertz = |kilohertz: u64| kilohertz.saturating_mul(1000);
        let sum = clocks.iter().fold(0, |sum: u64, clock| sum.saturating_add(*clock));
        let mean = sum.checked_div(clocks.len() as u64);
        let [lowest, highest] = [clocks.iter().min(), clocks.iter().max()];
        let clocks = [mean, lowest.copied(), highest.copied(), self.limit_khz];
        clocks.map(|clock| clock.map(hertz)).to_vec()
    }
}

fn kilohertz(file: &File) -> Option<u64> {
    let mut text = [0; 32];
    let length = file.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(&text[..length]).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn mean_lowest_and_highest_of_those_that_tell() {
        let root = tempfile::tempdir().unwrap();
        let cpus = root.path().join("sys/devices/system/cpu");
        for (name, text) in
            [("cpu0", "1000000\n"), ("cpu1", "3500000\n"), ("cpu10", "1500000\n"), ("cpu2", "?\n")]
        {
            fs::create_dir_all(cpus.join(name).join("cpufreq")).unwrap();
            fs::write(cpus.join(name).join("cpufreq/scaling_cur_freq"), text).unwrap();
            fs::write(cpus.join(name).join("cpufreq/cpuinfo_max_freq"), "4000000\n").unwrap();
        }
        fs::create_dir_all(cpus.join("cpuidle")).unwrap();
        let mut source = CpuFreq::below(root.path()).unwrap();
        let gigahertz = [2.0, 1.0, 3.5, 4.0].map(|clock| Some((clock * 1e9) as u64));
        assert_eq!(source.read(), gigahertz);
        // The same files again, as they are now.
        fs::write(cpus.join("cpu1/cpufreq/scaling_cur_freq"), "500000\n").unwrap();
        assert_eq!(source.read()[0], Some(1_000_000_000));
        assert_eq!(source.sensors().len(), source.read().len());
    }

    #[test]
    fn of_many_processors_some_are_read() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..100 {
            let place = root.path().join(format!("sys/devices/system/cpu/cpu{number}/cpufreq"));
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join("scaling_cur_freq"), number.to_string()).unwrap();
        }
        let mut source = CpuFreq::below(root.path()).unwrap();
        assert_eq!(source.files.len(), 25);
        assert_eq!(source.read()[2], Some(96_000));
    }
}
