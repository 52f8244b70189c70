//! How the time of a token grows with its context.

use super::phases::kind_name;
use crate::document::{Block, Fact};
use crate::{Cell, Column, Document, Table};
use ggprof_analysis::depth::AttentionBy;
use ggprof_analysis::{ByDepth, depth, phases};
use ggprof_trace::Trace;

const RANGES: [Column; 11] = [
    Column::left("phase", "phase", 0),
    Column::right("sequences", "", 9),
    Column::right("depth_from", "", 9),
    Column::right("depth_to", "", 9),
    Column::right("depth", "", 9),
    Column::right("range", "context", 0),
    Column::right("runs", "graph runs", 1),
    Column::right("token_ns", "a token", 0),
    Column::right("attention_ns", "attention", 0),
    Column::right("attention_share", "% of it", 1),
    Column::left("depth_is", "", 9),
];

const CHANGES: [Column; 9] = [
    Column::left("phase", "phase", 0),
    Column::right("sequences", "", 9),
    Column::right("depth", "from", 0),
    Column::right("attention_before_ns", "attention before", 0),
    Column::right("attention_after_ns", "after", 0),
    Column::left("backends_before", "on", 1),
    Column::left("kernels_before", "by", 1),
    Column::left("backends_after", "then on", 1),
    Column::left("kernels_after", "by", 0),
];

const SLOPES: [Column; 4] = [
    Column::left("phase", "phase", 0),
    Column::right("sequences", "", 9),
    Column::right("token_ns_per_1000", "a token", 0),
    Column::right("attention_ns_per_1000", "attention", 0),
];

pub(super) fn all(document: &mut Document, trace: &Trace) {
    let found = depth(trace, &phases(trace));
    document.heading("depth", "Depth: the time of a token by the length of its context");
    if found.is_empty() {
        let text = "No prompt and no generation with attention is in this recording.";
        document.blocks.push(Block::Warning(text.to_owned()));
    }
    document.table(Table {
        key: "depth",
        columns: RANGES.to_vec(),
        rows: found.iter().flat_map(ranges).collect(),
    });
    if found.iter().any(|depth| !depth.is_exact) {
        let words = "is {}: positions are not known";
        let source = Fact::new("source", Cell::text("the size of the cache"), words);
        document.fact("depth_from", "context", vec![source]);
    }
    let slopes: Vec<Vec<Cell>> = found.iter().filter_map(slopes).collect();
    if !slopes.is_empty() {
        document.heading("depth_slopes", "What 1,000 tokens more of context cost each token");
        document.table(Table { key: "depth_slopes", columns: SLOPES.to_vec(), rows: slopes });
    }
    let changes: Vec<Vec<Cell>> =
        found.iter().flat_map(|depth| self::changes(trace, depth)).collect();
    if !changes.is_empty() {
        document.heading("depth_steps", "Where attention is computed otherwise");
        document.table(Table { key: "depth_steps", columns: CHANGES.to_vec(), rows: changes });
    }
}

/// `generation`, `generation x 4`.
pub(crate) fn depth_label(depth: &ByDepth) -> String {
    let name = kind_name(depth.kind);
    match depth.sequences {
        1 => name.to_owned(),
        several => format!("{name} x {several}"),
    }
}

fn label(depth: &ByDepth) -> Cell {
    Cell::Named { words: depth_label(depth), name: kind_name(depth.kind).to_owned() }
}

fn ranges(depth: &ByDepth) -> Vec<Vec<Cell>> {
    let nanos = |ns: u64| Cell::Nanos(ns as f64);
    let row = |range: &ggprof_analysis::depth::DepthRange| {
        let depths = match (range.from, range.to) {
            (from, to) if from == to => Cell::Count(to.into()).words(),
            (from, to) => {
                format!(
                    "{} to {}",
                    Cell::Count(from.into()).words(),
                    Cell::Count(to.into()).words()
                )
            }
        };
        let share = range.attention_ns.filter(|_| range.token_ns > 0);
        vec![
            label(depth),
            Cell::Count(depth.sequences.into()),
            Cell::Count(range.from.into()),
            Cell::Count(range.to.into()),
            Cell::Count(range.depth.into()),
            Cell::Text(depths),
            Cell::Count(range.runs.into()),
            nanos(range.token_ns),
            Cell::or_nothing(range.attention_ns, nanos),
            Cell::or_nothing(share, |ns| Cell::Share(ns as f64 / range.token_ns as f64)),
            Cell::text(if depth.is_exact { "positions" } else { "cells of the cache" }),
        ]
    };
    depth.ranges.iter().map(row).collect()
}

