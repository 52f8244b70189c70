//! What the numbers of one recording become among those of all.

use super::host_clocks::ClockShift;
use crate::model::{
    Backend, BackendIndex, MemoryIndex, NodeId, ProcessIndex, Signature, SignatureId, StringId,
    Tensor, Trace, TypeInfo,
};
use hashbrown::HashMap;

/// What the numbers of one recording become.
pub(super) struct Maps {
    pub process: String,
    pub index: ProcessIndex,
    clock: ClockShift,
    strings: Vec<StringId>,
    nodes: Vec<NodeId>,
    backends: Vec<BackendIndex>,
    memories: Vec<MemoryIndex>,
}

impl Maps {
    pub(super) fn new(
        trace: &mut Trace,
        from: &Trace,
        process: ProcessIndex,
        clock: ClockShift,
    ) -> Self {
        let label = trace.processes[usize::from(process.0)].label();
        let strings: Vec<StringId> =
            from.strings.iter().map(|text| trace.strings.intern(text)).collect();
        let types = types(trace, from);
        let first = trace.backends.len();
        for backend in &from.backends {
            let called = format!("{label} {}", backend.label());
            let id = trace.backends.len() as i32;
            trace.backends.push(Backend { id, process: Some(process), called, ..backend.clone() });
        }
        let backends = (0..from.backends.len()).map(|at| BackendIndex((first + at) as u16));
        let mut memories = Vec::new();
        for kind in &from.memory_kinds {
            let known = trace.memory_kinds.iter().position(|other| other == kind);
            let place = known.unwrap_or_else(|| {
                trace.memory_kinds.push(kind.clone());
                trace.memory_kinds.len() - 1
            });
            memories.push(MemoryIndex(place as u16));
        }
        let nodes = nodes(trace, from, &strings, &types);
        Self {
            process: label,
            index: process,
            clock,
            strings,
            nodes,
            backends: backends.collect(),
            memories,
        }
    }

    pub(super) fn ns(&self, ns: u64) -> u64 {
        self.clock.ns(ns)
    }

    pub(super) fn string(&self, id: StringId) -> StringId {
        self.strings[id.index()]
    }

    pub(super) fn node(&self, id: NodeId) -> NodeId {
        self.nodes[id.0 as usize]
    }

    pub(super) fn backend(&self, index: BackendIndex) -> BackendIndex {
        self.backends[usize::from(index.0)]
    }

    pub(super) fn memory(&self, index: MemoryIndex) -> MemoryIndex {
        self.memories[usize::from(index.0)]
    }
}

/// New numbers of the types that another copy of ggml gave the same number.
fn types(trace: &mut Trace, from: &Trace) -> HashMap<i32, i32> {
    let mut numbers = HashMap::new();
    for info in from.types.iter() {
        let same = |known: &TypeInfo| {
            TypeInfo { id: 0, ..known.clone() } == TypeInfo { id: 0, ..info.clone() }
        };
        match trace.types.get(info.id) {
            Some(known) if same(known) => {}
            None => trace.types.insert(info.clone()),
            Some(_) => {
                let known = trace.types.iter().find(|known| same(known)).map(|known| known.id);
                let most = trace.types.iter().map(|known| known.id).max().unwrap_or(0);
                let id = known.unwrap_or(most.saturating_add(1));
                trace.types.insert(TypeInfo { id, ..info.clone() });
                numbers.insert(info.id, id);
            }
        }
    }
    numbers
}

fn nodes(
    trace: &mut Trace,
    from: &Trace,
    strings: &[StringId],
    types: &HashMap<i32, i32>,
) -> Vec<NodeId> {
    let string = |id: StringId| strings[id.index()];
    let tensor = |tensor: Tensor| Tensor {
        type_id: types.get(&tensor.type_id).copied().unwrap_or(tensor.type_id),
        ..tensor
    };
    let mut signatures: Vec<SignatureId> = Vec::new();
    for (_, signature) in from.nodes.signatures() {
        let mut sources = signature.sources.clone();
        sources.iter_mut().for_each(|source| source.tensor = tensor(source.tensor));
        let mut members = signature.members.clone();
        // What is part of a fusion was described before it.
        let known = |id: SignatureId| signatures.get(id.0 as usize).copied();
        members.iter_mut().for_each(|member| {
            member.signature = known(member.signature).unwrap_or(SignatureId(0))
        });
        signatures.push(trace.nodes.intern_signature(Signature {
            op: string(signature.op),
            copied: signature.copied,
            sub_op: signature.sub_op,
            sub_op_name: signature.sub_op_name.map(string),
            extra: signature.extra.map(string),
            output: tensor(signature.output),
            sources,
            op_params: signature.op_params,
            members,
        }));
    }
    let mut nodes: Vec<NodeId> = Vec::new();
    for id in from.nodes.ids() {
        let node = from.node(id);
        let signature = trace.nodes.signature(signatures[node.signature.0 as usize]).clone();
        let names: Vec<StringId> =
            from.nodes.source_names(id).iter().map(|&it| string(it)).collect();
        let members = from.nodes.members(id).iter();
        let members: Vec<NodeId> =
            members.filter_map(|member| nodes.get(member.0 as usize).copied()).collect();
        let name = node.tensor_name.map(string);
        nodes.push(trace.nodes.intern_fusion(signature, name, &names, &members));
    }
    nodes
}
