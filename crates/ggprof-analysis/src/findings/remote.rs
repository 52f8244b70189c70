//! R20, R21, R22: servers. The network takes the time, the graph is sent again for each token, or one
//! server is slower than the others.

use super::scene::Scene;
use super::{Certainty, Finding, Rule, What};
use crate::budget::Budget;
use crate::layers::Layer;
use crate::remote::{StepTime, step_times};
use crate::traffic::traffic_in;
use ggprof_trace::{BackendIndex, EventKind, ProcessIndex, Signature};
use hashbrown::{HashMap, HashSet};

#[derive(Debug, Clone, PartialEq)]
pub struct RoundTrips {
    pub servers: usize,
    pub steps_per_run: f64,
    /// 0 where sockets were not seen, as with the bytes.
    pub round_trips_per_run: f64,
    pub bytes_per_run: u64,
    pub wire_ns_per_step: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct GraphSentAgain {
    pub bytes_per_step: u64,
    pub steps_per_run: f64,
}

/// The client's backends that stand for the slowest and the best server, and what a layer
/// takes there.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowServer {
    pub server: BackendIndex,
    pub layer_ns: u64,
    pub layers: u64,
    pub best: BackendIndex,
    pub best_layer_ns: u64,
}

pub(super) const ROUND_TRIPS: Rule = Rule(20);
pub(super) const SENT_AGAIN: Rule = Rule(21);
pub(super) const SLOW_SERVER: Rule = Rule(22);

/// Of the phase's wall time, on the wire.
const LEAST_WIRE: f64 = 0.1;
/// What frames around tensors take at most.
const FRAME_BYTES: u64 = 512;
/// A graph of any model is larger.
const LEAST_GRAPH_BYTES: u64 = 8192;
/// How much longer a layer takes on a slow server than on the best one.
const SLOW: f64 = 1.5;

pub(super) fn find(scene: &Scene<'_>, place: usize, budget: &Budget) -> Vec<Finding> {
    let steps = ServerSteps::of(scene, budget);
    let found = [
        round_trips(scene, budget, &steps),
        sent_again(scene, budget, &steps),
        slow_server(scene, place, &steps),
    ];
    let finding = |(rule, cost_ns, certainty, what): (Rule, u64, Certainty, What)| Finding {
        rule,
        budget: place,
        cost_ns,
        is_estimate: rule != ROUND_TRIPS,
        certainty,
        what,
    };
    found.into_iter().flatten().map(finding).collect()
}

type FoundRule = Option<(Rule, u64, Certainty, What)>;

/// The steps of servers in a group of phases.
struct ServerSteps {
    all: StepTime,
    by_server: HashMap<ProcessIndex, StepTime>,
}

impl ServerSteps {
    fn of(scene: &Scene<'_>, budget: &Budget) -> Self {
        let runs = &scene.trace.remote_runs;
        let mut steps = Self { all: StepTime::default(), by_server: HashMap::new() };
        for (run, time) in runs.iter().zip(step_times(runs)) {
            let phase = scene.phases.phase_of_run.get(run.graph_run.0 as usize);
            if phase.is_some_and(|phase| budget.phases.contains(phase)) {
                steps.all += time;
                *steps.by_server.entry(run.server).or_default() += time;
            }
        }
        steps
    }
}

fn round_trips(scene: &Scene<'_>, budget: &Budget, steps: &ServerSteps) -> FoundRule {
    let wire_ns = steps.all.wire_ns;
    if budget.share(wire_ns) < LEAST_WIRE {
        return None;
    }
    let traffic = traffic_in(scene.trace, scene.phases, &budget.phases);
    let runs = budget.runs.max(1);
    let what = What::RoundTrips(RoundTrips {
        servers: steps.by_server.len(),
        steps_per_run: steps.all.steps as f64 / runs as f64,
        round_trips_per_run: traffic.round_trips as f64 / runs as f64,
        bytes_per_run: traffic.bytes() / runs,
        wire_ns_per_step: wire_ns / steps.all.steps.max(1),
    });
    Some((ROUND_TRIPS, wire_ns, Certainty::Likely, what))
}

/// What was sent besides tensors is graphs. A graph that did not change need not be sent.
fn sent_again(scene: &Scene<'_>, budget: &Budget, steps: &ServerSteps) -> FoundRule {
    let traffic = traffic_in(scene.trace, scene.phases, &budget.phases);
    let (copies, copied) = copies_to_servers(scene, budget);
    let calls = calls_to_servers(scene, budget);
    // The first graph of a phase is a new one.
    if calls < 4 {
        return None;
    }
    let frames = FRAME_BYTES * (copies + calls + traffic.round_trips);
    let graphs = traffic.sent.saturating_sub(copied).saturating_sub(frames);
    let bytes_per_step = graphs / calls;
    if bytes_per_step < LEAST_GRAPH_BYTES {
        return None;
    }
    let part = graphs as f64 / traffic.sent.max(1) as f64;
    let cost_ns =
        steps.all.serialising_ns.saturating_add((traffic.sending_ns as f64 * part) as u64);
    let steps_per_run = calls as f64 / budget.runs.max(1) as f64;
    let what = What::GraphSentAgain(GraphSentAgain { bytes_per_step, steps_per_run });
    Some((SENT_AGAIN, cost_ns, Certainty::Likely, what))
}

