//! Graphs of one node, made by ggml's own functions, so that a backend never sees one whose fields the agent
//! made up.
//!
//! The first way is that of ggml's scheduler, which passes views of graphs to its backends. Where a build hides
//! that function, as Debian's does, a graph is made with the public functions and gets one node after the other.
//! Which way works was tried out in a child process (`probe`).

use std::ffi::c_int;

use super::api::{InitParams, OneNodeFunctions, Pointer};
use super::graph::GraphHead;

/// The way that works with a copy of ggml.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Unknown,
    View,
    Own,
}

/// For one graph after the other.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one, on the stack, while a graph is computed"
)]
pub(crate) enum OneNodeGraphs {
    View(ViewOfGraph, Option<GraphHead>),
    Own(OwnGraph),
}

type ViewOfGraph = unsafe extern "C-unwind" fn(Pointer, c_int, c_int) -> GraphHead;

/// A graph with room for one node, in a context of its own.
#[derive(Debug)]
pub(crate) struct OwnGraph {
    context: Pointer,
    graph: Pointer,
    clear: unsafe extern "C-unwind" fn(Pointer),
    add: unsafe extern "C-unwind" fn(Pointer, Pointer),
    free: unsafe extern "C-unwind" fn(Pointer),
}

/// Far more than a graph of one node takes.
const CONTEXT_BYTES: usize = 16 << 10;

impl OneNodeGraphs {
    /// # Safety
    /// The functions are those of a ggml with which this way was tried out; or this is a child made for that.
    pub(crate) unsafe fn new(functions: &OneNodeFunctions, way: Way) -> Option<OneNodeGraphs> {
        match way {
            Way::Unknown => None,
            Way::View => Some(OneNodeGraphs::View(functions.ggml_graph_view?, None)),
            Way::Own => {
                let (init, new) = (functions.ggml_init?, functions.ggml_new_graph_custom?);
                let (clear, add) = (functions.ggml_graph_clear?, functions.ggml_graph_add_node?);
                let free = functions.ggml_free?;
                // SAFETY: as ggml's header asks; the context has memory of its own.
                unsafe {
                    let context = init(InitParams::without_data(CONTEXT_BYTES));
                    if context.is_null() {
                        return None;
                    }
                    let graph = new(context, 1, false);
                    let own = OwnGraph { context, graph, clear, add, free };
                    (!graph.is_null()).then_some(OneNodeGraphs::Own(own))
                }
            }
        }
    }

    /// A graph of the node at this position of `graph`, until the next one is asked for.
    ///
    /// # Safety
    /// The graph is one of this ggml's, and has this node there.
    pub(crate) unsafe fn graph_of(
        &mut self,
        graph: Pointer,
        position: usize,
        node: Pointer,
    ) -> Pointer {
        let first = position as c_int;
        match self {
            // SAFETY: the caller's contract.
            Self::View(view, viewed) => unsafe {
                std::ptr::from_mut(viewed.insert(view(graph, first, first + 1))).cast()
            },
            // SAFETY: as above; the graph has room for one node.
            Self::Own(own) => unsafe {
                (own.clear)(own.graph);
                (own.add)(own.graph, node);
                own.graph
            },
        }
    }
}

impl Drop for OwnGraph {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and no backend keeps a graph that it has computed.
        unsafe { (self.free)(self.context) };
    }
}
