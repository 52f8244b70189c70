use super::*;
use crate::model::EventId;
use crate::text_fixture;

/// What a ggml tells of itself.
const LISTING: &str = "op 2 ADD\nop 29 MUL_MAT\nop 31 GET_ROWS\nop 43 SOFT_MAX\nop 77 UNARY
    op 80 NEW\nop 90 MAP_CUSTOM1\ntype 0 f32 1 4\ntype 1 f16 1 2\ntype 2 q4_0 32 18\ntype 26 i32 1 4
    type 8 q8_0 32 99\nunary 12 SILU\nunary 3 NEG\nop 1 truncat";

fn line_of(fixture: &str) -> Result<String, Unwritable> {
    let trace = text_fixture::parse(&format!("backend 0 CPU cpu\nop CPU {fixture}"));
    let node = trace.events.get(EventId(0)).node;
    let line = line(&trace, node, &Numbers::of_listing(LISTING))?;
    Ok(format!("{line} {}", name(&trace, node)))
}

#[test]
fn an_op_is_a_line() {
    let zeros = "0 ".repeat(14);
    assert_eq!(
        line_of(
            "MUL_MAT 0..9 ffn_up-0 f32[64,2] <- q4_0[32,64] nb=18,18,1152,1152 \
             f32[32,2] nb=4,256,512,512 params=10,-1"
        ),
        Ok(format!(
            "29 0 64 2 1 1 16 10 -1 {zeros}2 2 32 64 1 1 18 18 1152 1152 0 32 2 1 1 4 256 512 512 \
             ffn_up-0"
        ))
    );
}

#[test]
fn functions_go_by_their_names() {
    let line = line_of("UNARY 0..9 f32[8] <- f32[8] nb=4,32,32,32 sub=SILU params=10").unwrap();
    assert!(line.starts_with("77 0 8 1 1 1 16 12 0 "), "{line}");
    assert!(line.ends_with(" 1 0 8 1 1 1 4 32 32 32 -"), "{line}");
}

#[test]
fn row_numbers_have_no_gaps() {
    let line = line_of("GET_ROWS 0..9 f32[8,2] <- f32[8,9] nb=4,32,288,288 i32[2] nb=8,16,16,16");
    assert!(line.unwrap().ends_with(" 26 2 1 1 1 0 0 0 0 -"));
}

#[test]
fn names_are_one_word() {
    let mut trace = text_fixture::parse("backend 0 CPU cpu\nop CPU ADD 0..9");
    for (given, written) in [("a (view)\n", "a_(view)_"), ("", "-"), ("é\u{a0}x", "é_x")] {
        let signature = trace.signature(trace.events.get(EventId(0)).node).clone();
        let text = trace.strings.intern(given);
        let node = trace.nodes.intern(signature, Some(text), &[]);
        assert_eq!(name(&trace, node), written);
    }
}

#[test]
fn what_cannot_be_written_has_a_reason() {
    use Unwritable::*;
    let vector = "f32[8] nb=4,32,32,32";
    for (fixture, reason) in [
        ("ADD 0..9".to_owned(), Undescribed),
        (format!("MAP_CUSTOM1 0..9 f32[8] <- {vector}"), Custom),
        (format!("OTHER 0..9 f32[8] <- {vector}"), NoNumber),
        (format!("UNARY 0..9 f32[8] <- {vector} sub=NEWER"), NoNumber),
        (format!("UNARY 0..9 f32[8] <- {vector}"), Undescribed),
        ("ADD 0..9 f32[8] <- bf16[8] nb=2,16,16,16 f32[8] nb=4,32,32,32".to_owned(), NoNumber),
        (format!("ADD 0..9 f32[8] <- {vector} q8_0[32] nb=34,34,34,34"), PackedOtherwise),
        (format!("SOFT_MAX 0..9 f32[8] <- {vector} {vector} slot=2"), Hole),
        (format!("NEW 0..9 f32[8] <- {}", [vector; 11].join(" ")), TooManySources),
        (format!("ADD 0..9 f32[8,0] <- f32[8,0] nb=4,32,32,32 {vector}"), Empty),
        (format!("ADD 0..9 f32[8] <- f32[8] {vector}"), Strides),
        (format!("ADD 0..9 f32[8,4] <- f32[8,4] nb=4,16,64,64 {vector}"), Strides),
        (format!("ADD 0..9 f32[8] <- {vector} f32[8] nb=-4,32,32,32"), Strides),
        (format!("NEW 0..9 f32[8] <- f32[8,2] nb=4,{},64,64", 1_u64 << 41), TooLarge),
        (format!("NEW 0..9 f32[8,{},{}] <- {vector}", 1_u64 << 40, 1_u64 << 40), TooLarge),
        (format!("ADD 0..9 f32[8] <- {vector} f32[3] nb=4,12,12,12"), Misfit),
        (format!("SOFT_MAX 0..9 f16[8] <- {vector}"), Misfit),
        (format!("SOFT_MAX 0..9 f32[8] <- {vector} f32[8,268435456] nb=4,32,32,32"), Misfit),
        ("MUL_MAT 0..9 f32[4] <- q4_0[33,4] nb=18,18,72,72 f32[33] nb=4,1,1,1".to_owned(), Misfit),
    ] {
        assert_eq!(line_of(&fixture), Err(reason), "{fixture}");
    }
    assert!(line_of(&format!("NEW 0..9 f32[8] <- {vector}")).is_ok());
}

