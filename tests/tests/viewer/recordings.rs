//! Recordings made up for the page: small, and with everything that real ones have now and then.

use serde_json::{Value, json};

/// What libllama was handed for a graph run: so many tokens of one sequence, with one output.
fn batch(call: u64, context: u64, (start, end): (u64, u64), first: u64, tokens: u64) -> Value {
    let sequence = json!({
        "sequence": 0, "positions": [first, first + tokens - 1], "tokens": tokens, "outputs": 1,
    });
    json!({
        "call": call, "context": context, "start_ns": ns(start), "end_ns": ns(end),
        "function": "Decode", "tokens": tokens, "outputs": 1, "sequences": [sequence],
    })
}

/// When the first event starts.
const ZERO: u64 = 10_000_000;

/// Two backends, two schedulers at work at the same time, a fused op, ops that overlap, kernels
/// on two streams, threads that wait, a copy of which only the call was timed, a copy that an op
/// waits for, pipelines compiled, memory and sensors. Times are in microseconds after the first event.
pub(crate) fn everything() -> String {
    let gpu = |name: &str, tensor: &str, start: u64, end: u64| op(name, 0, tensor, start, end);
    let records = [
        with(copy("inp", 0, 10), json!({"measured": "host_call", "graph_run": 0})),
        with(gpu("MUL_MAT", "Qcur-0", 100, 400), product(7, 0)),
        with(gpu("ADD", "ffn_out-0", 250, 350), json!({"graph_run": 0})),
        with(gpu("RMS_NORM", "norm-1", 420, 620), json!({"extra": "RMS_NORM+MUL", "graph_run": 0})),
        with(
            op("MUL_MAT", 1, "result_output", 650, 950),
            with(product(1, 0), json!({"threads": [2, 450_000, 300_000, 140_000]})),
        ),
        with(gpu("MUL_MAT", "Qcur-0", 1000, 1400), product(1, 2)),
        with(op("MUL_MAT", 1, "result_output", 1300, 1900), product(1, 1)),
    ];
    let run = |scheduler: u64, start: u64, end: u64| json!([scheduler, ns(start), ns(end)]);
    let work = |record: u64,
                name: u64,
                stream: u64,
                (start, end): (u64, u64),
                charged: u64,
                flags: u64| {
        json!([record, 0, name, stream, ns(start), (end - start) * 1000, charged * 1000, 0, flags])
    };
    let additions = json!({
        "version": 1,
        "graph_runs": [run(1, 0, 1000), run(1, 1200, 2000), run(2, 500, 1500)],
        "graph_run_facts": [[1, 0], [3, 1], [2, 2]],
        "batches": [batch(1, 0, (0, 1000), 0, 7), batch(2, 0, (1200, 2000), 7, 1), batch(3, 2, (500, 1500), 0, 1)],
        "thread_shares": [[4, 0, ns(650), 300_000, 0], [4, 1, ns(660), 150_000, 140_000]],
        "placement": {"expert_uses": [
            [1, 0, 8, 7, 7, [[0, 5], [3, 9]]],
            [5, 1, 8, 1, 1, [[3, 1], [7, 1]]],
        ]},
        "buffers": [
            buffer("GPU0", "Weights", 512, ns(0) - 5000, None),
            buffer("GPU0", "Compute", 256, ns(300), Some(ns(1200))),
            buffer("CPU", "Any", 16, ns(0) - 5000, Some(ns(1900))),
        ],
        "sensors": [
            sensor("DevicePower", "A card", &[(0, 300_000_000), (1000, 450_000_000)]),
            sensor("DeviceClock", "A card", &[(0, 1_980_000_000), (1000, 1_200_000_000)]),
            sensor("DeviceEnergy", "A card", &[(0, 1), (1000, 450_000)]),
            // 50 mJ in half a millisecond.
            sensor("PackageEnergy", "package-0", &[(500, 7), (1000, 50_007)]),
        ],
        "kernels": ["quantize_q8_1", "mul_mat_q", "add_f32"],
        "device_work": [
            work(1, 0, 0, (100, 150), 50, 0),
            work(1, 1, 0, (200, 400), 200, 2),
            work(1, 1, 1, (200, 300), 0, 1),
            work(2, 2, 1, (250, 350), 0, 1),
        ],
        "host_tasks": [
            ["PipelineCompile", "mul_mat_q", 42, 0, ns(150), 50_000],
            ["PipelineCompile", "add_f32", 42, null, ZERO - 100_000, 50_000],
        ],
    });
    recording(&["GPU0", "CPU"], &records, additions)
}

fn buffer(device: &str, usage: &str, mebibytes: u64, born: u64, died: Option<u64>) -> Value {
    json!({
        "device": device, "type_name": device, "usage": usage, "bytes": mebibytes << 20,
        "tensor": "", "born_ns": born, "died_ns": died,
    })
}

