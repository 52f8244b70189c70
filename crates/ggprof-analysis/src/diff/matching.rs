//! Which parts of two sides are compared with each other: those that have most in common.

use super::key::{Activity, Key, Match};
use std::collections::{BTreeMap, BTreeSet};

/// Numbers of calls that differ by less are the same.
const SAME_CALLS: f64 = 0.01;

/// What belongs together, by places in the lists of keys of the two sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Matched {
    pub(super) how: Match,
    pub(super) a: Vec<usize>,
    pub(super) b: Vec<usize>,
}

/// A key of a side, and how often it was called per unit.
pub(super) type Called<'k> = (&'k Key, f64);

pub(super) fn matched(a: &[Called<'_>], b: &[Called<'_>]) -> Vec<Matched> {
    let mut left = Unmatched { a: (0..a.len()).collect(), b: (0..b.len()).collect() };
    let mut rows = left.take_at(Match::Same, a, b);
    rejoin_shapes(&mut rows, &mut left, a, b);
    for how in &Match::LEVELS[1..] {
        rows.extend(left.take_at(*how, a, b));
    }
    let only = |how, a, b| Matched { how, a, b };
    rows.extend(left.a.into_iter().map(|at| only(Match::OnlyA, vec![at], vec![])));
    rows.extend(left.b.into_iter().map(|at| only(Match::OnlyB, vec![], vec![at])));
    rows
}

/// What has no counterpart yet.
struct Unmatched {
    a: BTreeSet<usize>,
    b: BTreeSet<usize>,
}

impl Unmatched {
    /// Takes what is equal at a level, all of it together.
    fn take_at(&mut self, how: Match, a: &[Called<'_>], b: &[Called<'_>]) -> Vec<Matched> {
        let mut equal: BTreeMap<Key, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
        // Copies and what belongs to no event have no coarser names.
        let is_meant = |key: &Key| how != Match::SamePart || key.activity == Activity::Op;
        for &at in self.a.iter().filter(|&&at| is_meant(a[at].0)) {
            equal.entry(how.common(a[at].0)).or_default().0.push(at);
        }
        for &at in self.b.iter().filter(|&&at| is_meant(b[at].0)) {
            equal.entry(how.common(b[at].0)).or_default().1.push(at);
        }
        let both = equal.into_values().filter(|(a, b)| !a.is_empty() && !b.is_empty());
        let rows: Vec<Matched> = both.map(|(a, b)| Matched { how, a, b }).collect();
        for row in &rows {
            row.a.iter().for_each(|at| _ = self.a.remove(at));
            row.b.iter().for_each(|at| _ = self.b.remove(at));
        }
        rows
    }
}

