//! What a program sent to its servers and received from them, by phase.

use crate::phases::{PhaseKind, Phases};
use ggprof_trace::{ProcessIndex, RemoteLink, Trace, Transfer};
use hashbrown::HashMap;

/// Bytes to and from one server in the phases of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrafficRow {
    /// `None` for what belongs to no phase, such as loading a model.
    pub phase: Option<PhaseKind>,
    /// What the program calls the server.
    pub endpoint: String,
    pub traffic: Traffic,
    /// All tokens of these phases of the client.
    pub tokens: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    pub sent: u64,
    pub received: u64,
    /// How often the program waited for an answer to what it had sent.
    pub round_trips: u64,
    /// Time in calls that send, and that receive: they wait until something comes.
    pub sending_ns: u64,
    pub receiving_ns: u64,
}

impl Traffic {
    pub fn bytes(&self) -> u64 {
        self.sent.saturating_add(self.received)
    }

    fn add(&mut self, transfer: &Transfer, is_answer: bool) {
        let ns = transfer.end_ns.saturating_sub(transfer.start_ns);
        let (bytes, time) = match transfer.is_received {
            true => (&mut self.received, &mut self.receiving_ns),
            false => (&mut self.sent, &mut self.sending_ns),
        };
        *bytes = bytes.saturating_add(transfer.bytes);
        *time = time.saturating_add(ns);
        self.round_trips += u64::from(transfer.is_received && is_answer);
    }
}

/// By phase in the order of time, and by server in the order of the backends. Empty where sockets were
/// not seen, and for servers.
pub fn traffic(trace: &Trace, phases: &Phases) -> Vec<TrafficRow> {
    let kind = |phase: usize| phases.phases[phase].kind;
    let mut sums: HashMap<(Option<PhaseKind>, Server), Traffic> = HashMap::new();
    let mut order = Vec::new();
    each(trace, phases, |phase, server, transfer, is_answer| {
        let key = (phase.map(kind), server.clone());
        let sum = sums.entry(key).or_insert_with_key(|key| {
            order.push(key.clone());
            Traffic::default()
        });
        sum.add(transfer, is_answer);
    });
    let first = |phase: Option<PhaseKind>| order.iter().position(|(other, _)| *other == phase);
    let mut keys = order.clone();
    keys.sort_by_key(|(phase, server)| (first(*phase), server.clone()));
    let client = |server: &Server| trace.backends[server.place].process;
    let row = |key: (Option<PhaseKind>, Server)| TrafficRow {
        phase: key.0,
        traffic: sums[&key],
        tokens: key.0.map_or(0, |kind| phases.tokens_of(client(&key.1), kind)),
        endpoint: key.1.name,
    };
    keys.into_iter().map(row).collect()
}

/// What went on in some phases, to and from all servers.
pub(crate) fn traffic_in(trace: &Trace, phases: &Phases, these: &[u32]) -> Traffic {
    let mut sum = Traffic::default();
    each(trace, phases, |phase, _, transfer, is_answer| {
        if phase.is_some_and(|phase| these.contains(&(phase as u32))) {
            sum.add(transfer, is_answer);
        }
    });
    sum
}

/// Each transfer of a client, with the phase it began in, the server, and whether it is the first of an
/// answer.
fn each(
    trace: &Trace,
    phases: &Phases,
    mut take: impl FnMut(Option<usize>, &Server, &Transfer, bool),
) {
    let (servers, times) = (servers(trace), PhaseTimes::of(phases));
    let mut has_asked: HashMap<(Option<ProcessIndex>, u64), bool> = HashMap::new();
    for transfer in &trace.transfers {
        let end = (transfer.process, transfer.connection);
        let Some(server) = servers.get(&end) else { continue };
        let asked = has_asked.insert(end, !transfer.is_received);
        let is_answer = transfer.is_received && asked == Some(true);
        take(times.at(transfer.process, transfer.start_ns), server, transfer, is_answer);
    }
}

/// The phases of each process, by start.
struct PhaseTimes(HashMap<Option<ProcessIndex>, Vec<PhaseTime>>);

