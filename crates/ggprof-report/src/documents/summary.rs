//! The first page: what was recorded, where the time went, what took longest.

use super::{
    backends, energy, explain, memory, operations, phases, processes, rankings, remote, sampling,
};
use crate::caveat::caveats;
use crate::document::{Block, Fact};
use crate::{Cell, Document, coverage_words, units};
use ggprof_analysis::{
    ModelFacts, NodeSums, Peaks, Wall, by_op, gaps as find_gaps, missing_before, model_facts,
    most_threads, phases as find_phases, roofs, wall,
};
use ggprof_trace::{Covered, CoveredHow, Ggml, Provenance, Trace};

const RANKED: usize = 5;

/// The summary of a recording that people know as `name`.
pub fn summary(trace: &Trace, name: &str, peaks: Option<&Peaks>) -> Document {
    let wall = wall(trace);
    let mut document = head(trace, name, &wall);
    held_against(&mut document, peaks);
    warn(&mut document, trace);
    if trace.events.is_empty() {
        return document;
    }
    backends::wall_times(&mut document, trace, &wall);
    processes::gaps(&mut document, trace);
    processes::shared_devices(&mut document, trace);
    let phases = find_phases(trace);
    let sums = NodeSums::by_budget(trace, &phases);
    let ops = by_op(trace, &sums);
    phases::overview(&mut document, trace, &phases);
    remote::servers(&mut document, trace, &phases);
    document.heading("operations", "Operations by total time");
    sampling::note(&mut document, trace);
    document.table(operations::table("operations", trace, &ops, &roofs(trace, &sums, peaks)));
    rankings::inefficient_ops(&mut document, trace, &ops, RANKED);
    rankings::device_kernels(&mut document, trace, RANKED);
    rankings::kernels(&mut document, trace, RANKED);
    memory::overview(&mut document, trace);
    energy::overview(&mut document, trace, &phases);
    explain::overview(&mut document, trace, &phases, &sums, peaks);
    document
}

/// Which machine's peaks the figures are shares of.
fn held_against(document: &mut Document, peaks: Option<&Peaks>) {
    let Some(peaks) = peaks else { return };
    let at_unix_ns = peaks.measured_at_unix_s.saturating_mul(1_000_000_000);
    document.fact(
        "peaks",
        "peaks",
        vec![
            Fact::new("measured_at_unix_ns", Cell::Date(at_unix_ns), "measured {}"),
            Fact::new("cpu", Cell::text(&peaks.cpu.name), "on {}"),
            Fact::new("processors", Cell::Count(peaks.cpu.processors.into()), "{} processors"),
        ],
    );
}

/// What one must know before believing the figures.
pub(super) fn warn(document: &mut Document, trace: &Trace) {
    let warnings = caveats(trace).into_iter().map(|caveat| Block::Warning(caveat.sentence()));
    document.blocks.extend(warnings);
}

/// What was recorded, by whom and how.
pub(crate) fn head(trace: &Trace, name: &str, wall: &Wall) -> Document {
    let mut document = Document::default();
    let ops: u64 = wall.backends.iter().map(|time| time.ops).sum();
    let copies: u64 = wall.backends.iter().map(|time| time.copies).sum();
    let version = trace.version.map(|version| Cell::Number(version as i64));
    document.heading("recording", format!("ggprof: {name}"));
    document.fact(
        "recording",
        "recording",
        vec![
            Fact::new("file", Cell::text(name), ""),
            Fact::new("writer", Cell::text(&trace.writer), "by {}"),
            Fact::new("version", Cell::or_nothing(version, |version| version), "format {}"),
            Fact::new("ops", Cell::Count(ops.into()), if ops == 1 { "{} op" } else { "{} ops" }),
            Fact::new(
                "copies",
                Cell::Count(copies.into()),
                if copies == 1 { "{} copy" } else { "{} copies" },
            ),
        ],
    );
    processes::names(&mut document, trace);
    if let Some(provenance) = &trace.provenance {
        program(&mut document, provenance);
        ggml(&mut document, trace, provenance);
        coverage(&mut document, trace);
    }
    model(&mut document, &model_facts(trace));
    let runs = Cell::Count(trace.graph_runs.len() as u128);
    let words =
        if trace.graph_runs_inferred { "{} (told apart by the order of records)" } else { "{}" };
    document.fact("graph_runs", "graph runs", vec![Fact::new("count", runs, words)]);
    document.fact("time", "wall time", times(wall));
    when(&mut document, trace);
    gaps(&mut document, trace);
    document
}

