//! Vulkan devices, through the loader. What a device lacks is left out, with a sentence.

mod gpu;
mod instance;
mod memory;
mod pipeline;

use crate::passes;
use ash::vk;
use ggprof_analysis::peaks::{
    ComputeRate, CopyRate, DeviceApi, DevicePeaks, HostMemory, LinkDirection,
};
use gpu::Gpu;
use instance::{Instance, Physical};
use memory::{Buffer, Place};
use pipeline::{Pipeline, Products};
use std::time::{Duration, Instant};

const MEGABYTE: u64 = 1 << 20;
/// Much more than any cache holds; a device may allow less for one buffer.
const READ_BYTES: u64 = 2048 * MEGABYTE;
const COPY_BYTES: u64 = 256 * MEGABYTE;
/// A share of the device's memory that a program running meanwhile does without.
const OF_MEMORY: u64 = 8;
const READ_GROUPS: u32 = 4096;
/// Bytes that an invocation of the shader reads in a turn: four times sixteen.
const READ_PER_TURN: u64 = 64;
const READ_GROUP: u64 = 256;
const PRODUCT_GROUPS: u32 = 1024;
/// Enough that starting a shader is no part of what it takes, on a device that is a processor too.
const TURNS: u32 = 256;
const PASS: Duration = Duration::from_millis(20);
const ALL_PASSES: Duration = Duration::from_millis(400);

/// Every device of the loader, and a sentence if it does not work; nothing without a loader.
pub(crate) fn measure(say: &dyn Fn(&str)) -> (Vec<DevicePeaks>, Vec<String>) {
    let instance = match Instance::load() {
        None => return (Vec::new(), Vec::new()),
        Some(Err(why)) => return (Vec::new(), vec![format!("Vulkan: {why}")]),
        Some(Ok(instance)) => instance,
    };
    match instance.devices() {
        Err(why) => (Vec::new(), vec![format!("Vulkan: {why}")]),
        Ok(devices) => {
            let one = |(number, physical)| of_device(&instance, &physical, number, say);
            ((0..).zip(devices).map(one).collect(), Vec::new())
        }
    }
}

fn of_device(
    instance: &Instance,
    physical: &Physical,
    number: u32,
    say: &dyn Fn(&str),
) -> DevicePeaks {
    let mut peaks = DevicePeaks {
        api: DeviceApi::Vulkan,
        number,
        name: physical.name.clone(),
        read_bytes_per_s: None,
        copies: Vec::new(),
        compute: Vec::new(),
        missing: Vec::new(),
    };
    match Gpu::open(instance, physical) {
        Ok(gpu) => fill_in(&mut peaks, &gpu, say),
        Err(why) => peaks.missing.push(why),
    }
    peaks
}

fn fill_in(peaks: &mut DevicePeaks, gpu: &Gpu<'_>, say: &dyn Fn(&str)) {
    let who = format!("Vulkan{} ({})", peaks.number, peaks.name);
    say(&format!("{who}: reading memory"));
    match read_rate(gpu) {
        Ok(rate) => peaks.read_bytes_per_s = Some(rate),
        Err(why) => peaks.missing.push(format!("reading: {why}")),
    }
    say(&format!("{who}: copying"));
    if let Err(why) = copy_rates(gpu, &mut peaks.copies) {
        peaks.missing.push(format!("copying: {why}"));
    }
    for products in pipeline::products(gpu.physical) {
        say(&format!("{who}: multiplying by {}", products.by));
        match compute_rate(gpu, &products) {
            Ok(rate) => peaks.compute.push(rate),
            Err(why) => peaks.missing.push(format!("multiplying by {}: {why}", products.by)),
        }
    }
}

fn read_rate(gpu: &Gpu<'_>) -> Result<f64, String> {
    let limit = u64::from(gpu.physical.most_bytes).min(gpu.physical.memory_bytes / OF_MEMORY);
    // All invocations take the same number of turns.
    let turn = READ_PER_TURN * READ_GROUP * u64::from(READ_GROUPS);
    let bytes = READ_BYTES.min(limit) / turn * turn;
    if bytes == 0 {
        return Err("the device allows no buffer that is large enough".to_owned());
    }
    let memory = Buffer::new(gpu, bytes, Place::Device)?;
    gpu.fill(&memory)?;
    let pipeline = Pipeline::reading(gpu, &memory)?;
    let seconds = seconds_of(gpu, &|commands| {
        pipeline.dispatch(commands, READ_GROUPS, (bytes / 16) as u32);
    })?;
    Ok(bytes as f64 / seconds)
}

/// Pinned memory is what the device and the host both reach. From other memory a program has to copy
/// by itself, through such memory: that is what counts for pageable.
fn copy_rates(gpu: &Gpu<'_>, rates: &mut Vec<CopyRate>) -> Result<(), String> {
    let bytes = COPY_BYTES.min(gpu.physical.memory_bytes / OF_MEMORY);
    let on_device = Buffer::new(gpu, bytes, Place::Device)?;
    let mut shared = Buffer::new(gpu, bytes, Place::Host)?;
    let mut pageable = vec![1u8; bytes as usize];
    for direction in [LinkDirection::HostToDevice, LinkDirection::DeviceToHost] {
        let is_up = direction == LinkDirection::HostToDevice;
        let copy = |commands: vk::CommandBuffer, shared: &Buffer<'_>| match is_up {
            true => gpu.copy(commands, shared, &on_device),
            false => gpu.copy(commands, &on_device, shared),
        };
        let seconds = seconds_of(gpu, &|commands| copy(commands, &shared))?;
        let rate =
            |memory, seconds| CopyRate { direction, memory, bytes_per_s: bytes as f64 / seconds };
        rates.push(rate(HostMemory::Pinned, seconds));
        let seconds = passes::shortest(ALL_PASSES, || {
            if is_up {
                shared.bytes().copy_from_slice(&pageable);
            }
            gpu.run(&|commands| copy(commands, &shared))?;
            if !is_up {
                pageable.copy_from_slice(shared.bytes());
            }
            Ok::<(), String>(())
        })?;
        rates.push(rate(HostMemory::Pageable, seconds));
    }
    Ok(())
}

fn compute_rate(gpu: &Gpu<'_>, products: &Products) -> Result<ComputeRate, String> {
    let any = Buffer::new(gpu, MEGABYTE, Place::Device)?;
    let pipeline = Pipeline::multiplying(gpu, products, &any)?;
    let seconds = seconds_of(gpu, &|commands| {
        pipeline.dispatch(commands, PRODUCT_GROUPS, TURNS);
    })?;
    let ops = u64::from(PRODUCT_GROUPS) * u64::from(TURNS) * products.ops_per_group_and_turn;
    let (operands, by) = (products.operands, products.by.to_owned());
    Ok(ComputeRate { operands, by, ops_per_s: ops as f64 / seconds })
}

/// Seconds that some commands take, if enough of them follow each other.
fn seconds_of(gpu: &Gpu<'_>, record: &dyn Fn(vk::CommandBuffer)) -> Result<f64, String> {
    gpu.run(record)?;
    let start = Instant::now();
    gpu.run(record)?;
    let times = (PASS.as_secs_f64() / start.elapsed().as_secs_f64()).ceil().clamp(1.0, 1e4);
    let seconds = passes::shortest(ALL_PASSES, || {
        gpu.run(&|commands| (0..times as u32).for_each(|_| record(commands)))
    })?;
    Ok(seconds / times)
}
