//! Which graph run of a server is which split of its client.
//!
//! A client and a server exchange no number that both record. But one connection keeps the order, and
//! both ends know what is computed. So the two lists of calls are laid side by side where most of them
//! agree, and what agrees is a pair. Lists may begin late, end early or have holes: a process was
//! recorded in part, or a connection broke.

use crate::model::Trace;
use hashbrown::{HashMap, HashSet};

/// Ways to lay two lists side by side that are tried because of one content.
const MOST_TRIES: usize = 64;

/// A call of a client and the call of a server that it led to: places among the calls of their
/// recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) client: usize,
    pub(super) server: usize,
}

/// The calls of one recording that go to one server, and what they led to in another recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) client: usize,
    pub(super) endpoint: String,
    pub(super) server: usize,
    pub(super) pairs: Vec<Pair>,
}

/// One call in a list.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Its place among the calls of the recording.
    place: usize,
    /// Its place in the order of all calls, those that were not recorded included.
    order: i64,
    content: u64,
}

/// Everything that one process computed for another. `misfit` says how badly the times of pairs
/// contradict what is known of the clocks, for lists that agree in several ways.
pub(super) fn matches(recordings: &[Trace], misfit: impl Fn(&Match) -> u64) -> Vec<Match> {
    let mut clients = clients(recordings);
    let mut servers: Vec<Vec<Entry>> = recordings.iter().map(served).collect();
    let mut found: Vec<Match> = Vec::new();
    loop {
        // What is left of two lists that were laid side by side is in another order.
        let is_done = |client: usize, endpoint: &str, server: usize| {
            let is_it =
                |it: &Match| (it.client, &*it.endpoint, it.server) == (client, endpoint, server);
            found.iter().any(is_it)
        };
        let mut best: Option<Match> = None;
        for (client, endpoint, calls) in &clients {
            for (server, runs) in servers.iter().enumerate() {
                if server == *client || is_done(*client, endpoint, server) {
                    continue;
                }
                let of =
                    |pairs| Match { client: *client, endpoint: endpoint.clone(), server, pairs };
                let pairs = side_by_side(calls, runs, |pairs| misfit(&of(pairs.to_vec())));
                if pairs.len() > best.as_ref().map_or(0, |best| best.pairs.len()) {
                    best = Some(of(pairs));
                }
            }
        }
        let Some(best) = best else { return found };
        let taken: HashSet<usize> = best.pairs.iter().map(|pair| pair.server).collect();
        servers[best.server].retain(|entry| !taken.contains(&entry.place));
        let taken: HashSet<usize> = best.pairs.iter().map(|pair| pair.client).collect();
        for (client, endpoint, calls) in &mut clients {
            if (*client, &*endpoint) == (best.client, &best.endpoint) {
                calls.retain(|entry| !taken.contains(&entry.place));
            }
        }
        found.push(best);
    }
}

/// For each recording and server, the calls that went there.
fn clients(recordings: &[Trace]) -> Vec<(usize, String, Vec<Entry>)> {
    let mut clients: Vec<(usize, String, Vec<Entry>)> = Vec::new();
    for (client, trace) in recordings.iter().enumerate() {
        for (place, call) in trace.graph_calls.iter().enumerate() {
            let Some(to) = trace.backend(call.backend).endpoint() else { continue };
            let known = clients.iter().position(|(at, name, _)| *at == client && name == to);
            let at = known.unwrap_or_else(|| {
                clients.push((client, to.to_owned(), Vec::new()));
                clients.len() - 1
            });
            let calls = &mut clients[at].2;
            calls.push(Entry { place, order: calls.len() as i64, content: call.content });
        }
    }
    clients
}

/// What a recording may have computed for others. Its graph runs are numbered, those that were not
/// recorded included.
fn served(trace: &Trace) -> Vec<Entry> {
    let calls = trace.graph_calls.iter().enumerate();
    let own = calls.filter(|(_, call)| trace.backend(call.backend).endpoint().is_none());
    let entries = own.enumerate().map(|(at, (place, call))| {
        let run = trace.graph_runs.get(call.graph_run.0 as usize);
        let number = run.and_then(|run| run.number).unwrap_or(at as u64 + 1);
        let order = i64::try_from(number).unwrap_or(i64::MAX / 2) - 1;
        Entry { place, order, content: call.content }
    });
    entries.collect()
}

/// The pairs of two lists: the longest part that agrees, and then the same before and behind it.
fn side_by_side(calls: &[Entry], runs: &[Entry], misfit: impl Fn(&[Pair]) -> u64) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let mut rest = vec![(calls, runs)];
    while let Some((calls, runs)) = rest.pop() {
        let Some((call, run, agreement)) = longest(calls, runs, &misfit) else { continue };
        let first = (call, run);
        let last = (call + agreement.len(), run + agreement.runs);
        rest.push((&calls[..first.0], &runs[..first.1]));
        rest.push((&calls[last.0..], &runs[last.1..]));
        pairs.extend(agreement.pairs);
    }
    pairs.sort_unstable_by_key(|pair| pair.client);
    pairs
}

/// Calls in a row that agree with runs in a row.
struct Agreement {
    pairs: Vec<Pair>,
    runs: usize,
}

impl Agreement {
    fn len(&self) -> usize {
        self.pairs.len()
    }
}

