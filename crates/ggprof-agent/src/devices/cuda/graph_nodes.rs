//! Which of ggml's nodes each node of a CUDA graph computes. A CUDA graph is captured once and
//! launched many times. Its nodes are copied when it is made executable, and the copies are what
//! runs. CUPTI reuses its node numbers for new graphs, so the latest entry for a number is valid.

use super::capture::LaunchOrder;
use crate::digest::NumberMap;

/// Nodes remembered before the older half is forgotten: a program that captures
/// for ever must not eat memory for ever.
const MOST_YOUNG: usize = 1 << 18;

/// Positions in ggml's graph, by CUPTI's number of the CUDA graph's node.
#[derive(Debug, Default)]
pub(crate) struct GraphNodes {
    young: NumberMap<u64, u32>,
    old: NumberMap<u64, u32>,
}

impl GraphNodes {
    pub(crate) fn learn(&mut self, node: u64, position: u32) {
        if self.young.len() >= MOST_YOUNG {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(node, position);
    }

    /// A copy computes what its original does; a copy of something unknown is
    /// unknown, whatever its number meant before.
    pub(crate) fn copy(&mut self, node: u64, original: u64) {
        match self.position(original) {
            Some(position) => self.learn(node, position),
            None => self.forget(node),
        }
    }

    /// The number means something else from now on.
    pub(crate) fn forget(&mut self, node: u64) {
        self.young.remove(&node);
        self.old.remove(&node);
    }

    pub(crate) fn position(&self, node: u64) -> Option<u32> {
        self.young.get(&node).or_else(|| self.old.get(&node)).copied()
    }
}

/// Executable graphs in the order of their nodes, by CUDA's handle.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    known: NumberMap<u64, KnownOrder>,
}

#[derive(Debug, Default)]
struct KnownOrder {
    order: LaunchOrder,
    /// True where the numbers of the nodes are not known (any more), so that the order identifies
    /// them.
    rules: bool,
}

impl Orders {
    /// A graph was captured and became this executable one. CUPTI saw its nodes being copied
    /// (`copied`), or did not, or the existing nodes were changed to do something else. `order` is
    /// `None` where the nodes have none.
    pub(crate) fn learn(
        &mut self,
        executable: u64,
        order: Option<LaunchOrder>,
        copied: bool,
        attached: bool,
    ) {
        if self.known.len() >= MOST_YOUNG {
            self.known.clear();
        }
        let known = self.known.entry(executable).or_default();
        known.order = order.unwrap_or_default();
        known.rules = !copied && (!attached || known.rules);
    }

    pub(crate) fn rules(&self, executable: u64) -> bool {
        self.known.get(&executable).is_some_and(|known| known.rules)
    }

    /// The order of a graph's nodes; empty for a graph without one.
    pub(crate) fn order(&self, executable: u64) -> &[u32] {
        self.known.get(&executable).map_or(&[], |known| &known.order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_copies_and_numbers_used_again() {
        let mut nodes = GraphNodes::default();
        nodes.learn(1, 10);
        nodes.copy(2, 1);
        nodes.copy(3, 2);
        assert_eq!(nodes.position(3), Some(10));
        nodes.learn(1, 11);
        assert_eq!((nodes.position(1), nodes.position(3)), (Some(11), Some(10)));
        nodes.copy(3, 99);
        assert_eq!(nodes.position(3), None, "its original is unknown");
    }

    #[test]
    fn the_order_rules_where_the_numbers_are_not_known() {
        let order = |position: u32| Some(Box::from([position]) as LaunchOrder);
        let mut orders = Orders::default();
        orders.learn(1, order(4), true, true);
        assert!(!orders.rules(1), "CUPTI saw the copies");
        orders.learn(1, order(5), false, true);
        assert!(!orders.rules(1), "the copies are the same, they only do something else");
        orders.learn(1, order(6), false, false);
        assert!(orders.rules(1), "it may be another graph under an old handle");
        orders.learn(1, order(7), false, true);
        assert!(orders.rules(1) && orders.order(1) == [7]);
        orders.learn(1, None, false, false);
        assert!(orders.rules(1) && orders.order(1).is_empty());
    }

    #[test]
    fn the_oldest_are_forgotten_first() {
        let mut nodes = GraphNodes::default();
        for node in 0..2 * MOST_YOUNG as u64 + 1 {
            nodes.learn(node, 1);
        }
        assert_eq!(nodes.position(0), None);
        assert_eq!(nodes.position(MOST_YOUNG as u64), Some(1));
    }
}
