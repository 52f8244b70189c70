//! Finds the fields of `ggml_cgraph` that the agent reads.

use super::words::{self, Words};
use super::workbench::{F32, Workbench};
use crate::ffi::api::Pointer;
use crate::ffi::graph::{GraphHead, GraphLayout};

/// More than the head of any graph; what lies behind ours can be read as well.
const MOST_HEAD_BYTES: usize = 512;

pub(super) fn find(bench: &Workbench<'_>) -> Result<GraphLayout, &'static str> {
    let (two, three) = (chain(bench, 2)?, chain(bench, 3)?);
    let [of_two, of_three] = [&two, &three].map(|(graph, _)| head(*graph));
    let counts = of_three.halves().filter(|&at| (of_two.u32_at(at), of_three.u32_at(at)) == (2, 3));
    let n_nodes = words::only(counts).ok_or("the graph's number of nodes was not found")?;
    let wanted: Vec<u64> = three.1.iter().map(|node| *node as u64).collect();
    let lists = of_three.offsets().filter(|&at| {
        words::read_anywhere::<3>(of_three.u64_at(at)).is_some_and(|list| list[..] == wanted[..])
    });
    let nodes = words::only(lists).ok_or("the graph's nodes were not found")?;
    let bytes = head_bytes(bench, three.0, &of_three);
    let uid = find_uid(bench, &of_three, bytes);
    let layout = GraphLayout { n_nodes, nodes, uid, has_views: false };
    Ok(GraphLayout { has_views: has_views(bench, &layout, three.0), ..layout })
}

/// Whether a view of this graph of three nodes shows its second one, and has room where the agent wants it.
fn has_views(bench: &Workbench<'_>, layout: &GraphLayout, graph: Pointer) -> bool {
    let Some(view) = bench.makers.ggml_graph_view else { return false };
    if bench.longest_head().is_none_or(|bytes| bytes > size_of::<GraphHead>()) {
        return false;
    }
    let before = head(graph);
    // SAFETY: as ggml's header asks; in a child, should this ggml's function be another one.
    let mut viewed = unsafe { view(graph, 1, 2) };
    // SAFETY: a value of ours.
    let viewed = unsafe { Words::at((&raw mut viewed).cast(), size_of::<GraphHead>()) };
    let second = before.u64_at(layout.nodes) + size_of::<Pointer>() as u64;
    let is_unchanged = before.offsets().all(|at| before.u64_at(at) == head(graph).u64_at(at));
    (viewed.u32_at(layout.n_nodes), viewed.u64_at(layout.nodes)) == (1, second) && is_unchanged
}

/// A graph of nodes that need each other, and the nodes.
fn chain(bench: &Workbench<'_>, length: usize) -> Result<(Pointer, Vec<Pointer>), &'static str> {
    let mut last = bench.shaped(F32, [4, 4, 1, 1])?;
    let other = bench.shaped(F32, [4, 4, 1, 1])?;
    let mut nodes = Vec::new();
    for _ in 0..length {
        last = bench.node(last, other)?;
        nodes.push(last);
    }
    Ok((bench.graph_of(last)?, nodes))
}

/// How many nodes the graph of this node has.
pub(super) fn count_of(
    bench: &Workbench<'_>,
    layout: &GraphLayout,
    node: Pointer,
) -> Result<u32, &'static str> {
    Ok(head(bench.graph_of(node)?).u32_at(layout.n_nodes))
}

fn head(graph: Pointer) -> Words {
    // SAFETY: a graph in the bench's memory, most of which lies behind it.
    unsafe { Words::at(graph, MOST_HEAD_BYTES) }
}

/// The head ends where the first object begins that it points to. 0 if that is elsewhere: then the
/// length of the head is not known.
fn head_bytes(bench: &Workbench<'_>, graph: Pointer, head: &Words) -> usize {
    let pointed_to = head.offsets().map(|at| head.u64_at(at)).filter(|&value| bench.holds(value));
    let behind = pointed_to.filter(|&value| value > graph as u64).min();
    let bytes = behind.map_or(0, |first| (first - graph as u64) as usize);
    if (32..MOST_HEAD_BYTES).contains(&bytes) { bytes } else { 0 }
}

/// After the last pointer into the graph's own memory (the hash set's keys) comes the order of
/// evaluation, and after that, in newer versions, the graph's number, which is 0 at first.
fn find_uid(bench: &Workbench<'_>, head: &Words, bytes: usize) -> usize {
    let own = head.offsets().take_while(|at| at + 8 <= bytes);
    let last_pointer = own.filter(|&at| bench.holds(head.u64_at(at))).last();
    let uid = last_pointer.map_or(0, |at| at + 16);
    let is_there = uid != 0 && uid + 8 <= bytes && head.u64_at(uid) == 0;
    if is_there { uid } else { 0 }
}
