//! The energy that processor packages have used, as the kernel tells it: a counter for each, which
//! begins again when it is full. Most systems let only their administrator read it.

use super::{Described, Quantity, Source};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;

#[derive(Debug)]
pub(super) struct Rapl {
    packages: Vec<Package>,
}

#[derive(Debug)]
struct Package {
    number: u32,
    name: String,
    /// `None` where it may not be read.
    counter: Option<Counter>,
}

#[derive(Debug)]
struct Counter {
    file: File,
    /// What it shows at most, before it begins again.
    range_uj: u64,
    last_uj: Option<u64>,
    /// Since the first reading.
    sum_uj: u64,
}

impl Rapl {
    /// `None` where there is no such counter, as in most virtual machines.
    pub(super) fn below(root: &Path) -> Option<Rapl> {
        let entries = fs::read_dir(root.join("sys/class/powercap")).ok()?.flatten();
        let mut packages: Vec<Package> = entries
            .filter_map(|entry| {
                // Parts of a package have two numbers, and are counted in it.
                let name = entry.file_name();
                let number = name.to_str()?.strip_prefix("intel-rapl:")?.parse().ok()?;
                Package::at(number, &entry.path())
            })
            .collect();
        packages.sort_by_key(|package| package.number);
        (!packages.is_empty()).then_some(Rapl { packages })
    }
}

impl Package {
    fn at(number: u32, directory: &Path) -> Option<Package> {
        let name = fs::read_to_string(directory.join("name")).unwrap_or_default();
        let counter = match File::open(directory.join("energy_uj")) {
            Ok(file) => {
                let range = fs::read_to_string(directory.join("max_energy_range_uj")).ok();
                let range_uj = range.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
                Some(Counter { file, range_uj, last_uj: None, sum_uj: 0 })
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => None,
            Err(_) => return None,
        };
        Some(Package { number, name: name.trim().to_owned(), counter })
    }
}

impl Counter {
    fn read(&mut self) -> Option<u64> {
        let mut text = [0; 32];
        let length = self.file.read_at(&mut text, 0).ok()?;
        let now: u64 = std::str::from_utf8(&text[..length]).ok()?.trim().parse().ok()?;
        let used = self.last_uj.map_or(0, |last| match now.checked_sub(last) {
            Some(used) => used,
            None => (self.range_uj.saturating_sub(last)).saturating_add(now),
        });
        self.last_uj = Some(now);
        self.sum_uj = self.sum_uj.saturating_add(used);
        Some(self.sum_uj)
    }
}

impl Source for Rapl {
    fn sensors(&self) -> Vec<Described> {
        let sensor = |package: &Package| Described {
            quantity: Quantity::PackageEnergy,
            device: package.number,
            name: package.name.clone(),
            is_forbidden: package.counter.is_none(),
        };
        self.packages.iter().map(sensor).collect()
    }

    fn read(&mut self) -> Vec<Option<u64>> {
        let packages = self.packages.iter_mut();
        packages.map(|package| package.counter.as_mut().and_then(Counter::read)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn energy_adds_up_over_the_end_of_the_counter() {
        let root = tempfile::tempdir().unwrap();
        let package = root.path().join("sys/class/powercap/intel-rapl:0");
        fs::create_dir_all(&package).unwrap();
        let part = root.path().join("sys/class/powercap/intel-rapl:0:0");
        fs::create_dir_all(&part).unwrap();
        fs::write(part.join("energy_uj"), "1").unwrap();
        fs::write(package.join("name"), "package-0\n").unwrap();
        fs::write(package.join("max_energy_range_uj"), "1000\n").unwrap();
        fs::write(package.join("energy_uj"), "900\n").unwrap();
        let mut source = Rapl::below(root.path()).unwrap();
        assert_eq!(source.sensors()[0].name, "package-0");
        assert_eq!(source.read(), [Some(0)]);
        for (counter, sum) in [("950", 50), ("30", 130), ("30", 130)] {
            fs::write(package.join("energy_uj"), counter).unwrap();
            assert_eq!(source.read(), [Some(sum)]);
        }
    }

    /// Root reads everything, so that a counter that may not be read is made here.
    #[test]
    fn what_may_not_be_read_is_told() {
        let package = Package { number: 0, name: "package-0".into(), counter: None };
        let mut source = Rapl { packages: vec![package] };
        assert!(source.sensors()[0].is_forbidden);
        assert_eq!(source.read(), [None]);
    }

    #[test]
    fn a_package_without_a_counter_is_none() {
        let root = tempfile::tempdir().unwrap();
        let powercap = root.path().join("sys/class/powercap");
        fs::create_dir_all(&powercap).unwrap();
        symlink("nowhere", powercap.join("intel-rapl:0")).unwrap();
        assert!(Rapl::below(root.path()).is_none());
    }
}
