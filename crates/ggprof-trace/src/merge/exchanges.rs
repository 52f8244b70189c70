//! What processes computed for each other, and what that says of their clocks.

use super::answers::{self, Answer};
use super::clock_line::{Bound, ClockLine, Side, fit};
use super::host_clocks::ClockShift;
use super::matching::{Match, Pair, matches};
use super::same_bytes;
use crate::model::{
    BackendIndex, DayClock, GraphCall, ProcessClock, ProcessIndex, RemoteLink, Trace,
};
use hashbrown::HashMap;
use std::cmp::Reverse;

/// Pairs that tell whether times contradict each other.
const ENOUGH_PAIRS: usize = 2048;

/// All that several recordings say of each other.
pub(super) struct Exchanges {
    pub(super) links: Vec<RemoteLink>,
    /// The graph runs of servers that are part of a client's, by recording and graph run.
    pub(super) parts: HashMap<(usize, u32), Part>,
}

/// A graph run of a server, as a part of its client's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) client: usize,
    pub(super) call: GraphCall,
    pub(super) run: GraphCall,
    /// By the client's clock.
    pub(super) answer: Option<Answer>,
}

impl Exchanges {
    /// Whether all graphs that a recording left to a server are there.
    pub(super) fn shows_all_of(&self, at: usize, trace: &Trace, backend: BackendIndex) -> bool {
        let is_of_it = |call: &GraphCall| call.backend == backend;
        let all = trace.graph_calls.iter().filter(|call| is_of_it(call)).count();
        let parts = self.parts.values();
        let seen = parts.filter(|part| part.client == at && is_of_it(&part.call)).count();
        seen > 0 && seen == all
    }
}

/// Finds pairs, and brings the clocks of servers to those of their clients.
pub(super) fn find(recordings: &[Trace], clocks: &mut [ClockShift]) -> Exchanges {
    let found = {
        let misfit = |found: &Match| misfit(recordings, clocks, found);
        matches(recordings, misfit)
    };
    let mut exchanges = Exchanges { links: Vec::new(), parts: HashMap::new() };
    // The client that a server did most for has the clock that it is brought to.
    let mut by_size: Vec<&Match> = found.iter().collect();
    by_size.sort_by_key(|found| Reverse(found.pairs.len()));
    let mut is_aligned = vec![false; recordings.len()];
    for one in by_size {
        let answers = answers_of(recordings, one);
        let bounds = all_bounds(recordings, one, &answers);
        if !is_aligned[one.server] {
            let whole = of_machines(recordings, clocks, &found, one);
            // A client has servers that are brought to its own clock.
            let may_move = |at: usize| found.iter().all(|it| it.client != at);
            for at in align(recordings, clocks, one, (&bounds, &whole), may_move) {
                is_aligned[at] = true;
            }
        }
        exchanges.links.push(link(recordings, clocks, one, &bounds));
        for pair in &one.pairs {
            let (call, run) = calls(recordings, one, pair);
            let answer = answers::after(&answers, &call);
            let part = Part { client: one.client, call, run, answer };
            exchanges.parts.insert((one.server, run.graph_run.0), part);
        }
    }
    exchanges
}

fn calls(recordings: &[Trace], found: &Match, pair: &Pair) -> (GraphCall, GraphCall) {
    let client = recordings[found.client].graph_calls[pair.client];
    (client, recordings[found.server].graph_calls[pair.server])
}

fn answers_of(recordings: &[Trace], found: &Match) -> Vec<Answer> {
    answers::answers(&recordings[found.client], &found.endpoint)
}

/// What pairs and bytes say of the distance of two clocks.
fn all_bounds(recordings: &[Trace], found: &Match, answers: &[Answer]) -> Vec<Bound> {
    let mut bounds = bounds(recordings, found, answers);
    bounds.extend(same_bytes::bounds(&recordings[found.client], &recordings[found.server]));
    bounds
}

/// No run begins before its call, or ends after the client has its results.
fn bounds(recordings: &[Trace], found: &Match, answers: &[Answer]) -> Vec<Bound> {
    let each = found.pairs.iter().map(|pair| calls(recordings, found, pair));
    let both = each.flat_map(|(call, run)| {
        let answer = answers::after(answers, &call);
        let begun = Bound::new(run.start_ns, call.start_ns, Side::AtLeast);
        let ended = answer.map(|(_, had_ns)| Bound::new(run.end_ns, had_ns, Side::AtMost));
        [Some(begun), ended]
    });
    both.flatten().collect()
}

