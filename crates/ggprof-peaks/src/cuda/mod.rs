//! CUDA devices, through their driver.

mod driver;
mod kernels;

use crate::passes;
use driver::{Attribute, Context, Device, Driver};
use ggprof_analysis::peaks::{
    ComputeRate, CopyRate, DeviceApi, DevicePeaks, HostMemory, LinkDirection,
};
use kernels::Products;
use std::time::{Duration, Instant};

const GIGABYTE: usize = 1 << 30;
/// Much more than any cache holds.
const READ_BYTES: usize = 4 * GIGABYTE;
const COPY_BYTES: usize = GIGABYTE / 4;
/// A share of the free memory, so that a program that runs meanwhile keeps going.
const OF_FREE_MEMORY: usize = 4;
/// In a block of the kernel that reads, and of these for each multiprocessor: all that fit.
const READ_SHAPE: (u32, u32) = (256, 8);
/// Of a kernel that multiplies: some hundred microseconds.
const TURNS: u64 = 4096;
/// How long a pass takes: starting and waiting are no visible part of it.
const PASS: Duration = Duration::from_millis(20);
const ALL_PASSES: Duration = Duration::from_millis(400);

/// Every device of the driver, and a sentence if the driver does not work; nothing without a driver.
pub(crate) fn measure(say: &dyn Fn(&str)) -> (Vec<DevicePeaks>, Vec<String>) {
    match Driver::load() {
        None => (Vec::new(), Vec::new()),
        Some(Err(why)) => (Vec::new(), vec![format!("CUDA: {why}")]),
        Some(Ok(driver)) => match driver.devices() {
            Err(why) => (Vec::new(), vec![format!("CUDA: {why}")]),
            Ok(devices) => {
                let one = |(number, device)| of_device(&driver, device, number, say);
                ((0..).zip(devices).map(one).collect(), Vec::new())
            }
        },
    }
}

fn of_device(driver: &Driver, device: Device, number: u32, say: &dyn Fn(&str)) -> DevicePeaks {
    let mut peaks = DevicePeaks {
        api: DeviceApi::Cuda,
        number,
        name: driver.name(device).unwrap_or_default(),
        read_bytes_per_s: None,
        copies: Vec::new(),
        compute: Vec::new(),
        missing: Vec::new(),
    };
    if let Err(why) = fill_in(&mut peaks, driver, device, say) {
        peaks.missing.push(why);
    }
    peaks
}

fn fill_in(
    peaks: &mut DevicePeaks,
    driver: &Driver,
    device: Device,
    say: &dyn Fn(&str),
) -> Result<(), String> {
    let who = format!("CUDA{} ({})", peaks.number, peaks.name);
    let bench = Bench {
        context: &driver.enter(device)?,
        multiprocessors: driver.attribute(device, Attribute::Multiprocessors)?,
        capability: (
            driver.attribute(device, Attribute::CapabilityMajor)?,
            driver.attribute(device, Attribute::CapabilityMinor)?,
        ),
    };
    say(&format!("{who}: reading memory"));
    match bench.read_rate() {
        Ok(rate) => peaks.read_bytes_per_s = Some(rate),
        Err(why) => peaks.missing.push(format!("reading: {why}")),
    }
    say(&format!("{who}: copying"));
    if let Err(why) = bench.copy_rates(&mut peaks.copies) {
        peaks.missing.push(format!("copying: {why}"));
    }
    for products in kernels::PRODUCTS.iter().filter(|products| bench.has(products)) {
        say(&format!("{who}: multiplying by {}", products.by));
        match bench.compute_rate(products) {
            Ok(rate) => peaks.compute.push(rate),
            Err(why) => peaks.missing.push(format!("multiplying by {}: {why}", products.by)),
        }
    }
    Ok(())
}

struct Bench<'c> {
    context: &'c Context<'c>,
    multiprocessors: u32,
    capability: (u32, u32),
}

impl Bench<'_> {
    fn has(&self, products: &Products) -> bool {
        (products.from..products.below).contains(&self.capability)
    }

    fn read_rate(&self) -> Result<f64, String> {
        let (threads, blocks) = (READ_SHAPE.0, READ_SHAPE.1 * self.multiprocessors);
        // All threads take the same number of turns.
        let turn = kernels::READ_PER_TURN * u64::from(threads) * u64::from(blocks);
        let wanted = READ_BYTES.min(self.context.free_bytes()? / OF_FREE_MEMORY) as u64;
        let bytes = (wanted / turn).max(1) * turn;
        let memory = self.context.allocate(bytes as usize)?;
        let kernel = self.context.compile(kernels::READ)?;
        let seconds = self.seconds_of(|| {
            // SAFETY: it reads as many quadruples from the beginning of the memory, and writes
            // nothing, because zeros do not sum up to the number it looks for.
            unsafe { kernel.launch((blocks, threads), memory.address, bytes / 16) }
        })?;
        Ok(bytes as f64 / seconds)
    }

    fn copy_rates(&self, rates: &mut Vec<CopyRate>) -> Result<(), String> {
        let bytes = COPY_BYTES.min(self.context.free_bytes()? / OF_FREE_MEMORY);
        let on_device = self.context.allocate(bytes)?;
        let mut pinned = self.context.allocate_pinned(bytes)?;
        // Written, so that its pages exist.
        let mut pageable = vec![1u8; bytes];
        let host = [(HostMemory::Pinned, pinned.bytes()), (HostMemory::Pageable, &mut pageable)];
        for (memory, host) in host {
            let seconds = self.seconds_of(|| self.context.to_device(&on_device, host))?;
            let direction = LinkDirection::HostToDevice;
            rates.push(CopyRate { direction, memory, bytes_per_s: bytes as f64 / seconds });
            let seconds = self.seconds_of(|| self.context.to_host(host, &on_device))?;
            let direction = LinkDirection::DeviceToHost;
            rates.push(CopyRate { direction, memory, bytes_per_s: bytes as f64 / seconds });
        }
        Ok(())
    }

    fn compute_rate(&self, products: &Products) -> Result<ComputeRate, String> {
        let kernel = self.context.compile(products.text)?;
        let never = self.context.allocate(16)?;
        let blocks = products.blocks * self.multiprocessors;
        let seconds = self.seconds_of(|| {
            // SAFETY: it writes one number at most, to memory that is there.
            unsafe { kernel.launch((blocks, products.threads), never.address, TURNS) }
        })?;
        let warps = u64::from(blocks * products.threads / 32);
        let ops = (warps * TURNS * products.ops_per_turn) as f64;
        let (operands, by) = (products.operands, products.by.to_owned());
        Ok(ComputeRate { operands, by, ops_per_s: ops / seconds })
    }

    /// Seconds that one call takes, if enough of them follow each other.
    fn seconds_of(&self, mut call: impl FnMut() -> Result<(), String>) -> Result<f64, String> {
        // The first call loads the kernel.
        call()?;
        self.context.synchronize()?;
        let start = Instant::now();
        call()?;
        self.context.synchronize()?;
        let calls = (PASS.as_secs_f64() / start.elapsed().as_secs_f64()).ceil().clamp(1.0, 1e4);
        let seconds = passes::shortest(ALL_PASSES, || {
            (0..calls as u32).try_for_each(|_| call())?;
            self.context.synchronize()
        })?;
        Ok(seconds / calls)
    }
}
