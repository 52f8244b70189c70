//! Reading a `ggml_cgraph`: how many nodes and which. The offsets were checked
//! against ggml's own accessors by `probe`.

use std::ffi::c_void;

/// Where the fields are in this copy of ggml.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GraphLayout {
    pub(crate) bytes: usize,
    pub(crate) n_nodes: usize,
    pub(crate) nodes: usize,
    /// The key by which backends recognise a graph again; 0 where there is none.
    pub(crate) uid: usize,
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
        if self.layout.uid == 0 || self.layout.uid + size_of::<u64>() > self.layout.bytes {
            return 0;
        }
        // SAFETY: inside the graph's own bytes (`new`).
        unsafe { self.at.add(self.layout.uid).cast::<u64>().read_unaligned() }
    }

    /// A copy of the graph's head that shows the node at `position` only, and
    /// that no backend takes for a graph it has seen.
    pub(crate) fn single_node(self, position: usize, into: &mut GraphHead) {
        let length = self.layout.bytes.min(size_of::<GraphHead>());
        let out = (&raw mut into.0).cast::<u8>();
        // SAFETY: `length` bytes are valid on both sides, and the three fields
        // lie within them.
        unsafe {
            out.copy_from_nonoverlapping(self.at, length);
            let nodes = out.add(self.layout.nodes).cast::<*const *const u8>();
            nodes.write(nodes.read().add(position));
            out.add(self.layout.n_nodes).cast::<i32>().write(1);
            if self.layout.uid != 0 {
                out.add(self.layout.uid).cast::<u64>().write(0);
            }
        }
    }
}

/// Room for the head of any graph: 96 bytes are known, fields may be added.
#[repr(C, align(16))]
#[derive(Debug)]
pub(crate) struct GraphHead(pub(crate) [u64; 64]);
