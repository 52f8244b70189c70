//! The words for what is compared.

use super::phases::kind_name;
use crate::coverage_words;
use ggprof_analysis::PhaseKind;
use ggprof_analysis::diff::{Activity, DiffRow, Key, Match, Observed, PhaseName, Setting};
use ggprof_trace::{CoveredWhy, Shape, shape_text};
use std::collections::BTreeSet;

/// llama-bench's words, or the kind in its short form.
/// `tg64`, or `tg` for all of its kind.
pub fn phase(name: &PhaseName) -> String {
    name.label.clone().unwrap_or_else(|| short_kind(name.kind).to_owned())
}

pub(super) fn short_kind(kind: PhaseKind) -> &'static str {
    match kind {
        PhaseKind::Prompt => "pp",
        PhaseKind::Generation => "tg",
        PhaseKind::Encoding => "enc",
        PhaseKind::Graph => "graphs",
        PhaseKind::WarmUp | PhaseKind::Mixed | PhaseKind::Draft => kind_name(kind),
    }
}

/// What is done once per unit of time.
pub(super) fn unit(kind: PhaseKind) -> &'static str {
    if kind == PhaseKind::Graph { "graph run" } else { "token" }
}

/// How two sides were matched; nothing where all is the same.
pub(super) fn matched(how: Match) -> &'static str {
    match how {
        Match::Same => "",
        Match::OtherKernel => "other kernel",
        Match::OtherModule => "other name",
        Match::OtherBackend => "other backend",
        Match::OtherTypes => "other types",
        Match::OtherShape => "other shapes",
        Match::SamePart => "same part of the model",
        Match::OnlyA => "only in A",
        Match::OnlyB => "only in B",
    }
}

pub(super) fn operation(row: &DiffRow) -> String {
    match outside(row.key.activity) {
        "" => change(row, |key| key.op.clone()),
        words => words.to_owned(),
    }
}

/// What belongs to no event.
fn outside(activity: Activity) -> &'static str {
    match activity {
        Activity::Op | Activity::Copy => "",
        Activity::InRun => "between ops of a graph run",
        Activity::Waiting => "waiting for results, nothing computing",
        Activity::InCall => "in libllama, outside of graph runs",
        Activity::Program => "program between graph runs",
        Activity::Interrupted => "calls that were interrupted",
    }
}

/// `1 split, 209 ops on CPU, 2 copies`.
pub(super) fn placement(placed: &[(Setting, f64)]) -> String {
    let words = placed.iter().filter_map(|(what, number)| {
        let number = crate::units::times(*number);
        match (what, &*number) {
            (Setting::Splits(_), "1") => Some("1 split".to_owned()),
            (Setting::Splits(_), _) => Some(format!("{number} splits")),
            (Setting::Ops(_, backend), "1") => Some(format!("1 op on {backend}")),
            (Setting::Ops(_, backend), _) => Some(format!("{number} ops on {backend}")),
            (Setting::Copies(_), "0") => None,
            (Setting::Copies(_), "1") => Some("1 copy".to_owned()),
            (Setting::Copies(_), _) => Some(format!("{number} copies")),
            _ => None,
        }
    });
    words.collect::<Vec<_>>().join(", ")
}

/// `ops of CPU: GOT slot, kernels of CUDA0 in samples: activity records of the device`.
pub(super) fn observed(observed: &[Observed]) -> String {
    let words = observed.iter().map(|it| {
        let part = match it.why {
            CoveredWhy::InSamples => " in samples",
            CoveredWhy::WholeSplitsOnly => " as whole splits",
            _ => "",
        };
        let (what, how) = (coverage_words::what(it.what), coverage_words::how(it.how));
        format!("{what} of {}{part}: {how}", it.subject)
    });
    words.collect::<Vec<_>>().join(", ")
}

pub(super) fn backend(row: &DiffRow) -> String {
    change(row, |key| key.backend.clone())
}

pub(super) fn kernel(row: &DiffRow) -> String {
    change(row, |key| key.kernel.clone())
}

pub(super) fn module(row: &DiffRow) -> String {
    change(row, |key| key.module.map(|module| module.name().to_owned()))
}

