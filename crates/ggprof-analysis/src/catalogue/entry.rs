//! What a catalogue keeps of a recording: who made it, of what, on what, and how fast each phase was.

use crate::hosts::{Hosts, devices};
use crate::model_facts::{model_facts, most_threads};
use crate::phases::{PhaseGroup, PhaseKind, phases};
use ggprof_trace::{Ggml, Trace};
use serde::{Deserialize, Serialize};

/// A recording with more different phases than this, such as that of a server, is kept by kinds of
/// phases; as in the summary.
pub(super) const MOST_LENGTHS: usize = 8;

/// Texts are empty where they are not known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CatalogueEntry {
    /// What tables call the recording, by its contents.
    pub recording: String,
    pub recorded_at_unix_ns: Option<u64>,
    /// Without folder and arguments.
    pub program: String,
    pub cpu: String,
    /// Those that computed.
    pub devices: String,
    pub ggml_version: String,
    pub ggml_commit: String,
    /// The file of libllama, without its folder.
    pub llama: String,
    pub model: Model,
    pub threads: Option<u32>,
    pub ops: u64,
    /// Nothing was lost or damaged.
    pub is_complete: bool,
    pub speeds: Vec<Speed>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Model {
    pub layers: Option<u64>,
    pub embedding: Option<i64>,
    pub weight_bytes: Option<u64>,
    /// Type of most of the weights.
    pub quantisation: Option<String>,
    pub cache_k: Option<String>,
    pub cache_v: Option<String>,
    pub flash_attention: Option<bool>,
}

/// How fast phases of one name were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// As llama-bench calls it; empty for phases of several lengths.
    pub label: String,
    pub kind: PhaseKind,
    /// Kind and tokens are guessed from shapes.
    pub is_guess: bool,
    pub repetitions: u64,
    /// Of all repetitions.
    pub tokens: u64,
    /// Mean of the repetitions.
    pub tokens_per_s: f64,
    /// Of the repetitions, if there are several.
    pub deviation: Option<f64>,
}

/// What to keep of a recording that tables know by this name.
pub fn entry(trace: &Trace, recording: String) -> CatalogueEntry {
    let provenance = trace.provenance.clone().unwrap_or_default();
    let ggml = |fact: fn(&Ggml) -> &String| -> String {
        let values: Vec<&str> = provenance.ggml.iter().map(|ggml| fact(ggml).as_str()).collect();
        values.into_iter().find(|value| !value.is_empty()).unwrap_or_default().to_owned()
    };
    CatalogueEntry {
        recording,
        recorded_at_unix_ns: Some(provenance.recorded_at_unix_ns).filter(|&at| at > 0),
        program: file_name(&provenance.command),
        cpu: provenance.cpu.clone(),
        devices: devices(trace, &Hosts::of(trace)).join(" + "),
        ggml_version: ggml(|it| &it.version),
        ggml_commit: ggml(|it| &it.commit),
        llama: file_name(&ggml(|it| &it.llama)),
        model: model(trace),
        threads: most_threads(trace),
        ops: trace.events.iter().filter(|event| event.is_op()).count() as u64,
        is_complete: trace.losses.is_empty() && !trace.events.is_empty(),
        speeds: speeds(trace),
    }
}

fn file_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

fn model(trace: &Trace) -> Model {
    let facts = model_facts(trace);
    Model {
        layers: facts.layers,
        embedding: facts.embedding,
        weight_bytes: facts.weight_bytes,
        quantisation: facts.quantisation.into_iter().next().map(|(name, _)| name),
        cache_k: facts.cache_k,
        cache_v: facts.cache_v,
        flash_attention: facts.flash_attention,
    }
}

