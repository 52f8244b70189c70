//! Graphs that compute a trial's nodes several times, on as many copies of what they read.

use crate::data::{Random, bytes_for};
use crate::device::Device;
use crate::ggml::{InitParams, Pointer};
use crate::library::text;
use crate::trial::{From, Node, Shape, Source, Trial};
use std::time::Instant;

/// What ggml calls memory for weights.
const USAGE_WEIGHTS: i32 = 1;
const SUCCESS: i32 = 0;

/// A trial in this ggml's numbers, with what its tensors are filled with.
pub(crate) struct Prepared<'a> {
    device: &'a Device,
    nodes: Vec<Numbered<'a>>,
    /// What was there before, each tensor once.
    leaves: Vec<Leaf<'a>>,
    /// Special memory for the weights.
    pub(crate) special: Option<(String, Pointer)>,
}

/// Bytes that a trial takes.
struct Needed {
    tensors: u64,
    /// What the sources are filled with, which stays in the host's memory.
    data: u64,
}

impl Needed {
    fn of(device: &Device, trial: &Trial) -> Self {
        let sources = trial.nodes.iter().flat_map(|node| &node.sources);
        let filled = sources.filter(|source| matches!(source.from, From::Outside(_)));
        Self {
            tensors: trial.nodes.iter().map(|node| node_bytes(device, node)).sum(),
            data: filled.map(|source| extent(device, source)).sum(),
        }
    }

    /// Whether there is room: `free` bytes of the device, and `beside` of the host's memory; `None` where that
    /// is the same.
    fn check(&self, device: &str, free: u64, beside: Option<u64>) -> Result<(), String> {
        let of_device = match beside {
            Some(_) => self.tensors,
            None => self.tensors.saturating_add(self.data),
        };
        let (needed, free, of) = match beside {
            Some(beside) if self.data > beside => (self.data, beside, "the host"),
            _ => (of_device, free, device),
        };
        if needed <= free {
            return Ok(());
        }
        Err(format!("its tensors take {} MB, and {of} has {} MB free", needed >> 20, free >> 20))
    }
}

struct Numbered<'a> {
    node: &'a Node,
    op: i32,
    params: [i32; 16],
}

struct Leaf<'a> {
    source: &'a Source,
    bytes: Vec<u8>,
    is_packed: bool,
    is_weight: bool,
}

/// What is computed at once.
pub(crate) struct Plan<'a> {
    device: &'a Device,
    context: Pointer,
    graphs: Vec<Pointer>,
    buffers: Vec<Pointer>,
    /// How often each graph computes the nodes.
    repeats: usize,
    first_outputs: Vec<Pointer>,
}

impl<'a> Prepared<'a> {
    pub(crate) fn new(device: &'a Device, trial: &'a Trial) -> Result<Self, String> {
        let mut prepared = Self { device, nodes: Vec::new(), leaves: Vec::new(), special: None };
        Needed::of(device, trial).check(
            &trial.device,
            device.free_bytes(),
            device.free_beside(),
        )?;
        let mut random = Random::new();
        for node in &trial.nodes {
            prepared.nodes.push(prepared.numbered(node)?);
            for source in &node.sources {
                check_type(device, &source.shape)?;
                if matches!(source.from, From::Outside(_)) && prepared.leaf_of(source).is_none() {
                    prepared.add_leaf(node, source, &mut random)?;
                }
            }
            check_type(device, &node.output)?;
        }
        prepared.choose_memory(trial)?;
        Ok(prepared)
    }

    fn numbered(&self, node: &'a Node) -> Result<Numbered<'a>, String> {
        let mut params = node.params;
        if let Some(function) = &node.function
            && matches!(node.op.as_str(), "UNARY" | "GLU")
        {
            params[0] = self.device.function_number(&node.op, function)?;
        }
        Ok(Numbered { node, op: self.device.op_number(&node.op)?, params })
    }

    fn add_leaf(
        &mut self,
        node: &'a Node,
        source: &'a Source,
        random: &mut Random,
    ) -> Result<(), String> {
        let packed = packed_strides(self.device, &source.shape);
        let is_packed = source.nb == packed || source.nb == [0; 4];
        let size = extent(self.device, source) as usize;
        let bytes = bytes_for(&self.device.ggml, node, source, size, random)?;
        let is_weight = ggprof_ggml::is_matrix_product(&node.op) && source.slot == 0;
        self.leaves.push(Leaf { source, bytes, is_packed, is_weight });
        Ok(())
    }

    fn leaf_of(&self, source: &Source) -> Option<usize> {
        let is_same = |leaf: &Leaf<'_>| {
            let it = leaf.source;
            it.from == source.from && it.shape == source.shape && it.nb == source.nb
        };
        self.leaves.iter().position(is_same)
    }