/// Where the longest agreement begins in both lists. Of several, the first that fits the times best.
fn longest(
    calls: &[Entry],
    runs: &[Entry],
    misfit: &impl Fn(&[Pair]) -> u64,
) -> Option<(usize, usize, Agreement)> {
    let at_order: HashMap<i64, usize> =
        runs.iter().enumerate().map(|(at, run)| (run.order, at)).collect();
    let mut best: Option<(usize, usize, Agreement)> = None;
    let mut best_misfit = None;
    for distance in distances(calls, runs) {
        let Some(found) = longest_at(calls, runs, &at_order, distance) else { continue };
        let than = best.as_ref().map_or(0, |(_, _, agreement)| agreement.len());
        if found.2.len() < than {
            continue;
        }
        if found.2.len() > than {
            (best, best_misfit) = (Some(found), None);
            continue;
        }
        // Several ways agree: times decide.
        let known = best.as_ref().map_or(u64::MAX, |(_, _, agreement)| {
            best_misfit.unwrap_or_else(|| misfit(&agreement.pairs))
        });
        let new = misfit(&found.2.pairs);
        best_misfit = Some(known.min(new));
        if new < known {
            best = Some(found);
        }
    }
    best
}

/// Ways to lay the lists side by side: how much later in its own order a run comes than its call.
fn distances(calls: &[Entry], runs: &[Entry]) -> Vec<i64> {
    let (Some(first_call), Some(first_run)) = (calls.first(), runs.first()) else {
        return Vec::new();
    };
    let (last_call, last_run) = (calls[calls.len() - 1], runs[runs.len() - 1]);
    let mut all = vec![
        // The server did nothing before; it was recorded from its first run on; to its last one.
        0,
        first_run.order - first_call.order,
        last_run.order - last_call.order,
    ];
    let places = |entries: &[Entry]| {
        let mut places: HashMap<u64, Vec<i64>> = HashMap::new();
        entries.iter().for_each(|it| places.entry(it.content).or_default().push(it.order));
        places
    };
    let (of_calls, of_runs) = (places(calls), places(runs));
    // What is computed seldom says most. Where everything is the same, some are tried from each end.
    let rarest = of_calls
        .iter()
        .filter_map(|(content, calls)| Some((calls, of_runs.get(content)?)))
        .min_by_key(|(calls, runs)| (calls.len().saturating_mul(runs.len()), calls[0]));
    if let Some((calls, runs)) = rarest {
        let each = calls.iter().flat_map(|call| runs.iter().map(move |run| run - call));
        all.extend(each.clone().take(MOST_TRIES / 2));
        let from_end =
            calls.iter().rev().flat_map(|call| runs.iter().rev().map(move |run| run - call));
        all.extend(from_end.take(MOST_TRIES / 2));
    }
    let mut seen = HashSet::new();
    all.retain(|distance| seen.insert(*distance));
    all
}

/// The longest agreement at one distance.
fn longest_at(
    calls: &[Entry],
    runs: &[Entry],
    at_order: &HashMap<i64, usize>,
    distance: i64,
) -> Option<(usize, usize, Agreement)> {
    let partner = |call: &Entry| {
        let &at = at_order.get(&call.order.checked_add(distance)?)?;
        (runs[at].content == call.content).then_some(at)
    };
    let (mut best, mut begin): (Option<(usize, usize)>, usize) = (None, 0);
    for (at, call) in calls.iter().enumerate() {
        match partner(call) {
            Some(_) if best.is_none_or(|(from, to)| at + 1 - begin > to - from) => {
                best = Some((begin, at + 1));
            }
            Some(_) => {}
            None => begin = at + 1,
        }
    }
    let (from, to) = best?;
    let places: Vec<usize> = calls[from..to].iter().filter_map(partner).collect();
    let (first, last) = (*places.first()?, *places.last()?);
    let pairs = calls[from..to].iter().zip(&places);
    let pairs = pairs.map(|(call, &at)| Pair { client: call.place, server: runs[at].place });
    Some((from, first, Agreement { pairs: pairs.collect(), runs: last + 1 - first }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls with these contents, in this order; `_` was not recorded.
    fn entries(text: &str) -> Vec<Entry> {
        let all = text.bytes().enumerate().map(|(at, content)| (at as i64, content));
        let known = all.filter(|(_, content)| *content != b'_').enumerate();
        known
            .map(|(place, (order, content))| Entry { place, order, content: content.into() })
            .collect()
    }

    /// The places of the pairs.
    #[track_caller]
    fn check(calls: &str, runs: &str, expected: &[(usize, usize)]) {
        let found = side_by_side(&entries(calls), &entries(runs), |_| 0);
        let found: Vec<_> = found.iter().map(|pair| (pair.client, pair.server)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_order_of_one_connection() {
        check("abcc", "abcc", &[(0, 0), (1, 1), (2, 2), (3, 3)]);
    }

    #[test]
    fn a_server_that_was_recorded_in_part() {
        check("pqttttt", "___tt__", &[(3, 0), (4, 1)]);
        check("pqttttt", "__tttt", &[(2, 0), (3, 1), (4, 2), (5, 3)]);
        // It had served others before, so its numbers do not help; a prompt does.
        check("pttt", "_____ptt", &[(0, 0), (1, 1), (2, 2)]);
    }

    #[test]
    fn a_connection_that_broke_and_came_back() {
        // The third call was lost.
        check("ptuqttt", "ptqttt", &[(0, 0), (1, 1), (3, 2), (4, 3), (5, 4), (6, 5)]);
    }

    #[test]
    fn what_is_computed_otherwise_is_no_pair() {
        check("abc", "xyz", &[]);
        check("", "xyz", &[]);
    }

    #[test]
    fn times_decide_between_ways_that_agree() {
        let (calls, runs) = (entries("tttt"), entries("______tt"));
        let wanted = |pairs: &[Pair]| u64::from(pairs[0].client != 1);
        let found = side_by_side(&calls, &runs, wanted);
        let found: Vec<_> = found.iter().map(|pair| (pair.client, pair.server)).collect();
        assert_eq!(found, [(1, 0), (2, 1)]);
    }
}