/// What a thousand more tokens of context cost.
fn slopes(depth: &ByDepth) -> Option<Vec<Cell>> {
    let slope = |slope: Option<f64>| Cell::or_nothing(slope, Cell::Nanos);
    depth.token_slope.or(depth.attention_slope)?;
    Some(vec![
        label(depth),
        Cell::Count(depth.sequences.into()),
        slope(depth.token_slope),
        slope(depth.attention_slope),
    ])
}

fn changes(trace: &Trace, depth: &ByDepth) -> Vec<Vec<Cell>> {
    let backends = |computed: &AttentionBy| {
        let labels = computed.backends.iter().map(|&backend| trace.backend(backend).label());
        Cell::Text(labels.map(String::from).collect::<Vec<_>>().join(", "))
    };
    let kernels = |computed: &AttentionBy| {
        let names: Vec<&str> = computed.kernels.iter().map(|&kernel| trace.text(kernel)).collect();
        Cell::Text(names.join(", "))
    };
    let row = |change: &ggprof_analysis::AttentionChange| {
        vec![
            label(depth),
            Cell::Count(depth.sequences.into()),
            Cell::Count(change.depth.into()),
            Cell::Nanos(change.before.attention_ns as f64),
            Cell::Nanos(change.after.attention_ns as f64),
            backends(&change.before),
            kernels(&change.before),
            backends(&change.after),
            kernels(&change.after),
        ]
    };
    depth.changes.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::{Style, console, csv};
    use expect_test::expect;
    use ggprof_trace::text_fixture;
    use std::fmt::Write;

    #[test]
    fn a_generation_that_another_kernel_goes_on_with() {
        let mut text = "backend 0 GPU gpu\n".to_owned();
        for position in 1..64u64 {
            let (start, run) = (position * 10_000, position - 1);
            let (kernel, time) =
                if position < 40 { ("vec", 100 + position) } else { ("tile", 200 + position) };
            writeln!(
                text,
                "batch {start}..{} 0:{position}+1!1
                 run {start}..{} batch={run}
                 op GPU FLASH_ATTN_EXT {start}..{} a run={run} measured=device
                 kernel {kernel} {start}..{}",
                start + 1000,
                start + 1000 + time,
                start + time,
                start + time,
            )
            .unwrap();
        }
        let trace = text_fixture::parse(&text);
        let mut document = Document::default();
        all(&mut document, &trace);
        expect![[r#"
            Depth: the time of a token by the length of its context
              phase        context  graph runs  a token  attention  % of it
              generation   2 to 15          14  1.11 µs     107 ns     9.7%
              generation  16 to 31          16  1.12 µs     122 ns    10.9%
              generation  32 to 47          16  1.14 µs     138 ns    12.1%
              generation  48 to 63          16  1.25 µs     254 ns    20.3%
              generation        64           1  1.26 µs     263 ns    20.8%

            Where attention is computed otherwise
              phase       from  attention before   after  on   by   then on  by
              generation    41            120 ns  251 ns  GPU  vec  GPU      tile
        "#]]
        .assert_eq(&console(&document, &Style::PLAIN));
        expect!["table,phase,sequences,depth_from,depth_to,depth,range,runs,token_ns,attention_ns,attention_share,depth_is,attention_before_ns,attention_after_ns,backends_before,kernels_before,backends_after,kernels_after"].assert_eq(csv(&document).lines().next().unwrap());
    }
}