    /// Takes memory that rearranges weights, if the program had such and the op can be computed there.
    fn choose_memory(&mut self, trial: &Trial) -> Result<(), String> {
        if !self.leaves.iter().any(|leaf| leaf.is_weight && leaf.is_packed) {
            return Ok(());
        }
        for special in self.device.special_memory(&trial.weight_memory) {
            self.special = Some(special);
            // What this memory is not for, it may refuse.
            if self.plan(1, 1, 1).is_ok_and(|plan| plan.is_supported()) {
                return Ok(());
            }
        }
        self.special = None;
        Ok(())
    }

    /// Bytes of all that is read.
    pub(crate) fn source_bytes(&self) -> u64 {
        self.leaves.iter().map(|leaf| leaf.bytes.len() as u64).sum()
    }

    /// Graphs that compute the nodes so many times each, on copies of what they read in turn.
    pub(crate) fn plan(
        &self,
        copies: usize,
        graphs: usize,
        repeats: usize,
    ) -> Result<Plan<'a>, String> {
        let ggml = &self.device.ggml;
        let views: usize = self.nodes.iter().map(|it| it.node.sources.len()).sum();
        let of_graph = (self.nodes.len() + views + self.leaves.len()) * repeats + 16;
        let tensors = self.leaves.len() * copies + (self.nodes.len() + views) * repeats * graphs;
        // SAFETY: questions to ggml, and a context of the size that it says.
        let context = unsafe {
            let bytes = (ggml.ggml_tensor_overhead)() * (tensors + 16)
                + (ggml.ggml_graph_overhead_custom)(of_graph, false) * graphs;
            let parameters = InitParams { bytes, buffer: std::ptr::null_mut(), no_alloc: true };
            (ggml.ggml_init)(parameters)
        };
        if context.is_null() {
            return Err("ggml makes no context".to_owned());
        }
        let mut plan = Plan {
            device: self.device,
            context,
            graphs: Vec::new(),
            buffers: Vec::new(),
            repeats,
            first_outputs: Vec::new(),
        };
        let mut sets = Vec::with_capacity(copies);
        for _ in 0..copies {
            sets.push(self.leaves_in(&mut plan)?);
        }
        let mut outputs = Outputs::default();
        for graph in 0..graphs {
            // SAFETY: a context with room for it.
            plan.graphs.push(unsafe { (ggml.ggml_new_graph_custom)(context, of_graph, false) });
            for repeat in 0..repeats {
                let set = (graph * repeats + repeat) % copies;
                self.nodes_in(&mut plan, &sets[set], &mut outputs)?;
            }
        }
        Ok(plan)
    }

    /// One copy of all that is read.
    fn leaves_in(&self, plan: &mut Plan<'a>) -> Result<Vec<Pointer>, String> {
        let (ggml, layout) = (&self.device.ggml, &self.device.layout);
        let mut made = Vec::with_capacity(self.leaves.len());
        for leaf in &self.leaves {
            let Shape { type_id, ne, .. } = &leaf.source.shape;
            // SAFETY: as ggml.h asks; a tensor without data.
            let tensor = unsafe {
                if leaf.is_packed {
                    (ggml.ggml_new_tensor_4d)(plan.context, *type_id, ne[0], ne[1], ne[2], ne[3])
                } else {
                    let blocks = leaf.bytes.len().div_ceil((ggml.ggml_type_size)(*type_id)) as i64;
                    let elements = blocks * (ggml.ggml_blck_size)(*type_id);
                    (ggml.ggml_new_tensor_1d)(plan.context, *type_id, elements)
                }
            };
            let special = self.special.as_ref().filter(|_| leaf.is_weight && leaf.is_packed);
            let memory = special.map_or(self.device.memory, |(_, memory)| *memory);
            // SAFETY: memory of this device.
            let bytes = unsafe { (ggml.ggml_backend_buft_get_alloc_size)(memory, tensor) };
            let (buffer, base) = plan.allocate(memory, bytes)?;
            // SAFETY: a tensor without data, and a buffer with room for it; as many bytes as it has.
            unsafe {
                if leaf.is_weight {
                    (ggml.ggml_backend_buffer_set_usage)(buffer, USAGE_WEIGHTS);
                }
                (ggml.ggml_backend_tensor_alloc)(buffer, tensor, base);
                let bytes = (ggml.ggml_nbytes)(tensor).min(leaf.bytes.len());
                (ggml.ggml_backend_tensor_set)(tensor, leaf.bytes.as_ptr().cast(), 0, bytes);
                if !leaf.is_packed {
                    layout.set_shape(tensor, ne, &leaf.source.nb);
                }
            }
            made.push(tensor);
        }
        Ok(made)
    }

    /// One computation of all nodes. All write their results to the same places.
    fn nodes_in(
        &self,
        plan: &mut Plan<'a>,
        leaves: &[Pointer],
        outputs: &mut Outputs,
    ) -> Result<(), String> {
        let (ggml, layout) = (&self.device.ggml, &self.device.layout);
        let mut made: Vec<Pointer> = Vec::with_capacity(self.nodes.len());
        for (at, Numbered { node, op, params }) in self.nodes.iter().enumerate() {
            let [a, b, c, d] = node.output.ne;
            // SAFETY: as ggml.h asks; the fields of a tensor that no graph has yet.
            let tensor = unsafe {
                let tensor =
                    (ggml.ggml_new_tensor_4d)(plan.context, node.output.type_id, a, b, c, d);
                let (buffer, base) = outputs.place(plan, at, node, tensor)?;
                (ggml.ggml_backend_tensor_alloc)(buffer, tensor, base);
                layout.set_op(tensor, *op, params);
                if let Some(target) = target_of(node) {
                    layout.set_shape(tensor, &node.output.ne, &target.nb);
                }
                tensor
            };
            for source in &node.sources {
                let from = match source.from {
                    From::Outside(_) => self.leaf_of(source).map(|leaf| leaves[leaf]),
                    From::Node(node) => made.get(usize::from(node)).copied(),
                };
                let from = from.ok_or("a node reads what no node before it computes")?;
                let from = match source.from {
                    From::Node(of) => self.seen_as(plan, from, usize::from(of), source),
                    From::Outside(_) => from,
                };
                // SAFETY: tensors of this ggml.
                unsafe { layout.set_source(tensor, source.slot, from) };
            }
            let graph = plan.graphs.last().copied().ok_or("there is no graph")?;
            // SAFETY: a graph with room for the node.
            unsafe { (ggml.ggml_build_forward_expand)(graph, tensor) };
            made.push(tensor);
        }
        if plan.first_outputs.is_empty() {
            plan.first_outputs = made;
        }
        Ok(())
    }

    /// The result of a node, in the shape in which another one reads it.
    fn seen_as(&self, plan: &Plan<'a>, result: Pointer, of: usize, source: &Source) -> Pointer {
        let output = &self.nodes[of].node.output;
        let packed = packed_strides(self.device, &source.shape);
        if output.ne == source.shape.ne && (source.nb == packed || source.nb == [0; 4]) {
            return result;
        }
        let ggml = &self.device.ggml;
        let [a, b, c, d] = source.shape.ne;
        let [_, nb1, nb2, nb3] = source.nb.map(|stride| stride as usize);
        // SAFETY: as ggml.h asks; ggml ends this process if the view is larger than the result.
        unsafe {
            let view = (ggml.ggml_view_4d)(plan.context, result, a, b, c, d, nb1, nb2, nb3, 0);
            (ggml.ggml_backend_view_init)(view);
            self.device.layout.set_shape(view, &source.shape.ne, &source.nb);
            view
        }
    }
}

