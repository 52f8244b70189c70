use super::*;
use crate::model::{
    BackendIndex, Buffer, BufferUsage, DayClock, Extent, Gap, GraphCall, GraphRunId, NewEvent,
    ProcessClock, Provenance, Quantity, Sensor, Transfer,
};
use crate::text_fixture;

/// A process whose machine was started at so many nanoseconds of the time of day.
fn process(text: &str, command: &str, pid: u32, started: u64) -> Trace {
    let mut trace = text_fixture::parse(text);
    trace.provenance = Some(Provenance {
        command: command.to_owned(),
        pid,
        clock_anchors: vec![(0, started)],
        ..Provenance::default()
    });
    trace
}

const STARTED: u64 = 1_000_000_000;
const ONE: &str = "backend 0 CPU cpu
    run 10..20
    run 50..60
    op CPU ADD 10..20 a run=0 f32[4] <- f32[4]
    op CPU MUL 50..60 b run=1";
const OTHER: &str = "backend 0 CPU cpu
    run 30..40
    op CPU ADD 30..40 a run=0 f32[4] <- f32[4]";

fn shown(trace: &Trace) -> Vec<String> {
    let shown = trace.events.iter().map(|event| {
        let run = event.graph_run.map(|run| run.0);
        let backend = trace.backend(event.backend).label();
        format!("{backend} {} {} {run:?}", trace.op_name(event.node), event.start_ns)
    });
    shown.collect()
}

#[test]
fn processes_of_one_machine_share_the_clock_and_nothing_else() {
    let merged = merge(vec![process(ONE, "a", 1, STARTED), process(OTHER, "b", 2, STARTED + 700)]);
    let merged = merged.unwrap();
    assert_eq!(
        shown(&merged),
        ["a 1 CPU ADD 10 Some(0)", "a 1 CPU MUL 50 Some(2)", "b 2 CPU ADD 30 Some(1)"]
    );
    assert!(merged.processes.iter().all(|process| process.clock == ProcessClock::Shared));
    let starts: Vec<u64> = merged.graph_runs.iter().map(|run| run.start_ns).collect();
    assert_eq!(starts, [10, 30, 50]);
    assert_ne!(merged.graph_runs[0].scheduler, merged.graph_runs[1].scheduler);
    // The same op is described once.
    assert_eq!(merged.nodes.len(), 2);
}

#[test]
fn other_machines_are_brought_to_the_first_clock_by_the_time_of_day() {
    let later = STARTED + 5_000_000_000;
    let merged = merge(vec![process(OTHER, "b", 2, later), process(ONE, "a", 1, STARTED)]).unwrap();
    assert_eq!(shown(&merged)[0], "b 2 CPU ADD 5000000030 Some(2)");
    let clocks: Vec<_> = merged.processes.iter().map(|process| process.clock).collect();
    assert_eq!(clocks, [ProcessClock::TimeOfDay, ProcessClock::Shared]);
}

#[test]
fn the_times_of_day_of_two_machines_are_known_only_so_well() {
    let known = |trace: Trace, day_clock: DayClock| {
        let provenance = trace.provenance.clone().map(|it| Provenance { day_clock, ..it });
        Trace { provenance, ..trace }
    };
    let later = STARTED + 5_000_000_000;
    let check = |one: DayClock, other: DayClock, both: DayClock| {
        let here = known(process(ONE, "a", 1, STARTED), one);
        let merged = merge(vec![here, known(process(OTHER, "b", 2, later), other)]).unwrap();
        let clocks: Vec<_> = merged.processes.iter().map(|process| process.day_clock).collect();
        assert_eq!(clocks, [DayClock::NotAsked, both]);
    };
    let ms = 1_000_000;
    // Each recording's own anchors are known to a millisecond.
    check(DayClock::Within(3 * ms), DayClock::Within(ms), DayClock::Within(6 * ms));
    check(DayClock::Within(3 * ms), DayClock::Free, DayClock::Free);
    check(DayClock::NotAsked, DayClock::Within(ms), DayClock::NotAsked);
}

#[test]
fn what_is_missing_of_one_process_is_missing_of_no_other() {
    let part = "backend 0 CPU cpu
        run 10..20 number=4
        run 50..60 number=7
        op CPU ADD 10..20 a run=0
        op CPU MUL 50..60 b run=1";
    let later = STARTED + 1000;
    let merged =
        merge(vec![process(OTHER, "a", 1, STARTED), process(part, "b", 2, later)]).unwrap();
    let gap = |start_ns, end_ns, runs| Gap { start_ns, end_ns, runs };
    assert_eq!(merged.processes[0].gaps, []);
    assert_eq!(merged.processes[1].gaps, [gap(0, 10, 3), gap(20, 50, 2)]);
    let owners: Vec<_> = merged.graph_runs.iter().map(|run| run.process.unwrap().0).collect();
    assert_eq!(owners, [1, 0, 1]);
}

