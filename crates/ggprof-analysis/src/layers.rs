//! Which layer and which part of the model an op belongs to, read from tensor names.
//!
//! llama.cpp names tensors after their place: `Qcur-3`, `ffn_out-3`, `blk.3.attn_q.weight`,
//! `cache_k_l3`. A tensor that it leaves unnamed (`node_21`) belongs to the layer that its sources
//! come from: weights, the cache, results of other ops, their own sources if these are unnamed, too.
//! Where nothing is known of sources, it is counted with the tensor computed before it.

use ggprof_ggml::{SOFT_MAX, WHOLE_ATTENTION, copied_tensor, layer_of_weight};
use ggprof_trace::{BackendIndex, Event, EventId, GraphRunId, NodeId, StringId, Trace};
use hashbrown::HashMap;

/// Number of a transformer block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Layer(pub u32);

/// Parts that models have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Module {
    Input,
    Norm,
    Attention,
    Ffn,
    Experts,
    Recurrent,
    Residual,
    Output,
    Other,
}

impl Module {
    pub const ALL: [Self; 9] = [
        Self::Input,
        Self::Norm,
        Self::Attention,
        Self::Ffn,
        Self::Experts,
        Self::Recurrent,
        Self::Residual,
        Self::Output,
        Self::Other,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Norm => "norm",
            Self::Attention => "attention",
            Self::Ffn => "ffn",
            Self::Experts => "experts",
            Self::Recurrent => "recurrent",
            Self::Residual => "residual",
            Self::Output => "output",
            Self::Other => "other",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    pub layer: Option<Layer>,
    pub module: Module,
}

const NOWHERE: Place = Place { layer: None, module: Module::Other };

/// The place of every event. There are few different ones.
#[derive(Debug)]
pub struct Places {
    /// Of nodes whose events are all in one place: those with a name.
    of_node: Vec<Option<Place>>,
    different: Vec<Place>,
    /// One entry per event, in the order of the recording, those elsewhere last; empty if all nodes have
    /// names.
    of_event: Vec<u32>,
}

impl Places {
    #[inline]
    pub fn of(&self, event: &Event) -> Place {
        self.at(event.id, event.node)
    }

    /// The same of an event with this node.
    #[inline]
    pub(crate) fn at(&self, event: EventId, node: NodeId) -> Place {
        self.of_node[node.0 as usize]
            .unwrap_or_else(|| self.different[self.of_event[event.0 as usize] as usize])
    }

    /// Where all events of a node are; `None` if that depends on the event.
    pub fn of_node(&self, node: NodeId) -> Option<Place> {
        self.of_node[node.0 as usize]
    }
}

/// Gives each different place a number.
#[derive(Default)]
struct Numbered {
    different: Vec<Place>,
    numbers: HashMap<Place, u32>,
}

impl Numbered {
    fn number(&mut self, place: Place) -> u32 {
        *self.numbers.entry(place).or_insert_with(|| {
            self.different.push(place);
            self.different.len() as u32 - 1
        })
    }
}

pub fn places(trace: &Trace) -> Places {
    let clues: Vec<PlaceClue> = trace.nodes.ids().map(|id| clue(trace, id)).collect();
    let by_name = |clue: &PlaceClue| match clue {
        PlaceClue::Place(place) => Some(*place),
        PlaceClue::Sources { .. } => None,
    };
    let of_node: Vec<Option<Place>> = clues.iter().map(by_name).collect();
    if of_node.iter().all(Option::is_some) {
        return Places { of_node, different: Vec::new(), of_event: Vec::new() };
    }
    let mut numbered = Numbered::default();
    let number_of_node: Vec<Option<u32>> =
        of_node.iter().map(|place| place.map(|place| numbered.number(place))).collect();
    let mut computed = LatestPlaces::default();
    let mut of_event = Vec::with_capacity(trace.events.len());
    for event in trace.events.iter().chain(trace.elsewhere.iter().copied()) {
        let node = event.node.0 as usize;
        let place = computed.place(trace, &event, &clues[node]);
        computed.note(&event, place);
        of_event.push(number_of_node[node].unwrap_or_else(|| numbered.number(place)));
    }
    Places { of_node, different: numbered.different, of_event }
}

/// What was computed until now, which tells where unnamed tensors belong.
#[derive(Default)]
struct LatestPlaces {
    /// The unnamed tensors, each in its latest graph run.
    unnamed: HashMap<StringId, (Option<GraphRunId>, Place)>,
    /// The last op, with its graph run and backend.
    last: Option<((Option<GraphRunId>, BackendIndex), Place)>,
}

impl LatestPlaces {
    fn place(&mut self, trace: &Trace, event: &Event, clue: &PlaceClue) -> Place {
        let (named, sources) = match clue {
            PlaceClue::Place(place) => return *place,
            PlaceClue::Sources { place, unnamed } => (place, unnamed),
        };
        let computed = sources.iter().filter_map(|source| {
            let (run, place) = self.unnamed.get(source)?;
            (*run == event.graph_run).then_some(*place)
        });
        let source = computed.chain(*named).max_by_key(|place| place.layer);
        let source = source.filter(|place| place.layer.is_some());
        let before = self.last.filter(|(of, _)| *of == (event.graph_run, event.backend));
        let before = before.map_or(NOWHERE, |(_, place)| place);
        let layer = source.map_or(before.layer, |place| place.layer);
        // Beside an op of the same layer it is of the same part of the model.
        let beside = Some(before).filter(|before| before.layer == layer);
        let module = beside.or(source).map_or(Module::Other, |place| place.module);
        let place = Place { layer, module: module_of_op(trace, event, module) };
        if let Some(name) = trace.node(event.node).tensor_name.filter(|_| event.is_op()) {
            self.unnamed.insert(name, (event.graph_run, place));
        }
        place
    }

