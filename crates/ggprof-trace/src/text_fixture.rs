//! Traces written as text, so that a test shows what it is about.
//!
//! ```text
//! backend 0 CUDA0 gpu NVIDIA H200
//! run 0..100
//! op CUDA0 MUL_MAT 0..50 Qcur-0 f32[64,2] <- q4_0[32,64] f32[32,2]
//! copy CUDA0 H2D 50..60 8192 embd f32[2048,1]
//! ```
//!
//! `with MUL attn_norm-0 f32[8] <- f32[8]@0 f32[8]#1` under an op adds a node that was fused with it:
//! its first source is the result of the fusion's first node (`@0`), its second one is the tensor
//! from outside that the fusion reads second (`#1`; a source without a number is one more). `stored`
//! says that others need the result, too.
//!
//! `kernel NAME 0..40` and `copied NAME 0..40` under an op or copy say what a device did for it;
//! `concurrent`, `group=N` or `stream=N` after the times say how. `wait 10..20 run=N` says that the
//! program waits for a run's results, `compile 10..20 NAME` that it compiles a pipeline.
//!
//! `batch 0..90 0:5+3!1` hands libllama a batch with three tokens of sequence 0 from position 5 on, one
//! of them with an output; `0:5=64` are 64 tokens at one position, as those of an image are. `encode` and
//! `context=2` may follow. `run 0..90 batch=0 number=7
//! scheduler=1` says which graph run it is. `change 95 cleared` is what happens to context 1, or to
//! another one (`context=2`, `context=?`): `removed SEQUENCE FIRST [LAST]` (`*` for all sequences),
//! `shifted SEQUENCE BY [FIRST LAST]`, `divided SEQUENCE BY [FIRST LAST]`, `kept SEQUENCE`, `copied SEQUENCE TO`, `warm-up`, `warmed-up`, `freed`.
//!
//! `program NAME` is the recorded program.
//!
//! Times are in nanoseconds. After the times come, in any order and all optional: the tensor's
//! name, its type and shape, `<-` and its sources, `split=N`, `run=N`, `bytes=N`, `fused=A+B`,
//! `sub=SILU`, `params=1,-2` (the op's parameters), `nb=4,32,96,96` and `slot=2` after a source (its
//! strides, and its place if some before it are empty), `from=NAME,NAME` (the sources' names), `measured=host`, `threads=4:70:20:10` (four
//! threads that worked for 70 ns together, the busiest for 20, and waited for 10). Graph runs are
//! inferred unless `run` lines list them. [`memory`] has the lines about memory, placement and
//! experts.

mod memory;

use crate::graph_runs;
use crate::model::{
    Backend, BackendIndex, Batch, BatchFunction, BatchId, BatchSequence, ContextChange,
    ContextChangeKind, CopyDirection, DeviceType, DeviceWork, EventId, EventKind, GraphRun,
    GraphRunId, HostTask, Measured, Member, NewEvent, NodeId, Origin, Provenance, Quantity, Sensor,
    Signature, Source, TaskKind, Tensor, ThreadFold, Trace, WorkKind, WorkOrigin,
};
use std::str::FromStr;

/// Builds the trace that the text describes.
///
/// # Panics
/// On a line that is not understood: a fixture is part of a test.
pub fn parse(text: &str) -> Trace {
    let mut memories = memory::Names::new();
    let mut trace = Trace { writer: "ggml".to_owned(), ..Trace::default() };
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .filter(|words: &Vec<&str>| !words.is_empty())
        .collect();
    for (at, words) in lines.iter().enumerate() {
        match words[0] {
            "program" => {
                let command = words[1].to_owned();
                trace.provenance = Some(Provenance { command, ..Provenance::default() });
            }
            "backend" => trace.backends.push(backend(words)),
            "run" => {
                let (start_ns, end_ns) = times(words[1]);
                trace.graph_runs.push(graph_run(&words[2..], start_ns, end_ns));
            }
            "op" | "copy" => {
                let fused = lines[at + 1..].iter().take_while(|words| words[0] == "with");
                event(words, &fused.collect::<Vec<_>>(), &mut trace);
            }
            "with" => {}
            "kernel" | "copied" => device_work(words, &mut trace),
            "wait" => wait(words, &mut trace),
            "compile" => compile(words, &mut trace),
            "batch" => trace.batches.push(batch(words, trace.batches.len() as u32)),
            "memory" => memory::kind(words, &mut memories, &mut trace),
            "placed" => memory::placed(words, &memories, &mut trace),
            "ends" => memory::ends(words, &memories, &mut trace),
            "chosen" => memory::chosen(words, &mut trace),
            "change" => trace.context_changes.push(context_change(words)),
            other => panic!("a fixture line begins with {other}"),
        }
    }
    graph_runs::complete(&mut trace);
    trace
}

