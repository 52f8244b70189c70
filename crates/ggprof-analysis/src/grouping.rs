//! The same totals by op, backend, tensor shape, layer or phase.

use crate::layers::{Layer, Module, places};
use crate::node_sums::NodeSums;
use crate::phases::{PhaseKind, Phases};
use crate::totals::{Totals, sums_by_node, totals_by, totals_by_node};
use ggprof_trace::{
    BackendIndex, Event, EventKind, Signature, SignatureId, StringId, Tensor, Trace,
};
use hashbrown::HashMap;

/// One op (or copy direction) on one backend.
#[derive(Debug, Clone)]
pub struct OpRow {
    pub op: StringId,
    pub kind: EventKind,
    pub backend: BackendIndex,
    pub totals: Totals,
    /// The calls among them that computed further ops as well.
    pub fusions: Vec<FusionRow>,
}

#[derive(Debug, Clone)]
pub struct FusionRow {
    pub fusion: StringId,
    pub totals: Totals,
}

type OpGroupKey = (StringId, EventKind, BackendIndex);

pub fn by_op(trace: &Trace, sums: &NodeSums) -> Vec<OpRow> {
    let mut fusions = fusions(trace, sums);
    let rows = totals_by_node(trace, sums, |event| Some(op_key(trace, event)));
    rows.into_iter()
        .map(|(key, totals)| {
            let fusions = fusions.remove(&key).unwrap_or_default();
            let (op, kind, backend) = key;
            OpRow { op, kind, backend, totals, fusions }
        })
        .collect()
}

fn op_key(trace: &Trace, event: &Event) -> OpGroupKey {
    (trace.signature(event.node).op, event.kind, event.backend)
}

fn fusions(trace: &Trace, sums: &NodeSums) -> HashMap<OpGroupKey, Vec<FusionRow>> {
    let mut fusions: HashMap<OpGroupKey, Vec<FusionRow>> = HashMap::new();
    if trace.nodes.signatures().all(|(_, signature)| signature.extra.is_none()) {
        return fusions;
    }
    let rows = totals_by_node(trace, sums, |event| {
        let fusion = fusion_of(trace.signature(event.node), event.kind)?;
        Some((op_key(trace, event), fusion))
    });
    for ((key, fusion), totals) in rows {
        fusions.entry(key).or_default().push(FusionRow { fusion, totals });
    }
    fusions
}

/// The names of all ops that a call computed, if it was more than one.
pub fn fusion_of(signature: &Signature, kind: EventKind) -> Option<StringId> {
    signature.extra.filter(|_| kind == EventKind::Op)
}

#[derive(Debug, Clone)]
pub struct BackendRow {
    pub backend: BackendIndex,
    pub kind: EventKind,
    pub totals: Totals,
}

/// Ops and copies of each backend.
pub fn by_backend(trace: &Trace, sums: &NodeSums) -> Vec<BackendRow> {
    totals_by_node(trace, sums, |event| Some((event.backend, event.kind)))
        .into_iter()
        .map(|((backend, kind), totals)| BackendRow { backend, kind, totals })
        .collect()
}

/// All calls of one op with the same source shapes and types, on one backend.
#[derive(Debug, Clone)]
pub struct ShapeRow {
    /// One of the signatures that the row is made of; they differ in parameters or strides.
    pub signature: SignatureId,
    pub kind: EventKind,
    pub backend: BackendIndex,
    pub totals: Totals,
}

pub fn by_shape(trace: &Trace, sums: &NodeSums) -> Vec<ShapeRow> {
    shape_rows(totals_by_node(trace, sums, shape_key(trace)))
}

/// The same without percentiles.
pub(crate) fn sums_by_shape(trace: &Trace, sums: &NodeSums) -> Vec<ShapeRow> {
    shape_rows(sums_by_node(trace, sums, shape_key(trace)))
}

type ShapeKey = (SignatureId, EventKind, BackendIndex);

fn shape_key(trace: &Trace) -> impl FnMut(&Event) -> Option<ShapeKey> + '_ {
    let representatives = shape_representatives(trace);
    move |event| {
        let SignatureId(signature) = trace.node(event.node).signature;
        Some((representatives[signature as usize], event.kind, event.backend))
    }
}

fn shape_rows(rows: Vec<(ShapeKey, Totals)>) -> Vec<ShapeRow> {
    rows.into_iter()
        .map(|((signature, kind, backend), totals)| ShapeRow { signature, kind, backend, totals })
        .collect()
}

