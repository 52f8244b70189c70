//! Time of splits that were timed as a whole, shared out among the parts of the model as in the splits of
//! the same kind whose ops are known. What their kernels do not take is time in which the device waited
//! for the next one.

use super::{Budget, BudgetRow, ModelPart, Spent};
use crate::estimates::estimates_by;
use crate::layers::Places;
use crate::phases::Phases;
use ggprof_trace::{BackendIndex, Signature, Trace};
use hashbrown::HashMap;

pub(super) fn share_out(trace: &Trace, phases: &Phases, places: &Places, budgets: &mut [Budget]) {
    let is_undivided = |row: &BudgetRow| undivided(row).is_some();
    if !budgets.iter().any(|budget| budget.rows.iter().any(is_undivided)) {
        return;
    }
    let estimates = estimates_by(trace, |event| {
        let phase = *phases.phase_of_run.get(event.graph_run?.0 as usize)?;
        // Splits have a key of their own, so that those of each phase are shared out in it.
        let part = match trace.op_name(event.node) == Signature::WHOLE_SPLIT {
            true => ModelPart::Undivided,
            false => ModelPart::of(places.of(event).module),
        };
        event.is_op().then_some((phase, event.backend, part))
    });
    let mut parts: HashMap<(u32, BackendIndex), Vec<(ModelPart, f64)>> = HashMap::new();
    for ((phase, backend, part), estimate) in estimates {
        if estimate.ns > 0.0 {
            parts.entry((phase, backend)).or_default().push((part, estimate.ns));
        }
    }
    for (phase, budget) in (0u32..).zip(budgets) {
        share(budget, |backend| parts.get(&(phase, backend)).map(Vec::as_slice));
    }
}

fn undivided(row: &BudgetRow) -> Option<BackendIndex> {
    match row.spent {
        Spent::Computing { backend, part: ModelPart::Undivided } => Some(backend),
        _ => None,
    }
}

fn share<'p>(
    budget: &mut Budget,
    parts_of: impl Fn(BackendIndex) -> Option<&'p [(ModelPart, f64)]>,
) {
    for row in budget.rows.clone() {
        let Some((backend, parts)) = undivided(&row).and_then(|it| Some((it, parts_of(it)?)))
        else {
            continue;
        };
        let all: f64 = parts.iter().map(|(_, ns)| ns).sum();
        // Something else may have counted for a part of the splits' time.
        let scale = (row.ns as f64 / all).min(1.0);
        let mut left_ns = row.ns;
        for &(part, ns) in parts {
            let ns = ((ns * scale).round() as u64).min(left_ns);
            left_ns -= ns;
            budget.add_row(BudgetRow {
                spent: Spent::Computing { backend, part },
                ns,
                estimated_ns: ns,
            });
        }
        let waiting = Spent::Launching { backend };
        budget.add_row(BudgetRow { spent: waiting, ns: left_ns, estimated_ns: left_ns });
        budget.rows.iter_mut().filter(|it| it.spent == row.spent).for_each(|it| it.ns = 0);
    }
    budget.rows.retain(|row| row.ns > 0);
    budget.rows.sort_by_key(|row| (std::cmp::Reverse(row.ns), row.spent));
}
