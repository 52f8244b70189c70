//! What is written, read again by the numbers of the schema.

use super::numbers::{
    annotation, descriptor, event, interned, packet, process, snapshot, stage, stats, sync, trace,
};
use super::*;
use crate::formats::protobuf::read;
use crate::formats::timeline::Slice;
use crate::merge::merge;
use crate::model::Provenance;
use crate::text_fixture;
use expect_test::expect;

/// A trace as lines of text, one for each packet.
fn lines(fixture: &str, annotations: &Annotations) -> String {
    lines_of(&text_fixture::parse(fixture), annotations)
}

fn lines_of(recording: &Trace, annotations: &Annotations) -> String {
    let mut bytes = Vec::new();
    write(recording, annotations, &mut bytes).unwrap();
    let mut names: HashMap<Option<u64>, Names> = HashMap::new();
    let packets = read::messages(&bytes, trace::PACKET).into_iter();
    let lines = packets.map(|it| {
        let machine = read::number(it, packet::MACHINE_ID);
        line(it, names.entry(machine).or_default())
    });
    lines.collect::<Vec<String>>().join("\n")
}

/// What was described, by its number.
type Names<'b> = HashMap<u64, &'b str>;

fn line<'b>(packet: &'b [u8], names: &mut Names<'b>) -> String {
    for described in read::messages(packet, packet::INTERNED_DATA) {
        for (_, value) in read::fields(described) {
            let read::Value::Bytes(value) = value else { panic!("a description") };
            let number = read::number(value, interned::IID).unwrap();
            if let [name] = read::messages(value, interned::NAME)[..] {
                assert!(names.insert(number, std::str::from_utf8(name).unwrap()).is_none());
            }
        }
    }
    let machine = read::number(packet, packet::MACHINE_ID);
    let machine = machine.map_or(String::new(), |id| format!("machine {id}: "));
    let time = read::number(packet, packet::TIMESTAMP).map_or(String::new(), |ns| format!("{ns} "));
    let body = read::fields(packet).into_iter().find_map(|(field, value)| match (field, value) {
        (packet::CLOCK_SNAPSHOT, read::Value::Bytes(it)) => {
            Some(format!("clocks {}", read::messages(it, snapshot::CLOCKS).len()))
        }
        (packet::REMOTE_CLOCK_SYNC, read::Value::Bytes(it)) => {
            Some(format!("synchronised {}", read::messages(it, sync::SYNCED_CLOCKS).len()))
        }
        (packet::TRACK_DESCRIPTOR, read::Value::Bytes(it)) => Some(track(it)),
        (packet::TRACK_EVENT, read::Value::Bytes(it)) => Some(track_event(it, names)),
        (packet::GPU_RENDER_STAGE_EVENT, read::Value::Bytes(it)) => {
            let name = |field| names[&read::number(it, field).unwrap()];
            let ns = read::number(it, stage::DURATION).unwrap();
            Some(format!("{} on {} for {ns}", name(stage::STAGE_IID), name(stage::HW_QUEUE_IID)))
        }
        (packet::TRACE_STATS, read::Value::Bytes(it)) => {
            let buffer = read::messages(it, stats::BUFFER_STATS)[0];
            let lost = read::number(buffer, stats::TRACE_WRITER_PACKET_LOSS).unwrap();
            Some(format!("lost {lost}"))
        }
        _ => None,
    });
    format!("{machine}{time}{}", body.expect("a packet that says something"))
}

fn track(it: &[u8]) -> String {
    let number = |field| read::number(it, field).unwrap_or(0);
    let mut line =
        format!("track {} below {}", number(descriptor::UUID), number(descriptor::PARENT_UUID));
    line.extend(read::text(it, descriptor::NAME).map(|name| format!(" {name:?}")));
    for process in read::messages(it, descriptor::PROCESS) {
        let pid = read::number(process, process::PID).unwrap();
        let name = read::text(process, process::NAME).unwrap();
        line.push_str(&format!(" process {pid} {name:?}"));
    }
    line
}

fn track_event(it: &[u8], names: &Names) -> String {
    let number = |field| read::number(it, field);
    let kind = ["?", "begin", "end", "instant", "counter"];
    let kind = kind[number(event::TYPE).unwrap() as usize];
    let mut line = format!("{kind} {}", number(event::TRACK_UUID).unwrap());
    line.extend(number(event::NAME_IID).map(|name| format!(" {}", names[&name])));
    line.extend(read::text(it, event::NAME).map(|name| format!(" {name}")));
    for noted in read::messages(it, event::DEBUG_ANNOTATIONS) {
        let name = names[&read::number(noted, annotation::NAME_IID).unwrap()];
        let value = match read::number(noted, annotation::STRING_VALUE_IID) {
            Some(text) => names[&text].to_owned(),
            None => read::number(noted, annotation::UINT_VALUE).unwrap().to_string(),
        };
        line.push_str(&format!(" {name}={value}"));
    }
    line.extend(number(event::FLOW_IDS).map(|flow| format!(" flow {flow} from here")));
    line.extend(number(event::TERMINATING_FLOW_IDS).map(|flow| format!(" flow {flow} to here")));
    let value = number(event::DOUBLE_COUNTER_VALUE).map(f64::from_bits);
    line.extend(value.map(|value| format!(" {value}")));
    line
}