#[test]
fn what_does_not_say_when_it_was_made_stays_alone() {
    let alone = text_fixture::parse(OTHER);
    let found = merge(vec![process(ONE, "a", 1, STARTED), alone]);
    assert_eq!(found.unwrap_err(), CannotMerge::NoTimes(1));
}

#[test]
fn what_was_merged_is_no_process() {
    let [one, other] = [process(ONE, "a", 1, STARTED), process(OTHER, "b", 2, STARTED)];
    let merged = merge(vec![one, other]).unwrap();
    let found = merge(vec![process(ONE, "c", 3, STARTED), merged]);
    assert_eq!(found.unwrap_err(), CannotMerge::IsMerged(1));
}

fn machines(trace: &Trace) -> Vec<u16> {
    trace.processes.iter().map(|process| process.machine).collect()
}

#[test]
fn processes_of_another_machine_are_exact_beside_each_other() {
    let later = STARTED + 5_000_000_000;
    // The time of day moves a little between two recordings, and with it what is known of the start.
    let base = process(ONE, "a", 1, STARTED);
    let other = process(OTHER, "b", 2, later + 700);
    let merged = merge(vec![base, other, process(OTHER, "c", 3, later)]).unwrap();
    assert_eq!(machines(&merged), [0, 1, 1]);
    assert_eq!(
        shown(&merged)[2..],
        ["b 2 CPU ADD 5000000030 Some(2)", "c 3 CPU ADD 5000000030 Some(3)"]
    );
}

#[test]
fn a_recording_that_knows_two_starts_joins_the_machines_of_both() {
    let mut both = process(ONE, "c", 3, STARTED);
    let set = STARTED + 3_000_000_000;
    let provenance = both.provenance.as_mut().unwrap();
    provenance.clock_anchors.push((40, set + 40));
    let merged = merge(vec![process(OTHER, "a", 1, STARTED), process(OTHER, "b", 2, set), both]);
    let merged = merged.unwrap();
    assert_eq!(machines(&merged), [0, 0, 0]);
    assert!(merged.processes.iter().all(|process| process.clock == ProcessClock::Shared));
}

/// A client that leaves each graph run to both of its servers. Their machine's clock is `behind` its own,
/// and one of them answers later than the other.
fn served_by_two(behind: u64) -> Vec<Trace> {
    let runs: String =
        (0..20).map(|run| format!("run {}..{}\n", 1000 * run + 1000, 1000 * run + 1900)).collect();
    let backends = "backend 0 RPC0[one:7] gpu\nbackend 1 RPC1[two:8] gpu";
    let mut client = process(&format!("{backends}\n{runs}"), "client", 1, STARTED);
    let started = STARTED + 60_000_000_000;
    let server = |pid| process(&format!("backend 0 CPU cpu\n{runs}"), "server", pid, started);
    let mut servers = [server(2), server(3)];
    for (run, at) in (0..20).flat_map(|run| [(run, 0), (run, 1)]) {
        let called_ns = 1000 * u64::from(run) + 1000 + 400 * u64::from(at);
        let call = |backend, start_ns| GraphCall {
            graph_run: GraphRunId(run),
            split: 0,
            backend: BackendIndex(backend),
            start_ns,
            end_ns: start_ns + 10,
            content: run.into(),
        };
        client.graph_calls.push(call(at, called_ns));
        let began_ns = called_ns + 20 - behind;
        let answer = |is_received, start_ns| Transfer {
            process: None,
            connection: at.into(),
            is_received,
            is_whole: true,
            port: 1,
            other_port: 7 + at,
            offset: run.into(),
            bytes: 1,
            start_ns,
            end_ns: start_ns + 5,
        };
        client.transfers.push(answer(true, called_ns + 100 + 50 * u64::from(at)));
        servers[usize::from(at)].graph_calls.push(call(0, began_ns));
        servers[usize::from(at)].transfers.push(answer(false, began_ns + 10));
    }
    [client].into_iter().chain(servers).collect()
}

#[test]
fn servers_of_one_machine_have_one_clock() {
    let merged = merge(served_by_two(500)).unwrap();
    assert_eq!(machines(&merged), [0, 1, 1]);
    let clocks: Vec<_> = merged.processes.iter().map(|process| process.clock).collect();
    assert!(matches!(clocks[1], ProcessClock::Exchanges { .. }), "{clocks:?}");
    assert_eq!(clocks[1], clocks[2]);
    assert!(merged.remote_links.iter().all(|link| link.violations == 0 && link.matched == 20));
}