/// For every signature the first one of the same op and shapes.
pub(crate) fn shape_representatives(trace: &Trace) -> Vec<SignatureId> {
    type Shapes<'a> = (StringId, Option<StringId>, Option<&'a str>, Tensor, Vec<Tensor>);
    let mut first: HashMap<Shapes<'_>, SignatureId> = HashMap::new();
    let mut representatives = Vec::with_capacity(trace.nodes.signature_count());
    for (id, signature) in trace.nodes.signatures() {
        // A copy's extra names its tensor, which says nothing about its shape.
        let fusion = signature.extra.map(|extra| trace.text(extra));
        let fusion = fusion.filter(|_| signature.copied.is_none());
        let sources = signature.sources.iter().map(|source| source.tensor).collect();
        let key = (signature.op, signature.sub_op_name, fusion, signature.output, sources);
        representatives.push(*first.entry(key).or_insert(id));
    }
    representatives
}

/// The ops of one layer on one backend.
#[derive(Debug, Clone)]
pub struct LayerRow {
    /// `None` for what belongs to no layer.
    pub layer: Option<Layer>,
    pub backend: BackendIndex,
    pub totals: Totals,
}

/// The ops of one part of the model on one backend, over all layers.
#[derive(Debug, Clone)]
pub struct ModuleRow {
    pub module: Module,
    pub backend: BackendIndex,
    pub totals: Totals,
}

/// Layers in order (what belongs to none comes last), and parts of the model by time.
pub fn by_layer(trace: &Trace) -> (Vec<LayerRow>, Vec<ModuleRow>) {
    let places = places(trace);
    let place = |event: &Event| places.of(event);
    let layers =
        totals_by(trace, |event| event.is_op().then(|| (place(event).layer, event.backend)));
    let modules =
        totals_by(trace, |event| event.is_op().then(|| (place(event).module, event.backend)));
    let mut layers: Vec<LayerRow> = layers
        .into_iter()
        .map(|((layer, backend), totals)| LayerRow { layer, backend, totals })
        .collect();
    layers.sort_by_key(|row| (row.layer.is_none(), row.layer, row.backend));
    let modules = modules
        .into_iter()
        .map(|((module, backend), totals)| ModuleRow { module, backend, totals })
        .collect();
    (layers, modules)
}

/// One op on one backend in all phases of a kind.
#[derive(Debug, Clone)]
pub struct PhaseRow {
    pub phase: PhaseKind,
    pub op: StringId,
    pub kind: EventKind,
    pub backend: BackendIndex,
    pub totals: Totals,
}

