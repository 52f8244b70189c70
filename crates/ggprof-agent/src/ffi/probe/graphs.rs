//! Finds the fields of `ggml_cgraph` that the agent reads.

use super::words::{self, Words};
use super::workbench::{F32, Workbench};
use crate::ffi::api::{OneNodeFunctions, Pointer};
use crate::ffi::graph::{GraphHead, GraphLayout};
use crate::ffi::one_node::{OneNodeGraphs, Way};

/// More than the head of any graph; what lies behind ours can be read as well.
const MOST_HEAD_BYTES: usize = 512;

pub(super) fn find(
    bench: &Workbench<'_>,
    one_node: Option<&OneNodeFunctions>,
) -> Result<GraphLayout, &'static str> {
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
    let layout = GraphLayout { n_nodes, nodes, uid, one_node: Way::Unknown };
    let works = |way: &Way| one_node.is_some_and(|it| works(bench, &layout, it, *way, three.0));
    let way = [Way::View, Way::Own].into_iter().find(works);
    Ok(GraphLayout { one_node: way.unwrap_or(Way::Unknown), ..layout })
}

/// Whether graphs made in this way show the nodes of this graph of three one by one, and what is made has room
/// where the agent wants it.
fn works(
    bench: &Workbench<'_>,
    layout: &GraphLayout,
    functions: &OneNodeFunctions,
    way: Way,
    graph: Pointer,
) -> bool {
    if way == Way::View && bench.longest_head().is_none_or(|bytes| bytes > size_of::<GraphHead>()) {
        return false;
    }
    // SAFETY: in a child, should this ggml's functions be others.
    let Some(mut graphs) = (unsafe { OneNodeGraphs::new(functions, way) }) else { return false };
    let before = head(graph);
    let shows_node = |position: usize| {
        let at = before.u64_at(layout.nodes) + (position * size_of::<Pointer>()) as u64;
        let Some([node]) = words::read_anywhere::<1>(at) else { return false };
        // SAFETY: as above. A graph that is made is as long as a `GraphHead`, or has its context behind it.
        let made = unsafe {
            let made = graphs.graph_of(graph, position, node as Pointer);
            Words::at(made, size_of::<GraphHead>())
        };
        let shown = words::read_anywhere::<1>(made.u64_at(layout.nodes));
        (made.u32_at(layout.n_nodes), shown) == (1, Some([node]))
    };
    let is_shown = (0..3).all(shows_node);
    is_shown && before.offsets().all(|at| before.u64_at(at) == head(graph).u64_at(at))
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