/// A sensor of a card called H200, read every so often from a moment on.
pub fn sensor(quantity: Quantity, first_ns: u64, every_ns: u64, values: &[u64]) -> Sensor {
    Sensor {
        quantity,
        device: 0,
        machine: 0,
        process: None,
        name: "H200".to_owned(),
        is_forbidden: false,
        every_ns,
        times_ns: (0..values.len() as u64).map(|at| first_ns + at * every_ns).collect(),
        values: values.to_vec(),
    }
}

fn backend(words: &[&str]) -> Backend {
    let device_type = match words[3] {
        "cpu" => DeviceType::Cpu,
        "gpu" => DeviceType::Gpu,
        "accel" => DeviceType::Accelerator,
        other => panic!("{other} is no device type"),
    };
    Backend {
        id: words[1].parse().expect("a backend's number"),
        name: words[2].to_owned(),
        device: words[2].to_owned(),
        description: words[4..].join(" "),
        device_type,
        library_path: String::new(),
        process: None,
        called: String::new(),
    }
}

fn graph_run(words: &[&str], start_ns: u64, end_ns: u64) -> GraphRun {
    let mut run = GraphRun::new(0, start_ns, end_ns);
    for word in words {
        match word.split_once('=') {
            Some(("number", value)) => run.number = Some(value.parse().expect("a number")),
            Some(("batch", value)) => {
                run.batch = Some(BatchId(value.parse().expect("a batch's place")));
            }
            Some(("scheduler", value)) => run.scheduler = value.parse().expect("a scheduler"),
            _ => panic!("a run has no {word}"),
        }
    }
    run
}

fn batch(words: &[&str], number: u32) -> Batch {
    let (start_ns, end_ns) = times(words[1]);
    let sequences: Vec<BatchSequence> =
        words[2..].iter().filter(|word| word.contains(':')).map(|word| sequence(word)).collect();
    let context = words.iter().find_map(|word| word.strip_prefix("context="));
    let is_encode = words.contains(&"encode");
    Batch {
        call: number + 1,
        context: context.map_or(1, |context| context.parse().expect("a context")),
        start_ns,
        end_ns: Some(end_ns),
        is_from_positions: words.contains(&"positions"),
        function: if is_encode { BatchFunction::Encode } else { BatchFunction::Decode },
        tokens: Some(sequences.iter().map(|it| it.tokens).sum()),
        outputs: Some(sequences.iter().map(|it| it.outputs).sum())
            .filter(|_| !words.contains(&"positions")),
        sequences,
    }
}

fn sequence(word: &str) -> BatchSequence {
    let (sequence, rest) = word.split_once(':').expect("a sequence");
    let is_at_one_position = rest.contains('=');
    let (first, rest) = rest.split_once(['+', '=']).expect("the first position");
    let (tokens, outputs) = rest.split_once('!').unwrap_or((rest, "0"));
    let number = |text: &str| -> u32 { text.parse().expect("a number") };
    let (first, tokens) = (number(first), number(tokens));
    let last = if is_at_one_position { first } else { first + tokens - 1 };
    BatchSequence {
        sequence: number(sequence) as i32,
        positions: Some((first, last)),
        tokens,
        outputs: number(outputs),
    }
}

fn context_change(words: &[&str]) -> ContextChange {
    let context = words.iter().find_map(|word| word.strip_prefix("context="));
    let context = context.map_or(Some(1), |context| context.parse().ok());
    let words: Vec<&str> =
        words.iter().copied().filter(|word| !word.starts_with("context=")).collect();
    let number = |at: usize| -> u32 { words[at].parse().expect("a number") };
    let what = match words[2] {
        "cleared" => ContextChangeKind::Cleared,
        "removed" => {
            let sequence = (words[3] != "*").then(|| number(3));
            let last = words.get(5).map(|_| number(5));
            ContextChangeKind::Removed { sequence, first: number(4), last }
        }
        "shifted" => ContextChangeKind::Shifted {
            sequence: Some(number(3)),
            first: words.get(5).map_or(0, |_| number(5)),
            last: words.get(6).map(|_| number(6)),
            by: words[4].parse().expect("a distance"),
        },
        "divided" => ContextChangeKind::Divided {
            sequence: Some(number(3)),
            first: words.get(5).map_or(0, |_| number(5)),
            last: words.get(6).map(|_| number(6)),
            by: number(4),
        },
        "kept" => ContextChangeKind::Kept { sequence: number(3) },
        "copied" => ContextChangeKind::Copied { sequence: number(3), to: number(4) },
        "warm-up" => ContextChangeKind::WarmUp,
        "warmed-up" => ContextChangeKind::WarmedUp,
        "freed" => ContextChangeKind::Freed,
        "read" => ContextChangeKind::EmbeddingsRead { call: number(3) },
        other => panic!("a context cannot be {other}"),
    };
    ContextChange { context, at_ns: words[1].parse().expect("a time"), what }
}

