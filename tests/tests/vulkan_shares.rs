//! How Vulkan's time is divided among the ops, beside ggml's own logger of it. Both keep one op
//! apart from the next by a barrier and write a timestamp at each; they run in turns, in
//! processes of their own.

use std::collections::BTreeMap;
use std::process::Command;

use ggprof_e2e::built;
use ggprof_e2e::published_ggml::{self, NEWEST};
use ggprof_e2e::recording::Recording;
use ggprof_e2e::under_agent::UnderAgent;
use ggprof_spool::layout::NO_NODE;

const ARGUMENTS: [&str; 10] =
    ["--threads", "1", "--split", "--graphs", "40", "--layers", "2", "--embd", "256", "--prompt=3"];
/// The prompt, and tokens for which pipelines are compiled.
const COLD: usize = 4;
/// Enough on a quiet machine, and on one that is busy.
const TURNS: std::ops::RangeInclusive<usize> = 3..=16;

/// Op and name of what is timed.
type What = (String, String);
/// Nanoseconds in each graph.
type Graphs = Vec<BTreeMap<What, f64>>;

fn logged() -> Option<Graphs> {
    let (libraries, environment) = published_ggml::vulkan_libraries(NEWEST)?;
    let mut command = Command::new(built::workload());
    command.arg(libraries).args(ARGUMENTS.iter().flat_map(|word| word.split('=')));
    command.envs(environment).env("LP_NUM_THREADS", "1").env("GGML_VK_PERF_LOGGER", "1");
    let output = command.output().expect("the workload runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let graphs = text.split("Vulkan Timings:").skip(1);
    Some(graphs.map(|graph| sums(graph.lines().filter_map(line))).collect())
}

/// `RMS_NORM_MUL RMS_NORM(256,1,1,1): 2 x 7.5 us = 15 us`: the fused name comes first.
fn line(line: &str) -> Option<(What, f64)> {
    let (name, rest) = line.split_once(": ")?;
    let total = rest.split_once(" = ")?.1.split_once(" us")?.0;
    let ops = ["MUL_MAT", "RMS_NORM"].into_iter().find(|op| name.starts_with(op));
    let op = if name.contains("SILU") { Some("UNARY") } else { ops };
    let what = (op.unwrap_or(name).to_owned(), name.to_owned());
    Some((what, total.parse::<f64>().ok()? * 1000.0))
}

fn recorded() -> Option<Graphs> {
    let (libraries, environment) = published_ggml::vulkan_libraries(NEWEST)?;
    let mut workload = UnderAgent::workload(&libraries, &[]);
    workload.command.args(ARGUMENTS.iter().flat_map(|word| word.split('='))).envs(environment);
    workload.command.env("LP_NUM_THREADS", "1").env("GGPROF_VULKAN", "serial");
    workload.run_well();
    let recording = workload.recording();
    let splits = recording.splits.keys().filter_map(|split| of_split(&recording, *split));
    Some(splits.collect())
}

/// The ops of one split, if it is one of the device's.
fn of_split(recording: &Recording, split: u32) -> Option<BTreeMap<What, f64>> {
    let works = recording.device_works.iter().filter(|work| work.split == split);
    let works = works.filter(|work| work.position != NO_NODE).map(|work| {
        let op = recording.op_name(&recording.splits[&split], work.position);
        ((op.to_owned(), work.position.to_string()), (work.end - work.start) as f64)
    });
    let ops = sums(works);
    (!ops.is_empty()).then_some(ops)
}

fn sums<K: Ord>(works: impl Iterator<Item = (K, f64)>) -> BTreeMap<K, f64> {
    let mut sums = BTreeMap::new();
    works.for_each(|(what, time)| *sums.entry(what).or_default() += time);
    sums
}

/// Hundredths of the time. Other programs of the machine only ever add to a time, and more to
/// long ones: so among the shortest tenth is what an op takes by itself.
fn shares(graphs: &Graphs) -> BTreeMap<String, f64> {
    let mut times: BTreeMap<&What, Vec<f64>> = BTreeMap::new();
    graphs.iter().flatten().for_each(|(what, time)| times.entry(what).or_default().push(*time));
    let short = times.into_iter().map(|((op, _), mut times)| {
        times.sort_by(f64::total_cmp);
        (op.clone(), times[times.len() / 10])
    });
    let ops = sums(short);
    let total: f64 = ops.values().sum();
    ops.into_iter().map(|(op, time)| (op, 100.0 * time / total)).collect()
}

#[test]
fn shares_of_ops_are_those_of_ggmls_own_logger() {
    let (mut own, mut ggmls) = (Graphs::new(), Graphs::new());
    for turn in 1..=*TURNS.end() {
        let (Some(recorded), Some(logged)) = (recorded(), logged()) else { return };
        own.extend(recorded.into_iter().skip(COLD));
        ggmls.extend(logged.into_iter().skip(COLD));
        assert_eq!(own.len(), ggmls.len());
        let (own, ggmls) = (shares(&own), shares(&ggmls));
        assert!(own.keys().eq(ggmls.keys()), "{own:?} {ggmls:?}");
        let apart = own.iter().map(|(op, share)| (share - ggmls[op]).abs()).fold(0.0, f64::max);
        println!("turn {turn}: {apart:.2} points apart, {own:.2?} {ggmls:.2?}");
        if TURNS.contains(&turn) && apart <= 1.0 {
            return;
        }
    }
    panic!("still more than a point apart");
}
