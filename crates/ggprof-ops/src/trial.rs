//! What a trial is asked for, and what came of it. Both pass between two processes.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// An op, or several that are computed together, on one backend of one ggml.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    pub libraries: Libraries,
    /// As ggml names it: `CPU`, `CUDA0`.
    pub device: String,
    pub threads: Option<u32>,
    /// Kinds of memory that the program had weights in. Some rearrange them, and ops on them are faster.
    pub weight_memory: Vec<String>,
    /// In the order in which they are computed.
    pub nodes: Vec<Node>,
    /// More than the caches hold.
    pub cold_bytes: u64,
    /// How long to measure, each way.
    pub measure_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Libraries {
    pub base: PathBuf,
    /// Variants of the backend for different processors; the one that fits best is taken.
    pub backends: Vec<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    pub op: String,
    /// Of `UNARY` and `GLU`, whose first parameter is its number.
    pub function: Option<String>,
    pub params: [i32; 16],
    pub output: Shape,
    pub sources: Vec<Source>,
    /// How many keys the last token attends to, where attention has a mask.
    pub attended: Option<u64>,
}

impl Node {
    /// Multiplies numbers by one: an op of any size that every backend has.
    pub fn scale(ne: [i64; 4]) -> Self {
        let shape = Shape { type_id: 0, type_name: "f32".to_owned(), ne };
        let source = Source { slot: 0, shape: shape.clone(), nb: [0; 4], from: From::Outside(0) };
        let mut params = [0; 16];
        params[0] = 1.0_f32.to_bits() as i32;
        let op = "SCALE".to_owned();
        Self { op, function: None, params, output: shape, sources: vec![source], attended: None }
    }
}

/// A tensor's type, by number and name, and its dimensions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    pub type_id: i32,
    pub type_name: String,
    pub ne: [i64; 4],
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Source {
    pub slot: u8,
    pub shape: Shape,
    /// Strides in bytes.
    pub nb: [i64; 4],
    pub from: From,
}

/// Where a source comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum From {
    /// It was there before; those of the same number are the same tensor.
    Outside(u8),
    /// The node at this place of the trial computes it.
    Node(u8),
}

/// What one computation of all nodes takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialTime {
    /// With what it reads in the cache, as far as it fits.
    pub warm_ns: f64,
    /// With nothing of it in the cache.
    pub cold_ns: f64,
    /// Special memory that the weights were put into.
    pub weight_memory: Option<String>,
    /// Version and commit that the ggml names; empty where it does not.
    pub version: [String; 2],
}
