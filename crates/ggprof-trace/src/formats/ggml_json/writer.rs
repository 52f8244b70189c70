//! Writes a trace as ggml profiler JSON, version 3.
//!
//! Both generations of ggml's own analysis script can open it: it has the third-generation keys,
//! and `ne_src0..2` for the older one. What ggprof knows beyond that is under keys that those
//! scripts ignore. Everything that changes from event to event comes before the description of the
//! tensor, because that order is fast to read (`fast_record.rs`).

use super::{fusion, header};
use crate::model::{Event, Measured, NodeId, Shape, Trace};
use std::io::{self, Write};

/// Writes `trace` to `out`, which should be buffered.
pub fn write(trace: &Trace, mut out: impl Write) -> io::Result<()> {
    let total_ns: u128 = trace.events.durations().map(u128::from).sum();
    writeln!(out, "{{\n  \"version\": 3,\n  \"profiler\": \"ggml\",")?;
    writeln!(out, "  \"total_records\": {},", trace.events.len())?;
    writeln!(out, "  \"total_ns\": {total_ns},\n  \"backends\": [")?;
    for (at, backend) in trace.backends.iter().enumerate() {
        write!(out, "    {{\"id\": {}, \"name\": ", backend.id)?;
        string(&mut out, &backend.name)?;
        out.write_all(b", \"device\": ")?;
        string(&mut out, &backend.device)?;
        if !backend.description.is_empty() {
            out.write_all(b", \"description\": ")?;
            string(&mut out, &backend.description)?;
        }
        let last = at + 1 == trace.backends.len();
        let device_type = backend.device_type.to_ggml();
        writeln!(out, ", \"device_type\": {device_type}}}{}", if last { "" } else { "," })?;
    }
    out.write_all(b"  ],\n  \"records\": [\n")?;
    let mut descriptions = Descriptions::new(trace);
    for event in trace.events.iter() {
        if event.id.0 > 0 {
            out.write_all(b",\n")?;
        }
        out.write_all(b"    {")?;
        happening(&mut out, trace, &event)?;
        out.write_all(descriptions.of(&event))?;
        out.write_all(b"}")?;
    }
    out.write_all(b"\n  ],\n  \"ggprof\": ")?;
    serde_json::to_writer(&mut out, &header::additions_of(trace))?;
    out.write_all(b"\n}\n")
}

/// The members that change from event to event.
fn happening(out: &mut impl Write, trace: &Trace, event: &Event) -> io::Result<()> {
    write_number(out, b"\"type\": ", event.kind as u8)?;
    out.write_all(b", \"name\": ")?;
    string(out, trace.op_name(event.node))?;
    write_number(out, b", \"backend_id\": ", trace.backend(event.backend).id)?;
    write_number(out, b", \"split_id\": ", event.split)?;
    write_number(out, b", \"start_ns\": ", event.start_ns)?;
    write_number(out, b", \"duration_ns\": ", event.duration_ns)?;
    write_number(out, b", \"bytes\": ", event.bytes)?;
    if let Some(backend) = event.source_backend {
        write_number(out, b", \"source_backend_id\": ", trace.backend(backend).id)?;
    }
    if let Some(run) = event.graph_run {
        write_number(out, b", \"graph_run\": ", run.0)?;
    }
    if event.measured != Measured::Unknown {
        write!(out, ", \"measured\": \"{}\"", event.measured.name())?;
    }
    if let Some(fold) = trace.events.threads(event.id) {
        let (busy_sum, busy_max) = (fold.busy_sum_ns, fold.busy_max_ns);
        let (threads, wait_sum) = (fold.threads, fold.wait_sum_ns);
        write!(out, ", \"threads\": [{threads}, {busy_sum}, {busy_max}, {wait_sum}]")?;
    }
    Ok(())
}

fn write_number(out: &mut impl Write, key: &[u8], number: impl itoa::Integer) -> io::Result<()> {
    out.write_all(key)?;
    out.write_all(itoa::Buffer::new().format(number).as_bytes())
}

fn string(out: &mut impl Write, text: &str) -> io::Result<()> {
    Ok(serde_json::to_writer(out, text)?)
}

/// The members that describe an event's tensor, written once per node.
struct Descriptions<'a> {
    trace: &'a Trace,
    /// By node: where its text stands in `text`; empty while it was not asked for.
    ranges: Vec<(usize, usize)>,
    text: Vec<u8>,
}

impl<'a> Descriptions<'a> {
    fn new(trace: &'a Trace) -> Self {
        Self { trace, ranges: vec![(0, 0); trace.nodes.len()], text: Vec::new() }
    }

    fn of(&mut self, event: &Event) -> &[u8] {
        let node = event.node.0 as usize;
        if self.ranges[node] == (0, 0) {
            let start = self.text.len();
            describe(&mut self.text, self.trace, event.node);
            self.ranges[node] = (start, self.text.len());
        }
        let (start, end) = self.ranges[node];
        &self.text[start..end]
    }
}

fn describe(out: &mut Vec<u8>, trace: &Trace, node: NodeId) {
    let (signature, tensor_name) = (trace.signature(node), trace.tensor_name(node));
    let mut members = String::new();
    let mut member = |key: &str, value: String| {
        members.push_str(", \"");
        members.push_str(key);
        members.push_str("\": ");
        members.push_str(&value);
    };
    let sources = &signature.sources;
    let list = |items: Vec<String>| format!("[{}]", items.join(", "));
    let text = |text: Option<&str>| text.map_or("null".to_owned(), json_string);

    member("extra", text(signature.extra.map(|extra| trace.text(extra))));
    member("tensor_name", text(tensor_name));
    member("ne", numbers(&signature.output.ne));
    member("out_type", signature.output.type_id.to_string());
    member("n_src", sources.len().to_string());
    member("ne_src", list(sources.iter().map(|source| numbers(&source.tensor.ne)).collect()));
    member("nb_src", list(sources.iter().map(|source| numbers(&source.nb)).collect()));
    let types = sources.iter().map(|source| source.tensor.type_id.to_string());
    member("type_src", list(types.collect()));
    member("op_params", list(signature.op_params.iter().map(i32::to_string).collect()));
    member("sub_op", signature.sub_op.to_string());
    if let Some(name) = signature.sub_op_name {
        member("sub_op_name", json_string(trace.text(name)));
    }
    let source_names = trace.nodes.source_names(node);
    if !source_names.is_empty() {
        let names = source_names.iter().map(|&name| json_string(trace.text(name)));
        member("src_names", list(names.collect()));
    }
    // The lists have no gaps; their reader counts on, unless it is told.
    let slots = fusion::slots_with_gaps(sources);
    if !slots.is_empty() {
        member("slot_src", list(slots.iter().map(u8::to_string).collect()));
    }
    if let Some((members, links)) = fusion::entries(trace, node) {
        member("fused_nodes", serde_json::json!(members).to_string());
        member("fused_links", serde_json::json!(links).to_string());
    }
    for (at, key) in ["ne_src0", "ne_src1", "ne_src2"].into_iter().enumerate() {
        member(key, numbers(&sources.get(at).map_or([0; 4], |source| source.tensor.ne)));
    }
    out.extend_from_slice(members.as_bytes());
}

fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn numbers(shape: &Shape) -> String {
    let [a, b, c, d] = shape;
    format!("[{a}, {b}, {c}, {d}]")
}