fn with_power(trace: Trace, microwatts: u64) -> Trace {
    let sensor = text_fixture::sensor(Quantity::DevicePower, 10, 10, &[microwatts; 2]);
    Trace { sensors: vec![sensor], ..trace }
}

#[test]
fn each_machine_has_its_own_sensors() {
    let later = STARTED + 5_000_000_000;
    let recordings = [("a", STARTED, 100), ("b", STARTED, 100), ("c", later, 700)];
    let recordings =
        recordings.map(|(name, started, power)| with_power(process(ONE, name, 1, started), power));
    let merged = merge(recordings.into()).unwrap();
    let values = |it: &Sensor| (it.machine, it.values[0]);
    assert_eq!(merged.sensors.iter().map(values).collect::<Vec<_>>(), [(0, 100), (1, 700)]);
}

/// Programs of one machine may have limits of their own, such as containers.
#[test]
fn each_program_has_its_own_limits() {
    let of_program = |name: &str, value: u64| {
        let mut trace = with_power(process(ONE, name, 1, STARTED), value);
        trace.sensors[0].quantity = Quantity::ThrottledTime;
        trace
    };
    let merged = merge(vec![of_program("a", 100), of_program("b", 700)]).unwrap();
    let values = |it: &Sensor| (it.machine, it.process.map(|it| it.0), it.values[0]);
    let found: Vec<_> = merged.sensors.iter().map(values).collect();
    assert_eq!(found, [(0, Some(0), 100), (0, Some(1), 700)]);
}

/// The last op of a recording once more.
fn late_event(trace: &Trace) -> NewEvent {
    let Some(last) = trace.events.iter().last() else { unreachable!("it has one") };
    NewEvent {
        kind: last.kind,
        node: last.node,
        backend: last.backend,
        source_backend: None,
        split: last.split,
        graph_run: None,
        start_ns: last.start_ns,
        duration_ns: last.duration_ns,
        bytes: 0,
        measured: last.measured,
        threads: None,
    }
}

#[test]
fn numbers_of_damaged_files_do_no_harm() {
    let hostile = |pid: u32| {
        let mut trace = process(ONE, "a", pid, STARTED);
        let batches = "backend 0 CPU cpu\nbatch 10..20 0:0+4!1\nchange 10 warm-up";
        let other = text_fixture::parse(batches);
        (trace.batches, trace.context_changes) = (other.batches, other.context_changes);
        (trace.batches[0].call, trace.batches[0].context) = (u32::MAX, u32::MAX);
        trace.context_changes.iter_mut().for_each(|change| change.context = Some(u32::MAX));
        trace.graph_runs[0].scheduler = u32::MAX;
        let provenance = trace.provenance.as_mut().unwrap();
        provenance.newest_of = Some(u64::MAX);
        provenance.unfinished_runs = u64::MAX;
        provenance.clock_error_ns = Some(u64::MAX);
        trace
    };
    let mut late = process(ONE, "late", 4, STARTED + 5_000_000_000);
    late.events.push(NewEvent { start_ns: u64::MAX - 9, duration_ns: 9, ..late_event(&late) });
    let merged = merge(vec![hostile(1), hostile(2), hostile(3), late]).unwrap();
    assert!(merged.events.iter().any(|event| event.end_ns() == u64::MAX));
    assert_eq!(merged.provenance.unwrap().unfinished_runs, u64::MAX);
}

#[test]
fn memory_belongs_to_its_process_and_goes_with_it() {
    let with_memory = |mut trace: Trace, died_ns: Option<u64>| {
        trace.buffers.push(Buffer {
            device: "CPU".to_owned(),
            type_name: "CPU".to_owned(),
            usage: BufferUsage::Weights,
            bytes: 100,
            tensor: String::new(),
            born_ns: 12,
            died_ns,
            process: None,
        });
        trace
    };
    let went_on = |mut trace: Trace| {
        trace.provenance.as_mut().unwrap().extent = Extent::Stopped;
        trace
    };
    let merged = merge(vec![
        with_memory(process(OTHER, "a", 1, STARTED), None),
        with_memory(process(ONE, "b", 2, STARTED), Some(15)),
        went_on(with_memory(process(ONE, "c", 3, STARTED), None)),
    ]);
    let of = |buffer: &Buffer| (buffer.process.unwrap().0, buffer.died_ns);
    let lives: Vec<_> = merged.unwrap().buffers.iter().map(of).collect();
    assert_eq!(lives, [(0, Some(41)), (1, Some(15)), (2, None)]);
}
