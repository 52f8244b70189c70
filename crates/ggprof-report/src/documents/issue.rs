//! What maintainers ask for, to be pasted into an issue: facts and tables, at most sixty lines, the same
//! bytes for the same recording. No paths, arguments, names of hosts or users, which the recording
//! does not have, and no names of files and tensors, which it may have.

use super::op_string::op_strings;
use super::summary::{variants, which_model};
use super::{budget, diff_words as words, placement as placed};
use crate::caveat::caveats;
use crate::document::{Block, Fact};
use crate::{Cell, Column, Document, Table, spent_words};
use ggprof_analysis::budget::{BudgetRow, summed};
use ggprof_analysis::diff::{Diff, DiffRow, PhaseDiff, placement};
use ggprof_analysis::hosts::Hosts;
use ggprof_analysis::{
    Budget, Phases, budgets, by_shape, model_facts, most_threads, node_sums, phases, places,
};
use ggprof_trace::{DeviceType, EventKind, Signature, Trace};
use std::collections::BTreeSet;

/// Rows of each table: all of them together stay below sixty lines.
const PHASES: usize = 5;
const SPENT_ON: usize = 4;
const OPS: usize = 8;
const OPS_BESIDE_DIFF: usize = 4;
const CHANGES: usize = 3;
const WARNINGS: usize = 2;
const REASONS: usize = 2;

const SPEED: [Column; 6] = [
    Column::left("test", "test", 0),
    Column::right("tokens_per_s", "t/s", 0),
    Column::right("tokens_per_s_deviation", "±", 0),
    Column::right("repetitions", "repetitions", 0),
    Column::right("ns_per_token", "per token", 0),
    Column::left("placement", "a graph run", 0),
];

const BUDGET: [Column; 4] = [
    Column::left("phase", "phase", 0),
    Column::right("ns", "each", 0),
    Column::right("share", "%", 0),
    Column::left("spent_on", "spent on", 0),
];

const LONGEST: [Column; 5] = [
    Column::right("share_of_wall", "% wall", 0),
    Column::right("calls", "calls", 0),
    Column::right("avg_ns", "avg", 0),
    Column::left("backend", "backend", 0),
    Column::left("op", "op", 0),
];

const CHANGED: [Column; 6] = [
    Column::left("phase", "phase", 0),
    Column::right("change_ns", "change", 0),
    Column::right("change_share", "%", 0),
    Column::left("noise", "?", 0),
    Column::left("op", "operation", 0),
    Column::left("shape", "sources and result", 0),
];

/// The report of a recording, and what changed since another one.
pub fn issue(trace: &Trace, since: Option<&Diff>) -> Document {
    let mut document = Document::default();
    document.heading("recording", "Recording");
    versions(&mut document, trace);
    model(&mut document, trace);
    let phases = phases(trace);
    on_host(&mut document, trace, &phases);
    let warnings = caveats(trace).into_iter().filter(|caveat| caveat.is_loss()).take(WARNINGS);
    document.blocks.extend(warnings.map(|caveat| Block::Warning(caveat.sentence())));
    speed(&mut document, trace, &phases);
    spent(&mut document, trace, &phases);
    longest(&mut document, trace, if since.is_some() { OPS_BESIDE_DIFF } else { OPS });
    since.into_iter().for_each(|diff| changes(&mut document, diff));
    // Backends of ggml's RPC have them in their names.
    let hosts = Hosts::of(trace);
    document.reword(&|text| hosts.without(text.to_owned()));
    document
}

fn text(text: impl Into<String>) -> Cell {
    match text.into() {
        empty if empty.is_empty() => Cell::Nothing,
        text => Cell::Text(text),
    }
}

