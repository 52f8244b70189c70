//! The finest sums that still hold many calls together: phase, op, shape, backend and kernels.

use crate::grouping::shape_representatives;
use crate::phases::Phases;
use crate::totals::{Totals, totals_by};
use ggprof_trace::{BackendIndex, Event, EventKind, SignatureId, StringId, Trace};
use hashbrown::HashMap;

/// Calls of one op with the same shapes, on one backend, by the same kernels, in phases of one name.
#[derive(Debug, Clone)]
pub struct DetailedRow {
    /// The first of the phases, as a place among all; `None` for what belongs to none.
    pub phase: Option<u32>,
    pub kind: EventKind,
    /// One of the signatures that the row is made of; they differ in parameters or strides.
    pub signature: SignatureId,
    pub backend: BackendIndex,
    /// Empty where they were not recorded.
    pub kernels: Vec<StringId>,
    pub totals: Totals,
}

/// The longest first.
pub fn by_detail(trace: &Trace, phases: &Phases) -> Vec<DetailedRow> {
    let signatures = shape_representatives(trace);
    let firsts = first_of_name(phases);
    let mut kernels = KernelLists::default();
    let rows = totals_by(trace, |event| {
        let SignatureId(signature) = trace.node(event.node).signature;
        let phase = place_of_run(phases, event).map(|place| firsts[place as usize]);
        let kernels = kernels.of(trace, event);
        Some((phase, event.kind, signatures[signature as usize], event.backend, kernels))
    });
    rows.into_iter()
        .map(|((phase, kind, signature, backend, list), totals)| {
            let kernels = kernels.lists[list as usize].clone();
            DetailedRow { phase, kind, signature, backend, kernels, totals }
        })
        .collect()
}

/// The phase that an event belongs to, as a place among all.
pub fn place_of_run(phases: &Phases, event: &Event) -> Option<u32> {
    phases.phase_of_run.get(event.graph_run?.0 as usize).copied()
}

/// For every phase the first one of the same name.
fn first_of_name(phases: &Phases) -> Vec<u32> {
    let mut firsts = vec![0; phases.phases.len()];
    for group in phases.group_places() {
        group.iter().for_each(|&place| firsts[place as usize] = group[0]);
    }
    firsts
}

/// The kernels of an event, each once, in the order of their first launches.
pub fn kernels_of(trace: &Trace, event: &Event) -> Vec<StringId> {
    let mut names: Vec<StringId> = Vec::new();
    for work in trace.work_for(event.id) {
        if !names.contains(&work.name) {
            names.push(work.name);
        }
    }
    names
}

/// Distinct lists of kernels, named by their position.
struct KernelLists {
    lists: Vec<Vec<StringId>>,
    lookup: HashMap<Vec<StringId>, u32>,
}

impl Default for KernelLists {
    /// With the empty list as the first.
    fn default() -> Self {
        Self { lists: vec![Vec::new()], lookup: HashMap::from_iter([(Vec::new(), 0)]) }
    }
}

impl KernelLists {
    fn of(&mut self, trace: &Trace, event: &Event) -> u32 {
        if trace.device_work.is_empty() {
            return 0;
        }
        let kernels = kernels_of(trace, event);
        if let Some(&list) = self.lookup.get(&kernels) {
            return list;
        }
        let list = self.lists.len() as u32;
        self.lists.push(kernels.clone());
        self.lookup.insert(kernels, list);
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases::phases;
    use ggprof_trace::text_fixture;

    #[test]
    fn shapes_and_backends_are_told_apart_and_add_up() {
        let trace = text_fixture::parse(
            "backend 0 GPU gpu
             backend 1 CPU cpu
             op GPU MUL_MAT 0..10 a-0 f32[8,2] <- q4_0[32,8] f32[32,2]
             op GPU MUL_MAT 10..30 a-1 f32[8,2] <- q4_0[32,8] f32[32,2]
             op GPU MUL_MAT 30..34 b-0 f32[8,1] <- q4_0[32,8] f32[32,1]
             op CPU MUL_MAT 34..37 a-2 f32[8,2] <- q4_0[32,8] f32[32,2]",
        );
        let rows = by_detail(&trace, &phases(&trace));
        let sums: Vec<_> = rows.iter().map(|row| (row.totals.count, row.totals.total_ns)).collect();
        assert_eq!(sums, [(2, 30), (1, 4), (1, 3)]);
        assert!(rows.iter().all(|row| row.phase == Some(0) && row.kernels.is_empty()));
    }
}
