//! Lines about memory, placement and experts.
//!
//! `memory NAME TYPE USAGE host` (or `device`) names a kind of memory. Under an op, `placed a,-,b GPU=no`
//! says in which kinds its sources are (`-` is not known) and what a device says of it: `no`, `yes`
//! if it supports the op, `offloads` if it would take the op over as well; `out=NAME` is the memory of
//! its output. Under a copy, `ends a b` are the kinds of memory of its ends; `input` and `at=OFFSET`
//! may follow. `chosen 8 3*2 5 of=2/4` under an op: of 8 experts, 3 was chosen twice and 5 once, as
//! read for two of four tokens.

use crate::model::{
    Answer, BackendIndex, BufferUsage, CopyEnds, EventId, GraphRunId, MemoryIndex, MemoryKind,
    Placement, Trace,
};

/// Kinds of memory by the names that the fixture gives them.
pub(super) type Names = Vec<String>;

pub(super) fn kind(words: &[&str], names: &mut Names, trace: &mut Trace) {
    let usage = match words[3] {
        "weights" => BufferUsage::Weights,
        "compute" => BufferUsage::Compute,
        "any" => BufferUsage::Any,
        other => panic!("memory is not used for {other}"),
    };
    names.push(words[1].to_owned());
    trace.memory_kinds.push(MemoryKind {
        type_name: words[2].to_owned(),
        device: String::new(),
        usage,
        is_on_host: words[4] == "host",
    });
}

fn index(names: &Names, name: &str) -> Option<MemoryIndex> {
    let at = names.iter().position(|known| known == name);
    assert!(at.is_some() || name == "-", "no memory is called {name}");
    at.map(|at| MemoryIndex(at as u16))
}

fn last_event(trace: &Trace) -> EventId {
    EventId(trace.events.len().checked_sub(1).expect("an event above") as u32)
}

pub(super) fn placed(words: &[&str], names: &Names, trace: &mut Trace) {
    let event = trace.events.get(last_event(trace));
    let mut placement = Placement {
        node: event.node,
        backend: event.backend,
        output: None,
        sources: words[1].split(',').map(|name| index(names, name)).collect(),
        answers: Vec::new(),
    };
    for word in &words[2..] {
        let (key, value) = word.split_once('=').expect("an answer");
        if key == "out" {
            placement.output = index(names, value);
            continue;
        }
        let backend = trace.backends.iter().position(|backend| backend.name == key);
        placement.answers.push(Answer {
            backend: BackendIndex(backend.expect("a backend declared above") as u16),
            supports: value != "no",
            offloads: Some(value == "offloads"),
        });
    }
    trace.placements.push(placement);
    trace.placements.sort_by_key(|placement| (placement.node, placement.backend));
}

pub(super) fn ends(words: &[&str], names: &Names, trace: &mut Trace) {
    let offset = words[3..].iter().find_map(|word| word.strip_prefix("at="));
    trace.copy_ends.push(CopyEnds {
        event: last_event(trace),
        source: index(names, words[1]),
        target: index(names, words[2]),
        is_input: words.contains(&"input"),
        offset: offset.map(|offset| offset.parse().expect("an offset")),
    });
}

pub(super) fn chosen(words: &[&str], trace: &mut Trace) {
    let event = trace.events.get(last_event(trace));
    let number = |text: &str| -> u32 { text.parse().expect("a number") };
    let mut tokens = (1, 1);
    let mut counts = Vec::new();
    for word in &words[2..] {
        if let Some((read, all)) = word.strip_prefix("of=").and_then(|of| of.split_once('/')) {
            tokens = (number(all), number(read));
        } else {
            let (expert, uses) = word.split_once('*').unwrap_or((word, "1"));
            counts.push((number(expert) as u16, number(uses) as u16));
        }
    }
    let run = event.graph_run.unwrap_or(GraphRunId(0));
    trace.expert_uses.push(event.node, run, number(words[1]), tokens, counts);
}
