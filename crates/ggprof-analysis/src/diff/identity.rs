//! What a recording is of, and which one it is, so that those of the same are known from one comparison to
//! the next and none of them counts twice.

use crate::model_facts::{ModelFacts, model_facts, most_threads};
use ggprof_trace::Trace;
use std::collections::BTreeSet;

/// Recordings with the same are comparable: a program with a model on a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    pub program: String,
    /// What the graphs tell of it; nothing where they do not.
    pub model: String,
    /// How the program was told to compute it, as far as that changes how much times vary.
    pub settings: String,
    /// Its processor, and the devices that computed.
    pub machine: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub origin: Origin,
    /// The same for the same recording, and hardly for another.
    pub recording: String,
}

pub fn identity(trace: &Trace) -> Identity {
    let provenance = trace.provenance.as_ref();
    let program = provenance.map(|it| it.command.clone()).unwrap_or_default();
    let facts = model_facts(trace);
    let (model, settings) = (model(&facts), settings(trace, &facts));
    let origin = Origin { program, model, settings, machine: machine(trace) };
    Identity { origin, recording: recording(trace) }
}

fn settings(trace: &Trace, facts: &ModelFacts) -> String {
    let threads = most_threads(trace).map(|threads| format!("{threads} threads"));
    let flash =
        facts.flash_attention.map(|on| if on { "flash attention" } else { "no flash attention" });
    let keys = facts.cache_k.as_ref().map(|kind| format!("keys {kind}"));
    let values = facts.cache_v.as_ref().map(|kind| format!("values {kind}"));
    let all = [threads, flash.map(str::to_owned), keys, values];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn model(facts: &ModelFacts) -> String {
    let layers = facts.layers.map(|layers| format!("{layers} layers"));
    let embedding = facts.embedding.map(|length| format!("rows of {length}"));
    let vocabulary = facts.vocabulary.map(|count| format!("{count} tokens"));
    let weights = facts.weight_bytes.map(|bytes| format!("{bytes} bytes"));
    let types: Vec<&str> = facts.quantisation.iter().map(|(name, _)| &**name).collect();
    let types = (!types.is_empty()).then(|| types.join("+"));
    let all = [layers, embedding, vocabulary, weights, types];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn machine(trace: &Trace) -> String {
    let used: BTreeSet<u16> = trace.events.stretches().map(|(it, _)| it.backend.0).collect();
    let devices = used.into_iter().map(|at| &trace.backends[usize::from(at)]);
    let named = devices.map(|device| match &*device.description {
        "" => device.device_label(),
        description => description,
    });
    let processor = trace.provenance.as_ref().map(|it| &*it.cpu);
    let all: BTreeSet<&str> = processor.into_iter().chain(named).collect();
    all.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(", ")
}

/// When and by which process it was made; or where nobody noted that, when its work began and ended by the
/// machine's clock.
fn recording(trace: &Trace) -> String {
    match &trace.provenance {
        Some(it) => format!("{}-{}", it.recorded_at_unix_ns, it.pid),
        None => {
            let (start_ns, end_ns) = trace.span_ns().unwrap_or_default();
            format!("{start_ns}-{end_ns}-{}", trace.events.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    #[test]
    fn of_the_same_and_of_others() {
        let with = |end: u32, rows: u32, device: &str, more: &str| {
            identity(&text_fixture::parse(&format!(
                "backend 0 CPU cpu {device}
                 batch 0..{end} 0:0+1!1
                 run 0..{end} batch=0
                 op CPU MUL_MAT 0..{end} Qcur-0 f32[8] <- q4_0[{rows},8] f32[{rows}] run=0 \
                 from=blk.0.attn_q.weight,x {more}"
            )))
        };
        let made = |end, rows, device| with(end, rows, device, "");
        let first = made(100, 32, "A");
        assert_eq!(made(100, 32, "A"), first);
        assert_eq!(first.origin.machine, "A");
        let later = made(110, 32, "A");
        assert!(later.origin == first.origin && later.recording != first.recording);
        assert_ne!(made(100, 64, "A").origin, first.origin, "another model");
        assert_ne!(made(100, 32, "B").origin, first.origin, "another machine");
        let threads = with(100, 32, "A", "threads=2:100:60:0");
        assert_ne!(threads.origin, first.origin, "another number of threads");
    }
}
