//! Recordings of any size, as the agent would write them: a server on the CPU that answers one
//! request after the other, with a model of sixteen layers.

use anyhow::Context;
use ggprof_spool::appendix::Appendix;
use ggprof_spool::layout::{self, BLOCK_BYTES, Field, HEADER_BYTES};
use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;

const LAYERS: u32 = 16;
/// Tokens of a prompt, and of the answer to it.
const PROMPT: u64 = 512;
const ANSWER: u64 = 256;
/// The cache is looked at in steps of so many tokens: each step is a new shape.
const CACHE_STEP: u64 = 256;
const THREADS: u16 = 8;
/// A tick is half a nanosecond.
const TICKS_PER_NS: u64 = 2;
const START_NS: u64 = 5_000_000_000_000;
const START_UNIX_NS: u64 = 1_790_000_000_000_000_000;
const BACKEND: u32 = 1;

/// Type numbers of ggml.
const F32: u32 = 0;
const F16: u32 = 1;
const Q4_0: u32 = 2;
const I32: u32 = 26;

/// What a node of a layer is: op, name, type and size of its weight if it has one, whether it
/// computes anything, and nanoseconds for one token.
type LayerNode = (&'static str, &'static str, Option<(u32, [u64; 2])>, [u64; 2], bool, u64);

/// The nodes of one layer. A size of 0 stands for the tokens, of 1 for the cache.
const LAYER: &[LayerNode] = &[
    ("RMS_NORM", "norm", None, [2048, 0], true, 2_000),
    ("MUL", "attn_norm", None, [2048, 0], true, 1_500),
    ("MUL_MAT", "Qcur", Some((Q4_0, [2048, 2048])), [2048, 0], true, 90_000),
    ("RESHAPE", "Qcur (reshaped)", None, [2048, 0], false, 0),
    ("ROPE", "Qcur", None, [2048, 0], true, 3_000),
    ("MUL_MAT", "Kcur", Some((Q4_0, [2048, 512])), [512, 0], true, 25_000),
    ("RESHAPE", "Kcur (reshaped)", None, [512, 0], false, 0),
    ("ROPE", "Kcur", None, [512, 0], true, 1_500),
    ("MUL_MAT", "Vcur", Some((Q4_0, [2048, 512])), [512, 0], true, 25_000),
    ("VIEW", "cache_k (view)", None, [512, 0], false, 0),
    ("SET_ROWS", "cache_k", None, [512, 0], true, 1_000),
    ("SET_ROWS", "cache_v", None, [512, 0], true, 1_000),
    ("PERMUTE", "q (permuted)", None, [2048, 0], false, 0),
    ("FLASH_ATTN_EXT", "__fattn__", Some((F16, [512, 1])), [2048, 0], true, 20_000),
    ("RESHAPE", "kqv_out", None, [2048, 0], false, 0),
    ("MUL_MAT", "attn_out", Some((Q4_0, [2048, 2048])), [2048, 0], true, 90_000),
    ("ADD", "ffn_inp", None, [2048, 0], true, 1_500),
    ("RMS_NORM", "norm", None, [2048, 0], true, 2_000),
    ("MUL", "ffn_norm", None, [2048, 0], true, 1_500),
    ("MUL_MAT", "ffn_gate", Some((Q4_0, [2048, 5632])), [5632, 0], true, 250_000),
    ("MUL_MAT", "ffn_up", Some((Q4_0, [2048, 5632])), [5632, 0], true, 250_000),
    ("GLU", "ffn_swiglu", None, [5632, 0], true, 4_000),
    ("MUL_MAT", "ffn_out", Some((Q4_0, [5632, 2048])), [2048, 0], true, 250_000),
    ("ADD", "l_out", None, [2048, 0], true, 1_500),
];

/// What a recording says of itself.
#[derive(Debug, Clone)]
pub(super) struct Made {
    /// At least so many.
    pub(super) ops: u64,
    pub(super) version: String,
    pub(super) commit: String,
    pub(super) cpu: String,
    pub(super) unix_ns: u64,
    /// Thousandths of the usual time that ops take.
    pub(super) slowness: u64,
    /// Where its noise begins.
    pub(super) seed: u64,
}

impl Made {
    pub(super) fn of(ops: u64) -> Self {
        Self {
            ops,
            version: String::new(),
            commit: String::new(),
            cpu: "A Processor".to_owned(),
            unix_ns: START_UNIX_NS,
            slowness: 1000,
            seed: 1,
        }
    }
}