fn versions(document: &mut Document, trace: &Trace) {
    let ours = Fact::new("ggprof", Cell::text(env!("CARGO_PKG_VERSION")), "ggprof {}");
    let mut facts = vec![ours];
    if let Some(provenance) = &trace.provenance {
        let ggml = |value: &dyn Fn(&ggprof_trace::Ggml) -> String| {
            let values: BTreeSet<String> = provenance.ggml.iter().map(value).collect();
            text(values.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(", "))
        };
        facts.push(Fact::new("program", text(&provenance.command), "program {}"));
        facts.push(Fact::new("ggml", ggml(&|it| it.version.clone()), "ggml {}"));
        facts.push(Fact::new("commit", ggml(&|it| it.commit.clone()), "commit {}"));
        facts.push(Fact::new("llama", ggml(&|it| it.llama.clone()), "{}"));
        facts.push(Fact::new("variant", ggml(&variants), "{}"));
    }
    document.fact("versions", "versions", facts);
    let used: BTreeSet<u16> = trace.events.iter().map(|event| event.backend.0).collect();
    let device = |at: &u16| {
        let backend = &trace.backends[usize::from(*at)];
        let kind = backend.device_type;
        // The processor's name comes behind all of them.
        let maker =
            Some(&backend.description).filter(|it| !it.is_empty() && kind != DeviceType::Cpu);
        let maker = maker.map_or_else(String::new, |maker| format!(", {maker}"));
        let name = format!("{} ({}{maker})", backend.label(), kind.name());
        Fact::listed("device", Cell::Text(name), "{}")
    };
    let mut facts: Vec<Fact> = used.iter().map(device).collect();
    let cpu = trace.provenance.as_ref().map_or("", |provenance| &provenance.cpu);
    facts.push(Fact::new("cpu", text(cpu), "{}"));
    let threads = most_threads(trace);
    let words = if threads == Some(1) { "{} thread" } else { "{} threads" };
    let threads = Cell::or_nothing(threads, |threads| Cell::Count(threads.into()));
    facts.push(Fact::new("threads", threads, words));
    document.fact("devices", "devices", facts);
    let drivers = trace.provenance.iter().flat_map(|provenance| &provenance.drivers);
    let system = trace.provenance.as_ref().map_or("", |provenance| &provenance.system);
    let mut facts = vec![Fact::new("system", text(system), "{}")];
    facts.extend(drivers.map(|driver| Fact::listed("driver", text(driver), "driver {}")));
    facts.retain(|fact| fact.value != Cell::Nothing);
    if !facts.is_empty() {
        document.fact("system", "system", facts);
    }
}

fn model(document: &mut Document, trace: &Trace) {
    let facts = model_facts(trace);
    let which = which_model(&facts);
    let count =
        |number: Option<i64>| Cell::or_nothing(number, |number| Cell::Count(number.max(0) as u128));
    let types: Vec<String> = facts
        .quantisation
        .iter()
        .map(|(name, share)| format!("{name} {}", Cell::Share(*share).words()))
        .collect();
    let flash = facts.flash_attention.map(|on| if on { "on" } else { "off" });
    let values = vec![
        Fact::new("layers", count(facts.layers.map(|it| it as i64)), "{} layers"),
        Fact::new("embedding", count(facts.embedding), "width {}"),
        Fact::new("vocabulary", count(facts.vocabulary), "vocabulary {}"),
        Fact::new("quantisation", text(types.join(", ")), "{}"),
        Fact::new("cache_k", text(facts.cache_k.unwrap_or_default()), "keys {}"),
        Fact::new("cache_v", text(facts.cache_v.unwrap_or_default()), "values {}"),
        Fact::new("flash_attention", text(flash.unwrap_or_default()), "flash attention {}"),
        Fact::new("which", which, "{}"),
    ];
    if values.iter().any(|fact| fact.value != Cell::Nothing) {
        document.fact("model", "model", values);
    }
}

/// Why ops are on the host although there is a device.
fn on_host(document: &mut Document, trace: &Trace, phases: &Phases) {
    for reason in placed::reasons_in_short(trace, phases).into_iter().take(REASONS) {
        let fact = Fact::listed("reason", Cell::Text(reason), "{}");
        document.fact("on_host", "on the host", vec![fact]);
    }
}

/// As llama-bench shows it, the longest phases first.
fn speed(document: &mut Document, trace: &Trace, phases: &Phases) {
    let mut groups = phases.groups();
    groups.retain(|group| group.tokens_per_second.is_some());
    groups.sort_by_key(|group| std::cmp::Reverse(group.sum.wall_ns()));
    let more = groups.len().saturating_sub(PHASES);
    groups.truncate(PHASES);
    if groups.is_empty() {
        return;
    }
    let row = |group: &ggprof_analysis::PhaseGroup| {
        let (speed, deviation) = group.tokens_per_second.unwrap_or_default();
        let deviation = Some(deviation).filter(|_| group.count > 1);
        let each = group.sum.wall_ns() as f64 / group.sum.tokens.max(1) as f64;
        vec![
            Cell::text(&group.first_label),
            Cell::TokensPerSecond(speed),
            Cell::or_nothing(deviation, Cell::TokensPerSecond),
            Cell::Count(group.count.into()),
            Cell::Nanos(each),
            Cell::Text(words::placement(&placement(trace, phases, group.sum.kind))),
        ]
    };
    let rows = groups.iter().map(row).collect();
    let title = match more {
        0 => "Speed".to_owned(),
        more => format!("Speed (the longest phases; {more} more)"),
    };
    document.heading("speed", title);
    document.table(Table { key: "speed", columns: SPEED.to_vec(), rows });
}

