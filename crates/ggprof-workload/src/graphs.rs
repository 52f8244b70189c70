//! Building and computing graphs with a scheduler, the way llama.cpp does: the
//! graph is built anew for every call, in the same memory.

use std::ffi::{CStr, CString, c_int};

use crate::arguments::Arguments;
use crate::ggml::{Ggml, InitParams, Pointer};
use crate::weights::Layer;

const F32: c_int = 0;
const I32: c_int = 26;
const CPU: c_int = 0;
const GRAPH_SIZE: usize = 4096;
const HEAD: i64 = 64;
const EXPERTS_USED: i64 = 2;

/// A scheduler, its backends and the layers it computes.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    ggml: &'a Ggml,
    arguments: &'a Arguments,
    scheduler: Pointer,
    backends: Vec<Pointer>,
    layers: Vec<Layer>,
    context: Pointer,
    memory: Vec<u64>,
}

/// A graph ready to be computed.
#[derive(Debug)]
pub(crate) struct BuiltGraph {
    graph: Pointer,
    inputs: Vec<Input>,
    output: Pointer,
    pub(crate) nodes: u64,
    /// Nodes that do work: views and their like do none.
    pub(crate) computed: u64,
}

#[derive(Debug)]
struct Input {
    tensor: Pointer,
    bytes: Vec<u8>,
}

impl<'a> Session<'a> {
    pub(crate) fn new(ggml: &'a Ggml, arguments: &'a Arguments) -> Result<Self, String> {
        let backends = open_backends(ggml, arguments)?;
        let cpu = *backends.last().ok_or("no CPU device in these libraries")?;
        let layers = (0..arguments.layers)
            .map(|number| {
                let elsewhere = arguments.split && number % 2 == 1;
                Layer::new(ggml, arguments, number, if elsewhere { backends[0] } else { cpu })
            })
            .collect::<Result<Vec<_>, _>>()?;
        // SAFETY: live backends, the CPU last as ggml asks.
        let scheduler = unsafe {
            (ggml.ggml_backend_sched_new)(
                backends.as_ptr(),
                std::ptr::null_mut(),
                backends.len() as c_int,
                GRAPH_SIZE,
                false,
                true,
            )
        };
        // SAFETY: functions without state.
        let bytes = unsafe {
            GRAPH_SIZE * (ggml.ggml_tensor_overhead)()
                + (ggml.ggml_graph_overhead_custom)(GRAPH_SIZE, false)
        };
        let memory = vec![0_u64; bytes / 8 + 1];
        let context = std::ptr::null_mut();
        Ok(Session { ggml, arguments, scheduler, backends, layers, context, memory })
    }

    pub(crate) fn build(&mut self, tokens: i64) -> Result<BuiltGraph, String> {
        let ggml = self.ggml;
        let embd = self.arguments.embd;
        // SAFETY: plain uses of ggml's public API on objects of this session;
        // the memory outlives the context, which is made anew each time.
        unsafe {
            if !self.context.is_null() {
                (ggml.ggml_free)(self.context);
            }
            self.context = (ggml.ggml_init)(InitParams {
                bytes: self.memory.len() * 8,
                buffer: self.memory.as_mut_ptr().cast(),
                no_alloc: true,
            });
            let graph = (ggml.ggml_new_graph_custom)(self.context, GRAPH_SIZE, false);
            let mut inputs = Vec::new();
            let input = self.input("inp_embd", F32, embd, tokens, &mut inputs);
            let positions = self.input("inp_pos", I32, tokens, 1, &mut inputs);
            let experts =
                (self.arguments.experts > 0).then(|| self.expert_choice(tokens, &mut inputs));
            let mut state = input;
            for (number, layer) in self.layers.iter().enumerate() {
                state = self.attention(layer, number, state, positions, tokens);
                state = self.feed_forward(layer, number, state, experts, tokens);
            }
            named(ggml, state, "result");
            (ggml.ggml_set_output)(state);
            (ggml.ggml_build_forward_expand)(graph, state);
            (ggml.ggml_backend_sched_reset)(self.scheduler);
            if !(ggml.ggml_backend_sched_alloc_graph)(self.scheduler, graph) {
                return Err("the scheduler cannot place the graph".to_owned());
            }
            let (nodes, computed) = count_nodes(ggml, graph);
            Ok(BuiltGraph { graph, inputs, output: state, nodes, computed })
        }
    }

    pub(crate) fn compute(&self, graph: &BuiltGraph) -> Result<(), String> {
        for Input { tensor, bytes } in &graph.inputs {
            let data = bytes.as_ptr().cast_mut().cast();
            // SAFETY: an input tensor the scheduler has placed, of this size.
            unsafe { (self.ggml.ggml_backend_tensor_set)(*tensor, data, 0, bytes.len()) };
        }
        // SAFETY: the graph was placed by this scheduler just before.
        let status =
            unsafe { (self.ggml.ggml_backend_sched_graph_compute)(self.scheduler, graph.graph) };
        if status == 0 { Ok(()) } else { Err(format!("graph failed with status {status}")) }
    }