/// How many tensors, and of how many bytes.
fn copies_to_servers(scene: &Scene<'_>, budget: &Budget) -> (u64, u64) {
    let trace = scene.trace;
    let (mut copies, mut bytes) = (0, 0);
    for event in trace.events.copies() {
        let phase = event.graph_run.and_then(|run| scene.phases.phase_of_run.get(run.0 as usize));
        let is_within = phase.is_some_and(|phase| budget.phases.contains(phase));
        if is_within && trace.backend(event.backend).endpoint().is_some() {
            copies += 1;
            bytes = event.bytes.saturating_add(bytes);
        }
    }
    (copies, bytes)
}

/// Graphs that were left to servers, whose recordings may not be here.
fn calls_to_servers(scene: &Scene<'_>, budget: &Budget) -> u64 {
    let trace = scene.trace;
    let mut calls = 0;
    for (stretch, events) in trace.events.stretches() {
        let is_call =
            stretch.kind == EventKind::Op && trace.backend(stretch.backend).endpoint().is_some();
        let phase = stretch.graph_run.and_then(|run| scene.phases.phase_of_run.get(run.0 as usize));
        if is_call && phase.is_some_and(|phase| budget.phases.contains(phase)) {
            calls += events.len() as u64;
        }
    }
    calls
}

/// What a server has of the layers.
#[derive(Default)]
struct OwnLayers {
    layers: HashSet<Layer>,
    /// Of ops that belong to a layer, and of all whose names are known. The output belongs to none.
    layers_ns: u64,
    all_ns: u64,
}

impl OwnLayers {
    /// Of what the server computes, the part of one layer.
    fn each_ns(&self, computing_ns: u64) -> Option<f64> {
        let part = self.layers_ns as f64 / self.all_ns as f64;
        (self.layers_ns > 0).then(|| computing_ns as f64 * part / self.layers.len() as f64)
    }
}

/// Servers that compute layers, each by the time of one.
fn slow_server(scene: &Scene<'_>, place: usize, steps: &ServerSteps) -> FoundRule {
    let mut layers: HashMap<ProcessIndex, OwnLayers> = HashMap::new();
    for (key, sum) in &scene.tallies[place].ops {
        let process = scene.trace.backend(key.backend).process;
        let server = process.filter(|_| scene.trace.is_of_server(key.backend));
        let is_told = scene.op(key) != Signature::WHOLE_SPLIT;
        let Some(server) = server.filter(|_| is_told) else { continue };
        let own = layers.entry(server).or_default();
        own.all_ns += sum.ns;
        if let Some(layer) = key.layer {
            own.layers.insert(layer);
            own.layers_ns += sum.ns;
        }
    }
    let mut speeds: Vec<(ProcessIndex, f64, u64)> = steps
        .by_server
        .iter()
        .filter_map(|(server, time)| {
            let own = layers.get(server)?;
            Some((*server, own.each_ns(time.computing_ns)?, own.layers.len() as u64))
        })
        .collect();
    speeds.sort_by(|one, other| one.1.total_cmp(&other.1).then(one.0.cmp(&other.0)));
    let (best, worst) = (speeds.first()?, speeds.last()?);
    if speeds.len() < 2 || worst.1 < SLOW * best.1 {
        return None;
    }
    let cost_ns = ((worst.1 - best.1) * worst.2 as f64) as u64;
    let per_step = |server: &(ProcessIndex, f64, u64)| {
        let count = steps.by_server.get(&server.0).map_or(1, |time| time.steps.max(1));
        (server.1 / count as f64) as u64
    };
    let what = What::SlowServer(SlowServer {
        server: backend_of(scene, worst.0)?,
        layer_ns: per_step(worst),
        layers: worst.2,
        best: backend_of(scene, best.0)?,
        best_layer_ns: per_step(best),
    });
    Some((SLOW_SERVER, cost_ns, Certainty::Likely, what))
}

