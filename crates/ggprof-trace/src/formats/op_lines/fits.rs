//! Whether the shapes and types of an op belong together, by what ggml itself demands of them. A
//! damaged recording may have any numbers, and an op of such numbers ends the program that runs it.

use crate::model::{Shape, Signature, Trace};

/// `None` for ops that there is no rule for.
pub(super) fn fits(trace: &Trace, op: &str, signature: &Signature) -> Option<bool> {
    let sources: Vec<Shape> = signature.sources.iter().map(|source| source.tensor.ne).collect();
    let kinds = signature.sources.iter().map(|source| trace.types.get(source.tensor.type_id));
    let kinds: Vec<&str> = kinds.map(|kind| kind.map_or("", |kind| kind.name.as_str())).collect();
    let output = &signature.output.ne;
    let fits = match (op, &sources[..]) {
        ("MUL_MAT", [a, b]) => product(output, a, b),
        ("MUL_MAT_ID", [a, b, ids]) => kinds[2] == "i32" && selected(output, a, b, ids),
        ("ADD" | "SUB" | "MUL" | "DIV", [a, b]) => output == a && repeats(b, a),
        ("ADD_ID", [a, b, ids]) => {
            let same = output == a && a[0] == b[0] && a[1] == ids[0] && a[2] == ids[1];
            same && kinds[2] == "i32" && a[3] == 1 && ids[2..] == [1, 1]
        }
        ("UNARY" | "SQR" | "SQRT" | "LOG" | "SIN" | "COS" | "SCALE" | "NORM" | "RMS_NORM", [a])
        | ("L2_NORM" | "CLAMP" | "LEAKY_RELU" | "ARGSORT" | "DIAG_MASK_INF" | "CUMSUM", [a]) => {
            output == a
        }
        ("CONT" | "DUP", [a]) | ("CPY", [a, _]) => elements(output) == elements(a),
        ("SUM_ROWS" | "MEAN", [a]) => output[0] == 1 && output[1..] == a[1..],
        ("REPEAT", [a]) | ("REPEAT", [a, _]) => repeats(a, output),
        ("GLU", [a]) => a[0] == output[0].saturating_mul(2) && a[1..] == output[1..],
        ("GLU", [a, b]) => a == b && output == a,
        ("GET_ROWS", [a, rows]) => kinds[1] == "i32" && gathered(output, a, rows),
        ("SET_ROWS", [a, rows, rest @ ..]) if rest.len() <= 1 => {
            let is_whole = rest.first().is_none_or(|whole| whole == output);
            is_whole && matches!(kinds[1], "i32" | "i64") && scattered(output, a, rows)
        }
        ("ROPE", [a, positions]) => kinds[1] == "i32" && turned(signature, a, positions),
        ("ROPE", [a, positions, factors]) => {
            let is_known = kinds[1] == "i32" && kinds[2] == "f32";
            is_known && turned(signature, a, positions) && factors[0] >= dimensions(signature) / 2
        }
        ("SOFT_MAX", [a]) => output == a,
        ("SOFT_MAX", [a, mask]) => output == a && masks(mask, a) && is_mask(kinds[1]),
        ("SOFT_MAX", [a, mask, sinks]) => {
            output == a && masks(mask, a) && is_mask(kinds[1]) && sinks[0] == a[2]
        }
        ("FLASH_ATTN_EXT", [q, k, v, rest @ ..]) if rest.len() <= 2 => {
            let is_masked = rest.first().is_none_or(|mask| {
                // A row of the mask has a number for each key.
                kinds[3] == "f16" && masks(mask, &[k[1], q[1], q[2], q[3]])
            });
            let has_sinks = rest.get(1).is_none_or(|sinks| sinks[0] == q[2]);
            // ggml's two precisions.
            let is_precise = matches!(signature.op_params[3], 0 | 10);
            is_precise && attended(output, q, k, v) && is_masked && has_sinks
        }
        ("CONCAT", [a, b]) => joined(signature, a, b),
        // With other sources than ggml has for it.
        ("MUL_MAT" | "MUL_MAT_ID" | "ADD" | "SUB" | "MUL" | "DIV" | "ADD_ID" | "UNARY", _)
        | ("SQR" | "SQRT" | "LOG" | "SIN" | "COS" | "SCALE" | "NORM" | "RMS_NORM", _)
        | ("L2_NORM" | "CLAMP" | "LEAKY_RELU" | "ARGSORT" | "DIAG_MASK_INF" | "CUMSUM", _)
        | ("CONT" | "DUP" | "CPY" | "SUM_ROWS" | "MEAN" | "REPEAT" | "GLU", _)
        | ("GET_ROWS" | "SET_ROWS" | "ROPE" | "SOFT_MAX" | "FLASH_ATTN_EXT" | "CONCAT", _) => false,
        _ => return None,
    };
    Some(fits && types_fit(trace, op, signature, &kinds) && strides_fit(trace, op, signature))
}