/// Writes a recording, request by request: what this process ever had in memory would count as that of
/// the commands that it starts.
pub(super) fn write(path: &Path, made: &Made) -> anyhow::Result<()> {
    let ops = made.ops;
    let mut file = File::create(path)?;
    file.write_all(&header(made, 0, 0, 0))?;
    let mut written = HEADER_BYTES as u64;
    let mut recording = Recording::new(blocks_behind(written)?, made);
    recording.describe_program(made);
    while recording.ops < ops {
        recording.request(ops);
        let blocks = std::mem::replace(&mut recording.blocks, blocks_behind(written)?);
        let mut blocks = blocks.finish();
        blocks.resize(blocks.len().next_multiple_of(BLOCK_BYTES), 0);
        file.write_all(&blocks)?;
        written += blocks.len() as u64;
        recording.blocks = blocks_behind(written)?;
    }
    let blocks = (written - HEADER_BYTES as u64) / BLOCK_BYTES as u64;
    file.rewind()?;
    Ok(file.write_all(&header(made, blocks, recording.now, recording.runs.into()))?)
}

/// Blocks that follow so many bytes of a file.
fn blocks_behind(bytes: u64) -> anyhow::Result<Appendix> {
    Appendix::behind(0, bytes).context("the file is too large")
}

/// What the file begins with.
fn header(made: &Made, blocks: u64, end_ticks: u64, graph_runs: u64) -> [u8; HEADER_BYTES] {
    use layout::header as at;
    let mut page = [0; HEADER_BYTES];
    page[..8].copy_from_slice(&layout::MAGIC);
    for (at, number) in [
        (at::VERSION, layout::VERSION),
        (at::HEADER_BYTES, HEADER_BYTES as u32),
        (at::BLOCK_BYTES, BLOCK_BYTES as u32),
        (at::CLOCK, layout::ClockKind::CycleCounter as u32),
        (at::PID, 4711),
    ] {
        number.put(&mut page[at..at + 4]);
    }
    for (at, number) in [
        (at::START_TICKS, START_NS * TICKS_PER_NS),
        (at::START_MONOTONIC_NS, START_NS),
        (at::START_REALTIME_NS, made.unix_ns),
        (at::RESERVED_BLOCKS, blocks),
        (at::END_TICKS, end_ticks),
        (at::GRAPH_RUNS, graph_runs),
    ] {
        number.put(&mut page[at..at + 8]);
    }
    for (at, text) in [(at::COMMAND, "llama-server"), (at::CPU_NAME, made.cpu.as_str())] {
        page[at..at + text.len()].copy_from_slice(text.as_bytes());
    }
    page
}

/// A shape of the graph: its number, and the place and cost of each node that computes.
struct Shape {
    number: u32,
    nodes: u32,
    costs: Vec<(u32, u64)>,
}

struct Recording {
    blocks: Appendix,
    texts: Vec<String>,
    nodes: u32,
    /// By tokens and by the size of the cache.
    shapes: Vec<((u64, u64), Shape)>,
    now: u64,
    runs: u32,
    ops: u64,
    noise: u64,
    unix_ns: u64,
    slowness: u64,
}

impl Recording {
    fn new(blocks: Appendix, made: &Made) -> Self {
        Self {
            blocks,
            texts: Vec::new(),
            nodes: 0,
            shapes: Vec::new(),
            now: START_NS * TICKS_PER_NS,
            runs: 0,
            ops: 0,
            noise: made.seed,
            unix_ns: made.unix_ns,
            slowness: made.slowness,
        }
    }

    fn put(&mut self, record: &[u8]) {
        self.blocks.put(record);
    }

    fn put_long(&mut self, fixed: &[u8], tail: &[u8]) {
        self.blocks.put(&[fixed, tail].concat());
    }

    /// The number of a text, which is written at its first use.
    fn text(&mut self, text: &str) -> u32 {
        if let Some(at) = self.texts.iter().position(|known| known == text) {
            return at as u32 + 1;
        }
        self.texts.push(text.to_owned());
        let id = self.texts.len() as u32;
        let head = layout::Text { id, bytes: text.len() as u32, ..Default::default() };
        self.put_long(&head.encode(), text.as_bytes());
        id
    }