    /// What the graph computed, as one number: the same bytes give the same.
    pub(crate) fn result(&self, graph: &BuiltGraph) -> u64 {
        // SAFETY: the output of a graph that was computed just before, read whole.
        let bytes = unsafe {
            let mut bytes = vec![0_u8; (self.ggml.ggml_nbytes)(graph.output)];
            let (data, length) = (bytes.as_mut_ptr().cast(), bytes.len());
            (self.ggml.ggml_backend_tensor_get)(graph.output, data, 0, length);
            bytes
        };
        let fold = |sum: u64, byte: &u8| sum.rotate_left(5).wrapping_mul(31) ^ u64::from(*byte);
        bytes.iter().fold(0, fold)
    }

    unsafe fn input(
        &self,
        name: &str,
        kind: c_int,
        columns: i64,
        rows: i64,
        inputs: &mut Vec<Input>,
    ) -> Pointer {
        // SAFETY: the caller's context is live.
        let tensor = unsafe {
            let tensor = if rows == 1 && kind == I32 {
                (self.ggml.ggml_new_tensor_1d)(self.context, kind, columns)
            } else {
                (self.ggml.ggml_new_tensor_2d)(self.context, kind, columns, rows)
            };
            (self.ggml.ggml_set_input)(tensor);
            tensor
        };
        named(self.ggml, tensor, name);
        let bytes = if kind == I32 {
            (0..columns as i32).flat_map(i32::to_le_bytes).collect()
        } else {
            (0..columns * rows).flat_map(|i| ((i % 17) as f32 / 16.0).to_le_bytes()).collect()
        };
        inputs.push(Input { tensor, bytes });
        tensor
    }

    unsafe fn expert_choice(&self, tokens: i64, inputs: &mut Vec<Input>) -> Pointer {
        // SAFETY: the caller's context is live.
        let tensor = unsafe {
            let tensor = (self.ggml.ggml_new_tensor_2d)(self.context, I32, EXPERTS_USED, tokens);
            (self.ggml.ggml_set_input)(tensor);
            tensor
        };
        named(self.ggml, tensor, "expert_ids");
        let experts = self.arguments.experts as i32;
        // With eight experts: 0, 1, 4 and 5, two runs with a gap between.
        let choices =
            (0..tokens as i32).flat_map(|t| [t % 2 % experts, (experts / 2 + t % 2) % experts]);
        inputs.push(Input { tensor, bytes: choices.flat_map(i32::to_le_bytes).collect() });
        tensor
    }

    unsafe fn attention(
        &self,
        layer: &Layer,
        number: usize,
        input: Pointer,
        positions: Pointer,
        tokens: i64,
    ) -> Pointer {
        let (ggml, ctx) = (self.ggml, self.context);
        let heads = self.arguments.embd / HEAD;
        // SAFETY: tensors of the caller's live context and of the weights.
        unsafe {
            let norm = (ggml.ggml_rms_norm)(ctx, input, 1e-5);
            let norm = (ggml.ggml_mul)(ctx, norm, layer.attention_norm);
            named(ggml, norm, &format!("attn_norm-{number}"));
            let project = |weight, name: &str| {
                let flat = (ggml.ggml_mul_mat)(ctx, weight, norm);
                named(ggml, flat, &format!("{name}-{number}"));
                (ggml.ggml_reshape_3d)(ctx, flat, HEAD, heads, tokens)
            };
            let turned = |tensor| (ggml.ggml_rope)(ctx, tensor, positions, HEAD as c_int, 0);
            let q = (ggml.ggml_permute)(ctx, turned(project(layer.q, "Qcur")), 0, 2, 1, 3);
            let k = (ggml.ggml_permute)(ctx, turned(project(layer.k, "Kcur")), 0, 2, 1, 3);
            let v = (ggml.ggml_permute)(ctx, project(layer.v, "Vcur"), 1, 2, 0, 3);
            let v = (ggml.ggml_cont)(ctx, v);
            let kq = (ggml.ggml_mul_mat)(ctx, k, q);
            named(ggml, kq, &format!("kq-{number}"));
            let kq = (ggml.ggml_soft_max)(ctx, (ggml.ggml_scale)(ctx, kq, 0.125));
            let kq = if self.arguments.unsupported {
                // Nothing is masked; but of all backends only the processor's can do it.
                let masked = (ggml.ggml_diag_mask_zero)(ctx, kq, tokens as c_int);
                named(ggml, masked, &format!("kq_masked-{number}"));
                masked
            } else {
                kq
            };
            let kqv = (ggml.ggml_mul_mat)(ctx, v, kq);
            let kqv = (ggml.ggml_permute)(ctx, kqv, 0, 2, 1, 3);
            let kqv = (ggml.ggml_cont)(ctx, kqv);
            let kqv = (ggml.ggml_reshape_2d)(ctx, kqv, self.arguments.embd, tokens);
            let out = (ggml.ggml_mul_mat)(ctx, layer.output, kqv);
            named(ggml, out, &format!("attn_out-{number}"));
            (ggml.ggml_add)(ctx, out, input)
        }
    }

