//! What the machine runs on: its operating system and the drivers of its devices; and how well it knows the
//! time of day.

use super::tables::Tables;
use crate::model::DayClock;
use ggprof_spool::layout::{MACHINE_DAY_CLOCK, MACHINE_DRIVER, MACHINE_SYSTEM};
use std::collections::BTreeSet;

pub(super) fn system(tables: &Tables) -> String {
    told(tables, MACHINE_SYSTEM).next().unwrap_or_default()
}

pub(super) fn day_clock(tables: &Tables) -> DayClock {
    match told(tables, MACHINE_DAY_CLOCK).next().as_deref() {
        None => DayClock::NotAsked,
        Some(text) => text
            .parse::<u64>()
            .map_or(DayClock::Free, |us| DayClock::Within(us.saturating_mul(1000))),
    }
}

/// Those that whoever started the program knows, then Vulkan's.
pub(super) fn drivers(tables: &Tables) -> Vec<String> {
    let of_vulkan: BTreeSet<String> = tables
        .drivers
        .values()
        .filter_map(|driver| {
            let device = tables.text(tables.backends.get(&driver.backend)?.device);
            Some(format!("{device} {}", version(driver.version)))
        })
        .collect();
    told(tables, MACHINE_DRIVER).chain(of_vulkan).collect()
}

fn told(tables: &Tables, what: u8) -> impl Iterator<Item = String> {
    tables.machine.iter().filter(move |(of, _)| *of == what).map(|(_, text)| text.clone())
}

/// NVIDIA's drivers divide the number in their own way. They are told by their high versions, because
/// Mesa has a driver for the same devices.
fn version(number: u32) -> String {
    const LOWEST_OF_NVIDIA: u32 = 300;
    let major = number >> 22;
    if major >= LOWEST_OF_NVIDIA {
        format!("{major}.{}.{:02}", number >> 14 & 0xff, number >> 6 & 0xff)
    } else {
        format!("{major}.{}.{}", number >> 12 & 0x3ff, number & 0xfff)
    }
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn versions_as_the_makers_write_them() {
        assert_eq!(version(25 << 22 | 2 << 12 | 1), "25.2.1");
        assert_eq!(version(550 << 22 | 90 << 14 | 7 << 6), "550.90.07");
    }
}
