//! Finding struct offsets by building tensors with known values through the
//! public API and looking where the values are. ggml's own version says nothing
//! reliable: one version number was published with two layouts. What cannot be
//! confirmed is not read, and the reason goes into the coverage manifest.

use std::ffi::c_int;

use super::api::{Api, InitParams, Pointer, text};
use super::graph::GraphLayout;
use super::tensor::TensorLayout;

/// ggml's type numbers are only ever appended to; these four are old.
const F32: c_int = 0;
const OTHER_TYPES: [c_int; 2] = [1, 8];
/// Enough for the probe's few tensors and one small graph.
const CONTEXT_BYTES: usize = 512 * 1024;
const GRAPH_SIZE: usize = 37;
/// Op numbers were below 110 in every version; asking for the name of a number
/// beyond ggml's table would read past its end.
const MOST_OPS: i32 = 100;

/// Both layouts, or the first thing that could not be found.
pub(crate) fn probe(api: &Api) -> Result<(TensorLayout, GraphLayout), &'static str> {
    let context = Context::new(api).ok_or("ggml's tensor functions are not exported")?;
    let probe = Probe { api, context: context.at };
    let tensor = probe.tensor_layout()?;
    let graph = probe.graph_layout()?;
    Ok((tensor, graph))
}

/// A private context in memory of ours, zeroed: what ggml leaves untouched must not
/// look like a value it wrote.
struct Context<'a> {
    at: Pointer,
    api: &'a Api,
    _memory: Vec<u128>,
}

impl<'a> Context<'a> {
    fn new(api: &'a Api) -> Option<Self> {
        api.ggml_free?;
        let mut memory = vec![0_u128; CONTEXT_BYTES / size_of::<u128>()];
        let params = InitParams {
            bytes: CONTEXT_BYTES,
            buffer: memory.as_mut_ptr().cast(),
            no_alloc: false,
        };
        // SAFETY: the public way to make a context; the memory is aligned as ggml
        // asks, outlives the context, and stays ours to free.
        let at = unsafe { (api.ggml_init?)(params) };
        (!at.is_null()).then_some(Context { at, api, _memory: memory })
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        if let Some(free) = self.api.ggml_free {
            // SAFETY: made by `ggml_init` and not used afterwards.
            unsafe { free(self.at) };
        }
    }
}

struct Probe<'a> {
    api: &'a Api,
    context: Pointer,
}

/// Calls a function of the API, or says which one is missing.
macro_rules! call {
    ($self:ident.$name:ident($($argument:expr),*)) => {{
        let function = $self.api.$name.ok_or(concat!("ggml exports no ", stringify!($name)))?;
        // SAFETY: arguments as ggml's header asks: tensors and contexts made by
        // this probe, which nobody else holds.
        unsafe { function($($argument),*) }
    }};
}

