//! What the two sides were: versions, the model, settings, and how the work was placed.

use crate::model_facts::{model_facts, most_threads};
use crate::phases::{PhaseKind, Phases, phases};
use crate::statistics::median;
use ggprof_trace::{
    Backend, Coverage, Covered, CoveredHow, CoveredWhy, DeviceType, EventId, EventKind, GraphRunId,
    Quantity, Signature, Trace,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Figures that are measured differ a little from run to run: the part of them that says nothing.
const SAME_FIGURE: f64 = 0.02;

/// Something that may differ between two sides.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setting {
    Program,
    Ggml,
    Commit,
    /// The libllama that came with it.
    Llama,
    /// The backends for processors, which come in variants.
    Variants,
    System,
    Processor,
    Devices,
    Drivers,
    /// How ops and kernels were observed: some ways cost more, or see something else.
    Recorded,
    Threads,
    Layers,
    Embedding,
    Vocabulary,
    Quantisation,
    CacheOfKeys,
    CacheOfValues,
    FlashAttention,
    /// Splits of a graph run.
    Splits(PhaseKind),
    /// Ops of a graph run on a backend.
    Ops(PhaseKind, String),
    /// Copies of a graph run, and their bytes.
    Copies(PhaseKind),
    CopiedBytes(PhaseKind),
    /// The part of the threads' time at barriers.
    Waiting(PhaseKind),
    /// The median while a phase ran, by the name of the device.
    Clock(PhaseKind, String),
    MemoryClock(PhaseKind, String),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Text(String),
    Count(f64),
    Bytes(f64),
    Share(f64),
    Hertz(f64),
    /// In the order of their numbers.
    Observed(Vec<Observed>),
    /// There is such a thing, and how much of it was not seen.
    Unseen,
}

/// How something was observed, as [`Coverage`] has it without its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    pub subject: String,
    pub what: Covered,
    pub how: CoveredHow,
    pub why: CoveredWhy,
}

impl Observed {
    fn rank(&self) -> (u16, &str, u8, u32) {
        (self.what as u16, &self.subject, self.how as u8, self.why as u32)
    }
}

/// One of the recordings of a side.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings(BTreeMap<Setting, Value>);

/// What is not the same on both sides. `None` where a side does not tell.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    pub what: Setting,
    pub a: Option<Value>,
    pub b: Option<Value>,
}

pub fn settings(trace: &Trace) -> Settings {
    let mut settings = Settings::default();
    settings.program(trace);
    settings.model(trace);
    let phases = phases(trace);
    settings.placement(trace, &phases);
    settings.clocks(trace, &phases);
    settings
}