/// Where each node's result is.
#[derive(Default)]
struct Outputs(Vec<(Pointer, Pointer)>);

impl Outputs {
    fn place(
        &mut self,
        plan: &mut Plan<'_>,
        at: usize,
        node: &Node,
        tensor: Pointer,
    ) -> Result<(Pointer, Pointer), String> {
        if self.0.len() == at {
            let (ggml, memory) = (&plan.device.ggml, plan.device.memory);
            // SAFETY: memory of this device, and a tensor of its ggml.
            let packed = unsafe { (ggml.ggml_backend_buft_get_alloc_size)(memory, tensor) };
            let target = target_of(node).map_or(0, |target| extent(plan.device, target) as usize);
            self.0.push(plan.allocate(memory, packed.max(target))?);
        }
        Ok(self.0[at])
    }
}

/// What a copy writes to, which has the strides of the result.
fn target_of(node: &Node) -> Option<&Source> {
    let target = node.sources.get(1).filter(|_| node.op == "CPY")?;
    (target.shape.ne == node.output.ne).then_some(target)
}

impl Plan<'_> {
    /// A buffer of its own, and where it begins.
    fn allocate(&mut self, memory: Pointer, bytes: usize) -> Result<(Pointer, Pointer), String> {
        let ggml = &self.device.ggml;
        // SAFETY: memory of this device.
        unsafe {
            let alignment = (ggml.ggml_backend_buft_get_alignment)(memory).max(1);
            let bytes = bytes.max(1).next_multiple_of(alignment);
            let buffer = (ggml.ggml_backend_buft_alloc_buffer)(memory, bytes);
            if buffer.is_null() {
                return Err(format!("there are no {} MB for one of its tensors", bytes >> 20));
            }
            self.buffers.push(buffer);
            Ok((buffer, (ggml.ggml_backend_buffer_get_base)(buffer)))
        }
    }

    pub(crate) fn is_supported(&self) -> bool {
        let (ggml, device) = (&self.device.ggml, self.device.device);
        // SAFETY: nodes of this ggml with all their sources.
        self.first_outputs
            .iter()
            .all(|&node| unsafe { (ggml.ggml_backend_dev_supports_op)(device, node) })
    }

    /// Computes one graph after the other. What one computation of the nodes took in each, in
    /// nanoseconds.
    pub(crate) fn compute(&self) -> Result<Vec<f64>, String> {
        self.graphs.iter().map(|&graph| self.compute_one(graph)).collect()
    }

    fn compute_one(&self, graph: Pointer) -> Result<f64, String> {
        let (ggml, backend) = (&self.device.ggml, self.device.backend);
        let start = Instant::now();
        // SAFETY: a live backend, and a graph whose tensors are all in its memory. It waits for the end.
        let status = unsafe { (ggml.ggml_backend_graph_compute)(backend, graph) };
        let nanos = start.elapsed().as_nanos() as f64 / self.repeats as f64;
        if status == SUCCESS {
            Ok(nanos)
        } else {
            Err(format!("ggml failed to compute it ({status})"))
        }
    }
}

