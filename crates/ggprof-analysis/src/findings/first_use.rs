//! R17: pipelines that are compiled and kernels that are loaded inside a phase.

use super::scene::Scene;
use super::{Certainty, Finding, Rule, What};
use crate::budget::{Budget, Spent};
use ggprof_trace::{HostTask, TaskKind};

pub(super) const RULE: Rule = Rule(17);

pub(super) fn find(scene: &Scene<'_>, place: usize, budget: &Budget) -> Vec<Finding> {
    let mut backend = None;
    let cost_ns =
        budget.sum(|spent| matches!(spent, Spent::CompilingPipelines | Spent::FirstUse { .. }));
    for row in &budget.rows {
        if let Spent::FirstUse { backend: of } = row.spent {
            backend = backend.or(Some(of));
        }
    }
    if cost_ns == 0 {
        return Vec::new();
    }
    let is_inside = |task: &&HostTask| {
        budget.phases.iter().any(|&phase| {
            let phase = &scene.phases.phases[phase as usize];
            task.start_ns >= phase.start_ns && task.start_ns < phase.end_ns
        })
    };
    let compiled: Vec<&HostTask> = scene
        .trace
        .host_tasks
        .iter()
        .filter(|task| task.what == TaskKind::PipelineCompile)
        .filter(is_inside)
        .collect();
    let longest = compiled.iter().max_by_key(|task| task.duration_ns);
    let what = What::FirstUse {
        pipelines: compiled.len() as u64,
        backend,
        longest: longest.map(|task| (task.name, task.duration_ns)),
    };
    let certainty = Certainty::Certain;
    vec![Finding { rule: RULE, budget: place, cost_ns, is_estimate: false, certainty, what }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::{check, tokens};

    #[test]
    fn pipelines_compiled_in_a_phase() {
        let ops = "op GPU MUL_MAT 500..1000 Qcur-0 run=@ measured=device";
        let text = tokens(3, 1000, 1000, ops);
        let compiled = format!("{text}compile 0..400 matvec\ncompile 1000..1200 add");
        let found = check(RULE, &compiled, 600, &text);
        let What::FirstUse { pipelines, longest, .. } = found.what else { panic!() };
        assert_eq!((pipelines, longest.map(|(_, ns)| ns)), (2, Some(400)));
    }
}
