//! Work of devices: stages of a GPU, each on the queue it ran on, under the kernel's name.

use super::numbers::{context, extra, interned, packet, specification, stage};
use super::packets::{Kind, Packets};
use super::pid_of;
use crate::model::{Backend, DeviceWork, Trace, WorkKind};
use ggprof_ggml::DeviceInterface;
use std::io::{self, Write};

/// Of the backends that are `here`.
pub(super) fn stages(
    trace: &Trace,
    here: &[bool],
    packets: &mut Packets<impl Write>,
) -> io::Result<()> {
    let mut is_described = vec![false; trace.backends.len()];
    for (number, work) in (1..).zip(&trace.device_work) {
        let backend = usize::from(trace.events.get(work.event).backend.0);
        if !here[backend] {
            continue;
        }
        if !std::mem::replace(&mut is_described[backend], true) {
            let of = &trace.backends[backend];
            let (api, pid) = (api(of), pid(trace, of));
            packets.describe(interned::GRAPHICS_CONTEXTS, context_of(backend), |it| {
                pid.into_iter().for_each(|pid| _ = it.number(context::PID, pid));
                it.number(context::API, api);
            });
        }
        one(trace, number, work, backend, packets)?;
    }
    Ok(())
}

fn one(
    trace: &Trace,
    number: u64,
    work: &DeviceWork,
    backend: usize,
    packets: &mut Packets<impl Write>,
) -> io::Result<()> {
    let event = trace.events.get(work.event);
    let queue = format!("{} stream {}", trace.backends[backend].label(), work.stream);
    let queue = packets.intern(Kind::Specification, &queue);
    let name = packets.intern_with(Kind::Specification, trace.text(work.name), |it| {
        if work.kind == WorkKind::Kernel {
            it.number(specification::CATEGORY, specification::COMPUTE);
        }
    });
    packets.write_at(work.start_ns, |it| {
        it.with(packet::GPU_RENDER_STAGE_EVENT, |it| {
            it.number(stage::EVENT_ID, number).number(stage::DURATION, work.duration_ns);
            it.number(stage::HW_QUEUE_IID, queue).number(stage::STAGE_IID, name);
            it.number(stage::GPU_ID, backend as u64).number(stage::CONTEXT, context_of(backend));
            let tensor = trace.tensor_name(event.node).unwrap_or_default();
            for (name, value) in [("op", trace.op_name(event.node)), ("tensor", tensor)] {
                it.with(stage::EXTRA_DATA, |it| {
                    _ = it.text(extra::NAME, name).text(extra::VALUE, value)
                });
            }
            if work.charged_ns != work.duration_ns {
                let charged = work.charged_ns.to_string();
                it.with(stage::EXTRA_DATA, |it| {
                    it.text(extra::NAME, "charged_ns").text(extra::VALUE, &charged);
                });
            }
        });
    })
}

fn pid(trace: &Trace, backend: &Backend) -> Option<u64> {
    let process = backend.process.and_then(|it| trace.processes.get(usize::from(it.0)));
    process.map_or_else(|| pid_of(trace), |process| Some(u64::from(process.pid)))
}

/// Numbers of contexts begin with 1.
fn context_of(backend: usize) -> u64 {
    backend as u64 + 1
}

/// 0 for others.
fn api(backend: &Backend) -> u64 {
    match backend.interface() {
        Some((DeviceInterface::Cuda, _)) => context::CUDA,
        Some((DeviceInterface::Vulkan, _)) => context::VULKAN,
        Some((DeviceInterface::Hip, _)) => context::HIP,
        None => 0,
    }
}