impl Drop for Plan<'_> {
    fn drop(&mut self) {
        // SAFETY: made by this plan, and used by nothing else.
        unsafe {
            self.buffers
                .iter()
                .for_each(|&buffer| (self.device.ggml.ggml_backend_buffer_free)(buffer));
            (self.device.ggml.ggml_free)(self.context);
        }
    }
}

/// Types keep their numbers; a ggml that lacks one has another name for the number, or ends.
fn check_type(device: &Device, shape: &Shape) -> Result<(), String> {
    // SAFETY: ggml checks the number, or has one for it.
    let name = unsafe { text((device.ggml.ggml_type_name)(shape.type_id)) };
    match name.as_deref() == Some(shape.type_name.as_str()) {
        true => Ok(()),
        false => Err(format!("this ggml has no type {}", shape.type_name)),
    }
}

fn packed_strides(device: &Device, shape: &Shape) -> [i64; 4] {
    // SAFETY: a type of this ggml's.
    let (block, bytes) = unsafe {
        let kind = shape.type_id;
        ((device.ggml.ggml_blck_size)(kind), (device.ggml.ggml_type_size)(kind) as i64)
    };
    let row = shape.ne[0] / block.max(1) * bytes;
    let plane = row.saturating_mul(shape.ne[1]);
    [bytes, row, plane, plane.saturating_mul(shape.ne[2])]
}

/// Bytes from the first element of a source to the last.
fn extent(device: &Device, source: &Source) -> u64 {
    let [element, row, plane, cube] = packed_strides(device, &source.shape);
    let nb = if source.nb == [0; 4] { [element, row, plane, cube] } else { source.nb };
    let ne = source.shape.ne;
    // Elements of a block lie together, so a row of blocks is as long as its last block's end.
    let first = if row == ne[0].saturating_mul(element) {
        (ne[0] - 1).max(0).saturating_mul(nb[0]).saturating_add(element)
    } else {
        row
    };
    let rest = (1..4).map(|at| (ne[at] - 1).max(0).saturating_mul(nb[at]));
    rest.fold(first, i64::saturating_add).max(0) as u64
}

fn node_bytes(device: &Device, node: &Node) -> u64 {
    let output = Source { slot: 0, shape: node.output.clone(), nb: [0; 4], from: From::Outside(0) };
    let sources = node.sources.iter().map(|source| extent(device, source));
    sources.fold(extent(device, &output), u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The processor has the tensors and what they are filled with in the same memory.
    #[test]
    fn what_fits_into_memory() {
        let needed = Needed { tensors: 100 << 20, data: 60 << 20 };
        for (free, beside, refused) in [
            (160, None, None),
            (159, None, Some("take 160 MB, and X has 159")),
            (100, Some(60), None),
            (99, Some(60), Some("take 100 MB, and X has 99")),
            (100, Some(59), Some("take 60 MB, and the host has 59")),
        ] {
            let found = needed.check("X", free << 20, beside.map(|free: u64| free << 20));
            match refused {
                None => assert_eq!(found, Ok(())),
                Some(words) => {
                    assert!(found.as_ref().is_err_and(|it| it.contains(words)), "{found:?}")
                }
            }
        }
    }
}
