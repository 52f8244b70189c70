//! R17: pipelines that are compiled and kernels that are loaded inside a phase.

use super::scene::Scene;
use super::{Certainty, Finding, Rule, What};
use crate::budget::{Budget, Spent};
use crate::first_uses::FirstUses;
use crate::phases::PhaseKind;
use ggprof_trace::{DeviceWork, HostTask, StringId, TaskKind};

#[derive(Debug, Clone, PartialEq)]
pub struct FirstUse {
    /// That were compiled.
    pub pipelines: u64,
    pub longest: Option<(StringId, u64)>,
    /// Whose first use took longer than later ones.
    pub kernels: u64,
    /// And by how much.
    pub slowest: Option<(StringId, u64)>,
    /// Whose first use their device waited for.
    pub loaded: u64,
    /// And how long.
    pub longest_wait: Option<(StringId, u64)>,
}

pub(super) const RULE: Rule = Rule(17);

pub(super) fn find(scene: &Scene<'_>, place: usize, budget: &Budget) -> Vec<Finding> {
    let cost_ns =
        budget.sum(|spent| matches!(spent, Spent::CompilingPipelines | Spent::FirstUse { .. }));
    if cost_ns == 0 {
        return Vec::new();
    }
    let is_inside = |start_ns: u64| {
        budget.phases.iter().any(|&phase| {
            let phase = &scene.phases.phases[phase as usize];
            (phase.start_ns..phase.end_ns).contains(&start_ns)
        })
    };
    let process = scene.process_of(budget);
    let is_its = |task: &HostTask| {
        let run = task.graph_run.and_then(|run| scene.trace.graph_runs.get(run.0 as usize));
        run.is_none_or(|run| run.process == process)
    };
    let compiled: Vec<&HostTask> = scene
        .trace
        .host_tasks
        .iter()
        .filter(|task| task.what == TaskKind::PipelineCompile)
        .filter(|task| is_its(task) && is_inside(task.start_ns))
        .collect();
    let longest = compiled.iter().max_by_key(|task| task.duration_ns);
    let first_uses = FirstUses::of(scene.trace);
    let is_for_it = |work: &DeviceWork| {
        let backend = scene.trace.events.stretch_of(work.event).backend;
        is_inside(work.start_ns) && scene.devices_of(budget).any(|device| device == backend)
    };
    let longer = first_uses.longer(scene.trace).filter(|(work, _)| is_for_it(work));
    let longer: Vec<(&DeviceWork, u64)> = longer.collect();
    let slowest = longer.iter().max_by_key(|(_, longer_ns)| longer_ns);
    let waits = first_uses.waited_for(scene.trace).into_iter();
    let waits: Vec<(&DeviceWork, u64)> =
        waits.filter(|(work, _)| is_inside(work.start_ns)).collect();
    let longest_wait = waits.iter().max_by_key(|(_, waited_ns)| waited_ns);
    let what = What::FirstUse(FirstUse {
        pipelines: compiled.len() as u64,
        longest: longest.map(|task| (task.name, task.duration_ns)),
        kernels: longer.len() as u64,
        slowest: slowest.map(|(work, longer_ns)| (work.name, *longer_ns)),
        loaded: waits.len() as u64,
        longest_wait: longest_wait.map(|(work, waited_ns)| (work.name, *waited_ns)),
    });
    // A warm-up uses some of the kernels: how many, nothing tells.
    let certainty = match budget.kind {
        PhaseKind::Prompt | PhaseKind::Mixed => Certainty::Possible,
        _ => Certainty::Likely,
    };
    vec![Finding { rule: RULE, budget: place, cost_ns, is_estimate: false, certainty, what }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::{check, found, tokens};

    #[test]
    fn pipelines_compiled_in_a_phase() {
        let ops = "op GPU MUL_MAT 500..1000 Qcur-0 run=@ measured=device";
        let text = tokens(3, 1000, 1000, ops);
        let compiled = format!("{text}compile 0..400 matvec\ncompile 1000..1200 add");
        let found = check(RULE, &compiled, 600, &text);
        assert_eq!(found.certainty, Certainty::Likely);
        let What::FirstUse(FirstUse { pipelines, longest, .. }) = found.what else { panic!() };
        assert_eq!((pipelines, longest.map(|(_, ns)| ns)), (2, Some(400)));
    }

    #[test]
    fn kernels_that_a_device_waits_for() {
        let op = |token: u64, wait_ns: u64, kernel: &str| {
            let start = token * 1_000_000 + wait_ns;
            let end = (token + 1) * 1_000_000;
            format!(
                "op GPU MUL_MAT {start}..{end} Qcur-0 run={token} measured=device\n\
                 kernel {kernel} {start}..{end}\n"
            )
        };
        let text = |wait_ns: u64| {
            let ops = [op(0, wait_ns, "matvec"), op(1, 300_000, "add"), op(2, 0, "add")].concat();
            tokens(3, 1_000_000, 1_000_000, "") + &ops
        };
        let known = text(0).replace("add", "matvec");
        let found = check(RULE, &text(700_000), 1_000_000, &known);
        let What::FirstUse(FirstUse { loaded, longest_wait, .. }) = found.what else { panic!() };
        assert_eq!((loaded, longest_wait.map(|(_, ns)| ns)), (2, Some(700_000)));
    }

    /// It takes more than what happens again and again, and comes first only if it takes far more.
    #[test]
    fn what_happens_once_counts_less() {
        let copied = "copy GPU H2D 0..300 64 GPU#blk.0.attn_q.weight#0 run=@
                      op GPU MUL_MAT 300..1000 Qcur-0 run=@ measured=device";
        let text = tokens(3, 1000, 1000, copied);
        for (compiled_until, expected) in [(8000, [5, 17]), (8900, [17, 5])] {
            let compiled = format!(
                "{text}batch 5000..9000 0:50+1!1\nrun 5000..9000 batch=3\n\
                 compile 5000..{compiled_until} matvec\n"
            );
            let rules: Vec<u8> = found(&compiled).iter().map(|finding| finding.rule.0).collect();
            assert_eq!(rules, expected);
        }
    }

    #[test]
    fn kernels_that_are_compiled_as_part_of_their_first_use() {
        let op = |token: u64, ns: u64| {
            let start = token * 1_000_000;
            let end = start + ns;
            format!(
                "op GPU MUL_MAT {start}..{end} Qcur-0 run={token} measured=device\n\
                 kernel matvec {start}..{end}\n"
            )
        };
        let text = |first_ns: u64| {
            let ops = [op(0, first_ns), op(1, 200_000), op(2, 200_000)].concat();
            tokens(3, 1_000_000, 1_000_000, "") + &ops
        };
        let found = check(RULE, &text(900_000), 700_000, &text(240_000));
        let What::FirstUse(FirstUse { pipelines, kernels, slowest, .. }) = found.what else {
            panic!()
        };
        assert_eq!((pipelines, kernels, slowest.map(|(_, ns)| ns)), (0, 1, Some(700_000)));
    }

    /// What a warm-up computes is no prompt.
    #[test]
    fn a_prompt_that_is_the_first_one() {
        let text = "batch 0..1000 0:0+64!1\nrun 0..1000 batch=0\n\
                    op GPU MUL_MAT 500..1000 Qcur-0 run=0 measured=device\ncompile 0..400 matmul";
        assert_eq!(found(text)[0].certainty, Certainty::Possible);
    }
}
