//! Reading a `ggml_cgraph`: how many nodes and which. The offsets were checked
//! against ggml's own accessors by `probe`.

use std::ffi::c_void;

use super::one_node::Way;

/// Where the fields are in this copy of ggml.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GraphLayout {
    pub(crate) n_nodes: usize,
    pub(crate) nodes: usize,
    /// The key by which backends recognise a graph again; 0 where there is none.
    pub(crate) uid: usize,
    /// How ggml itself makes graphs of one node.
    pub(crate) one_node: Way,
}

/// A graph that ggml was asked to compute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Graph<'l> {
    at: *const u8,
    layout: &'l GraphLayout,
}

impl<'l> Graph<'l> {
    /// # Safety
    /// `at` points to a live graph of the copy of ggml the layout was probed
    /// from, and stays alive and unchanged while the value is used.
    pub(crate) unsafe fn new(at: *mut c_void, layout: &'l GraphLayout) -> Self {
        Graph { at: at.cast(), layout }
    }

    pub(crate) fn nodes(self) -> &'l [*const u8] {
        // SAFETY: the probe saw these fields at these offsets; the graph is
        // alive (`new`) and holds `n_nodes` pointers.
        unsafe {
            let n = self.at.add(self.layout.n_nodes).cast::<i32>().read();
            let nodes = self.at.add(self.layout.nodes).cast::<*const *const u8>().read();
            if n <= 0 || nodes.is_null() {
                return &[];
            }
            std::slice::from_raw_parts(nodes, n as usize)
        }
    }

    /// The number by which backends recognise the graph when nothing in it has changed;
    /// 0 without one.
    pub(crate) fn uid(self) -> u64 {
        if self.layout.uid == 0 {
            return 0;
        }
        // SAFETY: inside the graph's own bytes (`new`), as the probe found.
        unsafe { self.at.add(self.layout.uid).cast::<u64>().read_unaligned() }
    }
}

/// Room for what `ggml_graph_view` returns: the head of any graph. 112 bytes are known, fields may be added.
#[repr(C, align(16))]
#[derive(Debug)]
pub(crate) struct GraphHead(pub(crate) [u64; 64]);