    fn note(&mut self, event: &Event, place: Place) {
        if event.is_op() {
            self.last = Some(((event.graph_run, event.backend), place));
        }
    }
}

/// What the description of a node tells of its place.
enum PlaceClue {
    /// Its name says it.
    Place(Place),
    /// It has no name: the latest layer that a named source belongs to, and its unnamed sources.
    Sources { place: Option<Place>, unnamed: Vec<StringId> },
}

fn clue(trace: &Trace, id: NodeId) -> PlaceClue {
    // Of a fusion any member may have a name.
    let members = trace.nodes.members(id);
    let nodes = || std::iter::once(id).chain(members.iter().copied());
    let mut names = nodes().filter_map(|node| place_of_name(trace.tensor_name(node)?));
    if let Some(place) = names.next() {
        return PlaceClue::Place(place);
    }
    let sources = || nodes().flat_map(|node| trace.nodes.source_names(node));
    let place_of_source = |&name: &StringId| {
        let name = trace.text(name);
        place_of_name(copied_tensor(name).unwrap_or(name))
    };
    let named = sources().filter_map(place_of_source);
    let place = named.max_by_key(|place| place.layer);
    let unnamed = sources().filter(|name| place_of_source(name).is_none()).copied().collect();
    PlaceClue::Sources { place, unnamed }
}

/// The module of an unnamed op: attention betrays itself, others follow the op before. A SOFT_MAX is
/// attention, too, but among experts: there it chooses them.
fn module_of_op(trace: &Trace, event: &Event, before: Module) -> Module {
    match trace.op_name(event.node) {
        WHOLE_ATTENTION => Module::Attention,
        SOFT_MAX if before != Module::Experts => Module::Attention,
        _ => before,
    }
}

/// `None` for the names that ggml makes up (`node_21`, `leaf_3`) or that say nothing.
fn place_of_name(name: &str) -> Option<Place> {
    // "Qcur-0 (reshaped)", "cache_k_l0 (view)".
    let name = name.split_whitespace().next()?;
    for made_up in ["node_", "leaf_"] {
        if name.strip_prefix(made_up).is_some_and(|rest| rest.parse::<u32>().is_ok()) {
            return None;
        }
    }
    let (stem, layer) = layer_of_name(name);
    Some(Place { layer, module: module_of_stem(stem) })
}

/// Splits the layer's number off: `ffn_out-3`, `blk.3.ffn_up`, `cache_k_l3`.
fn layer_of_name(name: &str) -> (&str, Option<Layer>) {
    if let Some((number, stem)) = layer_of_weight(name) {
        return (stem, Some(Layer(number)));
    }
    for separator in ["-", "_l"] {
        if let Some((stem, number)) = name.rsplit_once(separator)
            && let Ok(number) = number.parse()
        {
            return (stem, Some(Layer(number)));
        }
    }
    (name, None)
}

/// Longer beginnings stand before the shorter ones that they begin with.
const STEMS: &[(&str, Module)] = &[
    ("ffn_inp", Module::Residual),
    ("ffn_moe", Module::Experts),
    ("ffn_gate_exps", Module::Experts),
    ("ffn_up_exps", Module::Experts),
    ("ffn_down_exps", Module::Experts),
    ("ffn_gate_inp", Module::Experts),
    ("ffn", Module::Ffn),
    ("l_out", Module::Residual),
    ("attn", Module::Attention),
    ("Qcur", Module::Attention),
    ("Kcur", Module::Attention),
    ("Vcur", Module::Attention),
    ("kq", Module::Attention),
    ("cache_", Module::Attention),
    ("q_", Module::Attention),
    ("k_", Module::Attention),
    ("v_", Module::Attention),
    ("inp_", Module::Input),
    ("embd", Module::Input),
    ("token_embd", Module::Input),
    ("result_", Module::Output),
    ("output", Module::Output),
    ("norm", Module::Norm),
    ("ssm", Module::Recurrent),
    ("conv", Module::Recurrent),
    ("time_mix", Module::Recurrent),
    ("rwkv", Module::Recurrent),
];

fn module_of_stem(stem: &str) -> Module {
    let known = STEMS.iter().find(|(start, _)| stem.starts_with(start));
    known.map_or(Module::Other, |(_, module)| *module)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    #[test]
    fn names() {
        for (name, expected) in [
            ("Qcur-0", "0 attention"),
            ("Qcur-12 (reshaped)", "12 attention"),
            ("kqv_out-3", "3 attention"),
            ("cache_v_l15 (view)", "15 attention"),
            ("blk.31.ffn_up.weight", "31 ffn"),
            ("blk.7.ffn_gate_exps.weight", "7 experts"),
            ("ffn_moe_topk-2", "2 experts"),
            ("ffn_out-9", "9 ffn"),
            ("ffn_inp-9", "9 residual"),
            ("l_out-9", "9 residual"),
            ("norm-1", "1 norm"),
            ("inp_embd", "- input"),
            ("embd", "- input"),
            ("result_output", "- output"),
            ("result_norm", "- output"),
            ("h-99999999999999", "- other"),
            ("whatever", "- other"),
            ("node_21", "unnamed"),
            ("leaf_3", "unnamed"),
            ("node_x", "- other"),
            ("", "unnamed"),
        ] {
            let found = match place_of_name(name) {
                None => "unnamed".to_owned(),
                Some(Place { layer, module }) => {
                    let layer = layer.map_or("-".to_owned(), |layer| layer.0.to_string());
                    format!("{layer} {}", module.name())
                }
            };
            assert_eq!(found, expected, "{name}");
        }
    }

    fn found(text: &str) -> Vec<(Option<u32>, &'static str)> {
        let trace = text_fixture::parse(&format!("backend 0 GPU gpu\nbackend 1 CPU cpu\n{text}"));
        let told = |place: Place| (place.layer.map(|layer| layer.0), place.module.name());
        let places = places(&trace);
        trace.events.iter().map(|event| told(places.of(&event))).collect()
    }

    #[test]
    fn unnamed_ops_belong_where_their_sources_come_from() {
        assert_eq!(
            found(
                "run 0..10
                 run 10..20
                 op GPU ADD 0..1 l_out-2 run=0
                 op CPU MUL_MAT 1..2 node_7 run=0 from=blk.3.ffn_up.weight,CPU#l_out-2#0
                 op CPU GLU 2..3 node_8 run=0 from=node_7
                 op GPU ADD 3..4 node_9 run=0 from=CUDA0#node_8#0,l_out-2
                 op GPU ADD 4..5 node_3 run=0 from=cache_k_l9
                 op CPU GLU 12..13 node_8 run=1 from=node_7"
            ),
            [
                (Some(2), "residual"),
                (Some(3), "ffn"),
                (Some(3), "ffn"),
                (Some(2), "residual"),
                (Some(9), "attention"),
                (None, "other"),
            ]
        );
    }

    #[test]
    fn of_unnamed_ops_the_choice_of_experts_is_no_attention() {
        let found = found(
            "run 0..10
             op GPU MUL_MAT 0..1 kq-3 run=0
             op GPU SOFT_MAX 1..2 node_7 run=0 from=kq-3
             op GPU ADD 2..3 ffn_inp-3 run=0
             op GPU SOFT_MAX 3..4 node_8 run=0
             op GPU MUL_MAT 4..5 ffn_moe_logits-3 run=0
             op GPU SOFT_MAX 5..6 node_9 run=0 from=ffn_moe_logits-3",
        );
        let parts: Vec<_> = found.into_iter().map(|(_, part)| part).collect();
        assert_eq!(
            parts,
            ["attention", "attention", "residual", "attention", "experts", "experts"]
        );
    }

    #[test]
    fn a_fusion_has_the_name_of_any_of_its_nodes() {
        let found = found(
            "op CPU RMS_NORM 0..1 node_1 f32[8] <- f32[8]
             with MUL attn_norm-4 f32[8] <- f32[8]@0 f32[8]",
        );
        assert_eq!(found, [(Some(4), "attention")]);
    }

    #[test]
    fn unnamed_ops_follow_the_op_before_in_the_same_run_and_backend() {
        let trace = text_fixture::parse(
            "backend 0 GPU gpu
             backend 1 CPU cpu
             run 0..10
             run 10..20
             op GPU MUL_MAT 0..1 Kcur-4 run=0
             op GPU FLASH_ATTN_EXT 1..2 node_21 run=0
             op GPU ADD 2..3 ffn_out-4 run=0
             op GPU ADD 3..4 node_22 run=0
             op CPU ADD 4..5 node_23 run=0
             op GPU ADD 10..11 node_1 run=1",
        );
        let known = places(&trace);
        let places: Vec<_> = trace
            .events
            .iter()
            .map(|event| known.of(&event))
            .map(|place| (place.layer.map(|layer| layer.0), place.module.name()))
            .collect();
        assert_eq!(
            places,
            [
                (Some(4), "attention"),
                (Some(4), "attention"),
                (Some(4), "ffn"),
                (Some(4), "ffn"),
                (None, "other"),
                (None, "other"),
            ]
        );
    }
}