/// Where the time of a token goes, of the two phases with most of it: what `ggprof explain` says.
fn spent(document: &mut Document, trace: &Trace, phases: &Phases) {
    let all = summed(phases, &budgets(trace, phases, &places(trace)));
    let mut longest: Vec<&Budget> = all.iter().filter(|it| budget::is_shown(it, &all)).collect();
    longest.sort_by_key(|budget| std::cmp::Reverse(budget.wall_ns));
    longest.truncate(2);
    let rows: Vec<Vec<Cell>> = longest.iter().flat_map(|it| spent_on(trace, it)).collect();
    if !rows.is_empty() {
        document.heading("budget", "Where the time goes");
        document.table(Table { key: "budget", columns: BUDGET.to_vec(), rows });
    }
}

fn spent_on(trace: &Trace, budget: &Budget) -> Vec<Vec<Cell>> {
    let (shown, rest) = budget.rows.split_at(SPENT_ON.min(budget.rows.len()));
    let row = |ns: u64, words: String| {
        vec![
            Cell::text(&budget.label),
            Cell::Nanos(ns as f64 / budget.units() as f64),
            Cell::Share(budget.share(ns)),
            Cell::Text(words),
        ]
    };
    let of_row = |it: &BudgetRow| row(it.ns, spent_words::words(trace, it.spent));
    let mut rows: Vec<Vec<Cell>> = shown.iter().map(of_row).collect();
    if !rest.is_empty() {
        rows.push(row(rest.iter().map(|it| it.ns).sum(), format!("{} others", rest.len())));
    }
    rows
}

fn longest(document: &mut Document, trace: &Trace, most: usize) {
    let mut ops = by_shape(trace, &node_sums(trace));
    ops.retain(|row| {
        row.kind == EventKind::Op && is_of_ggml(trace.text(trace.nodes.signature(row.signature).op))
    });
    ops.truncate(most);
    let rows: Vec<Vec<Cell>> = ops
        .iter()
        .map(|row| {
            let node = trace.event(row.totals.longest).node;
            vec![
                Cell::Share(row.totals.share_of_wall),
                Cell::Count(row.totals.calls().into()),
                Cell::Nanos(row.totals.time_ns() / row.totals.calls().max(1) as f64),
                Cell::text(trace.backend(row.backend).label()),
                Cell::Code(op_strings(trace, node)),
            ]
        })
        .collect();
    if !rows.is_empty() {
        document.heading("longest", "Longest operations");
        document.table(Table { key: "longest", columns: LONGEST.to_vec(), rows });
    }
}

/// Whole splits, and what a device does beside its ops, cannot be tried alone.
fn is_of_ggml(op: &str) -> bool {
    op != Signature::WHOLE_SPLIT && !op.contains(char::is_lowercase)
}

fn changes(document: &mut Document, diff: &Diff) {
    let mut rows = Vec::new();
    for phase in &diff.phases {
        let sign = |is_certain: bool| Cell::text(if is_certain { "" } else { "~" });
        let share = |ns: f64| {
            Cell::or_nothing(Some(phase.total.a_ns).filter(|&a| a > 0.0), |a| {
                Cell::ShareChange(ns / a)
            })
        };
        let row = |ns: f64, is_certain: bool, op: String, shape: String| {
            let name = Cell::Text(words::phase(&phase.name));
            vec![name, Cell::Change(ns), share(ns), sign(is_certain), text(op), text(shape)]
        };
        let (ns, is_certain) = (phase.total.ns(), phase.is_certain());
        rows.push(row(ns, is_certain, "all".to_owned(), String::new()));
        rows.extend(largest(phase).into_iter().take(CHANGES).map(|it| {
            let (op, shape) = (words::operation(it), words::shape(it));
            row(it.change.ns(), it.change.is_certain(), op, shape)
        }));
    }
    rows.truncate(2 * (CHANGES + 1));
    document.heading("changes", "Change of the time per token");
    document.table(Table { key: "changes", columns: CHANGED.to_vec(), rows });
}