impl Settings {
    fn text(&mut self, what: Setting, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            self.0.insert(what, Value::Text(text));
        }
    }

    fn count(&mut self, what: Setting, count: Option<u64>) {
        count.into_iter().for_each(|it| _ = self.0.insert(what.clone(), Value::Count(it as f64)));
    }

    fn program(&mut self, trace: &Trace) {
        let list = |texts: BTreeSet<&str>| {
            texts.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(", ")
        };
        if let Some(provenance) = &trace.provenance {
            let ggml = &provenance.ggml;
            self.text(Setting::Program, &provenance.command);
            self.text(Setting::Processor, &provenance.cpu);
            self.text(Setting::Ggml, list(ggml.iter().map(|it| &*it.version).collect()));
            self.text(Setting::Commit, list(ggml.iter().map(|it| &*it.commit).collect()));
            self.text(Setting::Llama, list(ggml.iter().map(|it| &*it.llama).collect()));
            let variants = ggml.iter().flat_map(|it| &it.processors);
            self.text(Setting::Variants, list(variants.map(|it| &**it).collect()));
            self.text(Setting::System, &provenance.system);
            self.text(Setting::Drivers, list(provenance.drivers.iter().map(|it| &**it).collect()));
        }
        let devices = devices(trace);
        self.text(Setting::Devices, list(devices.iter().map(|it| &**it).collect()));
        let observed = in_order(trace.coverage.iter().filter_map(observed).collect());
        if !observed.is_empty() {
            self.0.insert(Setting::Recorded, Value::Observed(observed));
        }
        self.count(Setting::Threads, most_threads(trace).map(u64::from));
    }

    fn model(&mut self, trace: &Trace) {
        let facts = model_facts(trace);
        let number = |number: Option<i64>| number.and_then(|it| u64::try_from(it).ok());
        self.count(Setting::Layers, facts.layers);
        self.count(Setting::Embedding, number(facts.embedding));
        self.count(Setting::Vocabulary, number(facts.vocabulary));
        let types: Vec<&str> = facts.quantisation.iter().map(|(name, _)| &**name).collect();
        self.text(Setting::Quantisation, types.join(", "));
        self.text(Setting::CacheOfKeys, facts.cache_k.unwrap_or_default());
        self.text(Setting::CacheOfValues, facts.cache_v.unwrap_or_default());
        let flash = facts.flash_attention.map(|on| if on { "on" } else { "off" });
        self.text(Setting::FlashAttention, flash.unwrap_or_default());
    }

    fn placement(&mut self, trace: &Trace, phases: &Phases) {
        let mut kinds: BTreeMap<PhaseKind, Placement> = BTreeMap::new();
        for &phase in &phases.phase_of_run {
            kinds.entry(phases.phases[phase as usize].kind).or_default().runs += 1;
        }
        let mut latest = None;
        for (stretch, events) in trace.events.stretches() {
            let Some(run) = stretch.graph_run else { continue };
            let kind = phases.kind_of_run(stretch.graph_run);
            let Some(placement) = kinds.get_mut(&kind) else { continue };
            if stretch.kind == EventKind::Copy {
                placement.copies += events.len() as u64;
                let bytes = trace.events.bytes_of(events).map(u128::from);
                placement.copied_bytes += bytes.sum::<u128>();
                continue;
            }
            let split = Some((run, stretch.split, stretch.backend));
            placement.splits += u64::from(split != latest);
            latest = split;
            let label = trace.backend(stretch.backend).label();
            placement.ops.entry(label.to_owned()).or_default().add(trace, run, events.clone());
            let folds = trace.events.folds(events).into_iter().flatten();
            for fold in folds.filter(|fold| fold.threads > 0) {
                placement.busy_ns += u128::from(fold.busy_sum_ns);
                placement.wait_ns += u128::from(fold.wait_sum_ns);
            }
        }
        kinds.remove(&PhaseKind::WarmUp);
        for (kind, placement) in kinds {
            self.placed(kind, &placement);
        }
    }

    fn placed(&mut self, kind: PhaseKind, placement: &Placement) {
        let each = |number: u128| number as f64 / placement.runs.max(1) as f64;
        let splits = Value::Count(each(placement.splits.into()));
        self.0.insert(Setting::Splits(kind), splits);
        for (backend, ops) in &placement.ops {
            let seen = placement.runs.saturating_sub(ops.unseen.len() as u64);
            let value = match seen {
                0 => Value::Unseen,
                runs => Value::Count(ops.count() as f64 / runs as f64),
            };
            self.0.insert(Setting::Ops(kind, backend.clone()), value);
        }
        self.0.insert(Setting::Copies(kind), Value::Count(each(placement.copies.into())));
        self.0.insert(Setting::CopiedBytes(kind), Value::Bytes(each(placement.copied_bytes)));
        let all_ns = placement.busy_ns + placement.wait_ns;
        if all_ns > 0 {
            let share = Value::Share(placement.wait_ns as f64 / all_ns as f64);
            self.0.insert(Setting::Waiting(kind), share);
        }
    }

    fn clocks(&mut self, trace: &Trace, phases: &Phases) {
        for sensor in &trace.sensors {
            let what: fn(PhaseKind, String) -> Setting = match sensor.quantity {
                Quantity::DeviceClock | Quantity::ProcessorClock => Setting::Clock,
                Quantity::DeviceMemoryClock => Setting::MemoryClock,
                _ => continue,
            };
            let mut of_kind: BTreeMap<PhaseKind, Vec<f64>> = BTreeMap::new();
            for (&at_ns, &hertz) in sensor.times_ns.iter().zip(&sensor.values) {
                let behind = phases.phases.partition_point(|phase| phase.start_ns <= at_ns);
                let phase = behind.checked_sub(1).map(|before| &phases.phases[before]);
                if let Some(phase) = phase.filter(|phase| at_ns < phase.end_ns) {
                    of_kind.entry(phase.kind).or_default().push(hertz as f64);
                }
            }
            of_kind.remove(&PhaseKind::WarmUp);
            for (kind, values) in of_kind {
                self.0.insert(what(kind, sensor.name.clone()), Value::Hertz(median(&values)));
            }
        }
    }
}

