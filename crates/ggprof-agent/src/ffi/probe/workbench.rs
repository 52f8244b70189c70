//! Makes tensors and graphs in a context of the agent's own. Programs with ggml linked in keep only
//! the functions that they use, so each object is made with whichever of several functions exists.

use std::ops::Range;

use crate::ffi::api::{InitParams, Makers, Pointer};

/// Numbers of ggml's types: they are only ever added to, and these are old.
pub(super) const F32: i32 = 0;
pub(super) const OTHER_TYPES: [i32; 2] = [1, 8];
/// Enough for a few tensors and for two dozen graphs of the usual size.
const CONTEXT_BYTES: usize = 8 << 20;
/// More than any tensor has, less than lies behind each of ours.
const MOST_TENSOR_BYTES: usize = 4096;
const GRAPH_SIZE: usize = 37;

const MISSING: &str = "this ggml lacks a function that is needed to find out its struct layouts";

/// In a child only: nothing is ever given back.
pub(super) struct Workbench<'a> {
    pub(super) makers: &'a Makers,
    context: Pointer,
    memory: Range<usize>,
    /// What a tensor takes, or a little more.
    pub(super) tensor_bytes: usize,
}

impl<'a> Workbench<'a> {
    pub(super) fn new(makers: &'a Makers) -> Result<Workbench<'a>, &'static str> {
        // Zeroed, so that what ggml leaves untouched does not look like a value it wrote.
        let memory = vec![0_u128; CONTEXT_BYTES / size_of::<u128>()].leak();
        let start = memory.as_mut_ptr() as usize;
        let params = InitParams::new(CONTEXT_BYTES, start as Pointer);
        let init = makers.ggml_init.ok_or(MISSING)?;
        // SAFETY: the public way to make a context, in memory that is aligned as ggml asks.
        let context = unsafe { init(params) };
        if context.is_null() {
            return Err("ggml could not create a context to find out its struct layouts");
        }
        let memory = start..start + CONTEXT_BYTES;
        let mut bench = Workbench { makers, context, memory, tensor_bytes: 0 };
        let [first, second] = [bench.vector(F32, 1)?, bench.vector(F32, 1)?];
        let apart = (second as usize).wrapping_sub(first as usize);
        if !(64..MOST_TENSOR_BYTES).contains(&apart) || !bench.holds(second as u64) {
            return Err("ggml's tensors are not in the memory of their context");
        }
        bench.tensor_bytes = apart;
        Ok(bench)
    }

    /// Whether a value points into the context's memory.
    pub(super) fn holds(&self, value: u64) -> bool {
        self.memory.contains(&(value as usize))
    }