    unsafe fn feed_forward(
        &self,
        layer: &Layer,
        number: usize,
        input: Pointer,
        experts: Option<Pointer>,
        tokens: i64,
    ) -> Pointer {
        let (ggml, ctx) = (self.ggml, self.context);
        let embd = self.arguments.embd;
        // SAFETY: tensors of the caller's live context and of the weights.
        unsafe {
            let norm = (ggml.ggml_rms_norm)(ctx, input, 1e-5);
            let norm = (ggml.ggml_mul)(ctx, norm, layer.ffn_norm);
            named(ggml, norm, &format!("ffn_norm-{number}"));
            let multiply = |weight, tensor| match experts {
                None => (ggml.ggml_mul_mat)(ctx, weight, tensor),
                Some(ids) => (ggml.ggml_mul_mat_id)(ctx, weight, tensor, ids),
            };
            let norm = match experts {
                None => norm,
                Some(_) => (ggml.ggml_reshape_3d)(ctx, norm, embd, 1, tokens),
            };
            let gate = (ggml.ggml_silu)(ctx, multiply(layer.gate, norm));
            let both = (ggml.ggml_mul)(ctx, gate, multiply(layer.up, norm));
            let down = multiply(layer.down, both);
            named(ggml, down, &format!("ffn_out-{number}"));
            if experts.is_none() {
                return (ggml.ggml_add)(ctx, down, input);
            }
            // The two experts' outputs stand side by side; llama.cpp adds them
            // as views, too.
            let row = embd as usize * size_of::<f32>();
            let half = |which: usize| {
                let stride = row * EXPERTS_USED as usize;
                (ggml.ggml_view_2d)(ctx, down, embd, tokens, stride, which * row)
            };
            (ggml.ggml_add)(ctx, (ggml.ggml_add)(ctx, half(0), half(1)), input)
        }
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // SAFETY: nothing of the session is used after this.
        unsafe {
            (self.ggml.ggml_backend_sched_free)(self.scheduler);
            for &backend in &self.backends {
                (self.ggml.ggml_backend_free)(backend);
            }
        }
    }
}

/// The first other device if asked for, then the CPU.
fn open_backends(ggml: &Ggml, arguments: &Arguments) -> Result<Vec<Pointer>, String> {
    // SAFETY: ggml's device list is fixed once its backends are loaded.
    unsafe {
        let devices: Vec<Pointer> =
            (0..(ggml.ggml_backend_dev_count)()).map(|i| (ggml.ggml_backend_dev_get)(i)).collect();
        let is_cpu = |device: &&Pointer| (ggml.ggml_backend_dev_type)(**device) == CPU;
        let cpu = devices.iter().find(is_cpu).ok_or("no CPU device in these libraries")?;
        let mut backends = Vec::new();
        if arguments.split {
            let other = devices.iter().find(|device| !is_cpu(device));
            let other = other.ok_or("--split needs a second device")?;
            let name = CStr::from_ptr((ggml.ggml_backend_dev_name)(*other));
            eprintln!("second device: {}", name.to_string_lossy());
            backends.push((ggml.ggml_backend_dev_init)(*other, std::ptr::null()));
        }
        let backend = (ggml.ggml_backend_dev_init)(*cpu, std::ptr::null());
        let registry = (ggml.ggml_backend_dev_backend_reg)(*cpu);
        let set_threads = (ggml.ggml_backend_reg_get_proc_address)(
            registry,
            c"ggml_backend_set_n_threads".as_ptr(),
        );
        if !set_threads.is_null() {
            let set: unsafe extern "C" fn(Pointer, c_int) = std::mem::transmute(set_threads);
            set(backend, arguments.threads);
        }
        backends.push(backend);
        Ok(backends)
    }
}

fn named(ggml: &Ggml, tensor: Pointer, name: &str) {
    let name = CString::new(name).unwrap_or_default();
    // SAFETY: a live tensor; ggml copies the name.
    unsafe { (ggml.ggml_set_name)(tensor, name.as_ptr()) };
}

fn count_nodes(ggml: &Ggml, graph: Pointer) -> (u64, u64) {
    // SAFETY: a live graph of this program.
    let nodes = unsafe { (ggml.ggml_graph_n_nodes)(graph) };
    let working = (0..nodes).filter(|&i| {
        // SAFETY: below the number of nodes.
        let node = unsafe { (ggml.ggml_graph_node)(graph, i) };
        ggprof_ggml::computes(ggml.op_of(node))
    });
    (nodes as u64, working.count() as u64)
}