struct PhaseTime {
    /// Its place among all.
    place: usize,
    start_ns: u64,
    end_ns: u64,
    /// The latest end of it and all before it.
    latest_ns: u64,
}

impl PhaseTimes {
    fn of(phases: &Phases) -> Self {
        let mut times: HashMap<_, Vec<PhaseTime>> = HashMap::new();
        for (place, phase) in phases.phases.iter().enumerate() {
            let own = times.entry(phase.process).or_default();
            let latest_ns = own.last().map_or(0, |last| last.latest_ns).max(phase.end_ns);
            let (start_ns, end_ns) = (phase.start_ns, phase.end_ns);
            own.push(PhaseTime { place, start_ns, end_ns, latest_ns });
        }
        Self(times)
    }

    /// The last phase that a process had begun at a moment and that goes on then.
    fn at(&self, process: Option<ProcessIndex>, ns: u64) -> Option<usize> {
        let own = self.0.get(&process)?;
        let begun = own.partition_point(|phase| phase.start_ns <= ns);
        let possible = own[..begun].iter().rev().take_while(|phase| ns < phase.latest_ns);
        possible.into_iter().find(|phase| ns < phase.end_ns).map(|phase| phase.place)
    }
}

/// The other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Server {
    /// The place of its backend.
    place: usize,
    /// What the program calls it.
    name: String,
}

