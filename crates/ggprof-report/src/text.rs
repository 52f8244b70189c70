//! The plain-text report, laid out as ggml's profiler does: summary, backends, operations.
//!
//! Scripts read this layout, so its lines keep their form: percentages are of the sum of
//! all durations and bandwidth is output bytes over time. Shapes are those of the longest
//! call, with all its sources. As in that profiler, a copy that runs on by itself has the time of the
//! call that starts it.

use crate::caveat::caveats;
use crate::render::printable;
use ggprof_analysis::{OpRow, Totals, by_backend, by_op, node_sums};
use ggprof_trace::{BackendIndex, EventKind, Trace, shape_text};
use std::fmt::Write;

pub fn text(trace: &Trace) -> String {
    let mut out = String::new();
    for caveat in caveats(trace) {
        let _ = writeln!(out, "Warning: {}", printable(&caveat.sentence()));
    }
    if trace.events.is_empty() {
        out.push_str("No profiling data available.\n");
        return out;
    }
    let ops = by_op(trace, &node_sums(trace));
    let total_ns = ops.iter().map(|op| duration_ns(&op.totals)).sum();
    let total_ms = milliseconds(total_ns);
    let records = trace.events.len();
    let unique = ops.len();
    out.push_str("=== Profiling Summary ===\n");
    let _ = writeln!(out, "Total time:    {total_ms:.2} ms");
    let _ = writeln!(out, "Total records: {records}");
    let _ = writeln!(out, "Unique ops:    {unique}");
    out.push_str("\n=== Per-Backend Summary ===\n");
    backends(&mut out, trace, total_ns);
    out.push_str("\n=== Operations (sorted by total time) ===\n");
    operations(&mut out, trace, &ops, total_ns);
    let _ = writeln!(out, "\nTotal: {total_ms:.2} ms  ({records} records, {unique} unique ops)");
    out
}

fn backends(out: &mut String, trace: &Trace, all_ns: u128) {
    let rows = by_backend(trace, &node_sums(trace));
    let mut order: Vec<(BackendIndex, u128)> = Vec::new();
    for row in &rows {
        let duration_ns = duration_ns(&row.totals);
        match order.iter_mut().find(|(backend, _)| *backend == row.backend) {
            Some((_, sum_ns)) => *sum_ns += duration_ns,
            None => order.push((row.backend, duration_ns)),
        }
    }
    order.sort_by_key(|(_, sum_ns)| std::cmp::Reverse(*sum_ns));
    for (index, sum_ns) in order {
        let backend = trace.backend(index);
        let (id, name) = (backend.id, printable(&backend.name));
        let _ = writeln!(
            out,
            "  Backend {id} ({name}): {:.2} ms ({:.1}%)",
            milliseconds(sum_ns),
            percent(sum_ns, all_ns)
        );
        for (kind, title) in [(EventKind::Op, "OPs:  "), (EventKind::Copy, "COPYs:")] {
            let row = rows.iter().find(|row| row.backend == index && row.kind == kind);
            let Some(totals) = row.map(|row| &row.totals) else { continue };
            let bandwidth = bandwidth(totals).map_or(String::new(), |text| format!(", {text}"));
            let ms = milliseconds(duration_ns(totals));
            let _ = writeln!(out, "    {title} {} calls, {ms:.2} ms{bandwidth}", totals.count);
        }
    }
}

fn operations(out: &mut String, trace: &Trace, ops: &[OpRow], all_ns: u128) {
    let _ = writeln!(
        out,
        "{:<5} {:>4}  {:<28}  {:>7}  {:>6}  {:>10}  {:>10}  {:>10}  {:>10}  {:>12}  Tensors",
        "TYPE",
        "BKND",
        "Operation",
        "%Time",
        "Count",
        "Total(ms)",
        "Avg(us)",
        "Min(us)",
        "Max(us)",
        "Bandwidth"
    );
    let rule = |width: usize| "-".repeat(width);
    let rules: Vec<String> = [28, 7, 6, 10, 10, 10, 10, 12, 7].into_iter().map(rule).collect();
    let _ = writeln!(out, "----- ----  {}", rules.join("  "));
    let mut ops: Vec<&OpRow> = ops.iter().collect();
    ops.sort_by_key(|op| std::cmp::Reverse(duration_ns(&op.totals)));
    for op in ops {
        let fusions = op
            .fusions
            .iter()
            .map(|fusion| (format!("  {}", trace.text(fusion.fusion)), &fusion.totals));
        let op_line = (trace.text(op.op).to_owned(), &op.totals);
        for (name, totals) in std::iter::once(op_line).chain(fusions) {
            line(out, trace, op, &name, (totals, all_ns));
        }
    }
}