/// How badly the times of pairs contradict each other: for how long, or how often if the clocks are
/// one.
fn misfit(recordings: &[Trace], clocks: &[ClockShift], found: &Match) -> u64 {
    let some = found.pairs.len().div_ceil(ENOUGH_PAIRS).max(1);
    let pairs = found.pairs.iter().step_by(some).copied().collect();
    let found = Match { pairs, ..found.clone() };
    let bounds = bounds(recordings, &found, &answers_of(recordings, &found));
    match share_clock(clocks, &found) {
        true => ClockLine::SAME.violations(&bounds, own_error_ns(recordings, &found)),
        false => fit(&bounds).map_or(0, |fit| fit.slack_ns),
    }
}

fn share_clock(clocks: &[ClockShift], found: &Match) -> bool {
    clocks[found.client].machine == clocks[found.server].machine
}

/// How far the times of both recordings can be off by themselves.
fn own_error_ns(recordings: &[Trace], found: &Match) -> u64 {
    let error = |at: usize| recordings[at].provenance.as_ref().and_then(|it| it.clock_error_ns);
    error(found.client).unwrap_or(0).saturating_add(error(found.server).unwrap_or(0))
}

/// All that the machines of a client and a server say of each other's clocks.
fn of_machines(
    recordings: &[Trace],
    clocks: &[ClockShift],
    found: &[Match],
    one: &Match,
) -> Vec<Bound> {
    let machines = |it: &Match| (clocks[it.client].machine, clocks[it.server].machine);
    let same = found.iter().filter(|it| machines(it) == machines(one));
    let bounds = same.flat_map(|it| all_bounds(recordings, it, &answers_of(recordings, it)));
    bounds.collect()
}

/// Brings the server's clock to the client's, unless it is the same one, and with it the clocks of all
/// that ran on its machine; which these are. Where a file says that two machines are one and the times
/// say otherwise, the times are right.
fn align(
    recordings: &[Trace],
    clocks: &mut [ClockShift],
    found: &Match,
    (own, whole): (&[Bound], &[Bound]),
    may_move: impl Fn(usize) -> bool,
) -> Vec<usize> {
    let own_error_ns = own_error_ns(recordings, found);
    let is_same = ClockLine::SAME.violations(own, own_error_ns) == 0;
    let (client, server) = (clocks[found.client], clocks[found.server]);
    let are_one = client.machine == server.machine;
    if are_one && is_same {
        return vec![found.server];
    }
    let Some(of_own) = fit(own) else { return vec![found.server] };
    let of_whole = fit(whole).filter(|it| it.slack_ns <= of_own.slack_ns.max(own_error_ns));
    let of_whole = of_whole.filter(|_| !are_one);
    let fit = of_whole.unwrap_or(of_own);
    let mut shift = ClockShift {
        line: fit.line,
        client: Some(found.client),
        ns: client.ns,
        day_clock: DayClock::NotAsked,
        clock: ProcessClock::Exchanges {
            ahead_ns: fit.line.ahead_ns,
            drift_ppb: (fit.line.drift * 1e9).round() as i64,
            error_ns: fit.error_ns.saturating_add(own_error_ns),
        },
        machine: server.machine,
    };
    if of_whole.is_none() && clocks.iter().filter(|it| it.machine == server.machine).count() > 1 {
        let most = clocks.iter().map(|it| it.machine).max().unwrap_or(0);
        shift.machine = most.saturating_add(1);
        clocks[found.server] = shift;
        return vec![found.server];
    }
    let is_moved = |at: usize| clocks[at].machine == server.machine && may_move(at);
    let all = (0..clocks.len()).filter(|&at| at == found.server || is_moved(at));
    let all: Vec<usize> = all.collect();
    all.iter().for_each(|&at| clocks[at] = shift);
    all
}

fn distance_ns(from: u64, to: u64) -> i64 {
    let distance = i128::from(to) - i128::from(from);
    i64::try_from(distance).unwrap_or(if distance < 0 { i64::MIN } else { i64::MAX })
}

fn link(
    recordings: &[Trace],
    clocks: &[ClockShift],
    found: &Match,
    bounds: &[Bound],
) -> RemoteLink {
    let (client, server) = (&clocks[found.client], &clocks[found.server]);
    let line = server.line.after(distance_ns(client.ns, server.ns));
    let count = |at: usize, is_wanted: &dyn Fn(Option<&str>) -> bool| {
        let trace = &recordings[at];
        let to = |call: &&GraphCall| is_wanted(trace.backend(call.backend).endpoint());
        trace.graph_calls.iter().filter(to).count() as u64
    };
    // A line is rounded to nanoseconds.
    let error_ns = own_error_ns(recordings, found).saturating_add(1);
    RemoteLink {
        client: ProcessIndex(found.client as u16),
        server: ProcessIndex(found.server as u16),
        endpoint: found.endpoint.clone(),
        calls: count(found.client, &|to| to == Some(&found.endpoint)),
        runs: count(found.server, &|to| to.is_none()),
        matched: found.pairs.len() as u64,
        bounds: bounds.len() as u64,
        violations: line.violations(bounds, error_ns),
    }
}
