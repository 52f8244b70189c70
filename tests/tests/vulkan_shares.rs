//! How Vulkan's time is divided among the ops, compared with ggml's own logger. Both separate ops
//! by a barrier and write a timestamp at each. They run alternately, in separate processes.

use std::collections::BTreeMap;
use std::process::Command;

use ggprof_e2e::built;
use ggprof_e2e::published_ggml::{self, NEWEST};
use ggprof_e2e::recording::Recording;
use ggprof_e2e::under_agent::UnderAgent;
use ggprof_spool::layout::{DeviceWork, NO_NODE};

const ARGUMENTS: [&str; 10] =
    ["--threads", "1", "--split", "--graphs", "60", "--layers", "2", "--embd", "256", "--prompt=3"];
/// The prompt, and tokens for which pipelines are compiled.
const COLD: usize = 4;
/// The first op of each graph, which the logger counts from before the device begins: on a busy
/// machine that is mostly waiting.
const FIRST: &str = "RMS_NORM";
/// Enough on a quiet machine, and on one that is busy.
const TURNS: std::ops::RangeInclusive<usize> = 3..=10;
/// Points of a hundred. From half of one to 2.2 are seen, by processor and load.
const APART: f64 = 3.0;

/// Op, and which ones of that op: the logger adds up those that are alike.
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

/// The ops of one split, if it is one of the device's. The logger counts from one timestamp to
/// the next, so the pauses between submissions are part of its times: here they are added.
fn of_split(recording: &Recording, split: u32) -> Option<BTreeMap<What, f64>> {
    let works = recording.device_works.iter().filter(|work| work.split == split);
    let mut works: Vec<&DeviceWork> = works.collect();
    works.sort_by_key(|work| work.start);
    let mut until = works.first()?.start;
    let works = works.into_iter().filter(|work| work.position != NO_NODE).map(|work| {
        let time = work.end - std::mem::replace(&mut until, work.end);
        let split = &recording.splits[&split];
        let op = recording.op_name(split, work.position).to_owned();
        let fused = recording.fusions.get(&(split.begin.shape, work.position)).map(Vec::len);
        let node = recording.node_at(split, work.position).expect("it is described");
        let (_, sources) = &recording.nodes[&node.node];
        let shapes: Vec<_> = sources.iter().map(|source| source.ne).collect();
        ((op, format!("{fused:?} {:?} {shapes:?}", node.ne)), time as f64)
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
/// long ones: the shortest few are what an op takes by itself.
fn shares(graphs: &Graphs) -> BTreeMap<String, f64> {
    let mut times: BTreeMap<&What, Vec<f64>> = BTreeMap::new();
    graphs.iter().flatten().for_each(|(what, time)| times.entry(what).or_default().push(*time));
    let short = times.into_iter().map(|((op, _), mut times)| {
        times.sort_by(f64::total_cmp);
        (op.clone(), times[times.len() / 50])
    });
    let ops = sums(short.filter(|(op, _)| op != FIRST));
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
        if TURNS.contains(&turn) && apart <= APART {
            return;
        }
    }
    panic!("still more than {APART} points apart");
}
