//! What the writers of timelines are told of a recording beside its events.

use crate::caveats;
use crate::viewer::levels;
use ggprof_analysis::{copy_consumers, phases};
use ggprof_trace::Trace;
use ggprof_trace::formats::timeline::{Annotations, Counter, Slice};

pub fn annotations(trace: &Trace) -> Annotations {
    let phases = phases(trace).phases;
    let slice = |phase: &ggprof_analysis::Phase| Slice {
        name: phase.label(),
        start_ns: phase.start_ns,
        end_ns: phase.end_ns,
    };
    let counter = |level: levels::Level| Counter {
        name: format!("{}: {}", level.group, level.label),
        machine: level.machine,
        unit: level.unit,
        steps: level.steps,
    };
    let losses = caveats(trace).into_iter().filter(|caveat| caveat.is_loss());
    Annotations {
        phases: phases.iter().map(slice).collect(),
        links: copy_consumers(trace),
        counters: levels::levels(trace).into_iter().map(counter).collect(),
        losses: losses.map(|loss| loss.sentence()).collect(),
    }
}
