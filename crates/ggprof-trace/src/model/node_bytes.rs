//! The sizes of events. Nearly always all events of a node have the same.

use super::node::NodeId;

#[derive(Debug, Default)]
pub(super) struct NodeBytes {
    of_node: Vec<OfNode>,
    /// Of events that differ from the first of their node, by event.
    others: Vec<(u32, u64)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct OfNode {
    /// Of its first event; `None` before that.
    bytes: Option<u64>,
    differs: bool,
}

impl NodeBytes {
    /// Takes the size of the next event.
    #[inline]
    pub(super) fn push(&mut self, event: u32, node: NodeId, bytes: u64) {
        match self.of_node.get(node.0 as usize) {
            Some(known) if known.bytes == Some(bytes) => {}
            _ => self.learn(event, node, bytes),
        }
    }

    #[cold]
    fn learn(&mut self, event: u32, node: NodeId, bytes: u64) {
        let at = node.0 as usize;
        self.of_node.resize(self.of_node.len().max(at + 1), OfNode::default());
        let known = &mut self.of_node[at];
        if known.bytes.is_some() {
            known.differs = true;
            self.others.push((event, bytes));
        }
        known.bytes = known.bytes.or(Some(bytes));
    }

    #[inline]
    pub(super) fn get(&self, event: u32, node: NodeId) -> u64 {
        let known = &self.of_node[node.0 as usize];
        let other = if known.differs { self.other(event) } else { None };
        other.or(known.bytes).unwrap_or(0)
    }

    #[cold]
    fn other(&self, event: u32) -> Option<u64> {
        let at = self.others.binary_search_by_key(&event, |(event, _)| *event).ok()?;
        Some(self.others[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_has_its_own_size() {
        let events = [(2, 16), (0, 8), (2, 16), (2, 0), (0, 8), (2, 16), (2, 99)];
        let mut sizes = NodeBytes::default();
        for (event, (node, bytes)) in (0..).zip(events) {
            sizes.push(event, NodeId(node), bytes);
        }
        for (event, (node, bytes)) in (0..).zip(events) {
            assert_eq!(sizes.get(event, NodeId(node)), bytes);
        }
        assert_eq!(sizes.others.len(), 2);
    }
}
