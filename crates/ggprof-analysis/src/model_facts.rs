//! What the graphs tell of the model: its size, its types, its attention. Read from the names that
//! llama.cpp gives to weights, caches and outputs; what they do not tell stays unknown.

use crate::attention::step_of;
use ggprof_ggml::{
    AttentionStep, CACHED_KEYS, CACHED_VALUES, is_matrix_product, is_weight, layer_of_weight,
};
use ggprof_trace::{NodeId, Tensor, Trace};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelFacts {
    pub layers: Option<u64>,
    /// Length of the rows between layers.
    pub embedding: Option<i64>,
    pub vocabulary: Option<i64>,
    /// Of the weights that products read.
    pub weight_bytes: Option<u64>,
    /// Types of the weights that products read, each with its share of their bytes, largest first.
    pub quantisation: Vec<(String, f64)>,
    /// Types of the cache, of keys and of values.
    pub cache_k: Option<String>,
    pub cache_v: Option<String>,
    pub flash_attention: Option<bool>,
    /// The program has other, smaller models.
    pub is_largest_of_several: bool,
}

/// Those of the largest model, where the program has several: a smaller one drafts. Nothing where they cannot
/// be told apart.
pub fn model_facts(trace: &Trace) -> ModelFacts {
    let all: Vec<NodeId> = trace.nodes.ids().collect();
    if let Some(weights) = weights(trace, &all) {
        return facts(trace, &all, &weights);
    }
    let of_each = nodes_of_schedulers(trace);
    let of_each = of_each.iter().map(|nodes| Some(facts(trace, nodes, &weights(trace, nodes)?)));
    let of_each: Option<Vec<ModelFacts>> = of_each.collect();
    let largest = of_each.and_then(|all| all.into_iter().max_by_key(|facts| facts.weight_bytes));
    largest.map_or_else(ModelFacts::default, |it| ModelFacts { is_largest_of_several: true, ..it })
}

/// A model has a scheduler, or several.
fn nodes_of_schedulers(trace: &Trace) -> Vec<Vec<NodeId>> {
    let mut nodes: BTreeMap<Option<u32>, BTreeSet<NodeId>> = BTreeMap::new();
    for (stretch, events) in trace.events.stretches() {
        let run = stretch.graph_run.and_then(|run| trace.graph_runs.get(run.0 as usize));
        let of_it = nodes.entry(run.map(|run| run.scheduler)).or_default();
        of_it.extend(trace.events.nodes_of(events));
    }
    nodes.into_values().map(|nodes| nodes.into_iter().collect()).collect()
}

fn facts(trace: &Trace, nodes: &[NodeId], weights: &BTreeMap<&str, Tensor>) -> ModelFacts {
    let output = output_product(trace, nodes);
    ModelFacts {
        layers: layers(weights),
        embedding: output.map(|(weight, _)| weight.ne[0]),
        vocabulary: output.map(|(_, product)| product.ne[0]),
        weight_bytes: bytes_by_type(trace, weights)
            .map(|bytes| bytes.values().fold(0, |sum: u64, &bytes| sum.saturating_add(bytes))),
        quantisation: quantisation(trace, weights),
        cache_k: type_of_cache(trace, nodes, CACHED_KEYS),
        cache_v: type_of_cache(trace, nodes, CACHED_VALUES),
        flash_attention: flash_attention(trace, nodes),
        is_largest_of_several: false,
    }
}

/// The largest number of threads that an op ran on.
pub fn most_threads(trace: &Trace) -> Option<u32> {
    trace.events.most_threads()
}

/// Sources of a node, with their names where the recording gives them.
fn sources(trace: &Trace, id: NodeId) -> impl Iterator<Item = (&str, Tensor)> {
    let names = trace.nodes.source_names(id).iter().map(|&name| trace.text(name));
    names.zip(trace.signature(id).sources.iter().map(|source| source.tensor))
}

/// The distinct weights that products read; `None` if one name stands for several.
fn weights<'t>(trace: &'t Trace, nodes: &[NodeId]) -> Option<BTreeMap<&'t str, Tensor>> {
    let mut weights = BTreeMap::new();
    let products = nodes.iter().filter(|&&id| is_matrix_product(trace.op_name(id)));
    for (name, tensor) in products.filter_map(|&id| sources(trace, id).next()) {
        if is_weight(name) && tensor.is_known() && *weights.entry(name).or_insert(tensor) != tensor
        {
            return None;
        }
    }
    Some(weights)
}

fn layers(weights: &BTreeMap<&str, Tensor>) -> Option<u64> {
    let numbers = weights.keys().filter_map(|name| Some(layer_of_weight(name)?.0));
    let layers = numbers.collect::<BTreeSet<u32>>().len() as u64;
    Some(layers).filter(|&layers| layers > 0)
}

/// The weight and the result of the product that gives the logits.
fn output_product(trace: &Trace, nodes: &[NodeId]) -> Option<(Tensor, Tensor)> {
    let is_output = |id: &NodeId| {
        trace.tensor_name(*id) == Some("result_output") && trace.op_name(*id) == "MUL_MAT"
    };
    let id = nodes.iter().copied().find(is_output)?;
    let signature = trace.signature(id);
    let weight = signature.sources.first()?.tensor;
    (weight.is_known() && signature.output.is_known()).then_some((weight, signature.output))
}

