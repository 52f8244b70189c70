//! What we write, we read back the same.

use ggprof_trace::formats::{self, ggml_json};
use ggprof_trace::{
    Answer, BackendIndex, Buffer, BufferUsage, CopyEnds, DayClock, DeviceWork, EventId, Gap,
    GraphCall, GraphRunId, HostTask, MemoryIndex, MemoryKind, NewEvent, Placement, Process,
    ProcessClock, ProcessIndex, Quantity, RemoteLink, RemoteRun, Sensor, TaskKind, ThreadFold,
    ThreadShare, Trace, Transfer, TypeInfo, text_fixture,
};

fn written(trace: &Trace) -> String {
    let mut json = Vec::new();
    ggml_json::write(trace, &mut json).unwrap();
    String::from_utf8(json).unwrap()
}

/// A trace with everything in it that the format can carry.
fn rich_trace() -> Trace {
    let mut trace = text_fixture::parse(
        "backend 3 CUDA0 gpu
         backend -1 CPU cpu
         run 0..100
         run 100..200
         op CPU GET_ROWS 0..4 inp_\"embd\\ run=0 f32[8,3] <- q4_0[32,9] i32[3] bytes=96 measured=host
         copy CUDA0 H2D 4..8 96 </script> run=0 fused=embd <- f32[8,3] measured=host_call
         op CUDA0 RMS_NORM 10..20 norm-0 run=0 split=1 f32[8,3] <- f32[8,3] measured=device
         with MUL attn_norm-0 f32[8,3] <- f32[8,3]@0 f32[8] f32[8,3]#0 stored
         kernel rms_norm_f32 10..14 stream=2 first
         kernel mul_f32 12..18 concurrent
         op CUDA0 GLU 20..30 é\u{7}\u{1b} run=0 split=1 sub=SWIGLU_NEW measured=modelled
         op CUDA0 SOFT_MAX 30..40 run=0 f32[8] <- f32[8] nb=4,32,32,32 f32[2] slot=2 params=1,-2
         op CUDA0 ADD 110..120 run=1 split=-4 measured=serialized",
    );
    trace.op_numbers.insert("ADD", 2);
    trace.types.insert(TypeInfo {
        id: 77,
        name: "q9_9".into(),
        block_elements: 32,
        block_bytes: 9,
    });
    trace.graph_runs[1].scheduler = 5;
    let last = trace.events.get(EventId(5));
    let fold = ThreadFold { busy_sum_ns: 30, wait_sum_ns: 5, busy_max_ns: 9, threads: 4 };
    let event = trace.events.push(NewEvent {
        kind: last.kind,
        node: last.node,
        backend: last.backend,
        source_backend: Some(BackendIndex(0)),
        split: 0,
        graph_run: None,
        start_ns: u64::MAX - 7,
        duration_ns: 7,
        bytes: u64::MAX,
        measured: last.measured,
        threads: Some(fold),
    });
    let name = trace.strings.intern("matvec.spv");
    let (what, graph_run) = (TaskKind::PipelineCompile, Some(GraphRunId(0)));
    let task = HostTask { what, name, thread: 9, graph_run, start_ns: 1, duration_ns: 3 };
    trace.host_tasks.push(task);
    let buffer = Buffer {
        device: "CPU".into(),
        type_name: "CUDA_Host".into(),
        usage: BufferUsage::Compute,
        bytes: u64::MAX,
        tensor: "\"cache\"".into(),
        born_ns: 3,
        died_ns: Some(3),
        process: Some(ProcessIndex(1)),
    };
    trace.buffers.push(Buffer { died_ns: None, ..buffer.clone() });
    trace.buffers.push(buffer);
    trace.sensors.push(Sensor {
        quantity: Quantity::DevicePower,
        device: 3,
        machine: 1,
        process: Some(ProcessIndex(1)),
        name: "a \u{7}GPU".into(),
        is_forbidden: false,
        every_ns: 100,
        times_ns: vec![1, 1, 5],
        values: vec![7, 0, u64::MAX],
    });
    let client = Process {
        command: "llama \"x\"".into(),
        pid: 7,
        cpu: "a CPU".into(),
        machine: 1,
        there_ns: Some((3, u64::MAX)),
        clock: ProcessClock::Shared,
        day_clock: DayClock::Within(7),
        gaps: vec![
            Gap { start_ns: 0, end_ns: 5, runs: 3 },
            Gap { start_ns: 9, end_ns: u64::MAX, runs: 0 },
        ],
    };
    let clock = ProcessClock::Exchanges { ahead_ns: -3, drift_ppb: 50_000, error_ns: 9 };
    trace.processes = vec![client.clone(), Process { pid: 8, clock, ..client }];
    trace.backends[0].process = Some(ProcessIndex(0));
    trace.backends[0].called = "llama \"x\" 7 CUDA0".into();
    trace.remote_links.push(RemoteLink {
        client: ProcessIndex(0),
        server: ProcessIndex(1),
        endpoint: "a:1".into(),
        calls: 3,
        runs: 2,
        matched: 1,
        bounds: 2,
        violations: 0,
    });
    trace.transfers.push(Transfer {
        process: Some(ProcessIndex(1)),
        connection: u64::MAX,
        is_received: true,
        is_whole: false,
        port: 1,
        other_port: u16::MAX,
        offset: 5,
        bytes: 6,
        start_ns: 7,
        end_ns: 8,
    });
    trace.graph_calls.push(GraphCall {
        graph_run: GraphRunId(1),
        split: 2,
        backend: BackendIndex(0),
        start_ns: 7,
        end_ns: 7,
        content: u64::MAX,
    });
    trace.remote_runs.push(RemoteRun {
        graph_run: GraphRunId(1),
        split: 2,
        backend: BackendIndex(0),
        server: ProcessIndex(1),
        called_ns: (100, 103),
        computed_ns: (105, 150),
        waited_ns: Some((110, 160)),
    });
    let kind = MemoryKind {
        type_name: "CUDA_\"Host".into(),
        device: String::new(),
        usage: BufferUsage::Weights,
        is_on_host: true,
    };
    trace.memory_kinds.push(kind);
    let first = trace.events.get(EventId(0));
    let memory = Some(MemoryIndex(0));
    let answer = Answer { backend: first.backend, supports: true, offloads: None };
    trace.placements.push(Placement {
        node: first.node,
        backend: first.backend,
        output: None,
        sources: vec![memory, None],
        answers: vec![answer],
    });
    let offset = Some(u64::MAX);
    trace.copy_ends.push(CopyEnds { event, source: memory, target: None, is_input: true, offset });
    trace.expert_uses.push(first.node, GraphRunId(0), 8, (4, 2), [(7, 2), (0, 1)]);
    let share = ThreadShare { event, thread: 2, start_ns: 1, duration_ns: 2, wait_ns: 3 };
    trace.events.thread_shares.push(share);
    trace
}