/// An op whose shapes grow with the context has other shapes as often if one side went further. If it
/// was called as often in all, but not with each shape, its shapes are not told apart.
fn rejoin_shapes(
    rows: &mut Vec<Matched>,
    left: &mut Unmatched,
    a: &[Called<'_>],
    b: &[Called<'_>],
) {
    let family = |key: &Key| {
        let mut key = Match::OtherKernel.common(key);
        key.shape = None;
        key
    };
    let calls = |places: &[usize], of: &[Called<'_>]| places.iter().map(|&at| of[at].1).sum();
    let mut families: BTreeMap<Key, Family> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        let family = families.entry(family(a[row.a[0]].0)).or_default();
        family.rows.push(at);
        family.add(calls(&row.a, a), calls(&row.b, b));
    }
    for &at in &left.a {
        families.entry(family(a[at].0)).or_default().add(a[at].1, 0.0);
    }
    for &at in &left.b {
        families.entry(family(b[at].0)).or_default().add(0.0, b[at].1);
    }
    families.retain(|_, family| family.is_shifted());
    for row in families.values().flat_map(|family| &family.rows) {
        left.a.extend(&rows[*row].a);
        left.b.extend(&rows[*row].b);
    }
    let gone: BTreeSet<usize> =
        families.values().flat_map(|family| family.rows.iter().copied()).collect();
    let mut at = 0..rows.len();
    rows.retain(|_| at.next().is_none_or(|at| !gone.contains(&at)));
    // They are the same but for the shape, so they meet again where shapes do not count; keys that
    // would be taken before that are of other families.
    let mut joined = Vec::new();
    for wanted in families.keys() {
        let members = |of: &BTreeSet<usize>, keys: &[Called<'_>]| -> Vec<usize> {
            of.iter().copied().filter(|&at| family(keys[at].0) == *wanted).collect()
        };
        let (of_a, of_b) = (members(&left.a, a), members(&left.b, b));
        of_a.iter().for_each(|at| _ = left.a.remove(at));
        of_b.iter().for_each(|at| _ = left.b.remove(at));
        joined.push(Matched { how: Match::OtherShape, a: of_a, b: of_b });
    }
    rows.extend(joined);
}

/// The same op with several shapes.
#[derive(Default)]
struct Family {
    rows: Vec<usize>,
    calls: (f64, f64),
    /// There is a shape that one side calls more often.
    differs: bool,
}

impl Family {
    fn add(&mut self, a: f64, b: f64) {
        self.calls = (self.calls.0 + a, self.calls.1 + b);
        self.differs |= !is_same(a, b);
    }

    fn is_shifted(&self) -> bool {
        self.differs && !self.rows.is_empty() && is_same(self.calls.0, self.calls.1)
    }
}

fn is_same(a: f64, b: f64) -> bool {
    (a - b).abs() <= SAME_CALLS * a.max(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::Module;

    fn key(module: Module, op: &str, rows: i64, backend: &str) -> Key {
        Key {
            module: Some(module),
            op: Some(op.to_owned()),
            shape: Some(vec![[64, rows, 1, 1]]),
            types: Some(vec!["f32".to_owned()]),
            backend: Some(backend.to_owned()),
            ..Key::default()
        }
    }

    #[track_caller]
    fn check(a: &[(Key, f64)], b: &[(Key, f64)], expected: &[(Match, &[usize], &[usize])]) {
        let refer = |side: &[(Key, f64)]| -> Vec<(Key, f64)> { side.to_vec() };
        let (a, b) = (refer(a), refer(b));
        let called = |side: &'static [(Key, f64)]| -> Vec<Called<'static>> {
            side.iter().map(|(key, calls)| (key, *calls)).collect()
        };
        let (a, b) = (called(a.leak()), called(b.leak()));
        let found: Vec<_> = matched(&a, &b).into_iter().map(|it| (it.how, it.a, it.b)).collect();
        let expected: Vec<_> =
            expected.iter().map(|(how, a, b)| (*how, a.to_vec(), b.to_vec())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn attention_is_matched_as_a_whole() {
        let attention = |op: &str| (key(Module::Attention, op, 8, "CPU"), 1.0);
        let ffn = (key(Module::Ffn, "MUL_MAT", 64, "CPU"), 3.0);
        check(
            &[attention("MUL_MAT"), attention("SOFT_MAX"), ffn.clone()],
            &[ffn, attention("FLASH_ATTN_EXT")],
            &[(Match::Same, &[2], &[0]), (Match::SamePart, &[0, 1], &[1])],
        );
    }

    #[test]
    fn as_deep_as_both_sides_allow() {
        let plain = key(Module::Ffn, "MUL_MAT", 8, "CPU");
        let with = |change: &dyn Fn(&mut Key)| {
            let mut key = plain.clone();
            change(&mut key);
            vec![(key, 1.0)]
        };
        let a = [(plain.clone(), 1.0)];
        for (how, b) in [
            (Match::Same, with(&|_| {})),
            (Match::OtherKernel, with(&|key| key.kernel = Some("mmq".to_owned()))),
            (Match::OtherModule, with(&|key| key.module = Some(Module::Experts))),
            (Match::OtherBackend, with(&|key| key.backend = Some("CUDA0".to_owned()))),
            (Match::OtherTypes, with(&|key| key.types = Some(vec!["f16".to_owned()]))),
            (Match::OtherShape, with(&|key| key.shape = None)),
            (Match::SamePart, with(&|key| key.op = Some("MUL_MAT_ID".to_owned()))),
        ] {
            check(&a, &b, &[(how, &[0], &[0])]);
        }
        check(&a, &[], &[(Match::OnlyA, &[0], &[])]);
        check(&[], &a, &[(Match::OnlyB, &[], &[0])]);
    }

    /// One side generated twice as many tokens, so its cache had another length half of the time.
    #[test]
    fn shapes_that_grow_with_the_context() {
        let cached = |rows, calls| (key(Module::Attention, "FLASH_ATTN_EXT", rows, "CPU"), calls);
        check(
            &[cached(256, 1.0)],
            &[cached(256, 0.5), cached(512, 0.5)],
            &[(Match::OtherShape, &[0], &[0, 1])],
        );
        // Called more often in all: that is a change of its own.
        check(
            &[cached(256, 1.0)],
            &[cached(256, 1.0), cached(512, 1.0)],
            &[(Match::Same, &[0], &[0]), (Match::OnlyB, &[], &[1])],
        );
    }
}