/// From when to when, where the reader is.
fn when(document: &mut Document, trace: &Trace) {
    let Some((start_ns, end_ns)) = trace.span_ns() else { return };
    let moments = trace.unix_ns(start_ns).zip(trace.unix_ns(end_ns));
    let Some((first, last)) = moments else { return };
    let end = match units::is_same_day(first, last) {
        true => Cell::Clock(last),
        false => Cell::Moment(last),
    };
    document.fact(
        "when",
        "when",
        vec![
            Fact::new("start_unix_ns", Cell::Moment(first), "from {}"),
            Fact::new("end_unix_ns", end, "to {}"),
        ],
    );
}

/// What is missing in the middle, and from the beginning.
fn gaps(document: &mut Document, trace: &Trace) {
    let gaps = find_gaps(trace);
    // Of several processes, each has its own.
    let before = if trace.processes.is_empty() { missing_before(trace) } else { 0 };
    if gaps.is_empty() && before == 0 {
        return;
    }
    let count = gaps.len() as u128;
    let runs = gaps.iter().fold(0, |sum: u64, gap| sum.saturating_add(gap.runs));
    let ns: u64 = gaps.iter().map(|gap| gap.end_ns - gap.start_ns).sum();
    let some = |number: u64| Some(number).filter(|&number| number > 0);
    let why = why_missing(trace);
    document.fact(
        "gaps",
        if trace.is_part { "left out" } else { "gaps" },
        vec![
            Fact::new("reason", Cell::text(why), "{}, and in no figure"),
            Fact::new(
                "gap_ns",
                Cell::or_nothing(some(ns), |ns| Cell::Nanos(ns as f64)),
                "{} in between",
            ),
            Fact::new(
                "gap_count",
                Cell::or_nothing(some(count as u64), |it| Cell::Count(it.into())),
                "",
            ),
            Fact::new(
                "gap_runs",
                Cell::or_nothing(some(runs), |it| Cell::Count(it.into())),
                "with {} graph runs",
            ),
            Fact::new(
                "runs_before",
                Cell::or_nothing(some(before), |it| Cell::Count(it.into())),
                "{} graph runs before the first",
            ),
        ],
    );
}

/// As far as that is known.
fn why_missing(trace: &Trace) -> &'static str {
    let is_newest = |facts: &Provenance| facts.newest_of.is_some();
    match &trace.provenance {
        _ if trace.is_part => "left out on request",
        Some(facts) if is_newest(facts) => "not recorded any more (newer graph runs took the room)",
        Some(_) if trace.losses.is_empty() && trace.processes.is_empty() => {
            "not recorded (recording was off)"
        }
        _ => "not recorded",
    }
}

fn times(wall: &Wall) -> Vec<Fact> {
    let all_known = wall.backends.iter().all(|time| time.busy_ns.is_some());
    let active =
        if all_known { "a backend working for {}" } else { "a backend working for {} at least" };
    let waited = Some(wall.waited_ns).filter(|&ns| ns > 0);
    vec![
        Fact::new("wall_ns", Cell::Nanos(wall.wall_ns as f64), "{}"),
        Fact::new("active_ns", Cell::Nanos(wall.active_ns as f64), active),
        Fact::new(
            "waited_ns",
            Cell::or_nothing(waited, |ns| Cell::Nanos(ns as f64)),
            "the program waiting for results for {}",
        ),
        Fact::new("sum_ns", Cell::Nanos(wall.sum_ns as f64), "sum of all times {}"),
    ]
}

