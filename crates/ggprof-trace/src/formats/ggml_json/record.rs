//! One record, parsed in full: any order of keys, any generation, and everything is checked.

use super::fusion::{self, LinkEntry, MemberEntry};
use super::sub_ops;
use crate::model::{
    CopyDirection, EventKind, Measured, NodeId, Shape, Signature, Source, Tensor, ThreadFold, Trace,
};
use serde::Deserialize;
use std::borrow::Cow;

/// The facts of a record that change from event to event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Happening {
    pub(super) kind: EventKind,
    pub(super) backend_id: i32,
    pub(super) split_id: i32,
    pub(super) start_ns: u64,
    pub(super) duration_ns: u64,
    pub(super) bytes: u64,
    pub(super) source_backend_id: Option<i32>,
    pub(super) graph_run: Option<u32>,
    pub(super) measured: Measured,
    pub(super) threads: Option<ThreadFold>,
}

/// A record as JSON has it. Keys that are missing or null are `None`.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
struct RawRecord<'a> {
    #[serde(rename = "type")]
    kind: Option<i64>,
    #[serde(borrow, default, deserialize_with = "text")]
    name: Option<Cow<'a, str>>,
    backend_id: Option<i32>,
    split_id: Option<i32>,
    start_ns: Option<u64>,
    duration_ns: Option<u64>,
    bytes: Option<u64>,
    #[serde(borrow, default, deserialize_with = "text")]
    extra: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    tensor_name: Option<Cow<'a, str>>,
    ne: Option<Vec<i64>>,
    out_type: Option<i32>,
    ne_src: Option<Vec<Vec<i64>>>,
    nb_src: Option<Vec<Vec<i64>>>,
    type_src: Option<Vec<i32>>,
    ne_src0: Option<Vec<i64>>,
    ne_src1: Option<Vec<i64>>,
    ne_src2: Option<Vec<i64>>,
    type_src0: Option<i32>,
    type_src1: Option<i32>,
    type_src2: Option<i32>,
    op_params: Option<Vec<i32>>,
    sub_op: Option<i32>,
    // What ggprof adds.
    sub_op_name: Option<String>,
    src_names: Option<Vec<String>>,
    slot_src: Option<Vec<u8>>,
    fused_nodes: Option<Vec<MemberEntry>>,
    fused_links: Option<Vec<LinkEntry>>,
    source_backend_id: Option<i32>,
    graph_run: Option<u32>,
    measured: Option<String>,
    threads: Option<[u64; 4]>,
}

/// A string that stays in the input unless it holds escapes.
fn text<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    Ok(Option::<Text<'de>>::deserialize(input)?.map(|text| text.0))
}

/// Parses a record; the error is a clause that completes "the record was left out: …".
pub(super) fn parse(json: &[u8], trace: &mut Trace) -> Result<(Happening, NodeId), String> {
    let record: RawRecord<'_> = serde_json::from_slice(json).map_err(|error| plain(&error))?;
    let happening = happening(&record)?;
    let node = describe(&record, trace)?;
    Ok((happening, node))
}

/// serde_json's message without the position, which counts from the start of the record.
fn plain(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.rsplit_once(" at line ") {
        Some((message, _)) => message.to_owned(),
        None => message,
    }
}

fn happening(record: &RawRecord<'_>) -> Result<Happening, String> {
    let start_ns = record.start_ns.ok_or("it has no start_ns")?;
    let duration_ns = record.duration_ns.ok_or("it has no duration_ns")?;
    start_ns.checked_add(duration_ns).ok_or("its end is beyond 64 bits")?;
    let kind = match record.kind.unwrap_or(0) {
        0 => EventKind::Op,
        1 => EventKind::Copy,
        other => return Err(format!("its type {other} is neither 0 (OP) nor 1 (COPY)")),
    };
    let measured = match record.measured.as_deref() {
        None => Measured::Unknown,
        Some(name) => Measured::from_name(name).unwrap_or(Measured::Unknown),
    };
    Ok(Happening {
        kind,
        backend_id: record.backend_id.unwrap_or(0),
        split_id: record.split_id.unwrap_or(0),
        start_ns,
        duration_ns,
        bytes: record.bytes.unwrap_or(0),
        source_backend_id: record.source_backend_id,
        graph_run: record.graph_run,
        measured,
        threads: record.threads.and_then(thread_fold),
    })
}

