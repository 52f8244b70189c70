//! The weights of the layers: zeros, unless somebody looks at what is computed.

use std::ffi::CString;

use crate::arguments::Arguments;
use crate::ggml::{Ggml, InitParams, Pointer};

const F32: i32 = 0;
const Q8_0: i32 = 8;
/// ggml's `GGML_BACKEND_BUFFER_USAGE_WEIGHTS`.
const USAGE_WEIGHTS: i32 = 1;

/// One layer's tensors, in memory of one backend.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) attention_norm: Pointer,
    pub(crate) q: Pointer,
    pub(crate) k: Pointer,
    pub(crate) v: Pointer,
    pub(crate) output: Pointer,
    pub(crate) ffn_norm: Pointer,
    pub(crate) gate: Pointer,
    pub(crate) up: Pointer,
    pub(crate) down: Pointer,
}

impl Layer {
    /// The memory lives as long as the program.
    pub(crate) fn new(
        ggml: &Ggml,
        arguments: &Arguments,
        number: usize,
        backend: Pointer,
    ) -> Result<Layer, String> {
        let embd = arguments.embd;
        // SAFETY: plain uses of ggml's public API, each object made just before
        // it is used and none of them freed.
        unsafe {
            let bytes = 16 * (ggml.ggml_tensor_overhead)() + 1024;
            let context = (ggml.ggml_init)(InitParams {
                bytes,
                buffer: std::ptr::null_mut(),
                no_alloc: true,
            });
            let named = |tensor: Pointer, name: &str| {
                let name = CString::new(format!("blk.{number}.{name}.weight")).unwrap_or_default();
                (ggml.ggml_set_name)(tensor, name.as_ptr())
            };
            let vector = |name| named((ggml.ggml_new_tensor_1d)(context, F32, embd), name);
            let matrix = |name, rows, columns| {
                named((ggml.ggml_new_tensor_2d)(context, Q8_0, rows, columns), name)
            };
            let ffn = |name, rows, columns| {
                if arguments.experts == 0 {
                    return matrix(name, rows, columns);
                }
                let experts = arguments.experts;
                named((ggml.ggml_new_tensor_3d)(context, Q8_0, rows, columns, experts), name)
            };
            let suffix = if arguments.experts == 0 { "" } else { "_exps" };
            let layer = Layer {
                attention_norm: vector("attn_norm"),
                q: matrix("attn_q", embd, embd),
                k: matrix("attn_k", embd, embd),
                v: matrix("attn_v", embd, embd),
                output: matrix("attn_output", embd, embd),
                ffn_norm: vector("ffn_norm"),
                gate: ffn(&format!("ffn_gate{suffix}"), embd, 2 * embd),
                up: ffn(&format!("ffn_up{suffix}"), embd, 2 * embd),
                down: ffn(&format!("ffn_down{suffix}"), 2 * embd, embd),
            };
            let buffer = (ggml.ggml_backend_alloc_ctx_tensors)(context, backend);
            if buffer.is_null() {
                return Err("no memory for the weights".to_owned());
            }
            (ggml.ggml_backend_buffer_set_usage)(buffer, USAGE_WEIGHTS);
            layer.fill(ggml, arguments, backend);
            Ok(layer)
        }
    }

    /// # Safety
    ///
    /// Its tensors must be in memory of this backend.
    unsafe fn fill(&self, ggml: &Ggml, arguments: &Arguments, backend: Pointer) {
        for tensor in self.all() {
            // SAFETY: a live tensor.
            let bytes = unsafe { (ggml.ggml_nbytes)(tensor) };
            let is_vector = tensor == self.attention_norm || tensor == self.ffn_norm;
            let values = match (arguments.result, is_vector) {
                (false, _) => vec![0; bytes],
                (true, true) => ones(bytes),
                (true, false) => small_numbers(bytes),
            };
            let data = values.as_ptr().cast_mut().cast();
            // SAFETY: as many bytes as the tensor has, which are there until ggml has read them.
            unsafe {
                if arguments.upload {
                    (ggml.ggml_backend_tensor_set_async)(backend, tensor, data, 0, bytes);
                    (ggml.ggml_backend_synchronize)(backend);
                } else {
                    (ggml.ggml_backend_tensor_set)(tensor, data, 0, bytes);
                }
            }
        }
    }

    fn all(&self) -> [Pointer; 9] {
        [
            self.attention_norm,
            self.q,
            self.k,
            self.v,
            self.output,
            self.ffn_norm,
            self.gate,
            self.up,
            self.down,
        ]
    }
}

fn ones(bytes: usize) -> Vec<u8> {
    1_f32.to_le_bytes().into_iter().cycle().take(bytes).collect()
}

/// Blocks of Q8_0: a scale of 2^-7 in half precision and 32 numbers from -7 to 7.
fn small_numbers(bytes: usize) -> Vec<u8> {
    const BLOCK: usize = 34;
    let byte = |at: usize| match at % BLOCK {
        0 => 0x00,
        1 => 0x20,
        _ => ((at * 7 % 15) as u8).wrapping_sub(7),
    };
    (0..bytes).map(byte).collect()
}
