//! All measured time by phase, part of the model, op, shape and kernel, for viewers that open up one
//! inside of the other. The times of all stacks add up to those of all ops and copies.

use crate::grouping::shape_representatives;
use crate::layers::{Module, places};
use crate::phases::phases;
use crate::totals::{Totals, totals_by};
use ggprof_trace::{BackendIndex, Event, EventKind, SignatureId, StringId, Trace};
use hashbrown::HashMap;

/// The same op on the same shapes, in phases of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct Stack {
    /// As people call the phase; `None` outside of graph runs.
    pub phase: Option<String>,
    pub module: Module,
    /// One of those that it is made of; they differ in parameters or strides.
    pub signature: SignatureId,
    pub kind: EventKind,
    pub backend: BackendIndex,
    pub totals: Totals,
    /// What of its time kernels of a device took, the longest first; never more than all of it.
    pub kernels: Vec<(StringId, u64)>,
}

impl Stack {
    /// Measured time; none where only calls that start work were timed.
    pub fn time_ns(&self) -> u64 {
        if self.totals.only_calls { 0 } else { narrow(self.totals.total_ns) }
    }

    /// Time of calls that only start work.
    pub fn call_ns(&self) -> u64 {
        let only = if self.totals.only_calls { self.totals.total_ns } else { 0 };
        narrow(self.totals.call_ns.max(only))
    }

    /// What is left of its time without the kernels.
    pub fn rest_ns(&self) -> u64 {
        self.time_ns() - self.kernels.iter().map(|(_, ns)| ns).sum::<u64>()
    }
}

/// Nothing was recorded for longer than five hundred years.
fn narrow(ns: u128) -> u64 {
    u64::try_from(ns).unwrap_or(u64::MAX)
}

type StackKey = (Option<u32>, Module, SignatureId, EventKind, BackendIndex);

/// Longest time first.
pub fn stacks(trace: &Trace) -> Vec<Stack> {
    let representatives = shape_representatives(trace);
    let places = places(trace);
    let names = PhaseNames::of(trace);
    let key = |event: &Event| -> StackKey {
        let signature = trace.node(event.node).signature;
        (
            names.of_event(event),
            places.of(event).module,
            representatives[signature.0 as usize],
            event.kind,
            event.backend,
        )
    };
    let mut kernels = kernels(trace, key);
    let stack = |(key, totals): (StackKey, Totals)| {
        let (phase, module, signature, kind, backend) = key;
        let phase = phase.map(|phase| names.names[phase as usize].clone());
        let kernels = kernels.remove(&key).unwrap_or_default();
        let stack = Stack { phase, module, signature, kind, backend, totals, kernels: Vec::new() };
        stack.with_kernels(kernels)
    };
    totals_by(trace, |event| Some(key(event))).into_iter().map(stack).collect()
}

impl Stack {
    fn with_kernels(mut self, kernels: HashMap<StringId, u64>) -> Self {
        // What is charged to kernels is part of what is charged to their op.
        if kernels.values().sum::<u64>() <= self.time_ns() {
            self.kernels = kernels.into_iter().collect();
            self.kernels.sort_by_key(|&(name, ns)| (std::cmp::Reverse(ns), name));
        }
        self
    }
}

fn kernels(
    trace: &Trace,
    key: impl Fn(&Event) -> StackKey,
) -> HashMap<StackKey, HashMap<StringId, u64>> {
    let mut kernels: HashMap<StackKey, HashMap<StringId, u64>> = HashMap::new();
    for work in &trace.device_work {
        let key = key(&trace.events.get(work.event));
        *kernels.entry(key).or_default().entry(work.name).or_default() += work.charged_ns;
    }
    kernels
}

/// Phases that are called the same.
struct PhaseNames {
    names: Vec<String>,
    of_run: Vec<u32>,
}

impl PhaseNames {
    fn of(trace: &Trace) -> Self {
        let phases = phases(trace);
        let mut names: Vec<String> = Vec::new();
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let number = |phase: &crate::Phase| {
            *numbers.entry(phase.label()).or_insert_with_key(|name| {
                names.push(name.clone());
                names.len() as u32 - 1
            })
        };
        let of_phase: Vec<u32> = phases.phases.iter().map(number).collect();
        let of_run = phases.phase_of_run.iter().map(|&phase| of_phase[phase as usize]).collect();
        Self { names, of_run }
    }

    fn of_event(&self, event: &Event) -> Option<u32> {
        self.of_run.get(event.graph_run?.0 as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{by_op, node_sums};
    use ggprof_trace::text_fixture;

    #[test]
    fn times_add_up_to_those_of_the_ops() {
        let mut trace = text_fixture::parse(
            "backend 0 CUDA0 gpu
             backend 1 CPU cpu
             run 0..1000
             op CUDA0 MUL_MAT 0..50 Qcur-0 f32[64,2] <- q4_0[32,64] f32[32,2] measured=device run=0
             kernel mul_mat_q 0..30
             kernel fixup 30..45
             op CUDA0 MUL_MAT 60..90 Qcur-1 f32[64,2] <- q4_0[32,64] f32[32,2] measured=device run=0
             kernel mul_mat_q 60..90
             op CPU ADD 100..130 l_out-0 f32[8] <- f32[8] f32[8] run=0
             copy CUDA0 H2D 130..140 64 embd run=0",
        );
        crate::charge(&mut trace);
        let stacks = stacks(&trace);
        let expected: u128 =
            by_op(&trace, &node_sums(&trace)).iter().map(|row| row.totals.total_ns).sum();
        assert_eq!(stacks.iter().map(|stack| u128::from(stack.time_ns())).sum::<u128>(), expected);
        let of = |op: &str| {
            let is_it =
                |stack: &&Stack| trace.text(trace.nodes.signature(stack.signature).op) == op;
            stacks.iter().find(is_it).unwrap()
        };
        let multiplied = of("MUL_MAT");
        assert_eq!((multiplied.totals.count, multiplied.module), (2, Module::Attention));
        let kernels: Vec<(&str, u64)> =
            multiplied.kernels.iter().map(|&(name, ns)| (trace.text(name), ns)).collect();
        assert_eq!(kernels, [("mul_mat_q", 60), ("fixup", 15)]);
        assert_eq!(multiplied.rest_ns() + 75, multiplied.time_ns());
        assert_eq!((of("ADD").rest_ns(), of("ADD").kernels.len()), (30, 0));
    }
}