/// `None` without weights, or if the size of one of them is not known.
fn bytes_by_type(trace: &Trace, weights: &BTreeMap<&str, Tensor>) -> Option<BTreeMap<i32, u64>> {
    let mut by_type: BTreeMap<i32, u64> = BTreeMap::new();
    for tensor in weights.values() {
        let all = by_type.entry(tensor.type_id).or_default();
        *all = all.saturating_add(trace.types.bytes_of(tensor)?);
    }
    (!by_type.is_empty()).then_some(by_type)
}

fn quantisation(trace: &Trace, weights: &BTreeMap<&str, Tensor>) -> Vec<(String, f64)> {
    let by_type = bytes_by_type(trace, weights).unwrap_or_default();
    let all: f64 = by_type.values().map(|&bytes| bytes as f64).sum();
    let share = |(id, bytes): (i32, u64)| (trace.types.name(id), bytes as f64 / all);
    let mut shares: Vec<(String, f64)> = by_type.into_iter().map(share).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares
}

/// Views of a cache have its type, copies may have another.
pub(crate) fn cache_type(trace: &Trace, name: &str) -> Option<String> {
    type_of_cache(trace, &trace.nodes.ids().collect::<Vec<_>>(), name)
}

fn type_of_cache(trace: &Trace, nodes: &[NodeId], name: &str) -> Option<String> {
    let all = nodes.iter().flat_map(|&id| sources(trace, id));
    let cached = all.filter(|(source, _)| source.starts_with(name) && !source.contains("(copy)"));
    let types: BTreeSet<i32> = cached.map(|(_, tensor)| tensor.type_id).collect();
    (types.len() == 1).then(|| types.first().map(|&id| trace.types.name(id))).flatten()
}

fn flash_attention(trace: &Trace, nodes: &[NodeId]) -> Option<bool> {
    let has = |wanted| nodes.iter().any(|&id| step_of(trace, id) == Some(wanted));
    let flash = has(AttentionStep::Whole);
    (flash != has(AttentionStep::SoftMax)).then_some(flash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    const MODEL: &str = "backend 0 CPU cpu
         op CPU MUL_MAT 0..1 Qcur-0 f32[64,2] <- q4_0[64,64] f32[64,2] from=blk.0.attn_q.weight,norm-0
         op CPU MUL_MAT 1..2 Qcur-0 f32[64,9] <- q4_0[64,64] f32[64,9] from=blk.0.attn_q.weight,norm-0
         op CPU MUL_MAT 2..3 Qcur-1 f32[64,2] <- q4_0[64,64] f32[64,2] from=blk.1.attn_q.weight,norm-1
         op CPU MUL_MAT 3..4 kq-1 f32[32,2] <- f16[16,32] f32[16,2] from=cache_k_l1,q-1
         op CPU MUL_MAT 4..5 kqv-1 f32[32,2] <- q8_0[32,32] f32[32,2] from=cache_v_l1,kq-1
         op CPU MUL_MAT 5..6 result_output f32[512,2] <- q8_0[64,512] f32[64,2] from=output.weight,result_norm";

    #[test]
    fn what_the_names_tell() {
        let trace = text_fixture::parse(&format!("{MODEL}\nop CPU SOFT_MAX 6..7 kq_soft_max-1"));
        let facts = model_facts(&trace);
        let (q4, q8) = (2.0 * 64.0 * 64.0 / 32.0 * 18.0, 64.0 * 512.0 / 32.0 * 34.0);
        assert_eq!(
            facts,
            ModelFacts {
                layers: Some(2),
                embedding: Some(64),
                vocabulary: Some(512),
                weight_bytes: Some((q4 + q8) as u64),
                quantisation: vec![
                    ("q8_0".to_owned(), q8 / (q4 + q8)),
                    ("q4_0".to_owned(), q4 / (q4 + q8)),
                ],
                cache_k: Some("f16".to_owned()),
                cache_v: Some("q8_0".to_owned()),
                flash_attention: Some(false),
                is_largest_of_several: false,
            }
        );
    }

    const OTHER: &str = "op CPU MUL_MAT 6..7 Qcur-0 run=1 f32[32,2] <- q4_0[32,32] f32[32,2] \
                         from=blk.0.attn_q.weight,norm-0";

    #[test]
    fn of_several_models_the_largest_is_told() {
        let model = MODEL.replace(" <- ", " run=0 <- ");
        let several = format!("run 0..6 scheduler=1\nrun 6..7 scheduler=2\n{model}\n{OTHER}");
        let facts = model_facts(&text_fixture::parse(&several));
        let alone = model_facts(&text_fixture::parse(MODEL));
        assert_eq!(facts, ModelFacts { is_largest_of_several: true, ..alone });
    }

    #[test]
    fn nothing_is_told_of_models_that_share_a_scheduler_or_of_none() {
        let model = MODEL.replace(" <- ", " run=0 <- ");
        let several = format!("run 0..6\nrun 6..7\n{model}\n{OTHER}");
        for text in [&several, "backend 0 CPU cpu\nop CPU ADD 0..1 node_1"] {
            assert_eq!(model_facts(&text_fixture::parse(text)), ModelFacts::default(), "{text}");
        }
    }
}
