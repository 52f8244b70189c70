//! Finds the fields of `ggml_tensor` that the agent reads.

use super::graphs;
use super::words::{self, Words};
use super::workbench::{F32, OTHER_TYPES, Workbench};
use crate::ffi::api::{InitParams, Pointer, text};
use crate::ffi::graph::GraphLayout;
use crate::ffi::tensor::TensorLayout;

/// Op numbers were below 110 in every version; asking for the name of a number beyond ggml's table
/// reads past its end.
const OPS: std::ops::Range<i32> = 1..100;
/// More than any version has, twice over.
const MOST_SOURCES: usize = 20;
/// The shortest name field there was.
const LEAST_NAME_BYTES: usize = 16;
/// Parameters of an op, in every version.
const OP_PARAMS_BYTES: usize = 64;

pub(super) fn find(
    bench: &Workbench<'_>,
    graph: &GraphLayout,
) -> Result<TensorLayout, &'static str> {
    let (ne, nb) = find_shape(bench)?;
    let type_id = find_type(bench, ne, nb)?;
    let (name, name_bytes) = find_name(bench)?;
    let (src, view_src) = find_sources(bench)?;
    let (buffer, data) = find_buffer(bench).unwrap_or_default();
    let layout = TensorLayout {
        bytes: bench.tensor_bytes,
        type_id,
        buffer,
        data,
        ne,
        nb,
        op: find_op(bench)?,
        op_params: find_op_params(bench)?,
        flags: find_flags(bench)?,
        src,
        max_src: count_sources(bench, graph, src)?,
        view_src,
        name,
        name_bytes,
        head_bytes: 0,
    };
    Ok(layout.with_head())
}

fn look_at(bench: &Workbench<'_>, tensor: Pointer) -> Words {
    // SAFETY: a tensor in the bench's memory, most of which lies behind it.
    unsafe { Words::at(tensor, bench.tensor_bytes) }
}