/// What contributes most to the change of a phase, what is certain before the rest. What only one side
/// has is a part of it like any other.
fn largest(phase: &PhaseDiff) -> Vec<&DiffRow> {
    let mut rows: Vec<&DiffRow> = phase.rows.iter().collect();
    rows.sort_by(|one, other| {
        let [one, other] = [one, other].map(|row| (row.change.is_certain(), row.change.ns().abs()));
        other.0.cmp(&one.0).then(other.1.total_cmp(&one.1))
    });
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::markdown;
    use ggprof_analysis::diff::{Depth, compare, fusions, ledger};
    use ggprof_trace::text_fixture;

    #[test]
    fn why_ops_are_on_the_host_and_where_the_time_goes() {
        let trace = text_fixture::parse(
            "backend 0 GPU gpu
             backend 1 CPU cpu
             memory w CPU_Mapped weights host
             memory c CPU compute host
             batch 0..1000 0:3+1!1
             run 0..1000 batch=0
             op GPU MUL_MAT 0..200 Qcur-0 f32[8] <- q4_0[32,8] f32[32] run=0 split=0
             op CPU MUL_MAT 200..1000 Qcur-1 f32[8] <- q4_0[32,8] f32[32] run=0 split=1
             placed w,c out=c GPU=yes",
        );
        let text = markdown(&issue(&trace, None));
        for line in [
            "- on the host: generation 80.0%: layer 1: weight in host memory; batch too \
             small to offload (CPU\\_Mapped)",
            "| tg1 | 800 ns | 80.0% | computing on CPU: attention |",
            "| tg1 | 200 ns | 20.0% | computing on GPU: attention |",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }

    /// Newer versions of ggml call the device by its address alone.
    #[test]
    fn servers_are_not_named() {
        let mut trace = text_fixture::parse(
            "backend 0 X gpu
             backend 1 CPU cpu
             batch 0..1000 0:3+1!1
             run 0..1000 batch=0
             op X MUL_MAT 0..900 Qcur-0 f32[8] <- q4_0[32,8] f32[32] run=0 split=0
             op CPU ADD 900..1000 Qcur-1 f32[8] <- f32[8] f32[8] run=0 split=1",
        );
        trace.backends[0].name = "RPC0[gpu-box.example:50052]".to_owned();
        trace.backends[0].device = "RPC0[gpu-box.example:50052]".to_owned();
        trace.backends[0].description = "gpu-box.example:50052".to_owned();
        let text = markdown(&issue(&trace, None));
        assert!(text.contains("RPC 0 (GPU, RPC 1)"), "{text}");
        assert!(text.contains("computing on RPC 0: attention"), "{text}");
        assert!(!text.contains("gpu-box"), "{text}");
    }

    /// What only one side has is the largest part of this change.
    #[test]
    fn the_largest_changes() {
        let with = |op: &str, name: &str, end: u64| {
            format!(
                "backend 0 CPU cpu
                 batch 0..{end} 0:3+1!1
                 run 0..{end} batch=0
                 op CPU ADD 0..10 a-0 f32[8] <- f32[8] f32[8] run=0
                 op CPU MUL 10..25 b-0 f32[8] <- f32[8] f32[8] run=0
                 op CPU SUB 25..45 c-0 f32[8] <- f32[8] f32[8] run=0
                 op CPU {op} 45..{end} {name} f32[8] <- f32[8] f32[8] run=0"
            )
        };
        let [a, b] = [with("DIV", "ffn_up-0", 100), with("MUL_MAT", "Qcur-0", 1000)]
            .map(|it| text_fixture::parse(&it));
        let ledgers = [&a, &b].map(|trace| vec![ledger(trace, &fusions(trace))]);
        let diff = compare(&ledgers[0], &ledgers[1], Depth::Shape);
        let text = markdown(&issue(&b, Some(&diff)));
        let changes = text.split("### Change of the time per token").nth(1).expect("changes");
        assert!(changes.contains("| MUL\\_MAT |"), "{text}");
    }
}