/// The client's backend that stands for a server.
fn backend_of(scene: &Scene<'_>, server: ProcessIndex) -> Option<BackendIndex> {
    let mut runs = scene.trace.remote_runs.iter();
    runs.find(|run| run.server == server).map(|run| run.backend)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::{found_in, tokens};
    use ggprof_trace::{GraphRunId, Process, RemoteLink, RemoteRun, Trace, Transfer, text_fixture};

    const TOKENS: u64 = 5;

    type Span = (u64, u64);
    /// A server, and when it was called, computed and waited for.
    type Turn = (u16, Span, Span, Span);

    /// A client whose tokens take 1000 ns, and two servers that compute a layer each: what is in a
    /// token.
    fn trace(ops: &str, runs: &[Turn]) -> Trace {
        let text = tokens(TOKENS, 1000, 1000, ops);
        let mut trace = text_fixture::parse(&format!(
            "backend 0 RPC0[one:1] gpu\nbackend 1 RPC0[two:2] gpu\nbackend 2 S1 cpu\nbackend 3 S2 cpu\n{text}"
        ));
        let process = |pid| Process { command: "p".into(), pid, ..Process::default() };
        trace.processes = vec![process(1), process(2), process(3)];
        for (at, process) in [0, 0, 1, 2].into_iter().enumerate() {
            trace.backends[at].process = Some(ProcessIndex(process));
        }
        trace.graph_runs.iter_mut().for_each(|run| run.process = Some(ProcessIndex(0)));
        for server in [1, 2] {
            trace.remote_links.push(RemoteLink {
                client: ProcessIndex(0),
                server: ProcessIndex(server),
                endpoint: String::new(),
                calls: TOKENS,
                runs: TOKENS,
                matched: TOKENS,
                bounds: 0,
                violations: 0,
            });
        }
        for token in 0..TOKENS {
            let later = |(from, to): Span| (from + token * 1000, to + token * 1000);
            trace.remote_runs.extend(runs.iter().map(|&(server, called, computed, waited)| {
                RemoteRun {
                    graph_run: GraphRunId(token as u32),
                    split: 0,
                    backend: BackendIndex(server - 1),
                    server: ProcessIndex(server),
                    called_ns: later(called),
                    computed_ns: later(computed),
                    waited_ns: Some(later(waited)),
                }
            }));
        }
        trace
    }

    fn of(trace: &Trace, rule: Rule) -> Option<Finding> {
        found_in(trace).into_iter().find(|finding| finding.rule == rule)
    }

    const BOTH: &str = "op S1 MUL_MAT 10..400 ffn_out-0 run=@
        op S2 MUL_MAT 510..900 ffn_out-1 run=@";

    #[test]
    fn one_slow_server() {
        let even = [(1, (0, 5), (10, 450), (5, 500)), (2, (500, 505), (510, 950), (505, 1000))];
        assert_eq!(of(&trace(BOTH, &even), SLOW_SERVER), None);
        let uneven = [(1, (0, 5), (10, 710), (5, 750)), (2, (750, 755), (760, 960), (755, 1000))];
        let found = of(&trace(BOTH, &uneven), SLOW_SERVER).expect("it is slow");
        assert_eq!(found.cost_ns, (700 - 200) * TOKENS);
        let What::SlowServer(SlowServer { layer_ns, best_layer_ns, layers, .. }) = found.what
        else {
            panic!()
        };
        assert_eq!((layer_ns, best_layer_ns, layers), (700, 200, 1));
    }

    /// The second server computes the output besides, for as long as three layers.
    #[test]
    fn the_output_is_no_layer() {
        let ops = format!("{BOTH}\nop S2 MUL_MAT 900..1000 result_output run=@");
        let runs = [(1, (0, 5), (10, 400), (5, 405)), (2, (405, 410), (410, 1000), (410, 1000))];
        assert_eq!(of(&trace(&ops, &runs), SLOW_SERVER), None);
    }

    #[test]
    fn round_trips_take_longer_than_the_work() {
        let near = [(1, (0, 5), (10, 990), (5, 1000))];
        assert_eq!(of(&trace(BOTH, &near), ROUND_TRIPS), None);
        let far = [(1, (0, 5), (205, 700), (5, 1000))];
        let found = of(&trace(BOTH, &far), ROUND_TRIPS).expect("most of it is the wire");
        assert_eq!(found.cost_ns, (200 + 300) * TOKENS);
    }

    #[test]
    fn the_graph_of_each_token_is_sent_again() {
        let calls = "op RPC0[one:1] SPLIT 0..300 run=@ measured=host_call
            op S1 MUL_MAT 310..990 ffn_out-0 run=@
            copy RPC0[one:1] H2D 1..2 4096 inp run=@";
        let runs = [(1, (0, 300), (310, 990), (305, 1000))];
        let sending = |bytes: u64| {
            let mut trace = trace(calls, &runs);
            trace.transfers.extend((0..TOKENS).map(|token| Transfer {
                process: Some(ProcessIndex(0)),
                connection: 1,
                is_received: false,
                is_whole: true,
                port: 9,
                other_port: 1,
                offset: 0,
                bytes,
                start_ns: token * 1000 + 10,
                end_ns: token * 1000 + 110,
            }));
            trace
        };
        assert_eq!(of(&sending(4096 + 600), SENT_AGAIN), None);
        let found = of(&sending(300_000), SENT_AGAIN).expect("a graph each");
        let What::GraphSentAgain(GraphSentAgain { bytes_per_step, .. }) = found.what else {
            panic!()
        };
        assert_eq!(bytes_per_step, 300_000 - 4096 - 2 * FRAME_BYTES);
        assert!(found.cost_ns > 300 * TOKENS, "{}", found.cost_ns);
    }
}