fn program(document: &mut Document, provenance: &Provenance) {
    // Several processes have a line of their own.
    let pid = Some(provenance.pid).filter(|&pid| pid > 0);
    let error = provenance.clock_error_ns.map(|ns| Cell::Nanos(ns as f64));
    let device_error = provenance.device_clock_error_ns.map(|ns| Cell::Nanos(ns as f64));
    let mut facts = vec![
        Fact::new("command", Cell::text(&provenance.command), "{}"),
        Fact::new("pid", Cell::or_nothing(pid, |pid| Cell::Number(pid.into())), "pid {}"),
        Fact::new("cpu", Cell::text(&provenance.cpu), "on {}"),
        Fact::new("clock_error_ns", Cell::or_nothing(error, |error| error), "clock exact to {}"),
        Fact::new(
            "device_clock_error_ns",
            Cell::or_nothing(device_error, |error| error),
            "device clocks to {}",
        ),
        Fact::new("recorded_at_unix_ns", Cell::Count(provenance.recorded_at_unix_ns.into()), ""),
    ];
    if provenance.attached {
        let at = Cell::Moment(provenance.recorded_at_unix_ns);
        facts.push(Fact::new("attached_at_unix_ns", at, "ggprof attached at {}"));
    }
    document.fact("program", "program", facts);
}

/// Which ggml it is, and on how many threads it computed.
fn ggml(document: &mut Document, trace: &Trace, provenance: &Provenance) {
    let threads = most_threads(trace);
    let words = if threads == Some(1) { "{} thread" } else { "{} threads" };
    let calls_it = trace.batches.iter().any(|batch| !batch.is_from_positions);
    let said = |text: &str| match text.is_empty() {
        true => Cell::Nothing,
        false => Cell::text(text),
    };
    let copies = provenance.ggml.iter().flat_map(|ggml| {
        [
            Fact::new("version", said(&ggml.version), "{}"),
            Fact::new("commit", said(&ggml.commit), "commit {}"),
            Fact::new("llama", said(llama(ggml, calls_it)), llama_words(&ggml.llama)),
            Fact::new("variant", said(&variants(ggml)), "{}"),
        ]
    });
    let threads = Cell::or_nothing(threads, |threads| Cell::Count(threads.into()));
    let facts = copies.chain([Fact::new("threads", threads, words)]);
    known(document, "ggml", facts.collect());
}

/// The file of libllama; just its name where the program calls one and it is in no file of its own.
fn llama(ggml: &Ggml, calls_it: bool) -> &str {
    if ggml.llama.is_empty() && calls_it { "libllama" } else { &ggml.llama }
}

/// Newer ones say their version; of others, the name of the file may have one: `libllama.so.0.0.8681`.
fn llama_words(llama: &str) -> &'static str {
    match llama.contains(|c: char| c.is_ascii_digit()) {
        true => "{}",
        false => "{} of an unknown version",
    }
}

/// The libraries for processors that ggml chose, where it chose: they are named after the variant.
pub(super) fn variants(ggml: &Ggml) -> String {
    let is_variant = |file: &&String| file.starts_with("libggml-cpu-");
    ggml.processors.iter().filter(is_variant).cloned().collect::<Vec<_>>().join(", ")
}

/// What the graphs tell of the model.
fn model(document: &mut Document, facts: &ModelFacts) {
    let count = |number: i64| Cell::Count(number.max(0) as u128);
    let text = |text: &Option<String>| Cell::or_nothing(text.as_ref(), Cell::text);
    let flash = facts.flash_attention.map(|on| if on { "on" } else { "off" });
    let share = |(name, share): &(String, f64)| format!("{name} {}", Cell::Share(*share).words());
    let types: Vec<String> = facts.quantisation.iter().map(share).collect();
    let types = Some(types.join(", ")).filter(|types| !types.is_empty());
    let layers = Cell::or_nothing(facts.layers, |layers| Cell::Count(layers.into()));
    let values = vec![
        Fact::new("layers", layers, if facts.layers == Some(1) { "{} layer" } else { "{} layers" }),
        Fact::new("embedding", Cell::or_nothing(facts.embedding, count), "width {}"),
        Fact::new("vocabulary", Cell::or_nothing(facts.vocabulary, count), "vocabulary {}"),
        Fact::new("quantisation", text(&types), "{}"),
        Fact::new("cache_k", text(&facts.cache_k), "keys {}"),
        Fact::new("cache_v", text(&facts.cache_v), "values {}"),
        Fact::new("flash_attention", Cell::or_nothing(flash, Cell::text), "flash attention {}"),
        Fact::new("which", which_model(facts), "{}"),
    ];
    known(document, "model", values);
}