/// Lengths and strides.
fn find_shape(bench: &Workbench<'_>) -> Result<(usize, usize), &'static str> {
    let mut lengths = [7, 11, 13, 17];
    lengths[bench.most_dimensions()..].fill(1);
    let strides = lengths.iter().scan(4, |stride, &length| {
        let this = *stride;
        *stride *= length as u64;
        Some(this)
    });
    let strides: Vec<u64> = strides.collect();
    let words = look_at(bench, bench.shaped(F32, lengths)?);
    let ne = words.find_run(&lengths.map(|length| length as u64)).ok_or("ne not found")?;
    Ok((ne, words.find_run(&strides).ok_or("nb not found")?))
}

/// The word that follows the type asked for, outside the shape.
fn find_type(bench: &Workbench<'_>, ne: usize, nb: usize) -> Result<usize, &'static str> {
    let in_shape = |at: &usize| (ne..ne + 32).contains(at) || (nb..nb + 32).contains(at);
    let mut candidates: Vec<usize> = look_at(bench, bench.vector(F32, 64)?).halves().collect();
    candidates.retain(|at| !in_shape(at));
    for wanted in OTHER_TYPES.into_iter().chain([F32]) {
        let words = look_at(bench, bench.vector(wanted, 64)?);
        candidates.retain(|&at| words.u32_at(at) == wanted as u32);
    }
    candidates.first().copied().ok_or("type not found")
}

/// Where the name is, and how long with its zero.
fn find_name(bench: &Workbench<'_>) -> Result<(usize, usize), &'static str> {
    let tensor = bench.vector(F32, 1)?;
    bench.name(tensor)?;
    let name = look_at(bench, tensor).longest_row_of(b'x');
    let is_name = name.len() + 1 >= LEAST_NAME_BYTES && name.end < bench.tensor_bytes;
    is_name.then_some((name.start, name.len() + 1)).ok_or("name not found")
}

/// The sources of a node, and of a view what it looks at.
fn find_sources(bench: &Workbench<'_>) -> Result<(usize, usize), &'static str> {
    let [a, b] = [bench.shaped(F32, [4, 4, 1, 1])?, bench.shaped(F32, [4, 4, 1, 1])?];
    let node = look_at(bench, bench.node(a, b)?);
    let src = node.find_run(&[a as u64, b as u64]).ok_or("src not found")?;
    let view = look_at(bench, bench.view(a)?);
    let others = view.offsets().filter(|&at| at != src && view.u64_at(at) == a as u64);
    Ok((src, words::only(others).ok_or("view_src not found")?))
}

/// As many sources as ggml follows when it gathers the nodes of a graph: a node is put in one
/// place after the other where the next source would stand.
fn count_sources(
    bench: &Workbench<'_>,
    graph: &GraphLayout,
    src: usize,
) -> Result<usize, &'static str> {
    let most = MOST_SOURCES.min((bench.tensor_bytes - src) / size_of::<usize>());
    for slot in 2..most {
        let [a, b] = [bench.shaped(F32, [4, 4, 1, 1])?, bench.shaped(F32, [4, 4, 1, 1])?];
        let (node, third) = (bench.node(a, b)?, bench.node(a, b)?);
        // SAFETY: inside a tensor of the bench's.
        unsafe { node.byte_add(src + slot * size_of::<usize>()).cast::<Pointer>().write(third) };
        if graphs::count_of(bench, graph, node)? != 2 {
            return Ok(slot);
        }
    }
    Err("the number of a node's sources was not found")
}

/// The field whose number `ggml_op_name` turns into the op's own name.
fn find_op(bench: &Workbench<'_>) -> Result<usize, &'static str> {
    let op_name = bench.makers.ggml_op_name.ok_or("this ggml has no ggml_op_name")?;
    let [a, b] = [bench.shaped(F32, [4, 4, 1, 1])?, bench.shaped(F32, [4, 4, 1, 1])?];
    let nodes: Vec<_> = bench.binaries(a, b).chain(bench.unaries(a)).collect();
    if nodes.len() < 2 {
        return Err("there are too few ops to find the field with their number");
    }
    let mut candidates: Vec<usize> = look_at(bench, a).halves().collect();
    for (node, wanted) in nodes {
        let words = look_at(bench, node);
        candidates.retain(|&at| {
            let number = words.u32_at(at) as i32;
            // SAFETY: a number that ggml may have; in a child, should it have none.
            OPS.contains(&number) && text(unsafe { op_name(number) }) == wanted
        });
    }
    candidates.first().copied().ok_or("op not found")
}

fn find_op_params(bench: &Workbench<'_>) -> Result<usize, &'static str> {
    const VALUE: f32 = 0.001_234_5;
    let matrix = bench.shaped(F32, [4, 4, 1, 1])?;
    let words = look_at(bench, bench.with_parameter(matrix, VALUE)?);
    let found = words::only(words.halves().filter(|&at| words.u32_at(at) == VALUE.to_bits()));
    found.filter(|at| at + OP_PARAMS_BYTES <= bench.tensor_bytes).ok_or("op_params not found")
}

fn find_flags(bench: &Workbench<'_>) -> Result<usize, &'static str> {
    let tensor = bench.vector(F32, 16)?;
    let before = look_at(bench, tensor);
    if bench.flag(tensor).is_none() {
        return Ok(0);
    }
    let after = look_at(bench, tensor);
    let changed = before.halves().filter(|&at| before.u32_at(at) != after.u32_at(at));
    words::only(changed).ok_or("flags not found")
}

/// The buffer and the data in it. Not every build has what this needs; copies then lack a
/// direction, and experts are not seen.
fn find_buffer(bench: &Workbench<'_>) -> Option<(usize, usize)> {
    let makers = bench.makers;
    let make = makers.ggml_backend_cpu_buffer_from_ptr?;
    let (new, alloc) = (makers.ggml_new_tensor_1d?, makers.ggml_backend_tensor_alloc?);
    // Aligned as any backend may ask.
    let memory = vec![0_u128; 128].leak();
    let at = memory.as_mut_ptr() as usize;
    let aligned = at.next_multiple_of(256) as Pointer;
    // SAFETY: as ggml's header asks; a tensor that has no data yet.
    unsafe {
        let context = makers.ggml_init?(InitParams::without_data(16 * 1024));
        let tensor = new(context, F32, 16);
        let buffer = make(aligned, 1024);
        if tensor.is_null() || buffer.is_null() {
            return None;
        }
        alloc(buffer, tensor, aligned);
        let words = look_at(bench, tensor);
        let data = words.offsets().filter(|&at| words.u64_at(at) == aligned as u64);
        Some((words.find_run(&[buffer as u64])?, words::only(data).unwrap_or(0)))
    }
}