/// Those that computed. Two cards of different makes may both be `CUDA0`.
fn devices(trace: &Trace) -> BTreeSet<String> {
    let used: BTreeSet<u16> =
        trace.events.stretches().map(|(stretch, _)| stretch.backend.0).collect();
    let name = |backend: &Backend| match &*backend.description {
        make if !make.is_empty() && backend.device_type != DeviceType::Cpu => {
            format!("{} ({make})", backend.label())
        }
        _ => backend.label().to_owned(),
    };
    used.into_iter().map(|at| name(&trace.backends[usize::from(at)])).collect()
}

/// If it is about ops or kernels. Of the reasons only those count that make ops cost less or more.
fn observed(coverage: &Coverage) -> Option<Observed> {
    let is_meant = matches!(coverage.what, Covered::Ops | Covered::Kernels);
    let why = match coverage.why {
        told @ (CoveredWhy::InSamples | CoveredWhy::WholeSplitsOnly) => told,
        _ => CoveredWhy::Untold,
    };
    let Coverage { what, how, .. } = *coverage;
    let subject = coverage.subject.clone();
    (is_meant && coverage.is_observed()).then_some(Observed { subject, what, how, why })
}

fn in_order(mut observed: Vec<Observed>) -> Vec<Observed> {
    observed.sort_by(|one, other| one.rank().cmp(&other.rank()));
    observed.dedup();
    observed
}

/// Splits, ops by backend and copies of a graph run in phases of a kind.
pub fn placement(trace: &Trace, phases: &Phases, wanted: PhaseKind) -> Vec<(Setting, f64)> {
    let mut settings = Settings::default();
    settings.placement(trace, phases);
    let is_meant = |what: &Setting| match what {
        Setting::Splits(kind) | Setting::Ops(kind, _) | Setting::Copies(kind) => *kind == wanted,
        _ => false,
    };
    let meant = settings.0.into_iter().filter(|(what, _)| is_meant(what));
    meant.filter_map(|(what, value)| Some((what, value.number()?))).collect()
}

/// What the graph runs of a kind of phase come to.
#[derive(Default)]
struct Placement {
    runs: u64,
    splits: u64,
    copies: u64,
    copied_bytes: u128,
    /// Of each backend, by its name.
    ops: BTreeMap<String, Ops>,
    busy_ns: u128,
    wait_ns: u128,
}

/// The ops of a backend. Those of a split that was timed as a whole are not seen, so runs with such a split
/// tell nothing of how many there are.
#[derive(Default)]
struct Ops {
    of_run: BTreeMap<GraphRunId, u64>,
    unseen: BTreeSet<GraphRunId>,
}

impl Ops {
    fn add(&mut self, trace: &Trace, run: GraphRunId, events: Range<u32>) {
        let node = trace.events.get(EventId(events.start)).node;
        if trace.op_name(node) == Signature::WHOLE_SPLIT {
            self.unseen.insert(run);
        }
        *self.of_run.entry(run).or_default() += events.len() as u64;
    }

