//! A recording as samples of pprof: phase, part of the model, op, shapes, kernel, the one inside of
//! the other.

use crate::caveats;
use ggprof_analysis::fusion_of;
use ggprof_analysis::stacks::{Stack, stacks};
use ggprof_trace::formats::pprof::{Dimension, Profile, Sample};
use ggprof_trace::{Trace, shape_text};

const TIME: Dimension = ("time", "nanoseconds");
const DIMENSIONS: [Dimension; 4] = [
    TIME,
    ("bytes", "bytes"),
    ("calls", "count"),
    // Of calls that only start work.
    ("starting", "nanoseconds"),
];
/// With what was not measured, where kernels were recorded in samples.
const ESTIMATED: Dimension = ("estimated_time", "nanoseconds");

pub fn pprof(trace: &Trace) -> Profile {
    let stacks = stacks(trace);
    let is_estimated = stacks.iter().any(|stack| stack.totals.estimate.is_some());
    let mut dimensions = DIMENSIONS.to_vec();
    dimensions.extend(is_estimated.then_some(ESTIMATED));
    let (start_ns, end_ns) = trace.span_ns().unwrap_or_default();
    Profile {
        first: if is_estimated { ESTIMATED.0 } else { TIME.0 },
        samples: stacks.iter().flat_map(|stack| samples(trace, stack, is_estimated)).collect(),
        program: trace.provenance.as_ref().map_or("", |facts| &facts.command).to_owned(),
        dimensions,
        begin_unix_ns: trace.unix_ns(start_ns).unwrap_or(0),
        duration_ns: end_ns - start_ns,
        comments: comments(trace, &stacks),
    }
}

fn comments(trace: &Trace, stacks: &[Stack]) -> Vec<String> {
    let mut comments = vec![format!("recorded by {}", trace.writer)];
    let unknown: u64 = stacks
        .iter()
        .filter(|stack| stack.totals.moved_bytes.is_none())
        .map(|stack| stack.totals.count)
        .sum();
    if unknown > 0 {
        comments.push(format!("Calls whose bytes are not known, which count as 0: {unknown}."));
    }
    comments.extend(caveats(trace).iter().map(|caveat| caveat.sentence()));
    comments
}

/// Of the op itself with all that is not a kernel's, and of each kernel its time.
fn samples(trace: &Trace, stack: &Stack, is_estimated: bool) -> Vec<Sample> {
    let frames = frames(trace, stack);
    let labels = || {
        vec![
            ("backend", trace.backend(stack.backend).label().to_owned()),
            ("kind", stack.kind.name().to_lowercase()),
        ]
    };
    let bytes = stack.totals.moved_bytes.and_then(|bytes| u64::try_from(bytes).ok());
    let mut values = vec![stack.rest_ns(), bytes.unwrap_or(0), stack.totals.count, stack.call_ns()];
    let estimated_ns = stack.totals.time_ns().round() as u64;
    let of_kernels = stack.time_ns() - stack.rest_ns();
    values.extend(is_estimated.then(|| estimated_ns.saturating_sub(of_kernels)));
    let count = values.len();
    let mut samples = vec![Sample { stack: frames.clone(), values, labels: labels() }];
    for &(kernel, time_ns) in &stack.kernels {
        let mut values = vec![0; count];
        values[0] = time_ns;
        if is_estimated {
            values[DIMENSIONS.len()] = time_ns;
        }
        let mut frames = frames.clone();
        frames.push(trace.text(kernel).to_owned());
        samples.push(Sample { stack: frames, values, labels: labels() });
    }
    samples
}

fn frames(trace: &Trace, stack: &Stack) -> Vec<String> {
    let signature = trace.nodes.signature(stack.signature);
    let op = trace.text(fusion_of(signature, stack.kind).unwrap_or(signature.op)).to_owned();
    let phase = stack.phase.clone().unwrap_or_else(|| "outside of graph runs".to_owned());
    let shapes = shape_text::sources(signature, &trace.types);
    let mut frames = vec![phase, stack.module.name().to_owned(), op.clone()];
    if !shapes.is_empty() {
        // Shapes alone would be those of other ops, too.
        frames.push(format!("{op} {shapes}"));
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    #[test]
    fn kernels_inside_of_shapes_inside_of_ops() {
        let mut trace = text_fixture::parse(
            "backend 0 CUDA0 gpu
             run 0..100
             op CUDA0 MUL_MAT 0..50 Qcur-0 f32[64] <- q4_0[32,64] f32[32] measured=device run=0
             kernel mul_mat_q 0..50
             op CUDA0 VIEW 60..60 view run=0",
        );
        ggprof_analysis::charge(&mut trace);
        let profile = pprof(&trace);
        let lines: Vec<String> = profile
            .samples
            .iter()
            .map(|sample| format!("{} {:?}", sample.stack.join(" / "), sample.values))
            .collect();
        expect_test::expect![[r#"
            graphs / attention / MUL_MAT / MUL_MAT [32, 64] q4_0 x [32] f32 [0, 1536, 1, 0]
            graphs / attention / MUL_MAT / MUL_MAT [32, 64] q4_0 x [32] f32 / mul_mat_q [50, 0, 0, 0]
            graphs / other / VIEW [0, 0, 1, 0]"#]].assert_eq(&lines.join("\n"));
    }
}