impl Probe<'_> {
    fn tensor_layout(&self) -> Result<TensorLayout, &'static str> {
        let bytes = call!(self.ggml_tensor_overhead());
        let shaped = call!(self.ggml_new_tensor_4d(self.context, F32, 7, 11, 13, 17));
        let words = Words::new(shaped, bytes);
        let ne = words.find_run(&[7, 11, 13, 17]).ok_or("ne not found")?;
        let nb = words.find_run(&[4, 28, 308, 4004]).ok_or("nb not found")?;
        let type_id = self.find_type(bytes, ne, nb)?;
        let data_pointer = call!(self.ggml_get_data(shaped)) as u64;
        let data = words.find_run(&[data_pointer]).ok_or("data not found")?;
        let (name, name_bytes) = self.find_name(bytes)?;
        let (src, view_src, view_offs) = self.find_sources(bytes)?;
        let op = self.find_op(bytes)?;
        let op_params = self.find_op_params(bytes)?;
        let flags = self.find_flags(bytes)?;
        if data < view_src || name < data {
            return Err("the tensor's fields stand in an unknown order");
        }
        Ok(TensorLayout {
            bytes,
            type_id,
            buffer: self.find_buffer(bytes).unwrap_or(0),
            ne,
            nb,
            op,
            op_params,
            flags,
            src,
            max_src: (view_src - src) / size_of::<usize>(),
            view_src,
            view_offs,
            data,
            name,
            name_bytes,
        })
    }

    /// The word that follows the type asked for, outside the shape.
    fn find_type(&self, bytes: usize, ne: usize, nb: usize) -> Result<usize, &'static str> {
        let mut candidates: Vec<usize> = (0..bytes).step_by(4).collect();
        candidates.retain(|&at| !(ne..ne + 32).contains(&at) && !(nb..nb + 32).contains(&at));
        for wanted in OTHER_TYPES.into_iter().chain([F32]) {
            let tensor = call!(self.ggml_new_tensor_1d(self.context, wanted, 64));
            let words = Words::new(tensor, bytes);
            candidates.retain(|&at| words.u32_at(at) == wanted as u32);
        }
        candidates.first().copied().ok_or("type not found")
    }

    fn find_name(&self, bytes: usize) -> Result<(usize, usize), &'static str> {
        const LONG: [u8; 1024] = {
            let mut long = [b'x'; 1024];
            long[1023] = 0;
            long
        };
        let tensor = call!(self.ggml_new_tensor_1d(self.context, F32, 1));
        call!(self.ggml_set_name(tensor, LONG.as_ptr().cast()));
        let name = call!(self.ggml_get_name(tensor));
        let offset = (name as usize).wrapping_sub(tensor as usize);
        let length = text(name).len() + 1;
        if offset.checked_add(length).is_none_or(|end| end > bytes) {
            return Err("name not found");
        }
        Ok((offset, length))
    }

    fn find_sources(&self, bytes: usize) -> Result<(usize, usize, usize), &'static str> {
        let a = call!(self.ggml_new_tensor_1d(self.context, F32, 16));
        let b = call!(self.ggml_new_tensor_1d(self.context, F32, 16));
        let sum = call!(self.ggml_add(self.context, a, b));
        let src = Words::new(sum, bytes).find_run(&[a as u64, b as u64]).ok_or("src not found")?;
        let view = call!(self.ggml_view_1d(self.context, a, 3, 8));
        let words = Words::new(view, bytes);
        let after = src + size_of::<usize>();
        let view_src = words.find_from(after, a as u64).ok_or("view_src not found")?;
        let view_offs = words.find_from(view_src, 8).ok_or("view_offs not found")?;
        if view_offs != view_src + 8 {
            return Err("view_offs not found");
        }
        Ok((src, view_src, view_offs))
    }

    /// The word whose number ggml itself names ADD, MUL and SQR.
    fn find_op(&self, bytes: usize) -> Result<usize, &'static str> {
        let a = call!(self.ggml_new_tensor_1d(self.context, F32, 16));
        let results: [(Pointer, &[u8]); 3] = [
            (call!(self.ggml_add(self.context, a, a)), b"ADD"),
            (call!(self.ggml_mul(self.context, a, a)), b"MUL"),
            (call!(self.ggml_sqr(self.context, a)), b"SQR"),
        ];
        let mut candidates: Vec<usize> = (0..bytes).step_by(4).collect();
        for (tensor, wanted) in results {
            let words = Words::new(tensor, bytes);
            let mut kept = Vec::new();
            for at in candidates {
                let value = words.u32_at(at) as i32;
                if (1..MOST_OPS).contains(&value) && text(call!(self.ggml_op_name(value))) == wanted
                {
                    kept.push(at);
                }
            }
            candidates = kept;
        }
        candidates.first().copied().ok_or("op not found")
    }

    fn find_op_params(&self, bytes: usize) -> Result<usize, &'static str> {
        const FACTOR: f32 = 123.25;
        let a = call!(self.ggml_new_tensor_1d(self.context, F32, 16));
        let scaled = Words::new(call!(self.ggml_scale(self.context, a, FACTOR)), bytes);
        let at = (0..bytes).step_by(4).find(|&at| scaled.u32_at(at) == FACTOR.to_bits());
        at.filter(|at| at + 64 <= bytes).ok_or("op_params not found")
    }

    fn find_flags(&self, bytes: usize) -> Result<usize, &'static str> {
        let tensor = call!(self.ggml_new_tensor_1d(self.context, F32, 16));
        let before = Words::new(tensor, bytes);
        call!(self.ggml_set_input(tensor));
        let after = Words::new(tensor, bytes);
        let changed = (0..bytes).step_by(4).find(|&at| before.u32_at(at) != after.u32_at(at));
        changed.ok_or("flags not found")
    }

    /// Not every build exports what this needs; copies then lack a direction.
    fn find_buffer(&self, bytes: usize) -> Option<usize> {
        let (make, free) =
            (self.api.ggml_backend_cpu_buffer_from_ptr?, self.api.ggml_backend_buffer_free?);
        let alloc = self.api.ggml_backend_tensor_alloc?;
        let new = self.api.ggml_new_tensor_1d?;
        let memory = Aligned([0; 1024]);
        let at = (&raw const memory).cast_mut().cast();
        // SAFETY: our own memory, aligned as ggml asks, outlives the buffer,
        // which is freed below; the tensor's own data is put aside first.
        unsafe {
            let params =
                InitParams { bytes: 16 * 1024, buffer: std::ptr::null_mut(), no_alloc: true };
            let context = (self.api.ggml_init?)(params);
            let tensor = new(context, F32, 16);
            let buffer = make(at, size_of::<Aligned>());
            alloc(buffer, tensor, at);
            let found = Words::new(tensor, bytes).find_run(&[buffer as u64]);
            free(buffer);
            (self.api.ggml_free?)(context);
            found
        }
    }

    fn graph_layout(&self) -> Result<GraphLayout, &'static str> {
        let a = call!(self.ggml_new_tensor_1d(self.context, F32, 16));
        let graph = call!(self.ggml_new_graph_custom(self.context, GRAPH_SIZE, false));
        for _ in 0..3 {
            let node = call!(self.ggml_sqr(self.context, a));
            call!(self.ggml_build_forward_expand(graph, node));
        }
        let n_nodes = call!(self.ggml_graph_n_nodes(graph));
        let nodes = call!(self.ggml_graph_nodes(graph)) as u64;
        // The node array follows the graph's head in the same allocation.
        let bytes = (nodes as usize).wrapping_sub(graph as usize);
        if n_nodes != 3 || !(32..512).contains(&bytes) {
            return Err("the graph's nodes were not found");
        }
        let words = Words::new(graph, bytes);
        let nodes_at = words.find_run(&[nodes]).ok_or("the graph's nodes were not found")?;
        if words.u32_at(0) != GRAPH_SIZE as u32 || words.u32_at(4) != 3 {
            return Err("the graph's size was not found");
        }
        Ok(GraphLayout { bytes, n_nodes: 4, nodes: nodes_at, uid: find_uid(&words, graph) })
    }
}