    /// Of the runs in which all were seen.
    fn count(&self) -> u64 {
        let seen = self.of_run.iter().filter(|(run, _)| !self.unseen.contains(*run));
        seen.map(|(_, count)| count).sum()
    }
}

/// What differs, of the medians of each side.
pub fn differences(a: &[Settings], b: &[Settings]) -> Vec<Difference> {
    let all: BTreeSet<&Setting> = a.iter().chain(b).flat_map(|it| it.0.keys()).collect();
    let difference = |what: &Setting| {
        let (a, b) = (of_side(a, what), of_side(b, what));
        // What only one side has is nothing on the other where it is a number of things.
        let (a, b) = match what {
            Setting::Ops(..) => (a.or(Some(Value::Count(0.0))), b.or(Some(Value::Count(0.0)))),
            _ => (a, b),
        };
        let differs = match (&a, &b) {
            (Some(Value::Unseen), _) | (_, Some(Value::Unseen)) => false,
            (Some(a), Some(b)) => !a.is_like(b),
            // A phase that only one side has is told elsewhere.
            (one, other) => what.is_of_the_whole() && one.is_some() != other.is_some(),
        };
        differs.then(|| Difference { what: what.clone(), a, b })
    };
    all.into_iter().filter_map(difference).collect()
}

impl Setting {
    fn is_of_the_whole(&self) -> bool {
        *self < Self::Splits(PhaseKind::WarmUp)
    }
}

impl Value {
    /// Whether two are the same, but for noise.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Share(a), Self::Share(b)) => (a - b).abs() <= SAME_FIGURE,
            (Self::Hertz(a), Self::Hertz(b)) | (Self::Bytes(a), Self::Bytes(b)) => {
                (a - b).abs() <= SAME_FIGURE * a.max(*b)
            }
            _ => self == other,
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Self::Text(_) | Self::Observed(_) | Self::Unseen => None,
            Self::Count(it) | Self::Bytes(it) | Self::Share(it) | Self::Hertz(it) => Some(*it),
        }
    }
}