/// Ops by phase: phases in their order, ops by time within.
pub fn by_phase(trace: &Trace, phases: &Phases) -> Vec<PhaseRow> {
    let rows =
        totals_by(trace, |event| Some((phases.kind_of_run(event.graph_run), op_key(trace, event))));
    let mut rows: Vec<PhaseRow> = rows
        .into_iter()
        .map(|((phase, (op, kind, backend)), totals)| PhaseRow { phase, op, kind, backend, totals })
        .collect();
    rows.sort_by_key(|row| row.phase);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_sums::node_sums;
    use crate::phases::phases;
    use expect_test::{Expect, expect};
    use ggprof_trace::text_fixture;
    use std::fmt::Write;

    const FIXTURE: &str = "
        backend 0 GPU gpu
        backend 1 CPU cpu
        run 0..100
        run 100..130
        op CPU GET_ROWS 0..4 embd run=0 f32[8,3] <- f32[8,9] i32[3]
        copy GPU H2D 4..8 96 embd run=0 fused=embd <- f32[8,3]
        op GPU RMS_NORM 10..20 norm-0 run=0 f32[8,3] <- f32[8,3] fused=RMS_NORM+MUL
        op GPU MUL_MAT 20..50 Qcur-0 run=0 f32[8,3] <- f32[8,8] f32[8,3]
        op GPU MUL_MAT 50..70 Qcur-1 run=0 f32[8,3] <- f32[8,8] f32[8,3]
        op GPU MUL_MAT 70..80 result_output run=0 f32[9,1] <- f32[8,9] f32[8,1]
        op CPU GET_ROWS 100..100 embd run=1 f32[8,1] <- f32[8,9] i32[1]
        op GPU MUL_MAT 100..110 Qcur-0 run=1 f32[8,1] <- f32[8,8] f32[8,1]
        op GPU RMS_NORM 110..115 norm-1 run=1 f32[8,1] <- f32[8,1]";

    fn check(rows: impl Fn(&Trace) -> Vec<(String, Totals)>, expected: Expect) {
        let trace = text_fixture::parse(FIXTURE);
        let mut text = String::new();
        for (key, totals) in rows(&trace) {
            let Totals { count, total_ns, .. } = totals;
            writeln!(text, "{key}: {count} calls, {total_ns} ns").unwrap();
        }
        expected.assert_eq(&text);
    }

    #[test]
    fn ops_with_their_fusions() {
        check(
            |trace| {
                let mut rows = Vec::new();
                for row in by_op(trace, &node_sums(trace)) {
                    let backend = &trace.backend(row.backend).name;
                    let key = format!("{} {} {backend}", row.kind.name(), trace.text(row.op));
                    rows.push((key, row.totals));
                    for fusion in row.fusions {
                        rows.push((format!("  {}", trace.text(fusion.fusion)), fusion.totals));
                    }
                }
                rows
            },
            expect![[r#"
                OP MUL_MAT GPU: 4 calls, 70 ns
                OP RMS_NORM GPU: 2 calls, 15 ns
                  RMS_NORM+MUL: 1 calls, 10 ns
                OP GET_ROWS CPU: 2 calls, 4 ns
                COPY copy_H2D GPU: 1 calls, 4 ns
            "#]],
        );
    }

    #[test]
    fn shapes() {
        check(
            |trace| {
                let rows = by_shape(trace, &node_sums(trace)).into_iter();
                rows.map(|row| {
                    let signature = trace.nodes.signature(row.signature);
                    let ne = signature.sources.last().unwrap().tensor.ne;
                    (format!("{} {ne:?}", trace.text(signature.op)), row.totals)
                })
                .collect()
            },
            expect![[r#"
                MUL_MAT [8, 3, 1, 1]: 2 calls, 50 ns
                RMS_NORM [8, 3, 1, 1]: 1 calls, 10 ns
                MUL_MAT [8, 1, 1, 1]: 1 calls, 10 ns
                MUL_MAT [8, 1, 1, 1]: 1 calls, 10 ns
                RMS_NORM [8, 1, 1, 1]: 1 calls, 5 ns
                GET_ROWS [3, 1, 1, 1]: 1 calls, 4 ns
                copy_H2D [8, 3, 1, 1]: 1 calls, 4 ns
                GET_ROWS [1, 1, 1, 1]: 1 calls, 0 ns
            "#]],
        );
    }

    #[test]
    fn layers_and_modules() {
        check(
            |trace| {
                let (layers, modules) = by_layer(trace);
                let layers = layers.into_iter().map(|row| (format!("{:?}", row.layer), row.totals));
                let modules =
                    modules.into_iter().map(|row| (row.module.name().to_owned(), row.totals));
                layers.chain(modules).collect()
            },
            expect![[r#"
                Some(Layer(0)): 3 calls, 50 ns
                Some(Layer(1)): 2 calls, 25 ns
                None: 1 calls, 10 ns
                None: 2 calls, 4 ns
                attention: 3 calls, 60 ns
                norm: 2 calls, 15 ns
                output: 1 calls, 10 ns
                input: 2 calls, 4 ns
            "#]],
        );
    }

    #[test]
    fn backends_and_phases() {
        check(
            |trace| {
                let backends = by_backend(trace, &node_sums(trace)).into_iter().map(|row| {
                    let name = &trace.backend(row.backend).name;
                    (format!("{name} {}", row.kind.name()), row.totals)
                });
                let phases = phases(trace);
                let ops = by_phase(trace, &phases)
                    .into_iter()
                    .map(|row| (format!("{:?} {}", row.phase, trace.text(row.op)), row.totals));
                backends.chain(ops).collect()
            },
            expect![[r#"
                GPU OP: 6 calls, 85 ns
                CPU OP: 2 calls, 4 ns
                GPU COPY: 1 calls, 4 ns
                Prompt MUL_MAT: 3 calls, 60 ns
                Prompt RMS_NORM: 1 calls, 10 ns
                Prompt GET_ROWS: 1 calls, 4 ns
                Prompt copy_H2D: 1 calls, 4 ns
                Generation MUL_MAT: 1 calls, 10 ns
                Generation RMS_NORM: 1 calls, 5 ns
                Generation GET_ROWS: 1 calls, 0 ns
            "#]],
        );
    }
}