/// The four numbers of a `threads` key; `None` if the number of threads is absurd.
pub(super) fn thread_fold([threads, busy_sum, busy_max, wait_sum]: [u64; 4]) -> Option<ThreadFold> {
    Some(ThreadFold {
        busy_sum_ns: busy_sum,
        wait_sum_ns: wait_sum,
        busy_max_ns: busy_max,
        threads: u32::try_from(threads).ok()?,
    })
}

fn describe(record: &RawRecord<'_>, trace: &mut Trace) -> Result<NodeId, String> {
    let op = record.name.as_deref().unwrap_or("unknown");
    let sub_op = record.sub_op.unwrap_or(-1);
    let sub_op_name = record.sub_op_name.as_deref().or(sub_ops::name(op, sub_op));
    let (output, sources) = match &record.ne_src {
        Some(ne_src) => (output(record)?, sources(record, ne_src)?),
        None => (Tensor::UNKNOWN, legacy_sources(record)?),
    };
    let mut op_params = [0; 16];
    for (param, value) in op_params.iter_mut().zip(record.op_params.iter().flatten()) {
        *param = *value;
    }
    let signature = Signature {
        op: trace.strings.intern(op),
        copied: CopyDirection::of_op_name(op),
        sub_op,
        sub_op_name: sub_op_name.map(|name| trace.strings.intern(name)),
        extra: record.extra.as_deref().map(|extra| trace.strings.intern(extra)),
        output,
        sources: sources.into(),
        op_params,
        members: Box::default(),
    };
    let tensor_name = record.tensor_name.as_deref().filter(|name| !name.is_empty());
    let tensor_name = tensor_name.map(|name| trace.strings.intern(name));
    let source_names = record.src_names.iter().flatten();
    let source_names: Vec<_> = source_names.map(|name| trace.strings.intern(name)).collect();
    let members = record.fused_nodes.as_deref().unwrap_or_default();
    let links = record.fused_links.as_deref().unwrap_or_default();
    Ok(fusion::intern(trace, signature, tensor_name, &source_names, (members, links)))
}

fn output(record: &RawRecord<'_>) -> Result<Tensor, String> {
    let ne = record.ne.as_deref().map_or(Ok([0; 4]), dimensions)?;
    Ok(Tensor { type_id: record.out_type.unwrap_or(-1), ne })
}

/// Third generation: lists over the sources.
fn sources(record: &RawRecord<'_>, ne_src: &[Vec<i64>]) -> Result<Vec<Source>, String> {
    let nb_src = record.nb_src.as_deref().unwrap_or_default();
    let type_src = record.type_src.as_deref().unwrap_or_default();
    let slots = record.slot_src.as_deref().unwrap_or_default();
    let mut sources = Vec::with_capacity(ne_src.len());
    for (at, ne) in ne_src.iter().enumerate() {
        let type_id = type_src.get(at).copied().unwrap_or(-1);
        let nb = nb_src.get(at).map_or(Ok([0; 4]), |nb| shape(nb))?;
        let slot = slots.get(at).copied().unwrap_or(at as u8);
        sources.push(Source { tensor: Tensor { type_id, ne: dimensions(ne)? }, nb, slot });
    }
    Ok(sources)
}

/// Second generation: three numbered keys. First: one `ne`, of the first source.
fn legacy_sources(record: &RawRecord<'_>) -> Result<Vec<Source>, String> {
    let keys = [
        (record.ne_src0.as_deref().or(record.ne.as_deref()), record.type_src0),
        (record.ne_src1.as_deref(), record.type_src1),
        (record.ne_src2.as_deref(), record.type_src2),
    ];
    let mut sources = Vec::new();
    for (ne, type_id) in keys {
        let Some(ne) = ne.map(dimensions).transpose()?.filter(|ne| *ne != [0; 4]) else { break };
        let tensor = Tensor { type_id: type_id.unwrap_or(-1), ne };
        sources.push(Source { tensor, nb: [0; 4], slot: sources.len() as u8 });
    }
    Ok(sources)
}

/// The dimensions of a tensor. Those that a shorter list leaves out, or that its writer filled up
/// with zeros, are one; if all are zero, there is no tensor.
fn dimensions(list: &[i64]) -> Result<Shape, String> {
    let mut ne = shape(list)?;
    if let Some(last) = ne.iter().rposition(|&n| n != 0) {
        ne[last + 1..].fill(1);
    }
    Ok(ne)
}

/// Four numbers; shorter lists are filled with zeros.
fn shape(list: &[i64]) -> Result<Shape, String> {
    if list.len() > 4 {
        return Err(format!("a tensor has {} dimensions, ggml's have four", list.len()));
    }
    let mut shape = [0; 4];
    shape[..list.len()].copy_from_slice(list);
    Ok(shape)
}
