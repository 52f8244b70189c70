//! Writes ops as the lines that llama.cpp's `test-backend-ops --test-file` reads:
//!
//! ```text
//! op type ne0 ne1 ne2 ne3 n_params p0 … n_src {type ne0 … ne3 nb0 … nb3}… name
//! ```
//!
//! Its reader checks nothing. It makes tensors of any numbers, and ends in an assertion if they make no
//! sense; it runs what it has read. So each rule that a line has to obey is checked here, and an op
//! that breaks one is not written ([`Unwritable`]).

mod fits;
mod numbers;

use crate::model::{NodeId, Shape, Source, Tensor, Trace};
use hashbrown::HashSet;
pub use numbers::{Numbers, TypeNumber};
use std::fmt::Write;

/// Sources that the reader has room for.
const MOST_SOURCES: usize = 10;
/// An op whose tensors are larger than any machine's memory is damage.
const MOST_BYTES: u64 = 1 << 40;
/// Less is believed of every op: not all memory of old programs is in buffers.
const BELIEVED_BYTES: u64 = 1 << 28;

/// Why an op has no line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unwritable {
    /// The recording does not have its result's type and dimensions, or those of a source.
    Undescribed,
    /// It calls a function of the program.
    Custom,
    /// The ggml that will read has no op, type or function of this name, as far as is known.
    NoNumber,
    /// The ggml that will read packs a type in another way.
    PackedOtherwise,
    /// A source is missing in between, which a line cannot say.
    Hole,
    TooManySources,
    /// There is nothing to compute.
    Empty,
    /// The strides of a source make it overlap itself, or are not known.
    Strides,
    TooLarge,
    /// Shapes, types or parameters do not belong together.
    Misfit,
    /// The recording is damaged, and there is no rule to check this op by.
    Unchecked,
    /// It was computed together with others, of which the recording has nothing but the names.
    UndescribedParts,
}

/// What became of some ops.
#[derive(Debug, Default)]
pub struct OpLines {
    /// One for each op that differs from the others in more than its name, in the order of the ops.
    pub lines: Vec<String>,
    pub left_out: Vec<(NodeId, Unwritable)>,
}

/// The lines of ops, of a fusion those of its parts.
pub fn lines(trace: &Trace, ops: &[NodeId], numbers: &Numbers) -> OpLines {
    let mut all = OpLines::default();
    let mut seen = HashSet::new();
    for &op in ops {
        let members = trace.nodes.members(op);
        let has_parts = trace.signature(op).extra.is_some();
        if has_parts && members.is_empty() {
            all.left_out.push((op, Unwritable::UndescribedParts));
        }
        let parts = if members.is_empty() { std::slice::from_ref(&op) } else { members };
        for &part in parts {
            match line(trace, part, numbers) {
                Ok(line) if seen.contains(&line) => {}
                Ok(line) => {
                    all.lines.push(format!("{line} {}", name(trace, part)));
                    seen.insert(line);
                }
                Err(why) => all.left_out.push((part, why)),
            }
        }
    }
    all
}

/// Tensors are in buffers, as far as the recording has any, and what it says of them is not damaged.
fn most_bytes(trace: &Trace) -> u64 {
    if !trace.losses.is_empty() {
        return BELIEVED_BYTES;
    }
    let in_buffers = trace.buffers.iter().fold(0, |sum: u64, it| sum.saturating_add(it.bytes));
    match in_buffers {
        0 => MOST_BYTES,
        bytes => bytes.clamp(BELIEVED_BYTES, MOST_BYTES),
    }
}

/// The line of a node without its name, which follows after a space.
fn line(trace: &Trace, node: NodeId, numbers: &Numbers) -> Result<String, Unwritable> {
    let signature = trace.signature(node);
    let op = trace.text(signature.op);
    if op.contains("CUSTOM") {
        return Err(Unwritable::Custom);
    }
    let output = described(&signature.output)?;
    check_slots(&signature.sources)?;
    let sub_op = signature.sub_op_name.map(|name| trace.text(name));
    let params = numbers.params(op, sub_op, &signature.op_params)?;
    let number = numbers.op(op).ok_or(Unwritable::NoNumber)?;
    let mut line = format!("{number} {}", numbers.type_of(trace, &output)?.number);
    words(&mut line, &output.ne);
    words(&mut line, &[params.len() as i64]);
    words(&mut line, &params.map(i64::from));
    words(&mut line, &[signature.sources.len() as i64]);
    let mut bytes = packed_bytes(&output, numbers.type_of(trace, &output)?)?;
    for source in &signature.sources {
        let tensor = described(&source.tensor)?;
        let kind = numbers.type_of(trace, &tensor)?;
        bytes = bytes.saturating_add(extent(source, kind)?);
        words(&mut line, &[i64::from(kind.number)]);
        words(&mut line, &tensor.ne);
        words(&mut line, &written_strides(op, source));
    }
    if bytes > most_bytes(trace) {
        return Err(Unwritable::TooLarge);
    }
    match fits::fits(trace, op, signature) {
        Some(true) => Ok(line),
        Some(false) => Err(Unwritable::Misfit),
        None if trace.losses.is_empty() => Ok(line),
        None => Err(Unwritable::Unchecked),
    }
}