/// Values at moments in microseconds.
fn sensor(quantity: &str, name: &str, readings: &[(u64, u64)]) -> Value {
    let times: Vec<u64> = readings.iter().map(|(at, _)| ns(*at)).collect();
    let values: Vec<u64> = readings.iter().map(|(_, value)| *value).collect();
    json!({
        "quantity": quantity, "device": 0, "name": name, "is_forbidden": false,
        "every_ns": 500_000, "times_ns": times, "values": values,
    })
}

/// The first graph run and the fifth: three between them were not recorded.
pub(crate) fn gapped() -> String {
    let record = |run: u64, start: u64, end: u64| {
        with(op("MUL_MAT", 0, "Qcur-0", start, end), product(1, run))
    };
    let run = |start: u64, end: u64| json!([1, ns(start), ns(end)]);
    let additions = json!({
        "version": 1,
        "graph_runs": [run(0, 500), run(1500, 2000)],
        "graph_run_facts": [[1, null], [5, null]],
    });
    recording(&["CPU"], &[record(0, 0, 500), record(1, 1500, 2000)], additions)
}

/// A process that computes for 400 of each 1000 microseconds on a device, and copies meanwhile: on a
/// machine that was started when its processor's name says.
pub(crate) fn of_process(pid: u64, cpu: &str, started_s: u64) -> String {
    let (start, end) = (pid * 100, pid * 100 + 400);
    let records = [op("MUL_MAT", 0, "Qcur-0", start, end), copy("inp", start + 100, end)];
    let additions = json!({
        "version": 1,
        "graph_runs": [[1, ns(start), ns(end)]],
        "graph_run_facts": [[1, null]],
        "provenance": {
            "command": "worker", "pid": pid, "cpu": cpu, "recorded_at_unix_ns": started_s * 1_000_000_000,
            "clock_anchors": [[ns(0), started_s * 1_000_000_000 + ns(0)]], "clock_error_ns": 1,
            "cut_short": false, "unfinished_runs": 0,
        },
    });
    recording(&["GPU0", "CPU"], &records.map(|it| with(it, json!({"graph_run": 0}))), additions)
}

/// Everything that has a name has this one.
pub(crate) fn named(name: &str) -> String {
    let record = |at: u64| {
        let one = with(op(name, 0, name, at, at + 1), json!({"extra": format!("{name}+{name}")}));
        with(one, json!({"src_names": [name]}))
    };
    let records: Vec<Value> = (0..5).map(|at| record(2 * at)).collect();
    let additions = json!({
        "version": 1,
        "buffers": [buffer(name, "Any", 1, ns(0), None)],
        "sensors": [sensor("PackageEnergy", name, &[(0, 0), (5, 5)])],
        "kernels": [name],
        "device_work": [[0, 0, 0, 0, ns(0), 1000, 1000, 0, 3]],
        "host_tasks": [["PipelineCompile", name, 1, null, ns(1), 1000]],
    });
    recording(&[name], &records, additions)
}

fn recording(backends: &[&str], records: &[Value], additions: Value) -> String {
    let backend = |(id, name): (usize, &&str)| {
        let device_type = u8::from(*name != "CPU");
        json!({"id": id, "name": name, "device": name, "device_type": device_type})
    };
    let backends: Vec<Value> = backends.iter().enumerate().map(backend).collect();
    // Written by hand, because `json!` sorts its keys and additions follow the records.
    let [backends, records] = [backends, records.to_vec()].map(Value::Array);
    format!(
        r#"{{"version":3,"profiler":"ggml","backends":{backends},"records":{records},"ggprof":{additions}}}"#
    )
}

fn ns(microseconds: u64) -> u64 {
    ZERO + microseconds * 1000
}

fn op(name: &str, backend: u64, tensor: &str, start: u64, end: u64) -> Value {
    json!({
        "type": 0, "name": name, "backend_id": backend, "split_id": 0, "start_ns": ns(start),
        "duration_ns": (end - start) * 1000, "bytes": 4096, "extra": null, "tensor_name": tensor,
        "ne": [1024, 1, 1, 1], "out_type": 0, "n_src": 1, "ne_src": [[1024, 1, 1, 1]],
        "type_src": [0], "sub_op": -1, "measured": "device",
    })
}

fn copy(tensor: &str, start: u64, end: u64) -> Value {
    let kind = json!({
        "type": 1, "name": "copy_H2D", "source_backend_id": 1, "bytes": 1_000_000,
        "extra": tensor,
    });
    with(op("copy_H2D", 0, tensor, start, end), kind)
}

/// A product of weights with the activations of some tokens, in a graph run.
fn product(tokens: u64, run: u64) -> Value {
    json!({
        "ne": [1024, tokens, 1, 1], "n_src": 2, "type_src": [0, 0], "graph_run": run,
        "ne_src": [[1024, 1024, 1, 1], [1024, tokens, 1, 1]], "src_names": ["w", "inp"],
    })
}

fn with(mut value: Value, more: Value) -> Value {
    if let (Some(all), Value::Object(more)) = (value.as_object_mut(), more) {
        all.extend(more);
    }
    value
}
