//! What a machine can do, in tables.

use crate::document::Fact;
use crate::{Cell, Column, Document, Table};
use ggprof_analysis::Peaks;
use ggprof_analysis::peaks::{
    ComputeRate, CpuPeaks, DeviceApi, DevicePeaks, HostMemory, LinkDirection, Operands,
};

const DEVICES: [Column; 7] = [
    Column::left("device", "device", 0),
    Column::left("name", "name", 1),
    Column::right("read_gb_per_s", "reading", 0),
    Column::right("to_device_pinned_gb_per_s", "to device, pinned", 2),
    Column::right("to_device_pageable_gb_per_s", "pageable", 3),
    Column::right("to_host_pinned_gb_per_s", "to host, pinned", 2),
    Column::right("to_host_pageable_gb_per_s", "pageable", 3),
];

const THREADS: [Column; 3] = [
    Column::right("threads", "threads", 0),
    Column::right("read_gb_per_s", "reading", 0),
    Column::right("share_of_best", "of the best", 0),
];

const PRODUCTS: [Column; 4] = [
    Column::left("device", "device", 0),
    Column::left("operands", "products of", 0),
    Column::left("by", "by", 0),
    Column::right("gop_per_s", "rate", 0),
];

pub fn peaks(peaks: &Peaks) -> Document {
    let mut document = Document::default();
    let cpu = &peaks.cpu;
    document.heading("peaks", "What this machine can do");
    document.fact(
        "cpu",
        "processor",
        vec![
            Fact::new("name", Cell::text(&cpu.name), "{}"),
            Fact::new("processors", Cell::Count(cpu.processors.into()), "{} at once"),
        ],
    );
    reading(&mut document, cpu);
    devices(&mut document, &peaks.devices);
    products(&mut document, peaks);
    document
}

fn reading(document: &mut Document, cpu: &CpuPeaks) {
    let Some((best, knee)) = cpu.best_read().zip(cpu.knee()) else { return };
    let rows = cpu.read.iter().map(|rate| {
        vec![
            Cell::Count(rate.threads.into()),
            Cell::GigabytesPerSecond(rate.bytes_per_s / 1e9),
            Cell::Share(rate.bytes_per_s / best.bytes_per_s),
        ]
    });
    let threads = if knee.threads == 1 { "thread" } else { "threads" };
    let words = format!("Reading memory: no faster with more than {} {threads}", knee.threads);
    document.heading("reading", words);
    document.table(Table { key: "reading", columns: THREADS.to_vec(), rows: rows.collect() });
}

fn devices(document: &mut Document, devices: &[DevicePeaks]) {
    if devices.is_empty() {
        return;
    }
    document.heading("devices", "Devices: reading their memory, and copies");
    let gigabytes =
        |rate: Option<f64>| Cell::or_nothing(rate, |rate| Cell::GigabytesPerSecond(rate / 1e9));
    let row = |device: &DevicePeaks| {
        let copy = |direction, memory| gigabytes(device.copy_rate(direction, memory));
        vec![
            Cell::Text(label(device)),
            Cell::text(&device.name),
            gigabytes(device.read_bytes_per_s),
            copy(LinkDirection::HostToDevice, HostMemory::Pinned),
            copy(LinkDirection::HostToDevice, HostMemory::Pageable),
            copy(LinkDirection::DeviceToHost, HostMemory::Pinned),
            copy(LinkDirection::DeviceToHost, HostMemory::Pageable),
        ]
    };
    let rows = devices.iter().map(row).collect();
    document.table(Table { key: "devices", columns: DEVICES.to_vec(), rows });
    for device in devices {
        for what in &device.missing {
            document.blocks.push(crate::Block::Warning(format!("{}: {what}", label(device))));
        }
    }
}

fn products(document: &mut Document, peaks: &Peaks) {
    document.heading("products", "Multiplying and adding");
    let cpu = peaks.cpu.compute.iter().map(|rate| product("CPU".to_owned(), rate));
    let devices = peaks
        .devices
        .iter()
        .flat_map(|device| device.compute.iter().map(move |rate| product(label(device), rate)));
    let rows = cpu.chain(devices).collect();
    document.table(Table { key: "products", columns: PRODUCTS.to_vec(), rows });
}

fn product(device: String, rate: &ComputeRate) -> Vec<Cell> {
    let operands = match rate.operands {
        Operands::F32 => "f32",
        Operands::F16 => "f16",
        Operands::Int8 => "int8",
    };
    vec![
        Cell::Text(device),
        Cell::text(operands),
        Cell::text(&rate.by),
        match rate.operands {
            Operands::Int8 => Cell::GigaopsPerSecond(rate.ops_per_s / 1e9),
            _ => Cell::GigaflopsPerSecond(rate.ops_per_s / 1e9),
        },
    ]
}

/// As ggml calls it.
fn label(device: &DevicePeaks) -> String {
    match device.api {
        DeviceApi::Cuda => format!("CUDA{}", device.number),
        DeviceApi::Vulkan => format!("Vulkan{}", device.number),
    }
}