/// The median, or all texts that recordings of a side have.
fn of_side(side: &[Settings], what: &Setting) -> Option<Value> {
    let values: Vec<&Value> = side.iter().filter_map(|settings| settings.0.get(what)).collect();
    let numbers: Vec<f64> = values.iter().filter_map(|value| value.number()).collect();
    let middle = median(&numbers);
    if values.contains(&&Value::Unseen) {
        return Some(Value::Unseen);
    }
    Some(match values.first()? {
        Value::Unseen => Value::Unseen,
        Value::Text(_) => {
            let texts: BTreeSet<&str> = values
                .iter()
                .filter_map(|value| match value {
                    Value::Text(text) => Some(&**text),
                    _ => None,
                })
                .collect();
            Value::Text(texts.into_iter().collect::<Vec<_>>().join(" or "))
        }
        Value::Observed(_) => {
            let all = values.iter().filter_map(|value| match value {
                Value::Observed(observed) => Some(observed.iter().cloned()),
                _ => None,
            });
            Value::Observed(in_order(all.flatten().collect()))
        }
        Value::Count(_) => Value::Count(middle),
        Value::Bytes(_) => Value::Bytes(middle),
        Value::Share(_) => Value::Share(middle),
        Value::Hertz(_) => Value::Hertz(middle),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::{Ggml, Provenance, text_fixture};

    /// All that a recording says of where it was made, and how.
    #[test]
    fn another_machine() {
        let made = |number: u32| {
            let mut trace = text_fixture::parse(
                "backend 0 CUDA0 gpu\nbatch 0..9 0:0+4!1\nrun 0..9 batch=0\nop CUDA0 ADD 0..9 x run=0",
            );
            trace.backends[0].description = format!("card {number}");
            trace.coverage.push(Coverage {
                subject: "CUDA0".to_owned(),
                what: Covered::Kernels,
                how: CoveredHow::ActivityRecords,
                why: [CoveredWhy::InSamples, CoveredWhy::Untold][number as usize],
                detail: String::new(),
            });
            let ggml = Ggml {
                llama: format!("libllama {number}"),
                processors: vec![format!("libggml-cpu-{number}.so")],
                ..Ggml::default()
            };
            trace.provenance = Some(Provenance {
                system: format!("system {number}"),
                drivers: vec![format!("driver {number}")],
                ggml: vec![ggml],
                ..Provenance::default()
            });
            [settings(&trace)]
        };
        let found = differences(&made(0), &made(1)).into_iter().map(|it| format!("{:?}", it.what));
        let all = ["Llama", "Variants", "System", "Devices", "Drivers", "Recorded"];
        assert_eq!(found.collect::<Vec<_>>(), all);
    }

    #[test]
    fn placement_and_copies() {
        let a = "backend 0 GPU gpu
                 backend 1 CPU cpu
                 batch 0..30 0:0+4!1
                 run 0..30 batch=0
                 op GPU MUL_MAT 0..10 Qcur-0 run=0 split=0
                 op GPU ADD 10..20 l_out-0 run=0 split=0";
        let b = "backend 0 GPU gpu
                 backend 1 CPU cpu
                 batch 0..30 0:0+4!1
                 run 0..30 batch=0
                 op GPU MUL_MAT 0..10 Qcur-0 run=0 split=0
                 copy CPU D2H 10..12 64 x run=0
                 op CPU ADD 12..20 l_out-0 run=0 split=1";
        let [a, b] = [a, b].map(|text| settings(&text_fixture::parse(text)));
        let found = differences(std::slice::from_ref(&a), &[b]);
        let found: Vec<_> = found.into_iter().map(|it| (it.what, it.a, it.b)).collect();
        let count = |count: f64| Some(Value::Count(count));
        let text = |text: &str| Some(Value::Text(text.to_owned()));
        let prompt = PhaseKind::Prompt;
        assert_eq!(
            found,
            [
                (Setting::Devices, text("GPU"), text("CPU, GPU")),
                (Setting::Splits(prompt), count(1.0), count(2.0)),
                (Setting::Ops(prompt, "CPU".to_owned()), count(0.0), count(1.0)),
                (Setting::Ops(prompt, "GPU".to_owned()), count(2.0), count(1.0)),
                (Setting::Copies(prompt), count(0.0), count(1.0)),
                (Setting::CopiedBytes(prompt), Some(Value::Bytes(0.0)), Some(Value::Bytes(64.0))),
            ]
        );
        assert_eq!(differences(std::slice::from_ref(&a), std::slice::from_ref(&a)), []);
    }

    /// Half of the runs were timed as a whole on one side, and all of them on another.
    #[test]
    fn splits_that_were_timed_as_a_whole_are_no_ops() {
        let recording = |second: &str, third: &str| {
            let ops = |run: u32, ops: &str| {
                let start = 100 * run;
                let [middle, end] = [start + 10, start + 20];
                match ops {
                    "ops" => format!(
                        "op GPU MUL_MAT {start}..{middle} Qcur-0 run={run} split=0 measured=device
                         op GPU ADD {middle}..{end} x run={run} split=0 measured=device\n"
                    ),
                    _ => {
                        format!("op GPU SPLIT {start}..{end} x run={run} split=0 measured=device\n")
                    }
                }
            };
            settings(&text_fixture::parse(&format!(
                "backend 0 GPU gpu
                 batch 0..30 0:3+1!1
                 run 0..30 batch=0
                 batch 100..130 0:4+1!1
                 run 100..130 batch=1\n{}{}",
                ops(0, second),
                ops(1, third)
            )))
        };
        let [all, half, none] =
            [("ops", "ops"), ("ops", "split"), ("split", "split")].map(|(a, b)| recording(a, b));
        assert_eq!(differences(std::slice::from_ref(&all), &[half]), []);
        assert_eq!(differences(&[all], &[none]), []);
    }
}
