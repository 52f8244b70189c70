//! What tensors are filled with: random weights and activations, and numbers that make sense to the
//! op where it takes some of rows, experts, positions or what may be attended to.

use crate::ggml::Ggml;
use crate::trial::{Node, Source};

const F32: i32 = 0;
const F16: i32 = 1;
const BF16: i32 = 30;
const I32: i32 = 26;
const I64: i32 = 27;

/// Elements that are made; larger tensors repeat them.
const PATTERN: usize = 1 << 16;

/// Pseudo-random numbers, the same in every process.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: i64) -> i64 {
        (self.next() >> 1) as i64 % end.max(1)
    }

    /// From -1 to 1.
    fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    }
}

/// The bytes for a source of a node that take up so many.
pub(crate) fn bytes_for(
    ggml: &Ggml,
    node: &Node,
    source: &Source,
    bytes: usize,
    random: &mut Random,
) -> Result<Vec<u8>, String> {
    if matches!(source.shape.type_id, I32 | I64) {
        return Ok(numbers(node, source, bytes, random));
    }
    if is_mask(node, source) {
        return Ok(mask(node, source, bytes));
    }
    let pattern = pattern(ggml, source, random)?;
    Ok(pattern.iter().copied().cycle().take(bytes).collect())
}

/// Whole rows of random elements.
fn pattern(ggml: &Ggml, source: &Source, random: &mut Random) -> Result<Vec<u8>, String> {
    let kind = source.shape.type_id;
    // SAFETY: a type of this ggml's, as its name has shown.
    let (block, block_bytes) =
        unsafe { ((ggml.ggml_blck_size)(kind), (ggml.ggml_type_size)(kind)) };
    let row = source.shape.ne[0].max(block) as usize;
    let rows = (PATTERN / row).max(1);
    let floats: Vec<f32> = (0..row * rows).map(|_| random.float()).collect();
    Ok(match kind {
        F32 => floats.iter().flat_map(|float| float.to_le_bytes()).collect(),
        F16 => floats.iter().flat_map(|&float| half(float).to_le_bytes()).collect(),
        BF16 => floats
            .iter()
            .flat_map(|&float| ((float.to_bits() >> 16) as u16).to_le_bytes())
            .collect(),
        _ if block > 1 => {
            let mut packed = vec![0_u8; rows * row / block as usize * block_bytes];
            let weights = vec![1.0_f32; row];
            // SAFETY: as many rows of floats, and as much room for them packed.
            unsafe {
                (ggml.ggml_quantize_chunk)(
                    kind,
                    floats.as_ptr(),
                    packed.as_mut_ptr().cast(),
                    0,
                    rows as i64,
                    row as i64,
                    weights.as_ptr(),
                )
            };
            packed
        }
        _ => return Err(format!("tensors of type {} cannot be filled", source.shape.type_name)),
    })
}

/// The nearest half-precision number of one between -1 and 1.
fn half(float: f32) -> u16 {
    let bits = float.to_bits();
    let (sign, exponent) = ((bits >> 16) as u16 & 0x8000, (bits >> 23 & 0xff) as i32 - 127 + 15);
    if exponent <= 0 {
        return sign;
    }
    sign | (exponent as u16) << 10 | (bits >> 13) as u16 & 0x3ff
}

fn is_mask(node: &Node, source: &Source) -> bool {
    matches!((node.op.as_str(), source.slot), ("FLASH_ATTN_EXT", 3) | ("SOFT_MAX", 1))
}

/// Each token attends to all before it, or to as many as it did in the model.
fn mask(node: &Node, source: &Source, bytes: usize) -> Vec<u8> {
    let [keys, rows, ..] = source.shape.ne;
    let queries = node.sources[0].shape.ne[1].min(rows);
    let (open, closed): (&[u8], &[u8]) = match source.shape.type_id {
        F16 => (&[0, 0], &[0x00, 0xfc]),
        _ => (&[0, 0, 0, 0], &[0, 0, 0x80, 0xff]),
    };
    filled(source, bytes, open.len(), |[key, row, ..]| {
        let deepest = node.attended.map_or(keys, |attended| keys.min(attended as i64));
        if key < (deepest - queries + row + 1).max(1) { open.to_vec() } else { closed.to_vec() }
    })
}

fn numbers(node: &Node, source: &Source, bytes: usize, random: &mut Random) -> Vec<u8> {
    let first = node.sources.first().map_or([1; 4], |source| source.shape.ne);
    let rows = node.output.ne[1];
    let width = if source.shape.type_id == I64 { 8 } else { 4 };
    // Different experts for one token, as a router chooses them.
    let mut chosen: Vec<i64> = Vec::new();
    filled(source, bytes, width, |[at, row, ..]| {
        let number = match node.op.as_str() {
            "GET_ROWS" => random.below(first[1]),
            "SET_ROWS" => (at + row) % rows.max(1),
            "ROPE" | "ROPE_BACK" => at % first[2].max(1),
            "MUL_MAT_ID" | "ADD_ID" => {
                let experts =
                    if node.op == "ADD_ID" { node.sources[1].shape.ne[1] } else { first[2] };
                if at == 0 {
                    chosen.clear();
                }
                let mut expert = random.below(experts);
                while chosen.contains(&expert) && (chosen.len() as i64) < experts {
                    expert = (expert + 1) % experts;
                }
                chosen.push(expert);
                expert
            }
            "SSM_SCAN" | "SSM_CONV" => at,
            _ => 0,
        };
        number.to_le_bytes()[..width].to_vec()
    })
}

/// Elements where the strides put them.
fn filled(
    source: &Source,
    bytes: usize,
    width: usize,
    mut element: impl FnMut([i64; 4]) -> Vec<u8>,
) -> Vec<u8> {
    let mut all = vec![0; bytes];
    let [a, b, c, d] = source.shape.ne;
    // Recordings of ggml's first profilers have no strides: one element follows the other.
    let packed = [1, a, a * b, a * b * c].map(|elements| elements * width as i64);
    let strides = if source.nb == [0; 4] { packed } else { source.nb };
    for l in 0..d {
        for k in 0..c {
            for j in 0..b {
                for i in 0..a {
                    let place: i64 = [i, j, k, l].iter().zip(&strides).map(|(n, nb)| n * nb).sum();
                    let value = element([i, j, k, l]);
                    if let Some(at) = all.get_mut(place as usize..place as usize + width) {
                        at.copy_from_slice(&value);
                    }
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{From, Shape};

    /// Positions of three tokens, where the recording has strides and where it has none.
    #[test]
    fn numbers_follow_each_other() {
        for nb in [[4, 12, 12, 12], [0; 4]] {
            let mut node = Node::scale([8, 2, 3, 1]);
            node.op = "ROPE".to_owned();
            let shape = Shape { type_id: I32, type_name: "i32".to_owned(), ne: [3, 1, 1, 1] };
            let source = Source { slot: 1, shape, nb, from: From::Outside(1) };
            let found = numbers(&node, &source, 12, &mut Random::new());
            assert_eq!(found, [0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0], "{nb:?}");
        }
    }
}