#[test]
fn all_that_a_timeline_has() {
    let annotations = Annotations {
        phases: vec![Slice { name: "tg1".into(), start_ns: 1000, end_ns: 6000 }],
        links: vec![(EventId(2), EventId(0))],
        counters: vec![Counter {
            name: "GPU 0 W".into(),
            machine: 0,
            unit: "W",
            steps: vec![(1000, 3.5)],
        }],
        losses: vec!["The file is cut off.".into()],
    };
    let fixture = "backend 0 CUDA0 gpu
         backend 7 CPU cpu
         op CUDA0 MUL_MAT 2000..5001 Qcur-0 f32[8] <- q4_0[32,8] f32[32] bytes=32
         kernel mul_mat_q 2000..4000
         op CUDA0 MUL_MAT 4000..4500 Qcur-1 f32[8] <- q4_0[32,8] f32[32] fused=MUL_MAT+ADD
         copy CUDA0 H2D 1000..2000 128 embd";
    expect![[r#"
        clocks 1
        track 1 below 0 "ggml"
        track 2 below 1 "phases"
        1000 begin 2 tg1
        6000 end 2
        track 3 below 1 "graph runs"
        1000 begin 3 graph run 0
        5001 end 3
        track 4 below 1 "GPU: CUDA0"
        track 5 below 4 "ops"
        track 6 below 4 "ops, overlapping 2"
        track 7 below 4 "copies"
        1000 begin 7 copy_H2D tensor=embd bytes=128 split=0 graph_run=1 measured=unknown flow 1 from here
        2000 end 7
        2000 begin 5 MUL_MAT tensor=Qcur-0 sources=[32, 8] q4_0 x [32] f32 output=[8] f32 bytes=32 split=0 graph_run=1 charged_ns=2000 measured=unknown flow 1 to here
        5001 end 5
        4000 begin 6 MUL_MAT tensor=Qcur-1 sources=[32, 8] q4_0 x [32] f32 output=[8] f32 fused=MUL_MAT+ADD bytes=0 split=0 graph_run=1 measured=unknown
        4500 end 6
        2000 mul_mat_q on CUDA0 stream 0 for 2000
        track 8 below 1 "GPU 0 W"
        1000 counter 8 3.5
        lost 0
        track 9 below 1 "missing from the recording"
        1000 instant 9 The file is cut off."#]].assert_eq(&lines(fixture, &annotations));
}

/// Of one number, on two machines. Each machine describes for itself what it needs.
#[test]
fn each_process_has_a_track_of_its_own() {
    let recording = |started| {
        let mut trace =
            text_fixture::parse("backend 0 CPU cpu\nrun 0..10\nop CPU ADD 0..10 a run=0");
        let clock_anchors = vec![(0, started)];
        let command = "worker".to_owned();
        trace.provenance =
            Some(Provenance { command, pid: 7, clock_anchors, ..Provenance::default() });
        trace
    };
    let merged = merge(vec![recording(1_000_000_000), recording(9_000_000_000)]).unwrap();
    let lines = lines_of(&merged, &Annotations::default());
    expect![[r#"
        clocks 2
        track 1 below 0 "worker, worker"
        track 2 below 0 process 7 "worker, machine 1"
        track 3 below 2 "graph runs"
        0 begin 3 graph run 0
        10 end 3
        track 4 below 2 "CPU: worker 7 CPU"
        track 5 below 4 "ops"
        0 begin 5 ADD tensor=a bytes=0 split=0 graph_run=1 measured=unknown
        10 end 5
        lost 0
        machine 2: synchronised 2
        machine 2: track 6 below 0 process 7 "worker, machine 2"
        machine 2: track 7 below 6 "graph runs"
        machine 2: 8000000000 begin 7 graph run 1
        machine 2: 8000000010 end 7
        machine 2: track 8 below 6 "CPU: worker 7 CPU"
        machine 2: track 9 below 8 "ops"
        machine 2: 8000000000 begin 9 ADD tensor=a bytes=0 split=0 graph_run=2 measured=unknown
        machine 2: 8000000010 end 9"#]]
    .assert_eq(&lines);
}