pub(super) fn which_model(facts: &ModelFacts) -> Cell {
    let words = Some("the largest of several models").filter(|_| facts.is_largest_of_several);
    Cell::or_nothing(words, Cell::text)
}

/// A line of what is known, if anything is.
fn known(document: &mut Document, name: &'static str, mut facts: Vec<Fact>) {
    facts.retain(|fact| fact.value != Cell::Nothing);
    if !facts.is_empty() {
        document.fact(name, name, facts);
    }
}

/// How each backend was observed, in a line for each. For ops it matters by which way.
fn coverage(document: &mut Document, trace: &Trace) {
    let mut subjects: Vec<(&str, Vec<String>)> = Vec::new();
    for entry in &trace.coverage {
        if !entry.is_observed() {
            continue;
        }
        let (what, how) = (coverage_words::what(entry.what), coverage_words::how(entry.how));
        let part = match (entry.what, coverage_words::why(entry)) {
            // Why it is the first thread only has a sentence of its own.
            (Covered::Ops, by) if !by.is_empty() && entry.how != CoveredHow::AbortCallback => {
                format!("{what} ({how}, {by})")
            }
            (Covered::Ops, _) => format!("{what} ({how})"),
            _ => what.to_owned(),
        };
        match subjects.iter_mut().find(|(subject, _)| *subject == entry.subject) {
            Some((_, parts)) if parts.contains(&part) => {}
            Some((_, parts)) => parts.push(part),
            None => subjects.push((&entry.subject, vec![part])),
        }
    }
    if subjects.is_empty() {
        return;
    }
    let facts = subjects
        .iter()
        .map(|(subject, parts)| {
            let text = format!("{subject}: {}", parts.join(", "));
            Fact::listed("observed", Cell::Text(text), "{}")
        })
        .collect();
    document.fact("coverage", "observed", facts);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::{Style, console};
    use ggprof_trace::text_fixture;

    /// In the summary and in the table of memory; of another recording in neither.
    #[test]
    fn what_was_before_the_attach_is_said_to_be_unknown() {
        for attached in [true, false] {
            let mut trace = text_fixture::parse("backend 0 CUDA0 gpu");
            trace.provenance = Some(Provenance { attached, ..Provenance::default() });
            let mut by_memory = Document::default();
            memory::all(&mut by_memory, &trace);
            let said = [summary(&trace, "it", None), by_memory]
                .map(|document| console(&document, &Style::PLAIN));
            for (said, words) in [
                (&said[0], "ggprof attached at "),
                (&said[0], "memory that it had by then is not known"),
                (&said[0], "CUDA graphs that it had captured"),
                (&said[1], "this is only what it has made since"),
            ] {
                assert_eq!(said.contains(words), attached, "{words}: {said}");
            }
        }
    }

    #[test]
    fn libllamas_version_is_there_or_unknown() {
        let of = |file: &str, calls_it| {
            let ggml = Ggml { llama: file.to_owned(), ..Ggml::default() };
            llama_words(&ggml.llama).replace("{}", llama(&ggml, calls_it))
        };
        assert_eq!(of("libllama.so.0.0.8681", true), "libllama.so.0.0.8681");
        assert_eq!(of("libllama.so 0.5.0", true), "libllama.so 0.5.0");
        assert_eq!(of("libllama.so", true), "libllama.so of an unknown version");
        assert_eq!(of("", true), "libllama of an unknown version");
        assert_eq!(llama(&Ggml::default(), false), "");
    }
}