#[test]
fn an_op_without_a_rule_is_not_trusted_if_anything_is_damaged() {
    let fixture = "backend 0 CPU cpu\nop CPU NEW 0..9 f32[8] <- f32[8] nb=4,32,32,32";
    let mut trace = text_fixture::parse(fixture);
    trace.lose(crate::model::LossKind::DamagedRecord, String::new);
    let node = trace.events.get(EventId(0)).node;
    let numbers = Numbers::of_listing(LISTING);
    assert_eq!(line(&trace, node, &numbers), Err(Unwritable::Unchecked));
}

#[test]
fn an_op_fits_into_the_programs_buffers() {
    let n = 1_i64 << 28;
    let fixture = format!(
        "backend 0 CPU cpu\nop CPU ADD 0..9 f32[{n}] <- f32[{n}] nb=4,{n},{n},{n} \
         f32[8] nb=4,32,32,32",
        n = n
    );
    let mut trace = text_fixture::parse(&fixture);
    let node = trace.events.get(EventId(0)).node;
    let numbers = Numbers::of_listing(LISTING);
    let written = |trace: &Trace| line(trace, node, &numbers) != Err(Unwritable::TooLarge);
    assert!(written(&trace));
    let buffer = |bytes: u64| crate::model::Buffer {
        device: "CPU".to_owned(),
        type_name: "CPU".to_owned(),
        usage: crate::model::BufferUsage::Any,
        bytes,
        tensor: String::new(),
        born_ns: 0,
        died_ns: None,
        process: None,
    };
    trace.buffers.push(buffer(1 << 30));
    assert!(!written(&trace));
    trace.buffers.push(buffer(2 << 30));
    assert!(written(&trace));
    trace.lose(crate::model::LossKind::DamagedRecord, String::new);
    assert!(!written(&trace));
    let far = fixture.replace("nb=4,32,32,32", "nb=4,32,274877911040,32");
    let mut far = text_fixture::parse(&far);
    std::mem::swap(&mut far.buffers, &mut trace.buffers);
    assert!(!written(&far));
}

#[test]
fn another_recording_lends_its_numbers() {
    let mut other = text_fixture::parse(
        "backend 0 CPU cpu\nop CPU UNARY 0..9 f32[8] <- f32[8] sub=SILU params=7",
    );
    other.op_numbers.insert("UNARY", 83);
    let trace = text_fixture::parse(
        "backend 0 CPU cpu\nop CPU UNARY 0..9 f32[8] <- f32[8] nb=4,32,32,32 sub=SILU params=10",
    );
    let node = trace.events.get(EventId(0)).node;
    let line = line(&trace, node, &Numbers::of_other(&other)).unwrap();
    assert!(line.starts_with("83 0 8 1 1 1 16 7 "), "{line}");
}

#[test]
fn fusions_are_their_parts_and_each_op_is_written_once() {
    let trace = text_fixture::parse(
        "backend 0 CPU cpu
         op CPU UNARY 0..9 a f32[8] <- f32[8] nb=4,32,32,32 sub=NEG
         with UNARY b f32[8] <- f32[8]@0
         op CPU UNARY 9..12 c f32[8] <- f32[8] nb=4,32,32,32 sub=NEG
         op CPU UNARY 12..14 d f32[8] <- f32[8] nb=4,32,32,32 sub=SILU fused=UNARY+ADD",
    );
    let nodes: Vec<NodeId> = trace.events.iter().map(|event| event.node).collect();
    let written = lines(&trace, &nodes, &Numbers::of_listing(LISTING));
    let names: Vec<&str> =
        written.lines.iter().filter_map(|line| line.split(' ').next_back()).collect();
    assert_eq!(names, ["a", "d"]);
    let reasons: Vec<Unwritable> = written.left_out.iter().map(|(_, why)| *why).collect();
    assert_eq!(reasons, [Unwritable::Undescribed, Unwritable::UndescribedParts]);
}