/// Rows are read without gaps, but for ops that copy or combine single elements.
fn strides_fit(trace: &Trace, op: &str, signature: &Signature) -> bool {
    signature.sources.iter().all(|source| {
        let kind = trace.types.get(source.tensor.type_id);
        let Some(kind) = kind else { return false };
        let bytes = i64::from(kind.block_bytes);
        let (ne, nb) = (&source.tensor.ne, &source.nb);
        let is_packed = nb[0] == bytes;
        let is_aligned = ne.iter().zip(nb).all(|(&n, stride)| n == 1 || stride % bytes == 0);
        let reads_any = match op {
            "CPY" | "CONT" | "DUP" | "CONCAT" => true,
            "ADD" | "SUB" | "MUL" | "DIV" => source.slot == 1,
            // Written without gaps.
            "GET_ROWS" => source.slot == 1,
            _ => false,
        };
        let is_flat = !matches!(op, "UNARY" | "GLU" | "SCALE") || rows_follow(ne, nb);
        is_aligned && (is_packed || reads_any) && is_flat
    })
}

/// Whether all rows have the same distance.
fn rows_follow(ne: &Shape, nb: &Shape) -> bool {
    let after_rows = ne[1].checked_mul(nb[1]);
    let after_planes = ne[2].checked_mul(nb[2]);
    let is_next = |at: usize, end: Option<i64>| ne[at] == 1 || end == Some(nb[at]);
    match ne[2] {
        1 => ne[3] == 1 || (ne[1] == 1 || after_rows == Some(nb[3])),
        _ => (ne[1] == 1 || is_next(2, after_rows)) && is_next(3, after_planes),
    }
}

/// The types that ggml's own functions give these ops. Others have no code, or code that ends the
/// program.
fn types_fit(trace: &Trace, op: &str, signature: &Signature, kinds: &[&str]) -> bool {
    let output = trace.types.get(signature.output.type_id).map_or("", |kind| kind.name.as_str());
    let is_float = |kind: &str| matches!(kind, "f32" | "f16" | "bf16");
    match op {
        "MUL_MAT" | "MUL_MAT_ID" => output == "f32" && is_float(kinds[1]) && !is_integer(kinds[0]),
        "FLASH_ATTN_EXT" => {
            output == "f32" && kinds[0] == "f32" && !kinds.iter().copied().any(is_integer)
        }
        "ARGSORT" => {
            let is_order = matches!(signature.op_params[0], 0 | 1);
            is_order && output == "i32" && kinds[0] == "f32"
        }
        "ADD" | "SUB" | "MUL" | "DIV" => {
            let is_combined = kinds[1] == kinds[0] || kinds[1] == "f32";
            is_combined && kinds.iter().all(|kind| is_float(kind)) && is_float(output)
        }
        "GET_ROWS" => output == if kinds[0] == "i32" { "i32" } else { "f32" },
        "SET_ROWS" => matches!(kinds[0], "f32" | "f16") && !is_integer(output),
        "CPY" | "CONT" | "DUP" => {
            let is_converted = [output, kinds[0]].iter().all(|kind| matches!(*kind, "f32" | "i32"));
            is_integer(output) == is_integer(kinds[0]) || is_converted
        }
        "CONCAT" | "REPEAT" => output == kinds[0],
        _ => is_float(output) && kinds.first() == Some(&output),
    }
}

