//! The numbers of ops, types and functions in the ggml that will read. They move between versions, so
//! they are looked up by name.

use super::Unwritable;
use crate::model::{Tensor, Trace, TypeInfo};
use hashbrown::HashMap;

#[derive(Debug, Clone, Default)]
pub struct Numbers {
    ops: HashMap<String, u32>,
    types: HashMap<String, TypeNumber>,
    /// Those of `UNARY` and of `GLU`, by op and name. Empty if they are those of the recording.
    functions: HashMap<(&'static str, String), i32>,
    is_own: bool,
}

/// A type's number, and how it is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeNumber {
    pub number: i32,
    pub block_elements: u32,
    pub block_bytes: u32,
}

/// Ops whose first parameter is the number of a function.
const OF_FUNCTIONS: [&str; 2] = ["UNARY", "GLU"];
/// More than ggml has ops or types.
const MOST_NUMBERS: u32 = 256;
/// More than ggml has functions of one kind.
const MOST_FUNCTIONS: i32 = 64;

impl Numbers {
    /// Those of the ggml that the recorded program used.
    pub fn of_recording(trace: &Trace) -> Self {
        let mut numbers = Self { is_own: true, ..Self::default() };
        // One that no ggml has is damage.
        for (op, number) in trace.op_numbers.iter().filter(|(_, number)| *number < MOST_NUMBERS) {
            numbers.ops.insert(op.to_owned(), number);
        }
        for info in trace.types.iter().filter(|info| (info.id as u32) < MOST_NUMBERS) {
            // Types keep their numbers, and those that are known come first.
            numbers.types.entry(info.name.clone()).or_insert(TypeNumber::from(info));
        }
        numbers
    }

    /// Those of another recording's ggml.
    pub fn of_other(trace: &Trace) -> Self {
        let mut functions = HashMap::new();
        for (_, signature) in trace.nodes.signatures() {
            let op = OF_FUNCTIONS.into_iter().find(|&op| op == trace.text(signature.op));
            if let (Some(op), Some(name)) = (op, signature.sub_op_name) {
                functions.insert((op, trace.text(name).to_owned()), signature.op_params[0]);
            }
        }
        Self { functions, is_own: false, ..Self::of_recording(trace) }
    }

    /// Those that a ggml tells of itself, a line for each: `op 29 MUL_MAT`, `type 2 q4_0 32 18`,
    /// `unary 10 SILU`, `glu 2 SWIGLU`. Other lines say nothing. Where a name has two numbers, the
    /// first one counts.
    pub fn of_listing(listing: &str) -> Self {
        let mut numbers = Self::default();
        for line in listing.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            numbers.take(&words);
        }
        numbers
    }

    fn take(&mut self, words: &[&str]) -> Option<()> {
        let (number, name) = (words.get(1)?.parse::<u32>().ok()?, (*words.get(2)?).to_owned());
        let size = |at: usize| words.get(at)?.parse::<u32>().ok();
        match words[0] {
            "op" => _ = self.ops.entry(name).or_insert(number),
            "type" => {
                let kind = TypeNumber {
                    number: number as i32,
                    block_elements: size(3)?,
                    block_bytes: size(4)?,
                };
                self.types.entry(name).or_insert(kind);
            }
            "unary" => _ = self.functions.entry(("UNARY", name)).or_insert(number as i32),
            "glu" => _ = self.functions.entry(("GLU", name)).or_insert(number as i32),
            _ => {}
        }
        Some(())
    }

    /// Whether no op is known at all.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    pub(super) fn op(&self, name: &str) -> Option<u32> {
        self.ops.get(name).copied()
    }

    pub(super) fn type_of(&self, trace: &Trace, tensor: &Tensor) -> Result<TypeNumber, Unwritable> {
        let info = trace.types.get(tensor.type_id).ok_or(Unwritable::NoNumber)?;
        let kind = *self.types.get(&info.name).ok_or(Unwritable::NoNumber)?;
        let is_same =
            (kind.block_elements, kind.block_bytes) == (info.block_elements, info.block_bytes);
        if is_same { Ok(kind) } else { Err(Unwritable::PackedOtherwise) }
    }

    /// An op's parameters, of which one may be the number of a function.
    pub(super) fn params(
        &self,
        op: &str,
        function: Option<&str>,
        params: &[i32; 16],
    ) -> Result<[i32; 16], Unwritable> {
        let Some(op) = OF_FUNCTIONS.into_iter().find(|&it| it == op) else { return Ok(*params) };
        let mut params = *params;
        let function = function.ok_or(Unwritable::Undescribed)?;
        if !self.is_own {
            let number = self.functions.get(&(op, function.to_owned()));
            params[0] = *number.ok_or(Unwritable::NoNumber)?;
        }
        if (0..MOST_FUNCTIONS).contains(&params[0]) { Ok(params) } else { Err(Unwritable::Misfit) }
    }
}

impl From<&TypeInfo> for TypeNumber {
    fn from(info: &TypeInfo) -> Self {
        let TypeInfo { id, block_elements, block_bytes, .. } = *info;
        Self { number: id, block_elements, block_bytes }
    }
}
