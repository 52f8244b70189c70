//! Shapes and element types of tensors, in ggml's terms.

/// The four dimensions of a ggml tensor; `ne[0]` is the row length.
pub type Shape = [i64; 4];

/// Output of an op: its type and dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tensor {
    /// ggml's type number, -1 where the recording does not say.
    pub type_id: i32,
    pub ne: Shape,
}

impl Tensor {
    pub const UNKNOWN: Self = Self { type_id: -1, ne: [0; 4] };

    /// Whether the recording gave dimensions at all. A tensor without rows has some that are not
    /// zero.
    pub fn is_known(&self) -> bool {
        self.ne.iter().all(|&n| n >= 0) && self.ne != Self::UNKNOWN.ne
    }

    /// Number of elements; `None` if the dimensions are unknown or their product is absurd.
    pub fn elements(&self) -> Option<u64> {
        if !self.is_known() {
            return None;
        }
        if self.ne.contains(&0) {
            return Some(0);
        }
        self.ne.iter().try_fold(1u64, |product, &n| product.checked_mul(u64::try_from(n).ok()?))
    }
}

/// Input of an op: a tensor with its strides in bytes (zeros where unknown).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Source {
    pub tensor: Tensor,
    pub nb: Shape,
    /// Its place among the op's sources in ggml. Places in between may be empty.
    pub slot: u8,
}

/// Name and memory size of one ggml element type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeInfo {
    pub id: i32,
    pub name: String,
    /// Elements per block; 1 for plain types.
    pub block_elements: u32,
    /// Bytes per block.
    pub block_bytes: u32,
}

/// The element types of a recording.
///
/// ggml never renumbers its types, so a table of those known today names the types of
/// recordings that carry only numbers. Recordings that bring their own table extend it.
#[derive(Debug)]
pub struct TypeTable {
    types: Vec<TypeInfo>,
}

/// `(number, name, elements per block, bytes per block)` of the types in ggml 0.28.
const GGML_TYPES: &[(i32, &str, u32, u32)] = &[
    (0, "f32", 1, 4),
    (1, "f16", 1, 2),
    (2, "q4_0", 32, 18),
    (3, "q4_1", 32, 20),
    (6, "q5_0", 32, 22),
    (7, "q5_1", 32, 24),
    (8, "q8_0", 32, 34),
    (9, "q8_1", 32, 36),
    (10, "q2_K", 256, 84),
    (11, "q3_K", 256, 110),
    (12, "q4_K", 256, 144),
    (13, "q5_K", 256, 176),
    (14, "q6_K", 256, 210),
    (15, "q8_K", 256, 292),
    (16, "iq2_xxs", 256, 66),
    (17, "iq2_xs", 256, 74),
    (18, "iq3_xxs", 256, 98),
    (19, "iq1_s", 256, 50),
    (20, "iq4_nl", 32, 18),
    (21, "iq3_s", 256, 110),
    (22, "iq2_s", 256, 82),
    (23, "iq4_xs", 256, 136),
    (24, "i8", 1, 1),
    (25, "i16", 1, 2),
    (26, "i32", 1, 4),
    (27, "i64", 1, 8),
    (28, "f64", 1, 8),
    (29, "iq1_m", 256, 56),
    (30, "bf16", 1, 2),
    (34, "tq1_0", 256, 54),
    (35, "tq2_0", 256, 66),
    (39, "mxfp4", 32, 17),
    (40, "nvfp4", 64, 36),
    (41, "q1_0", 128, 18),
    (42, "q2_0", 64, 18),
];

impl Default for TypeTable {
    fn default() -> Self {
        let types = GGML_TYPES
            .iter()
            .map(|&(id, name, block_elements, block_bytes)| TypeInfo {
                id,
                name: name.to_owned(),
                block_elements,
                block_bytes,
            })
            .collect();
        Self { types }
    }
}

impl TypeTable {
    pub fn get(&self, id: i32) -> Option<&TypeInfo> {
        self.types.iter().find(|info| info.id == id)
    }

    pub fn iter(&self) -> impl Iterator<Item = &TypeInfo> {
        self.types.iter()
    }

    /// Adds what the recorded program said about a type; it knows better than our table.
    pub fn insert(&mut self, info: TypeInfo) {
        match self.types.iter_mut().find(|known| known.id == info.id) {
            Some(known) => *known = info,
            None => self.types.push(info),
        }
    }

    /// Name of a type number, or the number itself for a type without a name.
    pub fn name(&self, id: i32) -> String {
        match self.get(id) {
            Some(info) => info.name.clone(),
            None => format!("type {id}"),
        }
    }

    /// Bytes that the elements of `tensor` occupy, without gaps between rows.
    pub fn bytes_of(&self, tensor: &Tensor) -> Option<u64> {
        let info = self.get(tensor.type_id)?;
        let blocks = tensor.elements()?.div_ceil(u64::from(info.block_elements.max(1)));
        blocks.checked_mul(u64::from(info.block_bytes))
    }

    /// The types that differ from the built-in table, to be written beside a recording.
    pub fn recorded(&self) -> impl Iterator<Item = &TypeInfo> {
        self.types.iter().filter(|info| {
            !GGML_TYPES.contains(&(
                info.id,
                info.name.as_str(),
                info.block_elements,
                info.block_bytes,
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantised_sizes() {
        let types = TypeTable::default();
        for (type_id, ne, bytes) in [
            (0, [4, 1, 1, 1], Some(16)),
            (2, [2048, 2048, 1, 1], Some(2048 * 2048 / 32 * 18)),
            (14, [256, 3, 1, 1], Some(630)),
            (999, [256, 3, 1, 1], None),
            (0, [0, 0, 0, 0], None),
            (0, [1024, 0, 1, 1], Some(0)),
            (0, [0, 1, 1, 1], Some(0)),
            (0, [1024, 0, -1, 1], None),
            (0, [i64::MAX, i64::MAX, 1, 1], None),
            (28, [i64::MAX, 1, 1, 1], None),
        ] {
            assert_eq!(types.bytes_of(&Tensor { type_id, ne }), bytes, "{type_id} {ne:?}");
        }
    }

    #[test]
    fn recorded_types_replace_and_extend_the_table() {
        let mut types = TypeTable::default();
        assert_eq!(types.recorded().count(), 0);
        let new = TypeInfo { id: 77, name: "q9_9".into(), block_elements: 32, block_bytes: 9 };
        types.insert(new.clone());
        assert_eq!(types.name(77), "q9_9");
        assert_eq!(types.recorded().collect::<Vec<_>>(), [&new]);
        assert_eq!(types.name(78), "type 78");
    }
}
