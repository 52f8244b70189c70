//! Nodes that were computed together: which of their sources come from outside, and which of their
//! results are stored.

use super::tables::Tables;
use crate::model::Origin;
use ggprof_ggml::computes;
use ggprof_spool::layout;
use hashbrown::{HashMap, HashSet};

/// A graph's edges, for as many fusions as it has.
#[derive(Debug, Default)]
pub(super) struct Fusions {
    /// By shape: for each position, the positions of the nodes that use its result.
    users: HashMap<u32, HashMap<u32, Vec<u32>>>,
}

/// A member of a fusion, with its place in the graph.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) position: u32,
    pub(super) origins: Vec<Origin>,
    pub(super) is_stored: bool,
}

impl Fusions {
    /// Those of the nodes at `positions` that compute something; `None` if one is not described.
    pub(super) fn parts(
        &mut self,
        tables: &Tables,
        shape: u32,
        positions: &[u32],
    ) -> Option<Vec<Part>> {
        let graph = Graph { tables, shape };
        let mut computing = Vec::with_capacity(positions.len());
        for &position in positions {
            if graph.computes(position)? {
                computing.push(position);
            }
        }
        let users = self.users.entry(shape).or_insert_with(|| graph.users());
        let mut outside: Vec<Tensor> = Vec::new();
        let part = |&position: &u32| {
            let (_, sources) = graph.node(position)?;
            let origins = sources.iter().map(|source| {
                let made_at = graph.computed_at(position, source);
                let member = computing.iter().position(|&it| Some(it) == made_at);
                match member {
                    Some(place) => Origin::Member(place as u8),
                    None => Origin::Outside(number(&mut outside, tensor(made_at, source))),
                }
            });
            let origins = origins.collect();
            let used_by = users.get(&position).map_or(&[][..], Vec::as_slice);
            let is_stored =
                used_by.is_empty() || used_by.iter().any(|user| !computing.contains(user));
            Some(Part { position, origins, is_stored })
        };
        computing.iter().map(part).collect()
    }
}

/// What tells one source from another: where it was computed or its name, and how it lies.
type Tensor = (Option<u32>, u32, [i64; 4], [u64; 4]);

fn tensor(made_at: Option<u32>, source: &layout::Source) -> Tensor {
    (made_at, source.name, source.ne, source.nb)
}

fn number(known: &mut Vec<Tensor>, tensor: Tensor) -> u8 {
    let place = known.iter().position(|it| *it == tensor).unwrap_or_else(|| {
        known.push(tensor);
        known.len() - 1
    });
    // A fusion has at most 32 nodes with ten sources each; more is damage.
    u8::try_from(place).unwrap_or(u8::MAX)
}

struct Graph<'a> {
    tables: &'a Tables,
    shape: u32,
}