fn line(
    out: &mut String,
    trace: &Trace,
    op: &OpRow,
    name: &str,
    (totals, all_ns): (&Totals, u128),
) {
    let longest = trace.event(totals.longest);
    let shapes = shape_text::sources(trace.signature(longest.node), &trace.types);
    let row = format!(
        "{:<5} {:>4}  {:<28}  {:>6.1}%  {:>6}  {:>10.2}  {:>10.2}  {:>10.2}  {:>10.2}  {:>12}  {}",
        op.kind.name(),
        trace.backend(op.backend).id,
        printable(name),
        percent(duration_ns(totals), all_ns),
        totals.count,
        milliseconds(duration_ns(totals)),
        duration_ns(totals) as f64 / totals.count as f64 / 1e3,
        totals.min_ns as f64 / 1e3,
        totals.max_ns as f64 / 1e3,
        bandwidth(totals).unwrap_or_default(),
        shapes,
    );
    let _ = writeln!(out, "{}", row.trim_end());
}

fn milliseconds(ns: u128) -> f64 {
    ns as f64 / 1e6
}

/// What all records took, calls included.
fn duration_ns(totals: &Totals) -> u128 {
    if totals.only_calls { totals.total_ns } else { totals.total_ns + totals.call_ns }
}

fn percent(ns: u128, of_ns: u128) -> f64 {
    if of_ns > 0 { ns as f64 / of_ns as f64 * 100.0 } else { 0.0 }
}

fn bandwidth(totals: &Totals) -> Option<String> {
    let (bytes, ns) = (totals.output_bytes, duration_ns(totals));
    let rate = (bytes > 0 && ns > 0).then(|| bytes as f64 / ns as f64)?;
    Some(match rate >= 1000.0 {
        true => format!("{:.2} TB/s", rate / 1000.0),
        false => format!("{rate:.2} GB/s"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use ggprof_trace::text_fixture;

    #[test]
    fn three_sections() {
        let trace = text_fixture::parse(
            "backend 0 CUDA0 accel
             backend 1 CPU cpu
             op CUDA0 MUL_MAT 2000..1352000 Qcur-0 f32[256,2] <- q4_0[256,256] f32[256,2] bytes=2048
             op CUDA0 RMS_NORM 1352000..1353000 norm-0 <- f32[256,2] bytes=2048 fused=RMS_NORM+MUL
             op CPU GET_ROWS 0..1000 embd
             copy CUDA0 H2D 1000..2000 2048 embd <- f32[256,2]",
        );
        expect![[r#"
            === Profiling Summary ===
            Total time:    1.35 ms
            Total records: 4
            Unique ops:    4

            === Per-Backend Summary ===
              Backend 0 (CUDA0): 1.35 ms (99.9%)
                OPs:   2 calls, 1.35 ms, 0.00 GB/s
                COPYs: 1 calls, 0.00 ms, 2.05 GB/s
              Backend 1 (CPU): 0.00 ms (0.1%)
                OPs:   1 calls, 0.00 ms

            === Operations (sorted by total time) ===
            TYPE  BKND  Operation                       %Time   Count   Total(ms)     Avg(us)     Min(us)     Max(us)     Bandwidth  Tensors
            ----- ----  ----------------------------  -------  ------  ----------  ----------  ----------  ----------  ------------  -------
            OP       0  MUL_MAT                         99.8%       1        1.35     1350.00     1350.00     1350.00     0.00 GB/s  [256, 256] q4_0 x [256, 2] f32
            OP       0  RMS_NORM                         0.1%       1        0.00        1.00        1.00        1.00     2.05 GB/s  [256, 2] f32
            OP       0    RMS_NORM+MUL                   0.1%       1        0.00        1.00        1.00        1.00     2.05 GB/s  [256, 2] f32
            OP       1  GET_ROWS                         0.1%       1        0.00        1.00        1.00        1.00
            COPY     0  copy_H2D                         0.1%       1        0.00        1.00        1.00        1.00     2.05 GB/s  [256, 2] f32

            Total: 1.35 ms  (4 records, 4 unique ops)
        "#]]
        .assert_eq(&text(&trace));
    }

    #[test]
    fn nothing_recorded() {
        let text = text(&text_fixture::parse("backend 0 CPU cpu"));
        assert!(text.ends_with("No profiling data available.\n"), "{text}");
    }
}
