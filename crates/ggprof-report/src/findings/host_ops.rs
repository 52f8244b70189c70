//! Ops on the host beside a device that computes most.

use super::{InWords, SHOWN, Told};
use crate::spent_words::unit;
use crate::units;
use ggprof_analysis::findings::{HostOp, HostOps, WhichHostOps};
use ggprof_analysis::placement::{Offload, Reason};
use ggprof_analysis::uses_libllama;
use ggprof_trace::{Trace, shape_text};

impl InWords for HostOps {
    fn sentence(&self, told: &Told<'_>) -> String {
        let device = told.label(self.device);
        match &self.which {
            WhichHostOps::Layers { first, last, count, of } => {
                let layers = match (count, last - first + 1 == *count) {
                    (1, _) => format!("layer {first}{}", of_all(*of)),
                    (_, true) => format!("layers {first} to {last}{}", of_all(*of)),
                    (_, false) => format!("{count}{} layers", of_all(*of)),
                };
                format!("the CPU computes {layers} while {device} waits")
            }
            WhichHostOps::Experts { layers, of } => {
                let of = of_all(*of);
                format!("the CPU computes the experts of {layers}{of} layers while {device} waits")
            }
            WhichHostOps::Output => format!("the CPU computes the output while {device} waits"),
            WhichHostOps::Op { layers: 0 } => {
                let op = longest(told, &self.ops).unwrap_or("");
                format!("the CPU computes {op}, which belongs to no layer, while {device} waits")
            }
            WhichHostOps::Op { layers } => {
                let op = longest(told, &self.ops).unwrap_or("");
                let layers = match layers {
                    1 => "a layer".to_owned(),
                    layers => format!("{layers} layers"),
                };
                format!("the CPU computes {op} in {layers} that {device} computes otherwise")
            }
        }
    }

    fn evidence(&self, told: &Told<'_>) -> String {
        let ops = self.ops.iter().take(SHOWN).map(|op| with_reason(told, op));
        let ops: Vec<String> = ops.collect();
        let device = told.label(self.device);
        let there = self.on_device_ns.map_or_else(String::new, |ns| {
            format!("; {device} would need about {}", told.each(ns))
        });
        let around = match self.around_ns {
            0 => String::new(),
            ns => format!("; changing sides takes {}", told.each(ns)),
        };
        format!("for a {}: {}{around}{there}", unit(told.budget), ops.join(", "))
    }

    fn advice(&self, told: &Told<'_>) -> String {
        if !uses_libllama(told.trace) {
            return without_options(self, told);
        }
        match &self.which {
            // One more for the output. Where the device's layers are not seen, more than any model has.
            WhichHostOps::Layers { of, .. } => {
                format!("-ngl {} (all layers), or as many more as fit", of.map_or(999, |of| of + 1))
            }
            WhichHostOps::Experts { .. } => {
                "a smaller -ncmoe, or fewer tensors in -ot, as far as the memory goes".to_owned()
            }
            WhichHostOps::Output => "-ngl one higher: the output counts as a layer".to_owned(),
            WhichHostOps::Op { .. } => for_an_op(self, told),
        }
    }
}

fn of_all(of: Option<u32>) -> String {
    of.map_or_else(String::new, |of| format!(" of {of}"))
}

fn longest<'a>(told: &Told<'a>, ops: &[HostOp]) -> Option<&'a str> {
    ops.first().map(|op| told.trace.text(op.op))
}

/// `MUL_MAT of ffn_up-0 [4096, 14336] q8_0 x [4096] f32: 3.2 ms (its weight is in RAM)`.
fn with_reason(told: &Told<'_>, op: &HostOp) -> String {
    let trace = told.trace;
    let event = trace.events.get(op.example);
    let tensor = trace.tensor_name(event.node).unwrap_or("");
    let shape = shape_text::sources(trace.signature(event.node), &trace.types);
    let each = units::duration(op.ns as f64 / told.budget.units() as f64);
    let why = match op.reason {
        Reason::Unsupported => ", which the device does not support",
        Reason::WeightOnHost { offload: Offload::Declined, .. } => {
            ", its weight in the host's memory and the batch too small to copy that"
        }
        Reason::WeightOnHost { .. } => ", its weight in the host's memory",
        Reason::CacheOnHost { .. } => ", the cache in the host's memory",
        _ => "",
    };
    format!("{} ({tensor} {shape}{why}) {each}", trace.text(op.op))
}

/// What to do where nobody knows what it is called.
fn without_options(found: &HostOps, told: &Told<'_>) -> String {
    let device = told.label(found.device);
    let op = longest(told, &found.ops).unwrap_or("this");
    match found.ops.first().map_or(Reason::Unknown, |op| op.reason) {
        Reason::Unsupported => {
            format!(
                "another type or shape of what {op} computes, or a newer build: {device} does not support this one"
            )
        }
        Reason::CacheOnHost { .. } => {
            format!(
                "keep the cache in the memory of {device}: the program chooses that where it makes it"
            )
        }
        Reason::WeightOnHost { .. } => {
            format!(
                "put the weight into the memory of {device}: the program chooses that where it loads the model"
            )
        }
        _ => format!(
            "let {device} compute {op}, too: the program chooses that where it loads the model"
        ),
    }
}

fn for_an_op(found: &HostOps, told: &Told<'_>) -> String {
    match found.ops.first().map_or(Reason::Unknown, |op| op.reason) {
        Reason::Unsupported => for_an_unsupported_op(found, told),
        Reason::CacheOnHost { .. } => {
            "keep the cache on the device: a larger -ngl, as it is where its layer is, and no -nkvo"
                .to_owned()
        }
        Reason::WeightOnHost { .. } => "leave its weight to the device (-ot)".to_owned(),
        _ => format!(
            "look at what the device does not support of {}; keep the cache on the device",
            longest(told, &found.ops).unwrap_or("it")
        ),
    }
}

fn for_an_unsupported_op(found: &HostOps, told: &Told<'_>) -> String {
    match longest(told, &found.ops) {
        // Every device with flash attention takes this type: the heads are what it lacks, and a quantised
        // cache needs flash attention.
        Some("FLASH_ATTN_EXT") if cache_type(told.trace, &found.ops).as_deref() == Some("f16") => {
            "-fa off: the device has no flash attention for heads of this size".to_owned()
        }
        Some("FLASH_ATTN_EXT") => {
            let is_cuda = told.trace.backend(found.device).is_cuda();
            let build = if is_cuda { "; or a build with GGML_CUDA_FA_ALL_QUANTS" } else { "" };
            format!(
                "a type of the cache that the device supports: -ctk f16 -ctv f16, or q8_0 for both{build}"
            )
        }
        Some("SET_ROWS" | "CPY" | "GET_ROWS") => {
            "a type that the device supports: -ctk f16 -ctv f16".to_owned()
        }
        Some(op) => format!("a newer build, another type, or another backend: this one lacks {op}"),
        None => String::new(),
    }
}

/// Of the keys that the first of these ops attends to.
fn cache_type(trace: &Trace, ops: &[HostOp]) -> Option<String> {
    const KEYS: u8 = 1;
    let node = trace.events.get(ops.first()?.example).node;
    let keys = trace.signature(node).sources.iter().find(|source| source.slot == KEYS)?;
    Some(trace.types.name(keys.tensor.type_id))
}