/// Sources and result as people write them.
pub(super) fn shape(row: &DiffRow) -> String {
    let several = |keys: &[Key]| {
        let texts: BTreeSet<String> = keys.iter().map(tensors).collect();
        (texts.len() > 1).then(|| format!("{} shapes", texts.len()))
    };
    let one = |keys: &[Key]| keys.first().map_or_else(String::new, tensors);
    let side = |keys: &[Key]| several(keys).unwrap_or_else(|| one(keys));
    arrow(side(&row.a), side(&row.b))
}

/// What the two sides have: one text if it is the same, otherwise both.
fn change(row: &DiffRow, text: impl Fn(&Key) -> Option<String>) -> String {
    const MOST: usize = 4;
    let side = |keys: &[Key]| {
        let texts: BTreeSet<String> = keys.iter().filter_map(&text).collect();
        let more = texts.len().saturating_sub(MOST);
        let mut list: Vec<String> = texts.into_iter().take(MOST).collect();
        if more > 0 {
            list.push(format!("{more} more"));
        }
        list.join(", ")
    };
    arrow(side(&row.a), side(&row.b))
}

/// From the first to the second, if both are there and not the same.
fn arrow(a: String, b: String) -> String {
    match (a.is_empty(), b.is_empty()) {
        (true, _) => b,
        (false, true) => a,
        (false, false) if a == b => a,
        (false, false) => format!("{a} → {b}"),
    }
}

fn tensors(key: &Key) -> String {
    let shapes = key.shape.iter().flatten();
    let no_types = Vec::new();
    let types = key.types.as_ref().unwrap_or(&no_types);
    let tensor = |(at, ne): (usize, &Shape)| {
        let dimensions = shape_text::dimensions(ne);
        match types.get(at) {
            Some(name) if !dimensions.is_empty() => format!("{dimensions} {name}"),
            _ => dimensions,
        }
    };
    let mut texts: Vec<String> = shapes.enumerate().map(tensor).collect();
    let result = texts.pop().unwrap_or_default();
    texts.retain(|text| !text.is_empty());
    match (texts.is_empty(), result.is_empty()) {
        (true, _) => result,
        (false, true) => texts.join(" x "),
        (false, false) => format!("{} = {result}", texts.join(" x ")),
    }
}

/// The name of a setting, and of which phases it is.
pub(super) fn setting(what: &Setting) -> (String, &'static str) {
    let whole = |text: &str| (text.to_owned(), "");
    let of = |text: &str, kind: &PhaseKind| (text.to_owned(), short_kind(*kind));
    match what {
        Setting::Program => whole("program"),
        Setting::Ggml => whole("version of ggml"),
        Setting::Commit => whole("commit of ggml"),
        Setting::Llama => whole("libllama"),
        Setting::Variants => whole("backends for processors"),
        Setting::System => whole("system"),
        Setting::Processor => whole("processor"),
        Setting::Devices => whole("devices"),
        Setting::Drivers => whole("drivers"),
        Setting::Recorded => whole("how it was recorded"),
        Setting::Threads => whole("threads"),
        Setting::Layers => whole("layers"),
        Setting::Embedding => whole("width of the model"),
        Setting::Vocabulary => whole("vocabulary"),
        Setting::Quantisation => whole("types of the weights"),
        Setting::CacheOfKeys => whole("cache of keys"),
        Setting::CacheOfValues => whole("cache of values"),
        Setting::FlashAttention => whole("flash attention"),
        Setting::Splits(kind) => of("splits of a graph run", kind),
        Setting::Ops(kind, backend) => of(&format!("ops of a graph run on {backend}"), kind),
        Setting::Copies(kind) => of("copies of a graph run", kind),
        Setting::CopiedBytes(kind) => of("bytes copied in a graph run", kind),
        Setting::Waiting(kind) => of("threads waiting at barriers", kind),
        Setting::Clock(kind, device) => of(&format!("clock of {device}"), kind),
        Setting::MemoryClock(kind, device) => of(&format!("memory clock of {device}"), kind),
    }
}