fn speeds(trace: &Trace) -> Vec<Speed> {
    let phases = phases(trace);
    let mut groups = phases.label_groups();
    groups.retain(|group| group.tokens_per_second.is_some());
    if groups.len() <= MOST_LENGTHS {
        let labelled = |group: &PhaseGroup| speed(group, group.first_label.clone());
        return groups.iter().filter_map(labelled).collect();
    }
    let mut kinds: Vec<PhaseKind> = groups.iter().map(|group| group.sum.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let sums = kinds.into_iter().filter_map(|kind| phases.sum(kind));
    sums.filter_map(|group| speed(&group, String::new())).collect()
}

fn speed(group: &PhaseGroup, label: String) -> Option<Speed> {
    let (tokens_per_s, deviation) = group.tokens_per_second?;
    Some(Speed {
        label,
        kind: group.sum.kind,
        is_guess: group.sum.is_guess,
        repetitions: group.count,
        tokens: group.sum.tokens,
        tokens_per_s,
        deviation: Some(deviation).filter(|_| group.count > 1),
    })
}

impl Model {
    /// What tells models apart: recordings do not know their names.
    pub fn name(&self) -> String {
        let size = match (self.layers, self.embedding) {
            (Some(layers), Some(embedding)) => Some(format!("{layers} layers x {embedding}")),
            (Some(layers), None) => Some(format!("{layers} layers")),
            _ => None,
        };
        let weights = match (self.weight_bytes, &self.quantisation) {
            (Some(bytes), Some(name)) => Some(format!("{} {name}", megabytes(bytes))),
            (_, name) => name.clone(),
        };
        let parts: Vec<String> = [size, weights].into_iter().flatten().collect();
        parts.join(", ")
    }

    /// What else of it makes a difference, and can be chosen.
    pub fn cache(&self) -> String {
        let types = match (&self.cache_k, &self.cache_v) {
            (Some(k), Some(v)) if k == v => Some(k.clone()),
            (Some(k), Some(v)) => Some(format!("{k}/{v}")),
            (k, v) => k.clone().or_else(|| v.clone()),
        };
        let flash = self.flash_attention.filter(|&on| on).map(|_| "flash attention".to_owned());
        let parts: Vec<String> = [types, flash].into_iter().flatten().collect();
        parts.join(", ")
    }
}

fn megabytes(bytes: u64) -> String {
    match bytes {
        0..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    /// One prompt after the other, each of another length.
    fn prompts(count: u64) -> Trace {
        let mut text = "backend 0 CPU cpu\n".to_owned();
        for at in 0..count {
            let (start, end) = (at * 100, at * 100 + 50);
            text += &format!("batch {start}..{end} {at}:0+{}!1\n", at + 2);
        }
        for at in 0..count {
            let (start, end) = (at * 100, at * 100 + 50);
            text += &format!("run {start}..{end} batch={at}\n");
        }
        for at in 0..count {
            let (start, end) = (at * 100, at * 100 + 50);
            text += &format!("op CPU ADD {start}..{end} x run={at}\n");
        }
        text_fixture::parse(&text)
    }

    #[test]
    fn few_lengths_are_kept_and_many_are_summed_up() {
        let few = entry(&prompts(2), "id".to_owned());
        let found: Vec<(&str, f64)> =
            few.speeds.iter().map(|it| (it.label.as_str(), it.tokens_per_s)).collect();
        assert_eq!(found, [("pp2", 2.0 * 1e9 / 50.0), ("pp3", 3.0 * 1e9 / 50.0)]);
        let many = entry(&prompts(9), "id".to_owned());
        let [all] = &many.speeds[..] else { panic!("{many:?}") };
        assert_eq!((all.label.as_str(), all.repetitions, all.tokens), ("", 9, 54));
        assert!((all.tokens_per_s - 6.0 * 1e9 / 50.0).abs() < 1.0 && all.deviation.is_some());
    }

    #[test]
    fn what_models_are_called() {
        let model = Model {
            layers: Some(16),
            embedding: Some(2048),
            weight_bytes: Some(1_230_000_000),
            quantisation: Some("q4_0".to_owned()),
            cache_k: Some("f16".to_owned()),
            cache_v: Some("q8_0".to_owned()),
            flash_attention: Some(true),
        };
        assert_eq!(model.name(), "16 layers x 2048, 1.23 GB q4_0");
        assert_eq!(model.cache(), "f16/q8_0, flash attention");
        assert_eq!(Model::default().name() + &Model::default().cache(), "");
    }
}
