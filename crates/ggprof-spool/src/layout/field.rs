//! Numbers as bytes.

/// A field that knows its little-endian bytes.
pub trait Field: Copy {
    const BYTES: usize;
    fn put(self, out: &mut [u8]);
    fn take(bytes: &[u8]) -> Option<Self>;
}

macro_rules! int_fields {
    ($($int:ty),*) => {$(
        impl Field for $int {
            const BYTES: usize = size_of::<$int>();
            #[inline(always)]
            fn put(self, out: &mut [u8]) {
                out.copy_from_slice(&self.to_le_bytes());
            }
            #[inline(always)]
            fn take(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(<$int>::from_le_bytes)
            }
        }
    )*};
}
int_fields!(u8, u16, u32, u64, i32, i64);

impl<T: Field + Default, const N: usize> Field for [T; N] {
    const BYTES: usize = N * T::BYTES;
    #[inline(always)]
    fn put(self, out: &mut [u8]) {
        for (value, out) in self.into_iter().zip(out.chunks_exact_mut(T::BYTES)) {
            value.put(out);
        }
    }
    #[inline(always)]
    fn take(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != Self::BYTES {
            return None;
        }
        let mut values = [T::default(); N];
        for (value, bytes) in values.iter_mut().zip(bytes.chunks_exact(T::BYTES)) {
            *value = T::take(bytes)?;
        }
        Some(values)
    }
}
