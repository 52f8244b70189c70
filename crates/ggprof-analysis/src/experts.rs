//! Which experts of a model were used, how often and how evenly, layer by layer.
//!
//! Two things tell. The processor's choices were read while it computed, all of small batches and a
//! sample of large ones. And where a device takes over a node whose experts are in the host's memory,
//! the scheduler copies the experts that the batch uses and no others: each copy says which, though not
//! by how many tokens. What a device computes from its own memory leaves no trace on the host.

use crate::layers::{Layer, places};
use crate::phases::{PhaseKind, Phases};
use ggprof_trace::{Event, GraphRunId, StringId, Trace};
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;

/// More than any model has: a file that claims more is not believed.
const MOST_EXPERTS: usize = 4096;

/// What a layer's experts were known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SeenBy {
    /// Choices that the processor read: a use is a token.
    Choices,
    /// Copies to a device: a use is a graph run.
    Copies,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpertLayer {
    pub phase: Option<PhaseKind>,
    pub layer: Option<Layer>,
    pub seen_by: SeenBy,
    pub graph_runs: u64,
    /// Tokens in these graph runs, and for how many of them the choice is known; none where copies
    /// tell.
    pub tokens: u64,
    pub tokens_read: u64,
    /// How often each expert was used.
    pub uses: Vec<u64>,
    /// Bytes that were copied of its experts, over all of its tensors.
    pub copied_bytes: u64,
    /// Bytes of one expert, over all tensors of which parts were copied.
    pub expert_bytes: u64,
}

/// What would be saved if the experts that were used most were in the device's memory. An estimate:
/// it takes the future to be like the recording.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Saving {
    /// Experts a layer.
    pub experts: usize,
    /// Memory that they need, over all layers.
    pub memory_bytes: u64,
    /// Of the copied bytes.
    pub saved_bytes: u64,
    pub copied_bytes: u64,
}

impl ExpertLayer {
    pub fn used(&self) -> usize {
        self.uses.iter().filter(|&&uses| uses > 0).count()
    }

    pub fn total(&self) -> u64 {
        self.uses.iter().sum()
    }

    /// The expert that was used most, and its share of all uses.
    pub fn hottest(&self) -> Option<(usize, f64)> {
        let (expert, uses) =
            self.uses.iter().enumerate().max_by_key(|(at, uses)| (**uses, usize::MAX - at))?;
        (*uses > 0).then(|| (expert, *uses as f64 / self.total() as f64))
    }

    /// Share of all uses that the most used experts have, so many of them.
    pub fn share_of_hottest(&self, experts: usize) -> Option<f64> {
        let total = self.total();
        (total > 0).then(|| self.uses_of_hottest(experts) as f64 / total as f64)
    }

    fn uses_of_hottest(&self, experts: usize) -> u64 {
        let mut uses = self.uses.clone();
        uses.sort_unstable_by(|a, b| b.cmp(a));
        uses.iter().take(experts).sum()
    }

    /// 1 where all experts are used alike, 0 where one is used alone: the entropy of the uses, as a
    /// part of the greatest that there can be.
    pub fn evenness(&self) -> Option<f64> {
        let (total, experts) = (self.total() as f64, self.uses.len() as f64);
        if total == 0.0 || experts < 2.0 {
            return None;
        }
        let shares = self.uses.iter().filter(|&&uses| uses > 0).map(|&uses| uses as f64 / total);
        let entropy: f64 = shares.map(|share| -share * share.ln()).sum();
        Some((entropy / experts.ln()).clamp(0.0, 1.0))
    }
}

type ExpertKey = (Option<PhaseKind>, Option<Layer>, SeenBy);

/// By phase and layer.
pub fn experts(trace: &Trace, phases: &Phases) -> Vec<ExpertLayer> {
    let mut layers: BTreeMap<ExpertKey, ExpertLayer> = BTreeMap::new();
    choices(trace, phases, &mut layers);
    copies(trace, phases, &mut layers);
    layers.into_values().filter(|layer| layer.total() > 0).collect()
}

