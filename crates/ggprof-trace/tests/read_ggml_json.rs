//! Every generation of the format, and everything that can be wrong with a file.

use expect_test::{Expect, expect};
use ggprof_trace::formats::{self, ReadError};
use ggprof_trace::{Trace, shape_text};
use std::fmt::Write;

/// What was read, a line per event and per loss.
fn dump(result: Result<Trace, ReadError>) -> String {
    let trace = match result {
        Ok(trace) => trace,
        Err(error) => return format!("error: {error}\n"),
    };
    let mut out = String::new();
    for event in trace.events.iter() {
        let signature = trace.signature(event.node);
        let backend = trace.backend(event.backend);
        let (kind, op) = (event.kind.name(), trace.op_name(event.node));
        let (start, end, bytes) = (event.start_ns, event.end_ns(), event.bytes);
        write!(
            out,
            "{kind} {op:?} on {} ({}) {start}..{end} {bytes} B",
            backend.id,
            backend.label()
        )
        .unwrap();
        write!(out, " split {} run {:?}", event.split, event.graph_run.map(|run| run.0)).unwrap();
        if let Some(name) = trace.tensor_name(event.node) {
            write!(out, " {name:?}").unwrap();
        }
        let output = shape_text::tensor(&signature.output, &trace.types);
        let sources = shape_text::sources(signature, &trace.types);
        write!(out, " {output} <- {sources}").unwrap();
        if let Some(extra) = signature.extra {
            write!(out, " extra {:?}", trace.text(extra)).unwrap();
        }
        if let Some(sub_op) = signature.sub_op_name {
            write!(out, " sub-op {}", trace.text(sub_op)).unwrap();
        }
        writeln!(out).unwrap();
    }
    for loss in &trace.losses {
        writeln!(out, "{:?} x{}: {}", loss.kind, loss.count, loss.detail).unwrap();
    }
    out
}

fn check(input: impl AsRef<[u8]>, expected: Expect) {
    expected.assert_eq(&dump(formats::read(input.as_ref())));
}

/// A file with these records.
fn file(records: &[&str]) -> String {
    format!(
        "{{\"version\": 3, \"profiler\": \"ggml\", \"backends\": \
         [{{\"id\": 0, \"name\": \"CPU\", \"device\": \"CPU\", \"device_type\": 0}}],\n\
         \"records\": [\n{}\n]}}\n",
        records.join(",\n")
    )
}

/// A record of the third generation, as ggml writes it.
const RECORD: &str = r#"{"type": 0, "name": "MUL_MAT", "backend_id": 0, "split_id": 1, "start_ns": 100, "duration_ns": 50, "bytes": 64, "extra": null, "tensor_name": "Qcur-0", "ne": [16, 1, 1, 1], "out_type": 0, "n_src": 2, "ne_src": [[32, 16, 1, 1], [32, 1, 1, 1]], "nb_src": [[18, 18, 288, 288], [4, 128, 128, 128]], "type_src": [2, 0], "op_params": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "sub_op": -1}"#;

/// [`RECORD`] with one part replaced.
fn with(part: &str, replacement: &str) -> String {
    assert!(RECORD.contains(part), "{part}");
    RECORD.replace(part, replacement)
}

