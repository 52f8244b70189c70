//! What the program handed to libllama, and what it did to the memory of a context.

use serde::{Deserialize, Serialize};

/// Position in [`Trace::batches`](crate::Trace::batches).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BatchId(pub u32);

/// A call of `llama_decode` or `llama_encode`, and the batch it was given; or a graph run, and the tokens
/// whose positions it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Which call of the process it is, those that were not recorded included.
    pub call: u32,
    pub context: u32,
    pub start_ns: u64,
    /// When the call returned; `None` if recording had stopped by then.
    pub end_ns: Option<u64>,
    /// No call was seen: this is a graph run with tokens at these positions. The numbers of its sequences
    /// mean nothing.
    #[serde(default)]
    pub is_from_positions: bool,
    pub function: BatchFunction,
    /// `None` if the batch could not be read.
    pub tokens: Option<u32>,
    /// Tokens that results were asked for; `None` if the program left that to libllama.
    pub outputs: Option<u32>,
    /// Empty where they are not known.
    pub sequences: Vec<BatchSequence>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BatchFunction {
    Decode,
    Encode,
}

/// The tokens of one sequence in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchSequence {
    pub sequence: i32,
    /// Positions of the first and the last token, if the program gave them.
    pub positions: Option<(u32, u32)>,
    pub tokens: u32,
    pub outputs: u32,
}

/// Something that the program did to a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextChange {
    /// `None` where it is not known which.
    pub context: Option<u32>,
    pub at_ns: u64,
    pub what: ContextChangeKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ContextChangeKind {
    /// All its memory was cleared.
    Cleared,
    /// Positions of a sequence, or of all sequences, were removed: from the first to before the
    /// last, or all that follow.
    Removed {
        sequence: Option<u32>,
        first: u32,
        last: Option<u32>,
    },
    /// Positions were moved.
    Shifted {
        sequence: Option<u32>,
        first: u32,
        last: Option<u32>,
        by: i32,
    },
    /// Positions of a sequence became those of another, too.
    Copied {
        sequence: u32,
        to: u32,
    },
    /// All other sequences were removed.
    Kept {
        sequence: u32,
    },
    /// Positions were divided, so that several tokens have the same.
    Divided {
        sequence: Option<u32>,
        first: u32,
        last: Option<u32>,
        by: u32,
    },
    /// What comes is a trial.
    WarmUp,
    WarmedUp,
    Freed,
    /// The program looked at the embeddings that a call made.
    EmbeddingsRead {
        call: u32,
    },
}