/// The graph run that a thread of the host works for, at the end of a line.
fn task_run(words: &[&str]) -> Option<GraphRunId> {
    let number = words.last()?.strip_prefix("run=")?;
    number.parse().ok().map(GraphRunId)
}

fn wait(words: &[&str], trace: &mut Trace) {
    let (start_ns, end_ns) = times(words[1]);
    trace.host_tasks.push(HostTask {
        what: TaskKind::Wait,
        name: trace.strings.intern(""),
        thread: 1,
        graph_run: task_run(words),
        start_ns,
        duration_ns: end_ns - start_ns,
    });
}

fn compile(words: &[&str], trace: &mut Trace) {
    let (start_ns, end_ns) = times(words[1]);
    trace.host_tasks.push(HostTask {
        what: TaskKind::PipelineCompile,
        name: trace.strings.intern(words[2]),
        thread: 1,
        graph_run: task_run(words),
        start_ns,
        duration_ns: end_ns - start_ns,
    });
}

fn thread_fold(text: &str) -> ThreadFold {
    let numbers: Vec<u64> = text.split(':').map(|word| word.parse().expect("a number")).collect();
    let [threads, busy_sum_ns, busy_max_ns, wait_sum_ns] = numbers[..] else {
        panic!("{text} are not threads, their sum, the busiest and their waits")
    };
    ThreadFold { busy_sum_ns, wait_sum_ns, busy_max_ns, threads: threads as u32 }
}

fn times(word: &str) -> (u64, u64) {
    let (start, end) = word.split_once("..").expect("start..end");
    (start.parse().expect("a start"), end.parse().expect("an end"))
}

fn event(words: &[&str], fused: &[&Vec<&str>], trace: &mut Trace) {
    let kind = if words[0] == "op" { EventKind::Op } else { EventKind::Copy };
    let backend = trace.backends.iter().position(|backend| backend.name == words[1]);
    let backend = BackendIndex(backend.expect("a backend declared above") as u16);
    let name =
        if kind == EventKind::Op { words[2].to_owned() } else { format!("copy_{}", words[2]) };
    let (start_ns, end_ns) = times(words[3]);

    let mut tensor_name = None;
    let mut source_names = Vec::new();
    let mut bytes = 0;
    let (mut split, mut run, mut measured, mut threads) = (0, None, Measured::Unknown, None);
    let mut signature = Signature::of_op(trace.strings.intern(&name));
    signature.copied = CopyDirection::of_op_name(&name);
    let mut sources: Option<Vec<Source>> = None;
    for word in &words[4..] {
        match word.split_once('=') {
            Some(("split", value)) => split = value.parse().expect("a split"),
            Some(("run", value)) => run = Some(GraphRunId(value.parse().expect("a run"))),
            Some(("bytes", value)) => bytes = value.parse().expect("bytes"),
            Some(("fused", value)) => signature.extra = Some(trace.strings.intern(value)),
            Some(("sub", value)) => signature.sub_op_name = Some(trace.strings.intern(value)),
            Some(("from", value)) => {
                source_names = value.split(',').map(|name| trace.strings.intern(name)).collect();
            }
            Some(("params", value)) => signature.op_params = numbers(value),
            Some(("nb", value)) => last(&mut sources).nb = numbers(value),
            Some(("slot", value)) => last(&mut sources).slot = number(value),
            Some(("threads", value)) => threads = Some(thread_fold(value)),
            Some(("measured", value)) => measured = Measured::from_name(value).expect("a clock"),
            Some((other, _)) => panic!("a fixture says {other}="),
            None if *word == "<-" => sources = Some(Vec::new()),
            None => match (tensor(word, trace), &mut sources) {
                (Some(tensor), Some(sources)) => sources.push(source(tensor, sources.len())),
                (Some(tensor), None) => signature.output = tensor,
                (None, _) if word.parse::<u64>().is_ok() => bytes = word.parse().expect("bytes"),
                (None, _) => tensor_name = Some(trace.strings.intern(word)),
            },
        }
    }
    signature.sources = sources.unwrap_or_default().into();
    let node = trace.nodes.intern(signature, tensor_name, &source_names);
    let node = if fused.is_empty() { node } else { fusion(node, fused, trace) };
    let duration_ns = end_ns.checked_sub(start_ns).expect("an end after the start");
    trace.events.push(NewEvent {
        split,
        graph_run: run,
        start_ns,
        duration_ns,
        bytes,
        measured,
        threads,
        ..NewEvent::of(kind, node, backend)
    });
}

fn last(sources: &mut Option<Vec<Source>>) -> &mut Source {
    sources.as_mut().and_then(|sources| sources.last_mut()).expect("a source before this")
}

