//! Where ggml's tensors have the fields that say what an op computes. The struct is public, but it
//! has changed between versions; so the fields are found in tensors that ggml itself makes.

use crate::ggml::{Ggml, InitParams, Pointer};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    ne: usize,
    nb: usize,
    op: usize,
    op_params: usize,
    src: usize,
}

const F32: i32 = 0;
const MEMORY: usize = 64 * 1024;
/// More than a tensor takes, less than lies behind each of ours.
const MOST_TENSOR_BYTES: usize = 2048;

impl Layout {
    pub(crate) fn find(ggml: &Ggml, add: i32, mul: i32) -> Result<Layout, String> {
        const LENGTHS: [i64; 4] = [7, 11, 13, 17];
        const PARAMETER: f32 = 0.001_234_5;
        // Zeroed, so that what ggml leaves untouched does not look like a value.
        let memory = vec![0_u128; MEMORY / size_of::<u128>()].leak();
        let buffer = memory.as_mut_ptr().cast();
        let parameters = InitParams { bytes: MEMORY, buffer, no_alloc: true };
        // SAFETY: as ggml.h asks: a context in our memory, and tensors of equal shapes in it.
        let (shaped, tensors, sum, product, norm) = unsafe {
            let context = (ggml.ggml_init)(parameters);
            if context.is_null() {
                return Err("ggml makes no context".to_owned());
            }
            let [a, b, c, d] = LENGTHS;
            let shaped = (ggml.ggml_new_tensor_4d)(context, F32, a, b, c, d);
            let tensors = [0; 2].map(|_| (ggml.ggml_new_tensor_1d)(context, F32, 4));
            let sum = (ggml.ggml_add)(context, tensors[0], tensors[1]);
            let product = (ggml.ggml_mul)(context, tensors[0], tensors[1]);
            let norm = (ggml.ggml_rms_norm)(context, tensors[0], PARAMETER);
            (shaped, tensors, sum, product, norm)
        };
        let bytes = (tensors[1] as usize).wrapping_sub(tensors[0] as usize);
        if !(64..MOST_TENSOR_BYTES).contains(&bytes) {
            return Err("ggml's tensors are not in the memory of their context".to_owned());
        }
        let read = |tensor: Pointer| Words::of(tensor, bytes);
        let lengths = LENGTHS.map(|length| length as u64);
        let strides = [4, 4 * 7, 4 * 7 * 11, 4 * 7 * 11 * 13];
        let (sums, products, norms) = (read(sum), read(product), read(norm));
        let sources = tensors.map(|tensor| tensor as u64);
        let op = sums.halves(add as u32).find(|&at| products.half(at) == mul as u32);
        let not = |what: &str| format!("{what} was not found in this ggml's tensors");
        Ok(Layout {
            ne: read(shaped).run(&lengths).ok_or_else(|| not("ne"))?,
            nb: read(shaped).run(&strides).ok_or_else(|| not("nb"))?,
            op: op.ok_or_else(|| not("op"))?,
            op_params: norms.halves(PARAMETER.to_bits()).next().ok_or_else(|| not("op_params"))?,
            src: sums.run(&sources).ok_or_else(|| not("src"))?,
        })
    }

    /// # Safety
    /// A tensor of the ggml that the layout is of; so for the others.
    pub(crate) unsafe fn set_shape(&self, tensor: Pointer, ne: &[i64; 4], nb: &[i64; 4]) {
        // SAFETY: the caller's contract, and the fields that were found.
        unsafe {
            tensor.byte_add(self.ne).cast::<[i64; 4]>().write_unaligned(*ne);
            tensor.byte_add(self.nb).cast::<[i64; 4]>().write_unaligned(*nb);
        }
    }

    pub(crate) unsafe fn set_op(&self, tensor: Pointer, op: i32, params: &[i32; 16]) {
        // SAFETY: as above.
        unsafe {
            tensor.byte_add(self.op).cast::<i32>().write_unaligned(op);
            tensor.byte_add(self.op_params).cast::<[i32; 16]>().write_unaligned(*params);
        }
    }

    pub(crate) unsafe fn set_source(&self, tensor: Pointer, slot: u8, source: Pointer) {
        let at = self.src + usize::from(slot) * size_of::<Pointer>();
        // SAFETY: as above; recordings have no slot that ggml does not have.
        unsafe { tensor.byte_add(at).cast::<Pointer>().write_unaligned(source) };
    }
}

/// The bytes of a tensor at this moment.
struct Words(Vec<u64>);

impl Words {
    fn of(tensor: Pointer, bytes: usize) -> Words {
        let at = tensor.cast::<u64>();
        // SAFETY: a tensor of so many bytes, in memory of ours.
        Words((0..bytes / 8).map(|word| unsafe { at.add(word).read_unaligned() }).collect())
    }

    fn run(&self, run: &[u64]) -> Option<usize> {
        self.0.windows(run.len()).position(|window| window == run).map(|at| at * 8)
    }

    fn half(&self, at: usize) -> u32 {
        (self.0[at / 8] >> (at % 8 * 8)) as u32
    }

    /// Where a number of 32 bits stands.
    fn halves(&self, number: u32) -> impl Iterator<Item = usize> {
        (0..self.0.len() * 2).map(|half| half * 4).filter(move |&at| self.half(at) == number)
    }
}
