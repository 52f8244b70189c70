//! What a program sent to its servers and received from them, by phase.

use crate::phases::{PhaseKind, Phases};
use ggprof_trace::{Backend, Trace, Transfer};
use hashbrown::HashMap;

/// Bytes to and from one server in the phases of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrafficRow {
    /// `None` for what belongs to no phase, such as loading a model.
    pub phase: Option<PhaseKind>,
    /// What the program calls the server.
    pub endpoint: String,
    pub traffic: Traffic,
    /// Of all tokens of these phases.
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
        self.sent + self.received
    }

    fn add(&mut self, transfer: &Transfer, is_answer: bool) {
        let ns = transfer.end_ns - transfer.start_ns;
        if transfer.is_received {
            self.received += transfer.bytes;
            self.receiving_ns += ns;
            self.round_trips += u64::from(is_answer);
        } else {
            self.sent += transfer.bytes;
            self.sending_ns += ns;
        }
    }
}

/// By phase in the order of time, and by server in the order of the backends. Empty where sockets were
/// not seen, and for servers.
pub fn traffic(trace: &Trace, phases: &Phases) -> Vec<TrafficRow> {
    let kind = |phase: usize| phases.phases[phase].kind;
    let mut sums: HashMap<(Option<PhaseKind>, &str), Traffic> = HashMap::new();
    let mut order = Vec::new();
    each(trace, phases, |phase, endpoint, transfer, is_answer| {
        let key = (phase.map(kind), endpoint);
        let sum = sums.entry(key).or_insert_with(|| {
            order.push(key);
            Traffic::default()
        });
        sum.add(transfer, is_answer);
    });
    let place = |name: &str| trace.backends.iter().position(|it| it.endpoint() == Some(name));
    let first = |phase: Option<PhaseKind>| order.iter().position(|(other, _)| *other == phase);
    let mut keys = order.clone();
    keys.sort_by_key(|(phase, endpoint)| (first(*phase), place(endpoint)));
    let tokens = |kind: PhaseKind| phases.sum(kind).map_or(0, |group| group.sum.tokens);
    let row = |key: &(Option<PhaseKind>, &str)| TrafficRow {
        phase: key.0,
        endpoint: key.1.to_owned(),
        traffic: sums[key],
        tokens: key.0.map_or(0, tokens),
    };
    keys.iter().map(row).collect()
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
fn each<'t>(
    trace: &'t Trace,
    phases: &Phases,
    mut take: impl FnMut(Option<usize>, &'t str, &Transfer, bool),
) {
    let mut has_asked: HashMap<u64, bool> = HashMap::new();
    for transfer in &trace.transfers {
        let of_it = |backend: &&'t Backend| backend.process == transfer.process;
        let own = trace.backends.iter().filter(of_it);
        let endpoint = own.filter_map(Backend::endpoint).find(|it| transfer.is_with(it));
        let Some(endpoint) = endpoint else { continue };
        let asked = has_asked.insert(transfer.connection, !transfer.is_received);
        let is_answer = transfer.is_received && asked == Some(true);
        let ns = transfer.start_ns;
        let holds = |phase: &crate::Phase| phase.start_ns <= ns && ns < phase.end_ns;
        take(phases.phases.iter().position(holds), endpoint, transfer, is_answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases::phases;
    use ggprof_trace::text_fixture;

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
}