fn choices(trace: &Trace, phases: &Phases, layers: &mut BTreeMap<ExpertKey, ExpertLayer>) {
    if trace.expert_uses.is_empty() {
        return;
    }
    let places = places(trace);
    let mut layer_of_node = HashMap::new();
    for event in trace.events.iter().filter(Event::is_op) {
        layer_of_node.entry(event.node).or_insert_with(|| places.of(&event).layer);
    }
    for (of, counts) in trace.expert_uses.iter() {
        let layer = layer_of_node.get(&of.node).copied().flatten();
        let key = (phase_of(phases, of.graph_run), layer, SeenBy::Choices);
        let found = entry(layers, key, of.experts as usize);
        found.graph_runs += 1;
        found.tokens += u64::from(of.tokens);
        found.tokens_read += u64::from(of.tokens_read);
        for &(expert, uses) in counts {
            if let Some(sum) = found.uses.get_mut(usize::from(expert)) {
                *sum += u64::from(uses);
            }
        }
    }
}

/// A part of a tensor with experts that was copied.
struct CopiedPart {
    tensor: StringId,
    run: GraphRunId,
    layer: Option<Layer>,
    experts: usize,
    expert_bytes: u64,
    bytes: u64,
    first: usize,
    count: usize,
}

fn copies(trace: &Trace, phases: &Phases, layers: &mut BTreeMap<ExpertKey, ExpertLayer>) {
    let places = trace.copy_ends.iter().any(|ends| ends.offset.is_some()).then(|| places(trace));
    let Some(places) = places else { return };
    // Of several tensors of a layer the first one counts uses; all of them count bytes.
    let mut counting: HashMap<ExpertKey, StringId> = HashMap::new();
    let (mut tensors, mut runs) = (HashSet::new(), HashSet::new());
    for event in trace.events.copies() {
        let layer = places.of(&event).layer;
        let Some(part) = part(trace, &event, layer) else { continue };
        let key = (phase_of(phases, part.run), part.layer, SeenBy::Copies);
        let found = entry(layers, key, part.experts);
        found.copied_bytes = found.copied_bytes.saturating_add(part.bytes);
        if tensors.insert((key, part.tensor)) {
            found.expert_bytes = found.expert_bytes.saturating_add(part.expert_bytes);
        }
        if runs.insert((key, part.run)) {
            found.graph_runs += 1;
        }
        if *counting.entry(key).or_insert(part.tensor) == part.tensor {
            let copied = found.uses.iter_mut().skip(part.first).take(part.count);
            copied.for_each(|uses| *uses += 1);
        }
    }
}

fn part(trace: &Trace, copy: &Event, layer: Option<Layer>) -> Option<CopiedPart> {
    let offset = trace.ends_of(copy.id)?.offset?;
    let tensor = trace.signature(copy.node).sources.first()?.tensor;
    let experts = usize::try_from(tensor.ne[2]).ok().filter(|&experts| experts > 1)?;
    let expert_bytes = trace.types.bytes_of(&tensor)? / experts as u64;
    let first = usize::try_from(offset.checked_div(expert_bytes)?).ok()?;
    // ggml copies a little of the next expert as well, so that what lies behind the last is valid.
    let count = usize::try_from(copy.bytes / expert_bytes).ok()?.max(1);
    Some(CopiedPart {
        tensor: trace.node(copy.node).tensor_name?,
        run: copy.graph_run?,
        layer,
        experts,
        expert_bytes,
        bytes: copy.bytes,
        first,
        count,
    })
}

fn phase_of(phases: &Phases, run: GraphRunId) -> Option<PhaseKind> {
    let phase = *phases.phase_of_run.get(run.0 as usize)?;
    Some(phases.phases.get(phase as usize)?.kind)
}

fn entry(
    layers: &mut BTreeMap<ExpertKey, ExpertLayer>,
    key: ExpertKey,
    experts: usize,
) -> &mut ExpertLayer {
    let (phase, layer, seen_by) = key;
    let found = layers.entry(key).or_insert_with(|| ExpertLayer {
        phase,
        layer,
        seen_by,
        graph_runs: 0,
        tokens: 0,
        tokens_read: 0,
        uses: Vec::new(),
        copied_bytes: 0,
        expert_bytes: 0,
    });
    if found.uses.len() < experts {
        found.uses.resize(experts.min(MOST_EXPERTS), 0);
    }
    found
}