    /// A tensor of one dimension.
    pub(super) fn vector(&self, type_id: i32, elements: i64) -> Result<Pointer, &'static str> {
        self.shaped(type_id, [elements, 1, 1, 1])
    }

    /// A tensor of any shape for which there is a function.
    pub(super) fn shaped(&self, type_id: i32, ne: [i64; 4]) -> Result<Pointer, &'static str> {
        let (makers, context) = (self.makers, self.context);
        let dimensions = 4 - ne.iter().rev().take_while(|&&n| n == 1).count();
        // SAFETY: as ggml's header asks.
        let tensor = unsafe {
            if let Some(new) = makers.ggml_new_tensor_1d.filter(|_| dimensions <= 1) {
                new(context, type_id, ne[0])
            } else if let Some(new) = makers.ggml_new_tensor_2d.filter(|_| dimensions <= 2) {
                new(context, type_id, ne[0], ne[1])
            } else if let Some(new) = makers.ggml_new_tensor_3d.filter(|_| dimensions <= 3) {
                new(context, type_id, ne[0], ne[1], ne[2])
            } else if let Some(new) = makers.ggml_new_tensor_4d {
                new(context, type_id, ne[0], ne[1], ne[2], ne[3])
            } else if let Some(new) = makers.ggml_new_tensor {
                new(context, type_id, 4, ne.as_ptr())
            } else {
                return Err(MISSING);
            }
        };
        (!tensor.is_null()).then_some(tensor).ok_or("ggml could not create a tensor")
    }

    /// The most dimensions that a tensor can be made with.
    pub(super) fn most_dimensions(&self) -> usize {
        let makers = self.makers;
        if makers.ggml_new_tensor_4d.is_some() || makers.ggml_new_tensor.is_some() {
            4
        } else if makers.ggml_new_tensor_3d.is_some() {
            3
        } else {
            2
        }
    }

    /// Nodes of different ops over two matrices, each with what ggml calls its op and both as its
    /// first sources.
    pub(super) fn binaries(
        &self,
        a: Pointer,
        b: Pointer,
    ) -> impl Iterator<Item = (Pointer, &'static [u8])> {
        let makers = self.makers;
        let functions = [
            (makers.ggml_add, &b"ADD"[..]),
            (makers.ggml_mul, b"MUL"),
            (makers.ggml_mul_mat, b"MUL_MAT"),
            (makers.ggml_sub, b"SUB"),
            (makers.ggml_div, b"DIV"),
        ];
        let context = self.context;
        functions.into_iter().filter_map(move |(make, op)| {
            // SAFETY: as ggml's header asks: two tensors of one shape.
            Some((unsafe { make?(context, a, b) }, op))
        })
    }

    /// Nodes of different ops over one tensor.
    pub(super) fn unaries(&self, a: Pointer) -> impl Iterator<Item = (Pointer, &'static [u8])> {
        let makers = self.makers;
        let functions = [
            (makers.ggml_sqr, &b"SQR"[..]),
            (makers.ggml_sqrt, b"SQRT"),
            (makers.ggml_cont, b"CONT"),
        ];
        let context = self.context;
        functions.into_iter().filter_map(move |(make, op)| {
            // SAFETY: as ggml's header asks.
            Some((unsafe { make?(context, a) }, op))
        })
    }

    /// One node over two sources.
    pub(super) fn node(&self, a: Pointer, b: Pointer) -> Result<Pointer, &'static str> {
        self.binaries(a, b).next().map(|(node, _)| node).ok_or(MISSING)
    }

    /// A node that has the number among its parameters.
    pub(super) fn with_parameter(&self, a: Pointer, value: f32) -> Result<Pointer, &'static str> {
        let makers = self.makers;
        // Before 2024 a scale took a tensor: so the norms come first.
        let make = makers.ggml_rms_norm.or(makers.ggml_norm).or(makers.ggml_scale);
        // SAFETY: as ggml's header asks.
        Ok(unsafe { make.ok_or(MISSING)?(self.context, a, value) })
    }

    /// A view of a square matrix.
    pub(super) fn view(&self, a: Pointer) -> Result<Pointer, &'static str> {
        let (makers, context) = (self.makers, self.context);
        // SAFETY: as ggml's header asks; the views lie within the matrix.
        unsafe {
            if let Some(view) = makers.ggml_view_1d {
                Ok(view(context, a, 3, 8))
            } else if let Some(view) = makers.ggml_view_2d {
                Ok(view(context, a, 2, 2, 16, 0))
            } else if let Some(transpose) = makers.ggml_transpose {
                Ok(transpose(context, a))
            } else {
                Err(MISSING)
            }
        }
    }

    /// Sets a name of 1023 letters `x`, of which ggml keeps as many as there is room for.
    pub(super) fn name(&self, tensor: Pointer) -> Result<(), &'static str> {
        const LONG: [u8; 1024] = {
            let mut long = [b'x'; 1024];
            long[1023] = 0;
            long
        };
        let set = self.makers.ggml_set_name.or(self.makers.ggml_format_name).ok_or(MISSING)?;
        // SAFETY: as ggml's header asks; the name has nothing in it to be filled in.
        unsafe { set(tensor, LONG.as_ptr().cast()) };
        Ok(())
    }

    /// Sets one of the tensor's flags; `None` before there were flags.
    pub(super) fn flag(&self, tensor: Pointer) -> Option<()> {
        let set = self.makers.ggml_set_input.or(self.makers.ggml_set_output)?;
        // SAFETY: as ggml's header asks.
        unsafe { set(tensor) };
        Some(())
    }

    /// A graph of all that the node needs.
    pub(super) fn graph_of(&self, node: Pointer) -> Result<Pointer, &'static str> {
        let expand = self.makers.ggml_build_forward_expand.ok_or(MISSING)?;
        // SAFETY: as ggml's header asks.
        unsafe {
            let graph = if let Some(new) = self.makers.ggml_new_graph_custom {
                new(self.context, GRAPH_SIZE, false)
            } else {
                self.makers.ggml_new_graph.ok_or(MISSING)?(self.context)
            };
            if graph.is_null() {
                return Err("ggml could not create a graph");
            }
            expand(graph, node);
            Ok(graph)
        }
    }
    /// What the smallest graph takes with everything that belongs to it: its head is not longer.
    pub(super) fn longest_head(&self) -> Option<usize> {
        let new = self.makers.ggml_new_graph_custom?;
        // SAFETY: as ggml's header asks.
        let graph = unsafe { new(self.context, 1, false) } as u64;
        let next = self.vector(F32, 1).ok()? as u64;
        let are_neighbours = self.holds(graph) && self.holds(next) && graph < next;
        are_neighbours.then(|| (next - graph) as usize)
    }
}