/// Behind the last pointer into the graph's own memory (the hash set's keys)
/// stands the evaluation order, and behind that, in newer versions, the uid.
fn find_uid(words: &Words, graph: Pointer) -> usize {
    let own = graph as u64..graph as u64 + CONTEXT_BYTES as u64;
    let last_pointer = (0..words.0.len()).rev().find(|&i| own.contains(&words.0[i]));
    let uid = last_pointer.map_or(0, |i| (i + 2) * 8);
    if uid != 0 && uid + 8 <= words.0.len() * 8 { uid } else { 0 }
}

/// What `ggml_version` and the like return, or nothing.
pub(crate) fn optional_text(
    function: Option<unsafe extern "C-unwind" fn() -> *const std::ffi::c_char>,
) -> &'static [u8] {
    // SAFETY: a function without arguments that returns a static C string.
    function.map_or(b"", |function| text(unsafe { function() }))
}

/// The bytes of an object as they are now, in words.
struct Words(Vec<u64>);

impl Words {
    fn new(object: Pointer, bytes: usize) -> Words {
        let at = object.cast::<u64>();
        // SAFETY: `bytes` is what ggml says an object of this kind takes, and
        // the probe's context holds more behind it.
        Words((0..bytes / 8).map(|i| unsafe { at.add(i).read_unaligned() }).collect())
    }

    fn find_run(&self, run: &[u64]) -> Option<usize> {
        self.0.windows(run.len()).position(|window| window == run).map(|i| i * 8)
    }

    fn find_from(&self, offset: usize, value: u64) -> Option<usize> {
        (offset / 8..self.0.len()).find(|&i| self.0[i] == value).map(|i| i * 8)
    }

    fn u32_at(&self, offset: usize) -> u32 {
        let word = self.0.get(offset / 8).copied().unwrap_or(u64::MAX);
        (word >> (offset % 8 * 8)) as u32
    }
}

/// Memory for a buffer, aligned as any backend may ask.
#[repr(align(256))]
#[expect(dead_code, reason = "only its address is used")]
struct Aligned([u8; 1024]);