/// The server of each connection of a client. Programs name servers by host and port, and sockets tell
/// the port. If several hosts have the same one, the recording of a server tells which it is; otherwise
/// all of them are named.
fn servers(trace: &Trace) -> HashMap<(Option<ProcessIndex>, u64), Server> {
    let mut servers = HashMap::new();
    let mut ends: HashMap<u64, Vec<ProcessIndex>> = HashMap::new();
    for transfer in &trace.transfers {
        let ends = ends.entry(transfer.connection).or_default();
        ends.extend(transfer.process.filter(|process| !ends.contains(process)));
    }
    for transfer in &trace.transfers {
        let key = (transfer.process, transfer.connection);
        if servers.contains_key(&key) {
            continue;
        }
        let own =
            trace.backends.iter().enumerate().filter(|(_, it)| it.process == transfer.process);
        let possible = own.filter_map(|(place, it)| Some((place, it.endpoint()?)));
        let possible: Vec<_> = possible.filter(|(_, name)| transfer.is_with(name)).collect();
        let Some(&(place, _)) = possible.first() else { continue };
        let is_link = |link: &&RemoteLink| {
            Some(link.client) == transfer.process
                && ends[&transfer.connection].contains(&link.server)
        };
        let linked = trace.remote_links.iter().find(is_link);
        let linked = linked.and_then(|link| possible.iter().find(|it| it.1 == link.endpoint));
        let mut names: Vec<&str> = possible.iter().map(|(_, name)| *name).collect();
        names.dedup();
        let server = match linked {
            Some(&(place, name)) => Server { place, name: name.to_owned() },
            None => Server { place, name: names.join(" or ") },
        };
        servers.insert(key, server);
    }
    servers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases::phases;
    use ggprof_trace::{Provenance, merge, text_fixture};

    #[test]
    fn bytes_of_each_phase_and_of_none() {
        let mut trace = text_fixture::parse(
            "backend 0 RPC0[far:7] gpu
             backend 1 CPU cpu
             batch 100..200 0:0+4!1
             batch 200..300 0:4+1!1
             run 100..200 batch=0
             run 200..300 batch=1
             op CPU ADD 100..200 a run=0
             op CPU ADD 200..300 a run=1",
        );
        let transfer = |is_received, other_port, bytes, start_ns| Transfer {
            process: None,
            connection: u64::from(other_port),
            is_received,
            is_whole: true,
            port: 1,
            other_port,
            offset: 0,
            bytes,
            start_ns,
            end_ns: start_ns + 5,
        };
        trace.transfers = vec![
            transfer(false, 7, 1000, 10),
            transfer(false, 7, 100, 110),
            transfer(true, 7, 8, 120),
            transfer(true, 7, 40, 130),
            transfer(false, 9, 77, 140),
            transfer(false, 7, 20, 210),
            transfer(true, 7, 9, 220),
        ];
        let rows = traffic(&trace, &phases(&trace));
        let shown: Vec<_> = rows
            .iter()
            .map(|row| (row.phase, row.traffic.sent, row.traffic.received, row.traffic.round_trips))
            .collect();
        assert_eq!(
            shown,
            [
                (None, 1000, 0, 0),
                (Some(PhaseKind::Prompt), 100, 48, 1),
                (Some(PhaseKind::Generation), 20, 9, 1)
            ]
        );
        assert_eq!((rows[1].tokens, &*rows[1].endpoint), (4, "far:7"));
        assert_eq!(rows[1].traffic.receiving_ns, 10);
    }

    fn client(pid: u32, bytes: u64) -> Trace {
        let mut trace = text_fixture::parse(
            "backend 0 RPC0[far:7] gpu
             backend 1 CPU cpu
             batch 200..300 0:4+1!1
             run 200..300 batch=0
             op CPU ADD 200..300 a run=0",
        );
        trace.provenance = Some(Provenance {
            pid,
            clock_anchors: vec![(0, 1_000_000_000)],
            ..Provenance::default()
        });
        trace.transfers = vec![Transfer {
            process: None,
            connection: 7,
            is_received: false,
            is_whole: true,
            port: 1,
            other_port: 7,
            offset: 0,
            bytes,
            start_ns: 210,
            end_ns: 220,
        }];
        trace
    }

    #[test]
    fn each_client_has_its_own_tokens() {
        let trace = merge(vec![client(1, 10), client(2, 30)]).unwrap();
        let phases = phases(&trace);
        let rows = traffic(&trace, &phases);
        let shown: Vec<_> = rows.iter().map(|row| (row.traffic.sent, row.tokens)).collect();
        assert_eq!(shown, [(10, 1), (30, 1)]);
        assert_eq!(traffic_in(&trace, &phases, &[0]).sent, 10);
    }

    #[test]
    fn numbers_of_damaged_files_do_no_harm() {
        let mut trace = client(1, u64::MAX);
        trace.transfers[0].end_ns = u64::MAX;
        trace.transfers.push(trace.transfers[0]);
        let received = Transfer { is_received: true, ..trace.transfers[0] };
        trace.transfers.push(received);
        let rows = traffic(&trace, &phases(&trace));
        assert_eq!((rows[0].traffic.sent, rows[0].traffic.bytes()), (u64::MAX, u64::MAX));
    }

    /// A port is not enough to tell two hosts apart; the recording of a server is.
    #[test]
    fn servers_of_two_hosts_with_the_same_port() {
        let mut trace = text_fixture::parse(
            "backend 0 RPC0[one:7] gpu
             backend 1 RPC1[two:7] gpu
             backend 2 CPU cpu
             run 100..200
             op CPU ADD 100..200 a run=0",
        );
        let process = |number| Some(ProcessIndex(number));
        trace.backends.iter_mut().for_each(|backend| backend.process = process(0));
        let sent = |connection, bytes, of, is_received| Transfer {
            process: process(of),
            connection,
            is_received,
            is_whole: true,
            port: 1,
            other_port: if is_received { 1 } else { 7 },
            offset: 0,
            bytes,
            start_ns: 110,
            end_ns: 115,
        };
        trace.transfers = vec![sent(70, 10, 0, false), sent(71, 300, 0, false)];
        let shown = |trace: &Trace| -> Vec<(String, u64)> {
            let rows = traffic(trace, &phases(trace));
            rows.into_iter().map(|row| (row.endpoint, row.traffic.sent)).collect()
        };
        assert_eq!(shown(&trace), [("one:7 or two:7".to_owned(), 310)]);
        trace.transfers.push(sent(71, 300, 1, true));
        trace.remote_links.push(RemoteLink {
            client: ProcessIndex(0),
            server: ProcessIndex(1),
            endpoint: "two:7".to_owned(),
            calls: 1,
            runs: 1,
            matched: 1,
            bounds: 2,
            violations: 0,
        });
        let expected = [("one:7 or two:7".to_owned(), 10), ("two:7".to_owned(), 300)];
        assert_eq!(shown(&trace), expected);
    }
}