fn is_integer(kind: &str) -> bool {
    matches!(kind, "i8" | "i16" | "i32" | "i64" | "f64")
}

fn is_mask(kind: &str) -> bool {
    matches!(kind, "f16" | "f32")
}

fn elements(shape: &Shape) -> i128 {
    shape.iter().map(|&n| i128::from(n)).product()
}

fn repeats(small: &Shape, large: &Shape) -> bool {
    small.iter().zip(large).all(|(&small, &large)| small > 0 && large % small == 0)
}

fn product(output: &Shape, a: &Shape, b: &Shape) -> bool {
    a[0] == b[0] && repeats(&[1, 1, a[2], a[3]], b) && *output == [a[1], b[1], b[2], b[3]]
}

fn selected(output: &Shape, a: &Shape, b: &Shape, ids: &Shape) -> bool {
    let is_flat = a[3] == 1 && b[3] == 1 && ids[2..] == [1, 1];
    // The reader numbers the experts that it uses from 0 on.
    let is_used = ids[1] == b[2] && b[1] > 0 && ids[0] % b[1] == 0;
    is_flat && is_used && a[0] == b[0] && *output == [a[1], ids[0], b[2], 1]
}

fn gathered(output: &Shape, a: &Shape, rows: &Shape) -> bool {
    let of_each = a[2] == rows[1] && a[3] == rows[2] && rows[3] == 1;
    of_each && *output == [a[0], rows[0], rows[1], rows[2]]
}

fn scattered(output: &Shape, a: &Shape, rows: &Shape) -> bool {
    let is_same = output[0] == a[0] && output[2..] == a[2..] && rows[3] == 1;
    is_same && a[1] == rows[0] && a[1] <= output[1] && repeats(&[1, 1, rows[1], rows[2]], a)
}

/// How many dimensions of each head are turned.
fn dimensions(signature: &Signature) -> i64 {
    signature.op_params[1].into()
}

fn turned(signature: &Signature, a: &Shape, positions: &Shape) -> bool {
    /// Four positions for each token, and parameters that share the dimensions out among them.
    const MROPE: i32 = 8;
    const VISION: i32 = 24;
    const KNOWN_BITS: i32 = 63;
    let (mode, sections) = (signature.op_params[2], &signature.op_params[11..14]);
    let has_four = mode & MROPE != 0;
    let is_mode = mode & !KNOWN_BITS == 0;
    let turned = dimensions(signature);
    // Newer versions turn dimensions from some place on.
    let turned_from = i64::from(signature.op_params[15]);
    let is_inside = turned_from >= 0 && turned_from.saturating_add(turned) <= a[0];
    let is_even = is_inside && turned > 0 && turned % 2 == 0 && turned <= a[0] && a[0] % 2 == 0;
    let is_shared = !has_four || sections.iter().any(|&section| section > 0);
    let is_whole = mode != VISION || turned == a[0] / 2;
    let positions_of = a[2].saturating_mul(if has_four { 4 } else { 1 });
    let is_known = signature.output.ne == *a && *positions == [positions_of, 1, 1, 1];
    is_known && is_mode && is_even && is_shared && is_whole
}

fn masks(mask: &Shape, scores: &Shape) -> bool {
    // The reader counts its elements in 32 bits.
    if elements(mask) > i32::MAX.into() {
        return false;
    }
    mask[0] == scores[0] && mask[1] >= scores[1] && repeats(&[1, 1, mask[2], mask[3]], scores)
}

fn attended(output: &Shape, q: &Shape, k: &Shape, v: &Shape) -> bool {
    let is_same = q[0] == k[0] && k[1..] == v[1..] && q[3] == k[3];
    is_same && repeats(&[1, 1, k[2], 1], q) && *output == [v[0], q[2], q[1], q[3]]
}

fn joined(signature: &Signature, a: &Shape, b: &Shape) -> bool {
    let Ok(along) = usize::try_from(signature.op_params[0]) else { return false };
    let is_joined = |at: usize| match at == along {
        true => a[at].checked_add(b[at]) == Some(signature.output.ne[at]),
        false => a[at] == b[at] && a[at] == signature.output.ne[at],
    };
    along < 4 && (0..4).all(is_joined)
}