#[test]
fn third_generation() {
    let glu = r#"{"type": 0, "name": "GLU", "backend_id": 0, "split_id": 1, "start_ns": 150, "duration_ns": 5, "bytes": 64, "extra": null, "tensor_name": null, "ne": [16, 1, 1, 1], "out_type": 0, "n_src": 3, "ne_src": [[16, 1, 1, 1], [0, 0, 0, 0], [16, 1, 1, 1]], "nb_src": [], "type_src": [0, -1, 99], "op_params": [], "sub_op": 2}"#;
    let copy = r#"{"type": 1, "name": "copy_H2D", "backend_id": -7, "split_id": 1, "start_ns": 90, "duration_ns": 7, "bytes": 4, "extra": "leaf_1", "tensor_name": "leaf_1", "ne": [0, 0, 0, 0], "out_type": -1, "n_src": 1, "ne_src": [[1, 1, 1, 1]], "nb_src": [[4, 4, 4, 4]], "type_src": [26], "op_params": [0], "sub_op": -1}"#;
    check(
        file(&[RECORD, glu, copy, RECORD]),
        expect![[r#"
        OP "MUL_MAT" on 0 (CPU) 100..150 64 B split 1 run Some(0) "Qcur-0" [16] f32 <- [32, 16] q4_0 x [32] f32
        OP "GLU" on 0 (CPU) 150..155 64 B split 1 run Some(0) [16] f32 <- [16] f32 x [16] type 99 sub-op SWIGLU
        COPY "copy_H2D" on -7 (backend -7) 90..97 4 B split 1 run Some(0) "leaf_1"  <- [1] i32 extra "leaf_1"
        OP "MUL_MAT" on 0 (CPU) 100..150 64 B split 1 run Some(1) "Qcur-0" [16] f32 <- [32, 16] q4_0 x [32] f32
    "#]],
    );
}

#[test]
fn second_generation() {
    check(
        r#"{"version": 2, "profiler": "ggml", "total_records": 3, "total_ns": 9, "backends": [{"id": 0, "name": "CUDA0", "device": "CUDA0", "device_type": 1}], "records": [
            {"type": 0, "name": "MUL_MAT_ID", "backend_id": 0, "split_id": 1, "start_ns": 1, "duration_ns": 2, "bytes": 3, "extra": null, "ne_src0": [64, 32, 8, 1], "ne_src1": [64, 1, 1, 1], "ne_src2": [2, 1, 1, 1], "type_src0": 8},
            {"type": 0, "name": "ADD", "backend_id": 0, "split_id": 1, "start_ns": 3, "duration_ns": 2, "bytes": 3, "extra": "ADD_ADD", "ne_src0": [64, 32], "ne_src1": [0, 0, 0, 0], "ne_src2": [9, 9, 9, 9]},
            {"type": 1, "name": "copy_D2H", "backend_id": 0, "split_id": 1, "start_ns": 5, "duration_ns": 5, "bytes": 3, "extra": null, "ne_src0": [0, 0, 0, 0], "ne_src1": [0, 0, 0, 0], "ne_src2": [0, 0, 0, 0]}]}"#,
        expect![[r#"
            OP "MUL_MAT_ID" on 0 (CUDA0) 1..3 3 B split 1 run Some(0)  <- [64, 32, 8] q8_0 x [64] x [2]
            OP "ADD" on 0 (CUDA0) 3..5 3 B split 1 run Some(0)  <- [64, 32] extra "ADD_ADD"
            COPY "copy_D2H" on 0 (CUDA0) 5..10 3 B split 1 run Some(0)  <- 
        "#]],
    );
}

#[test]
fn first_generation() {
    check(
        r#"{"version": 1, "profiler": "ggml", "records": [
            {"type": 0, "name": "MUL_MAT", "backend_id": 0, "split_id": 0, "start_ns": 1, "duration_ns": 2, "bytes": 3, "extra": null, "ne": [4096, 2, 1, 1]}]}"#,
        expect![[r#"
            OP "MUL_MAT" on 0 (backend 0) 1..3 3 B split 0 run Some(0)  <- [4096, 2]
        "#]],
    );
}

#[test]
fn any_key_order_unknown_keys_and_no_spaces() {
    let shuffled = r#"{"sub_op":-1,"new":{"a":[1,{"b":"}"}]},"duration_ns":50,"start_ns":100,"ne_src":[[32,16,1,1]],"type_src":[2],"bytes":64,"split_id":1,"tensor_name":"Qcur-0","backend_id":0,"name":"MUL_MAT","type":0,"ne":[16],"out_type":0}"#;
    check(
        format!(
            r#"{{"later":[[[]]],"records":[{shuffled},{shuffled}],"x":1.5e3,"backends":[{{"name":"CPU","id":0}}],"y":"z"}}"#
        ),
        expect![[r#"
            OP "MUL_MAT" on 0 (CPU) 100..150 64 B split 1 run Some(0) "Qcur-0" [16] f32 <- [32, 16] q4_0
            OP "MUL_MAT" on 0 (CPU) 100..150 64 B split 1 run Some(1) "Qcur-0" [16] f32 <- [32, 16] q4_0
        "#]],
    );
}

#[test]
fn both_ways_of_reading_agree() {
    // The first of two equal descriptions is parsed in full, the second is recognised.
    for record in [
        RECORD.to_owned(),
        RECORD.replace(": ", ":").replace(", ", ","),
        with(
            "\"bytes\": 64, ",
            "\"bytes\": 64, \"source_backend_id\": 3, \"graph_run\": 0, \"measured\": \"host\", \"threads\": [4, 180, 50, 20], ",
        ),
        with("Qcur-0", "a}b"),
        with("Qcur-0", "{\\\"type\\\": 1}"),
        with("\"duration_ns\": 50", "\"duration_ns\": 18446744073709551515"),
        with("\"backend_id\": 0", "\"backend_id\": -2147483648"),
    ] {
        let trace = formats::read(file(&[&record, &record, &record]).as_bytes()).unwrap();
        let events: Vec<String> = trace
            .events
            .iter()
            .map(|event| {
                let threads = trace.events.threads(event.id);
                format!(
                    "{:?} {threads:?}",
                    ggprof_trace::Event { id: ggprof_trace::EventId(0), graph_run: None, ..event }
                )
            })
            .collect();
        assert_eq!(events.len(), 3, "{record} {:?}", trace.losses);
        assert!(events.iter().all(|event| *event == events[0]), "{events:?}");
    }
}

#[test]
fn names_from_strangers() {
    let hostile =
        with("Qcur-0", r#"a\"b\\c\n\u0007\u001b[31m</script><img src=x onerror=alert(1)>\u0000é"#);
    check(
        file(&[&hostile, &hostile]),
        expect![[r#"
        OP "MUL_MAT" on 0 (CPU) 100..150 64 B split 1 run Some(0) "a\"b\\c\n\u{7}\u{1b}[31m</script><img src=x onerror=alert(1)>\0é" [16] f32 <- [32, 16] q4_0 x [32] f32
        OP "MUL_MAT" on 0 (CPU) 100..150 64 B split 1 run Some(1) "a\"b\\c\n\u{7}\u{1b}[31m</script><img src=x onerror=alert(1)>\0é" [16] f32 <- [32, 16] q4_0 x [32] f32
    "#]],
    );
}

#[test]
fn names_that_ggml_did_not_escape() {
    let mut raw =
        file(&[&with("Qcur-0", "tab\there"), &with("Qcur-0", "cut UTF-8 XX"), RECORD]).into_bytes();
    let at = raw.windows(2).position(|pair| pair == b"XX").unwrap();
    raw[at..at + 2].copy_from_slice(b"\xc3\xff");
    check(
        raw,
        expect![[r#"
        OP "MUL_MAT" on 0 (CPU) 100..150 64 B split 1 run Some(0) "tab\there" [16] f32 <- [32, 16] q4_0 x [32] f32
        OP "MUL_MAT" on 0 (CPU) 100..150 64 B split 1 run Some(0) "cut UTF-8 ��" [16] f32 <- [32, 16] q4_0 x [32] f32
        OP "MUL_MAT" on 0 (CPU) 100..150 64 B split 1 run Some(0) "Qcur-0" [16] f32 <- [32, 16] q4_0 x [32] f32
        RepairedText x2: the record at byte 123
    "#]],
    );

    // A single quotation mark turns the rest of its line inside out.
    check(
        file(&[RECORD, &with("Qcur-0", "a\"b"), RECORD, &with("Qcur-0", "a\nb"), RECORD]),
        expect![[r#"
            OP "MUL_MAT" on 0 (CPU) 100..150 64 B split 1 run Some(0) "Qcur-0" [16] f32 <- [32, 16] q4_0 x [32] f32
            OP "MUL_MAT" on 0 (CPU) 100..150 64 B split 1 run Some(1) "Qcur-0" [16] f32 <- [32, 16] q4_0 x [32] f32
            OP "MUL_MAT" on 0 (CPU) 100..150 64 B split 1 run Some(2) "Qcur-0" [16] f32 <- [32, 16] q4_0 x [32] f32
            DamagedRecord x2: at byte 516, a quotation mark in it is not escaped
        "#]],
    );
    // Two of them leave the record's end where it was.
    check(
        file(&[&with("Qcur-0", "a\"b\"c"), RECORD]),
        expect![[r#"
        OP "MUL_MAT" on 0 (CPU) 100..150 64 B split 1 run Some(0) "Qcur-0" [16] f32 <- [32, 16] q4_0 x [32] f32
        DamagedRecord x1: at byte 123, expected `,` or `}`
    "#]],
    );
}

#[test]
fn wrong_types_and_values() {
    let bad = [
        ("\"start_ns\": 100", "\"start_ns\": \"100\""),
        ("\"start_ns\": 100", "\"start_ns\": null"),
        ("\"start_ns\": 100", "\"start_ns\": -1"),
        ("\"start_ns\": 100", "\"start_ns\": 18446744073709551600"),
        ("\"start_ns\": 100", "\"start_ns\": 1.5"),
        ("\"start_ns\": 100", "\"start_ns\": NaN"),
        ("\"start_ns\": 100, ", ""),
        ("\"duration_ns\": 50, ", ""),
        ("\"duration_ns\": 50", "\"duration_ns\": -500"),
        ("\"duration_ns\": 50", "\"duration_ns\": 99999999999999999999999"),
        ("\"duration_ns\": 50", "\"duration_ns\": 50, \"duration_ns\": 60"),
        ("\"bytes\": 64", "\"bytes\": [64]"),
        ("\"name\": \"MUL_MAT\"", "\"name\": 5"),
        ("\"type\": 0", "\"type\": 7"),
        ("\"backend_id\": 0", "\"backend_id\": 99999999999"),
        ("[16, 1, 1, 1]", "[16, 1, 1, 1, 1]"),
        ("[2, 0]", "[2, null]"),
        ("\"sub_op\": -1", "\"sub_op\": \"x\""),
        ("Qcur-0", "\\ud800"),
    ];
    let mut out = String::new();
    for (part, replacement) in bad {
        let trace = formats::read(file(&[&with(part, replacement), RECORD]).as_bytes()).unwrap();
        assert_eq!(trace.events.len(), 1, "{replacement}");
        let [loss] = trace.losses.as_slice() else { panic!("{:?}", trace.losses) };
        writeln!(out, "{replacement}: {}", loss.detail).unwrap();
    }
    expect![[r#"
        "start_ns": "100": at byte 123, invalid type: string "100", expected u64
        "start_ns": null: at byte 123, it has no start_ns
        "start_ns": -1: at byte 123, invalid value: integer `-1`, expected u64
        "start_ns": 18446744073709551600: at byte 123, its end is beyond 64 bits
        "start_ns": 1.5: at byte 123, invalid type: floating point `1.5`, expected u64
        "start_ns": NaN: at byte 123, expected value
        : at byte 123, it has no start_ns
        : at byte 123, it has no duration_ns
        "duration_ns": -500: at byte 123, invalid value: integer `-500`, expected u64
        "duration_ns": 99999999999999999999999: at byte 123, invalid type: floating point `1e+23`, expected u64
        "duration_ns": 50, "duration_ns": 60: at byte 123, duplicate field `duration_ns`
        "bytes": [64]: at byte 123, invalid type: sequence, expected u64
        "name": 5: at byte 123, invalid type: integer `5`, expected a string
        "type": 7: at byte 123, its type 7 is neither 0 (OP) nor 1 (COPY)
        "backend_id": 99999999999: at byte 123, invalid value: integer `99999999999`, expected i32
        [16, 1, 1, 1, 1]: at byte 123, a tensor has 5 dimensions, ggml's have four
        [2, null]: at byte 123, invalid type: null, expected i32
        "sub_op": "x": at byte 123, invalid type: string "x", expected i32
        \ud800: at byte 123, unexpected end of hex escape
    "#]].assert_eq(&out);
}

#[test]
fn missing_keys_have_ggmls_defaults() {
    check(
        file(&[r#"{"start_ns": 1, "duration_ns": 2}"#]),
        expect![[r#"
        OP "unknown" on 0 (CPU) 1..3 0 B split 0 run Some(0)  <- 
    "#]],
    );
}

#[test]
fn records_that_are_no_objects() {
    check(
        file(&["null", "5", "[[]]", "\"x\"", "{}", RECORD]),
        expect![[r#"
            OP "MUL_MAT" on 0 (CPU) 100..150 64 B split 1 run Some(0) "Qcur-0" [16] f32 <- [32, 16] q4_0 x [32] f32
            DamagedRecord x5: at byte 123, invalid type: null, expected an object
        "#]],
    );
}

/// Found by fuzzing: the reader stood still before such a brace.
#[test]
fn brackets_that_close_nothing() {
    check(
        file(&[RECORD, "}", RECORD]),
        expect![[r#"
        OP "MUL_MAT" on 0 (CPU) 100..150 64 B split 1 run Some(0) "Qcur-0" [16] f32 <- [32, 16] q4_0 x [32] f32
        OP "MUL_MAT" on 0 (CPU) 100..150 64 B split 1 run Some(1) "Qcur-0" [16] f32 <- [32, 16] q4_0 x [32] f32
        DamagedRecord x1: at byte 516, no record begins there
    "#]],
    );
    check(
        "{\"records\": [}",
        expect![[r#"
        DamagedRecord x1: at byte 13, no record begins there
        Truncated x1: it ends at byte 14
    "#]],
    );
    check(
        "{\"a\": }, \"b\": ], \"records\": []}",
        expect![[r#"
        error: it is not a ggml profile: it is JSON, but without a list "records"
    "#]],
    );
}

#[test]
fn cut_off_anywhere_keeps_every_whole_record() {
    let whole = file(&[RECORD, RECORD, RECORD]);
    let ends: Vec<usize> =
        whole.match_indices("\"sub_op\": -1}").map(|(at, end)| at + end.len()).collect();
    let list = whole.find("\"records\": [").unwrap() + "\"records\": [".len();
    for length in 0..whole.trim_end().len() {
        match formats::read(&whole.as_bytes()[..length]) {
            Err(ReadError::Empty) => assert_eq!(length, 0),
            Err(_) => assert!(length < list, "{length}"),
            Ok(trace) => {
                let complete = ends.iter().filter(|&&end| end <= length).count();
                assert_eq!(trace.events.len(), complete, "{length}");
                assert_eq!(trace.losses.len(), 1, "{length} {:?}", trace.losses);
                assert!(trace.losses[0].detail.contains("ends at byte"), "{length}");
            }
        }
    }
}

#[test]
fn not_a_profile() {
    let deep = "[".repeat(100_000);
    let mut out = String::new();
    for input in [
        "",
        "   \n",
        "hello",
        "<!DOCTYPE html>",
        "[1, 2]",
        "5",
        "{}",
        "{\"records\": null}",
        "{\"records\": 5}",
        "{\"version\": 3, \"backends\": [",
        "{\"a\": 1",
        "{nonsense}",
        "{\"a\" 5}",
        "{\"a\": \"x\ny\"}",
        &deep,
    ] {
        let shown: String = input.chars().take(30).collect();
        write!(out, "{shown:?} {}", dump(formats::read(input.as_bytes()))).unwrap();
    }
    expect![[r#"
        "" error: it is empty
        "   \n" error: it is empty
        "hello" error: it is not a ggml profile: at byte 0 stands `hello`, which does not belong there
        "<!DOCTYPE html>" error: it is not a ggml profile: at byte 0 stands `<!DOCTYPE html>`, which does not belong there
        "[1, 2]" error: it is not a ggml profile: at byte 0 stands `[1, 2]`, which does not belong there
        "5" error: it is not a ggml profile: at byte 0 stands `5`, which does not belong there
        "{}" error: it is not a ggml profile: it is JSON, but without a list "records"
        "{\"records\": null}" error: it is not a ggml profile: it is JSON, but without a list "records"
        "{\"records\": 5}" error: it is not a ggml profile: it is JSON, but without a list "records"
        "{\"version\": 3, \"backends\": [" error: it is not a ggml profile: it ends before its list "records"
        "{\"a\": 1" error: it is not a ggml profile: it ends before its list "records"
        "{nonsense}" error: it is not a ggml profile: at byte 1 stands `nonsense}`, which does not belong there
        "{\"a\" 5}" error: it is not a ggml profile: at byte 5 stands `5}`, which does not belong there
        "{\"a\": \"x\ny\"}" error: it is not a ggml profile: it is JSON, but without a list "records"
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[" error: it is not a ggml profile: at byte 0 stands `[[[[[[[[[[[[[[[[`, which does not belong there
    "#]].assert_eq(&out);
}

#[test]
fn oddities_around_the_records() {
    check(
        format!("\u{feff}{}", file(&[RECORD])),
        expect![[r#"
        OP "MUL_MAT" on 0 (CPU) 100..150 64 B split 1 run Some(0) "Qcur-0" [16] f32 <- [32, 16] q4_0 x [32] f32
    "#]],
    );
    check(
        format!("{}garbage", file(&[RECORD])),
        expect![[r#"
        OP "MUL_MAT" on 0 (CPU) 100..150 64 B split 1 run Some(0) "Qcur-0" [16] f32 <- [32, 16] q4_0 x [32] f32
        DamagedHeader x1: at byte 518 stands `garbage`, which does not belong there
    "#]],
    );
    check(
        file(&[RECORD]).replace("\"version\": 3", "\"total_records\": 2"),
        expect![[r#"
        OP "MUL_MAT" on 0 (CPU) 100..150 64 B split 1 run Some(0) "Qcur-0" [16] f32 <- [32, 16] q4_0 x [32] f32
        DamagedHeader x1: it announces 2 records and has 1
    "#]],
    );
    check(
        file(&[RECORD]).replace("\"version\": 3", "\"version\": \"three\""),
        expect![[r#"
        OP "MUL_MAT" on 0 (CPU) 100..150 64 B split 1 run Some(0) "Qcur-0" [16] f32 <- [32, 16] q4_0 x [32] f32
        DamagedHeader x1: the value at byte 12 was ignored: invalid type: string "three", expected u64 at line 1 column 7
    "#]],
    );
    check(
        file(&[RECORD]).replace("\"id\": 0", "\"id\": \"zero\""),
        expect![[r#"
        OP "MUL_MAT" on 0 (backend 0) 100..150 64 B split 1 run Some(0) "Qcur-0" [16] f32 <- [32, 16] q4_0 x [32] f32
        DamagedHeader x1: the value at byte 47 was ignored: invalid type: string "zero", expected i32 at line 1 column 14
    "#]],
    );
    check(
        format!(
            "{{\"deep\": {}{}, {}",
            "[".repeat(99_999),
            "]".repeat(99_999),
            &file(&[RECORD])[1..]
        ),
        expect![[r#"
            OP "MUL_MAT" on 0 (CPU) 100..150 64 B split 1 run Some(0) "Qcur-0" [16] f32 <- [32, 16] q4_0 x [32] f32
        "#]],
    );
    check(
        format!("{{\"ggprof\": {{\"types\": 5}}, {}", &file(&[RECORD])[1..]),
        expect![[r#"
        error: it is not a ggml profile: at byte 23 stands `, \"version\": 3, `, which does not belong there
    "#]],
    );
    check(
        format!(
            "{}, \"ggprof\": {{\"types\": 5}} }}",
            &file(&[RECORD]).trim_end()[..file(&[RECORD]).trim_end().len() - 1]
        ),
        expect![[r#"
            OP "MUL_MAT" on 0 (CPU) 100..150 64 B split 1 run Some(0) "Qcur-0" [16] f32 <- [32, 16] q4_0 x [32] f32
            DamagedHeader x2: the "ggprof" part at byte 528 was ignored: invalid type: integer `5`, expected a sequence at line 1 column 12
        "#]],
    );
}

#[test]
fn a_record_of_any_length_is_passed() {
    let long = with("Qcur-0", &"x".repeat(3_000_000));
    let trace = formats::read(file(&[RECORD, &long, RECORD]).as_bytes()).unwrap();
    assert_eq!(trace.events.len(), 2);
    assert_eq!(
        trace.losses[0].detail.split(", ").nth(1),
        Some("it is longer than any record can be")
    );
}

#[test]
fn a_million_names_stay_small_and_backends_are_bounded() {
    let names: Vec<String> = (0..100_000).map(|at| with("Qcur-0", &format!("name {at}"))).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let trace = formats::read(file(&names).as_bytes()).unwrap();
    assert_eq!(
        (trace.events.len(), trace.nodes.len(), trace.nodes.signature_count()),
        (100_000, 100_000, 1)
    );

    let backends: Vec<String> =
        (0..5000).map(|at| with("\"backend_id\": 0", &format!("\"backend_id\": {at}"))).collect();
    let backends: Vec<&str> = backends.iter().map(String::as_str).collect();
    let trace = formats::read(file(&backends).as_bytes()).unwrap();
    assert_eq!((trace.backends.len(), trace.losses[0].count), (1024, 5000 - 1024));
}

#[test]
fn input_in_small_pieces() {
    /// Hands out one byte at a time, as a slow pipe may.
    struct Slow<'a>(&'a [u8]);
    impl std::io::Read for Slow<'_> {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            let count = self.0.len().min(buf.len()).min(1);
            buf[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }
    let whole = file(&[RECORD, RECORD]);
    assert_eq!(dump(formats::read(Slow(whole.as_bytes()))), dump(formats::read(whole.as_bytes())));
}

#[test]
fn an_error_of_the_disk_is_an_error() {
    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::from_raw_os_error(5))
        }
    }
    use std::io::Read;
    let start = file(&[RECORD]);
    let result = formats::read(start.as_bytes()[..start.len() - 5].chain(Broken));
    assert!(matches!(result, Err(ReadError::Io(_))), "{result:?}");
}