    fn describe_program(&mut self, made: &Made) {
        let library = self.text("libggml-base.so");
        let (version, commit) = (self.text(&made.version), self.text(&made.commit));
        let instance =
            layout::Instance { instance: 1, library, version, commit, ..Default::default() };
        self.put(&instance.encode());
        for (type_id, name, block_elements, block_bytes) in
            [(F32, "f32", 1, 4), (F16, "f16", 1, 2), (Q4_0, "q4_0", 32, 18), (I32, "i32", 1, 4)]
        {
            let name = self.text(name);
            let instance = 1;
            let entry = layout::TypeEntry {
                instance,
                type_id,
                name,
                block_elements,
                block_bytes,
                ..Default::default()
            };
            self.put(&entry.encode());
        }
        let (name, library) = (self.text("CPU"), self.text("libggml-cpu.so"));
        let description = self.text(&made.cpu);
        let backend = layout::Backend {
            backend: BACKEND,
            instance: 1,
            name,
            device: name,
            description,
            library,
            ..Default::default()
        };
        self.put(&backend.encode());
        let member =
            layout::SchedulerBackend { scheduler: 1, backend: BACKEND, ..Default::default() };
        self.put(&member.encode());
        for what in [
            layout::Covered::Splits,
            layout::Covered::Ops,
            layout::Covered::BarrierWaits,
            layout::Covered::Fusions,
        ] {
            let coverage = layout::Coverage {
                how: layout::CoveredHow::GotSlot as u8,
                what: what as u16,
                backend: BACKEND,
                library,
                instance: 1,
                ..Default::default()
            };
            self.put(&coverage.encode());
        }
    }

    /// A prompt and its answer, token by token, in one sequence of a server.
    fn request(&mut self, most_ops: u64) {
        let cleared = layout::ContextChange {
            context: 1,
            sequence: -1,
            ticks: self.now,
            ..Default::default()
        };
        self.put(&cleared.encode());
        self.batch(0, PROMPT);
        for token in 0..ANSWER {
            if self.ops >= most_ops {
                break;
            }
            self.batch(PROMPT + token, 1);
        }
    }

    /// One call of libllama: a graph run of one split.
    fn batch(&mut self, position: u64, tokens: u64) {
        let cache = (position + tokens).next_multiple_of(CACHE_STEP);
        let shape = self.shape(tokens, cache);
        self.runs += 1;
        let run = self.runs;
        self.pass(20_000);
        if run % 64 == 1 {
            let monotonic_ns = self.now / TICKS_PER_NS;
            let sample = layout::ClockSample {
                uncertainty_ticks: 60,
                ticks: self.now,
                monotonic_ns,
                realtime_ns: self.unix_ns + monotonic_ns - START_NS,
                ..Default::default()
            };
            self.put(&sample.encode());
        }
        let sequence = layout::BatchSequence {
            sequence: 0,
            first: position as i32,
            last: (position + tokens) as i32 - 1,
            tokens: tokens as u32,
            outputs: 1,
        };
        let begin = layout::BatchBegin {
            call: run,
            context: 1,
            os_thread: 4711,
            tokens: tokens as u32,
            outputs: 1,
            sequences: 1,
            ticks: self.now,
            ..Default::default()
        };
        self.put_long(&begin.encode(), &sequence.encode());
        self.pass(30_000);
        let begin = layout::GraphRunBegin {
            run,
            scheduler: 1,
            os_thread: 4711,
            ticks: self.now,
            number: run.into(),
            ..Default::default()
        };
        self.put(&begin.encode());
        self.split(run, shape, tokens);
        let end = layout::GraphRunEnd { run, splits: 1, ticks: self.now, ..Default::default() };
        self.put(&end.encode());
        self.pass(8_000);
        let end = layout::BatchEnd { call: run, ticks: self.now, ..Default::default() };
        self.put(&end.encode());
    }