/// What keeping an eighth, a quarter and half of the experts would save, the most used ones of each
/// layer; nothing where none were copied.
pub fn savings(layers: &[ExpertLayer]) -> Vec<Saving> {
    // A layer's experts are the same in all phases.
    let mut copied: BTreeMap<Option<Layer>, ExpertLayer> = BTreeMap::new();
    for layer in layers.iter().filter(|layer| layer.seen_by == SeenBy::Copies) {
        match copied.get_mut(&layer.layer) {
            None => _ = copied.insert(layer.layer, layer.clone()),
            Some(sum) => {
                sum.copied_bytes = sum.copied_bytes.saturating_add(layer.copied_bytes);
                sum.expert_bytes = sum.expert_bytes.max(layer.expert_bytes);
                sum.uses.iter_mut().zip(&layer.uses).for_each(|(sum, uses)| *sum += uses);
            }
        }
    }
    let most = copied.values().map(|layer| layer.uses.len()).max().unwrap_or(0);
    let mut numbers: Vec<usize> = [8, 4, 2].into_iter().map(|part| most.div_ceil(part)).collect();
    numbers.dedup();
    let saving = |experts: usize| {
        let mut saving = Saving { experts, memory_bytes: 0, saved_bytes: 0, copied_bytes: 0 };
        for layer in copied.values() {
            let memory = layer.expert_bytes.saturating_mul(experts as u64);
            saving.memory_bytes = saving.memory_bytes.saturating_add(memory);
            saving.copied_bytes = saving.copied_bytes.saturating_add(layer.copied_bytes);
            let share = layer.share_of_hottest(experts).unwrap_or(0.0);
            let saved = (layer.copied_bytes as f64 * share) as u64;
            saving.saved_bytes = saving.saved_bytes.saturating_add(saved);
        }
        saving
    };
    numbers.into_iter().filter(|&experts| experts > 0).map(saving).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases::phases;
    use ggprof_trace::text_fixture;

    fn found(text: &str) -> Vec<ExpertLayer> {
        let trace = text_fixture::parse(text);
        experts(&trace, &phases(&trace))
    }

    #[test]
    fn choices_are_added_up_by_layer() {
        let layers = found(
            "backend 0 CPU cpu
             run 0..10
             run 10..20
             op CPU MUL_MAT_ID 0..5 ffn_moe_gate-3 f32[8] <- q4_0[32,8,4] run=0
             chosen 4 1*2 3 of=2/6
             op CPU MUL_MAT_ID 10..15 ffn_moe_gate-3 f32[8] <- q4_0[32,8,4] run=1
             chosen 4 1",
        );
        assert_eq!(layers.len(), 1);
        let layer = &layers[0];
        assert_eq!((layer.layer, layer.seen_by), (Some(Layer(3)), SeenBy::Choices));
        assert_eq!(layer.uses, [0, 3, 0, 1]);
        assert_eq!((layer.tokens, layer.tokens_read, layer.graph_runs), (7, 3, 2));
        assert_eq!(layer.hottest(), Some((1, 0.75)));
        assert_eq!((layer.used(), layer.share_of_hottest(2)), (2, Some(1.0)));
        let evenness = layer.evenness().unwrap();
        assert!((0.40..0.41).contains(&evenness), "{evenness}");
        assert_eq!(savings(&layers), []);
    }

    #[test]
    fn copies_of_parts_tell_which_experts() {
        // An expert has 8 rows of 18 bytes; some of the next one is copied too.
        let layers = found(
            "backend 0 GPU gpu
             backend 1 CPU cpu
             memory w CPU_Mapped weights host
             memory d GPU compute device
             run 0..10
             run 10..20
             copy GPU H2D 0..1 400 blk.2.ffn_up_exps.weight <- q4_0[32,8,8] run=0
             ends w d at=0
             copy GPU H2D 1..2 144 blk.2.ffn_up_exps.weight <- q4_0[32,8,8] run=0
             ends w d at=1008
             copy GPU H2D 2..3 144 blk.2.ffn_down_exps.weight <- q4_0[32,8,8] run=0
             ends w d at=1008
             copy GPU H2D 10..11 144 blk.2.ffn_up_exps.weight <- q4_0[32,8,8] run=1
             ends w d at=0
             op GPU MUL_MAT_ID 12..13 ffn_moe_up-2 f32[8] <- q4_0[32,8,8] run=1",
        );
        assert_eq!(layers.len(), 1);
        let layer = &layers[0];
        assert_eq!((layer.layer, layer.seen_by), (Some(Layer(2)), SeenBy::Copies));
        assert_eq!(layer.uses, [2, 1, 0, 0, 0, 0, 0, 1]);
        assert_eq!((layer.copied_bytes, layer.expert_bytes, layer.graph_runs), (832, 288, 2));
        let savings = savings(&layers);
        let numbers: Vec<usize> = savings.iter().map(|saving| saving.experts).collect();
        assert_eq!(numbers, [1, 2, 4]);
        assert_eq!((savings[0].memory_bytes, savings[0].saved_bytes), (288, 416));
        assert_eq!(savings[2].saved_bytes, 832);
    }
}
