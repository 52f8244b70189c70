//! Reading a `ggml_tensor` through the offsets that `probe` found. Fields are
//! read, never written; a tensor is only read while ggml holds it for us, inside
//! a call that was given it.

use crate::digest::digest;

/// Where the fields are in this copy of ggml.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TensorLayout {
    pub(crate) bytes: usize,
    pub(crate) type_id: usize,
    /// 0 when it could not be found (the type is at 0, so 0 is free).
    pub(crate) buffer: usize,
    /// The same.
    pub(crate) data: usize,
    pub(crate) ne: usize,
    pub(crate) nb: usize,
    pub(crate) op: usize,
    pub(crate) op_params: usize,
    /// 0 before there were flags (early 2024).
    pub(crate) flags: usize,
    pub(crate) src: usize,
    pub(crate) max_src: usize,
    pub(crate) view_src: usize,
    pub(crate) name: usize,
    pub(crate) name_bytes: usize,
    /// The end of the fields that identify a node (`with_head`).
    pub(crate) head_bytes: usize,
}

impl TensorLayout {
    /// Finds the end of the fields that identify a node: type, shape, op, sources and view.
    pub(crate) fn with_head(self) -> TensorLayout {
        let ends = [
            self.type_id + 4,
            self.ne + 32,
            self.nb + 32,
            self.op + 4,
            self.op_params + 64,
            self.flags + 4,
            self.src + self.max_src * size_of::<usize>(),
            self.view_src + size_of::<usize>(),
        ];
        TensorLayout { head_bytes: ends.into_iter().max().unwrap_or_default(), ..self }
    }
}

/// A live tensor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tensor<'l> {
    at: *const u8,
    layout: &'l TensorLayout,
}

impl<'l> Tensor<'l> {
    /// # Safety
    /// `at` points to a live tensor of the copy of ggml the layout was probed
    /// from, and stays alive while the value is used.
    pub(crate) unsafe fn new(at: *const u8, layout: &'l TensorLayout) -> Self {
        Tensor { at, layout }
    }

    pub(crate) fn address(self) -> usize {
        self.at as usize
    }

    pub(crate) fn type_id(self) -> u32 {
        self.field(self.layout.type_id)
    }

    pub(crate) fn op(self) -> u32 {
        self.field(self.layout.op)
    }

    pub(crate) fn flags(self) -> u32 {
        if self.layout.flags == 0 { 0 } else { self.field(self.layout.flags) }
    }

    pub(crate) fn ne(self) -> [i64; 4] {
        self.field(self.layout.ne)
    }

    pub(crate) fn nb(self) -> [u64; 4] {
        self.field(self.layout.nb)
    }

    /// A number that changes when type, shape or strides do, made of as few
    /// instructions as will do: it is asked for every weight at every graph.
    #[inline(always)]
    pub(crate) fn shape_sum(self) -> u64 {
        let mut sum = u64::from(self.type_id());
        for word in 0..4 {
            let (ne, nb): (u64, u64) =
                (self.field(self.layout.ne + 8 * word), self.field(self.layout.nb + 8 * word));
            sum = (sum.rotate_left(15) ^ ne).wrapping_add(nb.rotate_left(37));
        }
        sum
    }

    /// A number that changes with the node: its address, op, flags, type, shape
    /// and first sources. Two instructions a word: every node of every graph is
    /// asked.
    #[inline(always)]
    pub(crate) fn quick_sum(self) -> u64 {
        let layout = self.layout;
        let word = |offset: usize| self.field::<u64>(offset);
        // Not the op's parameters: a view's offset moves with every token.
        let mut sum = self.at as u64 ^ u64::from(self.op()) << 52;
        for offset in [
            layout.ne,
            layout.ne + 8,
            layout.ne + 16,
            layout.ne + 24,
            layout.src,
            layout.src + 8,
            layout.src + 16,
        ] {
            sum = sum.rotate_left(9).wrapping_add(word(offset));
        }
        sum ^ u64::from(self.type_id()) << 40 ^ u64::from(self.flags()) << 48
    }

    pub(crate) fn op_params(self) -> [u32; 16] {
        self.field(self.layout.op_params)
    }

    pub(crate) fn buffer(self) -> usize {
        if self.layout.buffer == 0 { 0 } else { self.field(self.layout.buffer) }
    }

    /// Where its data is; 0 where that could not be found.
    pub(crate) fn data(self) -> usize {
        if self.layout.data == 0 { 0 } else { self.field(self.layout.data) }
    }

    pub(crate) fn source(self, slot: usize) -> Option<Tensor<'l>> {
        debug_assert!(slot < self.layout.max_src);
        let at: *const u8 = self.field(self.layout.src + slot * size_of::<usize>());
        (!at.is_null()).then_some(Tensor { at, layout: self.layout })
    }

    pub(crate) fn view_source(self) -> Option<Tensor<'l>> {
        let at: *const u8 = self.field(self.layout.view_src);
        (!at.is_null()).then_some(Tensor { at, layout: self.layout })
    }

    pub(crate) fn name(self) -> &'l [u8] {
        let field = self.bytes(self.layout.name, self.layout.name_bytes);
        let end = field.iter().position(|&b| b == 0).unwrap_or(field.len());
        &field[..end]
    }

    /// A number that changes with the name, or with what is left behind its end.
    #[inline(always)]
    pub(crate) fn name_sum(self) -> u64 {
        const USUAL: usize = 64;
        if self.layout.name_bytes != USUAL {
            return digest(self.name());
        }
        let words: [u64; USUAL / 8] = self.field(self.layout.name);
        words
            .into_iter()
            .fold(0, |sum, word| (sum.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// All that says what the node is: from its type to its view.
    pub(crate) fn head(self) -> &'l [u8] {
        self.bytes(0, self.layout.head_bytes)
    }

    pub(crate) fn name_field(self) -> &'l [u8] {
        self.bytes(self.layout.name, self.layout.name_bytes)
    }

    fn bytes(self, offset: usize, length: usize) -> &'l [u8] {
        // SAFETY: inside the tensor by the probe's bounds; `new`'s caller keeps
        // the tensor alive.
        unsafe { std::slice::from_raw_parts(self.at.add(offset), length) }
    }

    #[inline(always)]
    fn field<T: Copy>(self, offset: usize) -> T {
        // SAFETY: the probe saw values of this type at this offset, inside the
        // tensor; `new`'s caller keeps the tensor alive.
        unsafe { self.at.add(offset).cast::<T>().read_unaligned() }
    }
}
