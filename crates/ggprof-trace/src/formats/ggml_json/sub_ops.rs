//! Names of the unary and gated ops, as numbered by the ggml that writes profiler JSON.
//!
//! The numbers move between ggml versions. These belong to the one branch of llama.cpp
//! that writes this format; recordings made by ggprof carry the names themselves.

const UNARY: &[&str] = &[
    "ABS",
    "SGN",
    "NEG",
    "STEP",
    "TANH",
    "ELU",
    "RELU",
    "SIGMOID",
    "GELU",
    "GELU_QUICK",
    "SILU",
    "HARDSWISH",
    "HARDSIGMOID",
    "EXP",
    "EXPM1",
    "SOFTPLUS",
    "GELU_ERF",
    "XIELU",
    "FLOOR",
    "CEIL",
    "ROUND",
    "TRUNC",
];

const GLU: &[&str] = &["REGLU", "GEGLU", "SWIGLU", "SWIGLU_OAI", "GEGLU_ERF", "GEGLU_QUICK"];

/// The name for `sub_op` of an op that has one.
pub(super) fn name(op: &str, sub_op: i32) -> Option<&'static str> {
    let names = match op {
        "UNARY" => UNARY,
        "GLU" => GLU,
        _ => return None,
    };
    names.get(usize::try_from(sub_op).ok()?).copied()
}
