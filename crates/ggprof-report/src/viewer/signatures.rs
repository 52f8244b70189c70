//! Ops with the shapes of their tensors. Ops and shapes have numbers, so that the page groups events
//! without comparing text.

use ggprof_analysis::work_of;
use ggprof_trace::{Event, Signature, Trace, shape_text};
use serde_json::{Value, json};
use std::collections::HashMap;

pub(super) struct Signatures {
    pub(super) ops: Vec<String>,
    pub(super) shapes: Vec<String>,
    numbers: Vec<Numbers>,
}

/// Places in `ops` and in `shapes`.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    pub(super) op: u32,
    pub(super) shape: u32,
}

impl Signatures {
    pub(super) fn of(trace: &Trace) -> Self {
        let (mut ops, mut shapes) = (Numbered::default(), Numbered::default());
        let number = |one: &Signature| Numbers {
            op: ops.number(trace.text(one.op).to_owned()),
            shape: shapes.number(shape(trace, one)),
        };
        let numbers = trace.nodes.signatures().map(|(_, one)| one).map(number).collect();
        Self { ops: ops.texts, shapes: shapes.texts, numbers }
    }

    pub(super) fn numbers(&self, trace: &Trace, event: &Event) -> Numbers {
        self.numbers[trace.node(event.node).signature.0 as usize]
    }

    pub(super) fn json(&self, trace: &Trace) -> Vec<Value> {
        let signatures = trace.nodes.signatures().map(|(_, one)| one);
        signatures
            .zip(&self.numbers)
            .map(|(one, numbers)| signature(trace, one, *numbers))
            .collect()
    }
}

/// Texts by their first place.
#[derive(Default)]
struct Numbered {
    texts: Vec<String>,
    known: HashMap<String, u32>,
}

impl Numbered {
    fn number(&mut self, text: String) -> u32 {
        let next = self.texts.len() as u32;
        *self.known.entry(text).or_insert_with_key(|text| {
            self.texts.push(text.clone());
            next
        })
    }
}

/// What an op reads; what it writes, if nothing is known of that.
fn shape(trace: &Trace, signature: &Signature) -> String {
    let text = |tensor| shape_text::tensor(tensor, &trace.types);
    let sources = signature.sources.iter().map(|source| text(&source.tensor));
    let sources: Vec<String> = sources.filter(|text| !text.is_empty()).collect();
    let shape = if sources.is_empty() { text(&signature.output) } else { sources.join(" × ") };
    if shape.is_empty() { "unknown shape".to_owned() } else { shape }
}

fn signature(trace: &Trace, signature: &Signature, numbers: Numbers) -> Value {
    let work = work_of(trace, signature);
    let text = |id: Option<_>| id.map(|id| trace.text(id));
    let tensor = |tensor| shape_text::tensor(tensor, &trace.types);
    json!({
        "op": numbers.op,
        "shape": numbers.shape,
        "sub": text(signature.sub_op_name),
        "extra": text(signature.extra),
        "output": tensor(&signature.output),
        "sources": signature.sources.iter().map(|it| tensor(&it.tensor)).collect::<Vec<_>>(),
        "flops": work.flops,
        "moved": work.bytes_moved(),
    })
}