    fn split(&mut self, split: u32, shape: usize, tokens: u64) {
        let begin_ticks = self.now;
        let (number, nodes) = (self.shapes[shape].1.number, self.shapes[shape].1.nodes);
        let begin = layout::SplitBegin {
            split,
            run: split,
            backend: BACKEND,
            ticks: begin_ticks,
            shape: number,
            nodes,
            ..Default::default()
        };
        self.put(&begin.encode());
        let ops = self.shapes[shape].1.costs.len();
        for at in 0..ops {
            let (position, cost_ns) = self.shapes[shape].1.costs[at];
            let ns = cost_ns * tokens.div_ceil(8) * self.slowness / 1000;
            let busy = ns * TICKS_PER_NS + self.random(2_000);
            let wait = self.random(500);
            let op = layout::OpEvent {
                flags: layout::MEASURED_HOST | 4 << layout::OP_SHIFT_BIT,
                threads: THREADS,
                split,
                position,
                start: ((self.now - begin_ticks) >> 4) as u32,
                duration: ((busy + wait) >> 4) as u32,
                busy_sum: ((busy * u64::from(THREADS)) >> 4) as u32,
                busy_max: (busy >> 4) as u32,
                wait_sum: ((wait * u64::from(THREADS)) >> 4) as u32,
            };
            self.put(&op.encode());
            self.now += busy + wait + 64;
        }
        self.ops += ops as u64;
        let end = layout::SplitEnd {
            threads: THREADS,
            split,
            ops: ops as u32,
            ticks: self.now,
            agent_ticks: 9_000,
            ..Default::default()
        };
        self.put(&end.encode());
    }

    /// The graph for so many tokens and such a cache; described at its first use.
    fn shape(&mut self, tokens: u64, cache: u64) -> usize {
        if let Some(at) = self.shapes.iter().position(|(key, _)| *key == (tokens, cache)) {
            return at;
        }
        let mut numbers =
            vec![self.node("GET_ROWS", "embd", &[(Q4_0, [2048, 32000])], [2048, tokens])];
        let mut costs = vec![(0, 3_000)];
        for layer in 0..LAYERS {
            for (op, name, weight, size, computes, ns) in LAYER {
                let size = [size[0], tokens];
                let mut sources = Vec::new();
                if let Some((type_id, ne)) = weight {
                    sources.push((*type_id, [ne[0], if ne[1] == 1 { cache } else { ne[1] }]));
                }
                sources.push((F32, size));
                if *computes {
                    costs.push((numbers.len() as u32, *ns));
                }
                numbers.push(self.node(op, &format!("{name}-{layer}"), &sources, size));
            }
        }
        costs.push((numbers.len() as u32, 1_200_000));
        let output = [(Q4_0, [2048, 32000]), (F32, [2048, 1])];
        numbers.push(self.node("MUL_MAT", "result_output", &output, [32000, 1]));
        let number = self.shapes.len() as u32 + 1;
        let nodes = numbers.len() as u32;
        let head = layout::GraphShape { shape: number, count: nodes, ..Default::default() };
        let tail: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.put_long(&head.encode(), &tail);
        self.shapes.push(((tokens, cache), Shape { number, nodes, costs }));
        self.shapes.len() - 1
    }

    fn node(&mut self, op: &str, name: &str, sources: &[(u32, [u64; 2])], ne: [u64; 2]) -> u32 {
        let (op_name, name) = (self.text(op), self.text(name));
        self.nodes += 1;
        let dims = |ne: [u64; 2]| [ne[0] as i64, ne[1] as i64, 1, 1];
        let strides = |ne: [u64; 2]| [4, 4 * ne[0], 4 * ne[0] * ne[1], 4 * ne[0] * ne[1]];
        let node = layout::Node {
            sources: sources.len() as u8,
            node: self.nodes,
            instance: 1,
            op_name,
            name,
            type_id: F32,
            flags: 16,
            ne: dims(ne),
            nb: strides(ne),
            ..Default::default()
        };
        let mut tail = Vec::new();
        for (slot, &(type_id, ne)) in (0..).zip(sources) {
            let weight =
                if type_id == F32 { "inp".to_owned() } else { format!("w{}.weight", self.nodes) };
            let name = self.text(&weight);
            let source = layout::Source {
                type_id,
                name,
                slot,
                ne: dims(ne),
                nb: strides(ne),
                nodes_back: 0,
            };
            tail.extend(source.encode());
        }
        self.put_long(&node.encode(), &tail);
        self.nodes
    }

    /// Time in which nothing is recorded.
    fn pass(&mut self, ns: u64) {
        self.now += ns * TICKS_PER_NS + self.random(1_000);
    }

    fn random(&mut self, below: u64) -> u64 {
        self.noise = self.noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.noise >> 33) % below
    }
}