impl<'a> Graph<'a> {
    fn node(&self, position: u32) -> Option<&'a (layout::Node, Vec<layout::Source>)> {
        self.tables.nodes.get(&self.tables.node_at(self.shape, position)?)
    }

    fn computes(&self, position: u32) -> Option<bool> {
        Some(computes(self.tables.text(self.node(position)?.0.op_name)))
    }

    /// Where in the graph a source of the node at `position` was computed, whatever views of it
    /// lie in between; `None` for what is not of the graph.
    fn computed_at(&self, position: u32, source: &layout::Source) -> Option<u32> {
        let back = Some(source.nodes_back).filter(|&back| back > 0)?;
        let mut at = position.checked_sub(back)?;
        while !self.computes(at)? {
            let viewed = self.node(at)?.1.first()?;
            let back = Some(viewed.nodes_back).filter(|&back| back > 0)?;
            at = at.checked_sub(back)?;
        }
        Some(at)
    }

    fn users(&self) -> HashMap<u32, Vec<u32>> {
        let mut users: HashMap<u32, Vec<u32>> = HashMap::new();
        let length = self.tables.shapes.get(&self.shape).map_or(0, Vec::len) as u32;
        for position in 0..length {
            let Some((_, sources)) = self.node(position) else { continue };
            if self.computes(position) != Some(true) {
                continue;
            }
            let made: HashSet<u32> =
                sources.iter().filter_map(|source| self.computed_at(position, source)).collect();
            made.into_iter().for_each(|at| users.entry(at).or_default().push(position));
        }
        users
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A graph of nodes, each by its op and the positions of its sources; -1 is a leaf.
    fn tables(nodes: &[(&str, &[i32])]) -> Tables {
        let mut tables = Tables::default();
        for (at, (op, sources)) in (0u32..).zip(nodes) {
            let (number, name) = (at + 1, 100 + at);
            tables.texts.insert(name, (*op).to_owned());
            let source = |&from: &i32| layout::Source {
                nodes_back: u32::try_from(from).map_or(0, |from| at - from),
                // All leaves are the same tensor.
                name: u32::try_from(from).map_or(7, |from| 1000 + from),
                ..Default::default()
            };
            let node = layout::Node { node: number, op_name: name, ..Default::default() };
            tables.nodes.insert(number, (node, sources.iter().map(source).collect()));
            tables.shapes.entry(1).or_default().push(number);
        }
        tables
    }

    #[track_caller]
    fn check(nodes: &[(&str, &[i32])], fused: &[u32], expected: &[(u32, &[Origin], bool)]) {
        let tables = tables(nodes);
        let parts = Fusions::default().parts(&tables, 1, fused).expect("all are described");
        let found: Vec<_> = parts
            .iter()
            .map(|part| (part.position, part.origins.as_slice(), part.is_stored))
            .collect();
        assert_eq!(found, expected);
    }

    use Origin::{Member, Outside};

    #[test]
    fn a_gate_reads_its_input_once_and_stores_its_result() {
        check(
            &[
                ("MUL_MAT", &[-1, -1]),
                ("MUL_MAT", &[-1, 0]),
                ("MUL_MAT", &[-1, 0]),
                ("GLU", &[1, 2]),
                ("MUL_MAT", &[-1, 3]),
            ],
            &[1, 2, 3],
            &[
                (1, &[Outside(0), Outside(1)], false),
                (2, &[Outside(0), Outside(1)], false),
                (3, &[Member(0), Member(1)], true),
            ],
        );
    }

    #[test]
    fn views_are_looked_through() {
        check(
            &[("ROPE", &[-1]), ("VIEW", &[0]), ("SET_ROWS", &[1, -1])],
            &[0, 1, 2],
            &[(0, &[Outside(0)], false), (2, &[Member(0), Outside(0)], true)],
        );
    }

    /// The sum before a norm is what the next layer adds to.
    #[test]
    fn what_others_use_is_stored_too() {
        check(
            &[
                ("ADD", &[-1, -1]),
                ("RMS_NORM", &[0]),
                ("MUL", &[1, -1]),
                ("RESHAPE", &[0]),
                ("ADD", &[3, 2]),
            ],
            &[0, 1, 2],
            &[
                (0, &[Outside(0), Outside(0)], true),
                (1, &[Member(0)], false),
                (2, &[Member(1), Outside(0)], true),
            ],
        );
    }

    #[test]
    fn a_node_that_is_not_described_makes_the_fusion_unknown() {
        let tables = tables(&[("ADD", &[-1])]);
        assert_eq!(Fusions::default().parts(&tables, 1, &[0, 9]), None);
        // A damaged distance leads nowhere.
        let mut tables = self::tables(&[("ADD", &[-1]), ("ADD", &[0])]);
        tables.nodes.get_mut(&2).expect("it was put there").1[0].nodes_back = 9;
        let parts = Fusions::default().parts(&tables, 1, &[0, 1]);
        assert_eq!(parts.map(|parts| parts.len()), Some(2));
    }
}