/// The last word of a line. It ends at the first space, and a line without a name has a dash.
fn name(trace: &Trace, node: NodeId) -> String {
    let name = trace.tensor_name(node).unwrap_or_default();
    let plain = |letter: char| match letter {
        letter if letter.is_whitespace() || letter.is_control() => '_',
        letter => letter,
    };
    let name: String = name.chars().map(plain).collect();
    if name.is_empty() { "-".to_owned() } else { name }
}

fn words(line: &mut String, numbers: &[i64]) {
    for number in numbers {
        write!(line, " {number}").expect("strings can be written to");
    }
}

fn described(tensor: &Tensor) -> Result<Tensor, Unwritable> {
    match (tensor.type_id >= 0 && tensor.is_known(), tensor.ne.contains(&0)) {
        (false, _) => Err(Unwritable::Undescribed),
        (_, true) => Err(Unwritable::Empty),
        _ => Ok(*tensor),
    }
}

fn check_slots(sources: &[Source]) -> Result<(), Unwritable> {
    let is_hole = |(at, source): (usize, &Source)| {
        usize::from(source.slot) != at || source.tensor == Tensor::UNKNOWN
    };
    if sources.iter().enumerate().any(is_hole) {
        return Err(Unwritable::Hole);
    }
    if sources.len() > MOST_SOURCES { Err(Unwritable::TooManySources) } else { Ok(()) }
}

/// Bytes of a tensor without gaps, in rows of whole blocks.
fn packed_bytes(tensor: &Tensor, kind: TypeNumber) -> Result<u64, Unwritable> {
    let (block, bytes) = (i64::from(kind.block_elements), i64::from(kind.block_bytes));
    if block <= 0 || bytes <= 0 || tensor.ne[0] % block != 0 {
        return Err(Unwritable::Misfit);
    }
    let row = (tensor.ne[0] / block).checked_mul(bytes);
    let all = tensor.ne[1..].iter().try_fold(row.ok_or(Unwritable::TooLarge)?, |all, &n| {
        all.checked_mul(n).filter(|&all| all as u64 <= MOST_BYTES)
    });
    all.map(|all| all as u64).ok_or(Unwritable::TooLarge)
}

/// The bytes from the first element to the last. The reader makes a tensor of so many bytes and looks
/// at it by the strides, which ggml permits only if the elements would fit in without gaps.
fn extent(source: &Source, kind: TypeNumber) -> Result<u64, Unwritable> {
    let Source { tensor, nb, .. } = source;
    let packed = packed_bytes(tensor, kind)?;
    if nb.iter().any(|&stride| stride <= 0) {
        return Err(Unwritable::Strides);
    }
    let block = i64::from(kind.block_elements);
    let row = match block {
        1 => (tensor.ne[0] - 1)
            .checked_mul(nb[0])
            .and_then(|row| row.checked_add(kind.block_bytes.into())),
        _ => tensor.ne[0].checked_mul(nb[0]).map(|row| row / block),
    };
    let end = tensor.ne[1..]
        .iter()
        .zip(&nb[1..])
        .try_fold(row.ok_or(Unwritable::TooLarge)?, |end, (&n, &stride)| {
            (n - 1).checked_mul(stride).and_then(|bytes| end.checked_add(bytes))
        });
    match end {
        None => Err(Unwritable::TooLarge),
        Some(end) if (end as u64) < packed => Err(Unwritable::Strides),
        // The reader sets a whole stride aside, also for a dimension of one.
        Some(end) => Ok(nb.iter().fold(end, |most, &stride| most.max(stride)) as u64),
    }
}

/// The reader fills the numbers of rows from the start on, whatever their strides are, and then ggml
/// takes what lies in the gaps for numbers of rows. Zeros stand for no gaps.
pub fn written_strides(op: &str, source: &Source) -> Shape {
    match (op, source.slot) {
        ("GET_ROWS" | "GET_ROWS_BACK", 1) => [0; 4],
        _ => source.nb,
    }
}

#[cfg(test)]
mod tests;