/// As many as are said; the rest are zero.
fn numbers<T: Copy + Default + FromStr, const N: usize>(list: &str) -> [T; N] {
    let mut all = [T::default(); N];
    for (place, word) in all.iter_mut().zip(list.split(',')) {
        *place = word.parse().ok().expect("a number");
    }
    all
}

/// The next source of an op, without strides.
fn source(tensor: Tensor, place: usize) -> Source {
    Source { tensor, nb: [0; 4], slot: place as u8 }
}

/// The node of an op and of those that were fused with it.
fn fusion(first: NodeId, others: &[&Vec<&str>], trace: &mut Trace) -> NodeId {
    let inputs = trace.signature(first).sources.len() as u8;
    let mut outside = inputs;
    let mut nodes = vec![first];
    let mut links: Vec<(Vec<Origin>, bool)> =
        vec![((0..inputs).map(Origin::Outside).collect(), false)];
    for words in others {
        let mut signature = Signature::of_op(trace.strings.intern(words[1]));
        let (mut name, mut sources, mut origins) = (None, None, Vec::new());
        for word in &words[2..] {
            let (word, origin) = match (word.split_once('@'), word.split_once('#')) {
                (Some((word, member)), _) => (word, Some(Origin::Member(number(member)))),
                (_, Some((word, tensor))) => (word, Some(Origin::Outside(number(tensor)))),
                _ => (*word, None),
            };
            match (tensor(word, trace), &mut sources) {
                _ if word == "<-" => sources = Some(Vec::new()),
                (Some(tensor), Some(sources)) => {
                    sources.push(source(tensor, sources.len()));
                    origins.push(origin.unwrap_or_else(|| {
                        outside += 1;
                        Origin::Outside(outside - 1)
                    }));
                }
                (Some(tensor), None) => signature.output = tensor,
                (None, _) if word != "stored" => name = Some(trace.strings.intern(word)),
                (None, _) => {}
            }
        }
        signature.sources = sources.unwrap_or_default().into();
        nodes.push(trace.nodes.intern(signature, name, &[]));
        links.push((origins, words.contains(&"stored")));
    }
    let is_used = |place: usize| {
        let origin = Origin::Member(place as u8);
        links.iter().any(|(origins, _)| origins.contains(&origin))
    };
    let members = (0..nodes.len()).map(|at| Member {
        signature: trace.node(nodes[at]).signature,
        origins: links[at].0.as_slice().into(),
        is_stored: links[at].1 || !is_used(at),
    });
    let members = members.collect();
    let names: Vec<&str> = nodes.iter().map(|&node| trace.op_name(node)).collect();
    let extra = Some(trace.strings.intern(&names.join("+")));
    let signature = Signature { extra, members, ..trace.signature(first).clone() };
    let source_names = trace.nodes.source_names(first).to_vec();
    trace.nodes.intern_fusion(signature, trace.node(first).tensor_name, &source_names, &nodes)
}

fn number(text: &str) -> u8 {
    text.parse().expect("a number")
}

/// Belongs to the event of the line above.
fn device_work(words: &[&str], trace: &mut Trace) {
    let event = EventId(trace.events.len().checked_sub(1).expect("an event above") as u32);
    let (start_ns, end_ns) = times(words[2]);
    let number = |key: &str| {
        let value = words[3..].iter().find_map(|word| word.strip_prefix(key))?;
        Some(value.parse().expect("a number"))
    };
    let group: Option<u32> = number("group=");
    let name = trace.strings.intern(words[1]);
    trace.device_work.push(DeviceWork {
        event,
        kind: if words[0] == "kernel" { WorkKind::Kernel } else { WorkKind::Copy },
        name,
        stream: number("stream=").unwrap_or(0),
        start_ns,
        duration_ns: end_ns - start_ns,
        charged_ns: end_ns - start_ns,
        bytes: 0,
        concurrent: group.is_some() || words.contains(&"concurrent"),
        first_use: words.contains(&"first"),
    });
    trace.work_origins.push(WorkOrigin {
        backend: trace.events.get(event).backend.0.into(),
        split: 0,
        position: Some(event.0),
        group: group.map(|number| (0, number)),
    });
    let charged = trace.work_for(event).iter().map(|work| work.charged_ns).sum();
    trace.events.set_charge(event, charged);
}

/// `q4_0[2048,512]`; dimensions left out are 1.
fn tensor(word: &str, trace: &Trace) -> Option<Tensor> {
    let (name, dimensions) = word.strip_suffix(']')?.split_once('[')?;
    let type_id = (0..64).find(|&id| trace.types.get(id).is_some_and(|info| info.name == name))?;
    let mut ne = [1; 4];
    for (n, dimension) in ne.iter_mut().zip(dimensions.split(',')) {
        *n = dimension.trim().parse().expect("a dimension");
    }
    Some(Tensor { type_id, ne })
}