#[test]
fn nothing_is_lost_on_the_way() {
    let trace = rich_trace();
    let json = written(&trace);
    let read = formats::read(json.as_bytes()).unwrap();
    assert_eq!(read.losses, []);
    assert_eq!(written(&read), json);
    assert_eq!(read.backends, trace.backends);
    assert_eq!(read.graph_runs, trace.graph_runs);
    assert_eq!(read.events.thread_shares, trace.events.thread_shares);
    // Strings are numbered in another order.
    let nameless = |work: &DeviceWork| DeviceWork { name: trace.device_work[0].name, ..*work };
    let work = |trace: &Trace| trace.device_work.iter().map(nameless).collect::<Vec<_>>();
    assert_eq!(work(&read), work(&trace));
    assert_eq!(read.events.get(EventId(2)).charged_ns, 10);
    assert_eq!(read.types.name(77), "q9_9");
    assert_eq!(read.op_numbers, trace.op_numbers);
    assert_eq!(read.memory_kinds, trace.memory_kinds);
    assert_eq!(read.placements, trace.placements);
    assert_eq!(read.processes, trace.processes);
    assert_eq!(read.remote_links, trace.remote_links);
    assert_eq!(read.remote_runs, trace.remote_runs);
    assert_eq!(read.transfers, trace.transfers);
    assert_eq!(read.copy_ends, trace.copy_ends);
    let uses = |trace: &Trace| format!("{:?}", trace.expert_uses);
    assert_eq!(uses(&read), uses(&trace));
    for (one, other) in trace.events.iter().zip(read.events.iter()) {
        let facts = |event: ggprof_trace::Event, trace: &Trace| {
            let name = trace.tensor_name(event.node).map(str::to_owned);
            let sources = trace.signature(event.node).sources.clone();
            (trace.op_name(event.node).to_owned(), name, sources, trace.events.threads(event.id))
        };
        assert_eq!(facts(one, &trace), facts(other, &read));
        assert_eq!(format!("{:?}", one), format!("{:?}", other));
    }
}

#[test]
fn it_is_json_that_both_generations_of_ggmls_script_understand() {
    let json: serde_json::Value = serde_json::from_str(&written(&rich_trace())).unwrap();
    assert_eq!((&json["version"], &json["profiler"]), (&3.into(), &"ggml".into()));
    assert_eq!(json["total_records"], 7);
    for record in json["records"].as_array().unwrap() {
        // Third generation: lists over the sources. Second: numbered keys, zeros for none.
        let sources = record["ne_src"].as_array().unwrap();
        assert_eq!(record["n_src"], sources.len());
        for (at, key) in ["ne_src0", "ne_src1", "ne_src2"].into_iter().enumerate() {
            let none = serde_json::json!([0, 0, 0, 0]);
            assert_eq!(&record[key], sources.get(at).unwrap_or(&none));
        }
        assert_eq!(record["op_params"].as_array().unwrap().len(), 16);
        for key in ["type", "backend_id", "split_id", "start_ns", "duration_ns", "bytes", "sub_op"]
        {
            assert!(record[key].is_number(), "{key}");
        }
    }
}

#[test]
fn the_order_of_the_parts_does_not_matter() {
    let trace = rich_trace();
    // Parsed and written again, the keys are in the order of the alphabet.
    let sorted: serde_json::Value = serde_json::from_str(&written(&trace)).unwrap();
    let read = formats::read(sorted.to_string().as_bytes()).unwrap();
    assert_eq!(read.losses, []);
    assert_eq!(read.device_work.len(), trace.device_work.len());
    assert_eq!(read.graph_runs, trace.graph_runs);
}

#[test]
fn device_work_outside_of_its_record_is_damage() {
    let json = written(&rich_trace());
    let work = "[2,0,";
    assert!(json.contains(work), "{json}");
    let at = json.find(work).unwrap();
    let entry = &json[at..at + json[at..].find(']').unwrap() + 1];
    for (from, to) in [(",10,4,", ",9,4,"), (",10,4,", ",10,40,"), (",10,4,4,", ",10,4,5,")] {
        let broken = entry.replacen(from, to, 1);
        assert_ne!(broken, entry);
        let read = formats::read(json.replace(entry, &broken).as_bytes()).unwrap();
        assert_eq!(read.device_work.len(), 1, "{broken}");
        assert_eq!(read.losses.len(), 1, "{broken}");
    }
}

#[test]
fn an_empty_trace_is_a_file_too() {
    let json = written(&Trace::default());
    let read = formats::read(json.as_bytes()).unwrap();
    assert_eq!((read.events.len(), read.losses.len()), (0, 0));
}
