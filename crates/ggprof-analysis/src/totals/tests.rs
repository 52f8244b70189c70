use super::*;
use crate::node_sums::node_sums;
use ggprof_trace::text_fixture;

#[test]
fn groups_are_added_up_and_sorted() {
    let trace = text_fixture::parse(
        "backend 0 CPU cpu
         op CPU ADD 0..10 a f32[4] <- f32[4] f32[4] bytes=16
         op CPU MUL 10..40 b f32[4] <- f32[4] f32[4] bytes=16
         op CPU ADD 40..60 c f32[8] <- f32[8] f32[8] bytes=32
         op CPU VIEW 60..60",
    );
    let rows =
        totals_by(&trace, |event| Some(trace.op_name(event.node)).filter(|name| *name != "VIEW"));
    assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), ["ADD", "MUL"]);
    let add = &rows[0].1;
    assert_eq!((add.count, add.total_ns, add.min_ns, add.max_ns), (2, 30, 10, 20));
    assert_eq!((add.output_bytes, add.moved_bytes, add.flops), (48, Some(144), Some(12)));
    assert_eq!((add.longest, add.share_of_wall, add.share_of_sum), (EventId(2), 0.5, 0.5));
    assert_eq!(add.gigabytes_per_second(), Some(144.0 / 30.0));
    assert_eq!(add.arithmetic_intensity(), Some(12.0 / 144.0));
}

#[test]
fn calls_that_only_start_the_work_give_no_rate() {
    let trace = text_fixture::parse(
        "backend 0 GPU gpu
         copy GPU H2D 0..10 1000 x measured=host_call",
    );
    let rows = totals_by(&trace, |_| Some(()));
    assert_eq!((rows[0].1.moved_bytes, rows[0].1.gigabytes_per_second()), (Some(1000), None));
    assert_eq!((rows[0].1.call_ns, rows[0].1.measured_ns()), (10, 0.0));
    assert_eq!((rows[0].1.share_of_wall, rows[0].1.is_timed()), (0.0, false));
}

#[test]
fn the_time_of_calls_is_not_the_devices() {
    let trace = text_fixture::parse(
        "backend 0 GPU gpu
         copy GPU H2D 0..10 1000 x measured=device
         copy GPU H2D 50..90 1000 x measured=host_call
         op GPU ADD 90..100 y measured=device",
    );
    let copies = totals_by(&trace, |event| Some(event.kind)).remove(0).1;
    assert_eq!((copies.count, copies.timed, copies.total_ns, copies.call_ns), (2, 1, 10, 40));
    assert_eq!((copies.max_ns, copies.p95_ns, copies.avg_ns()), (10, 10, 10.0));
    assert_eq!((copies.time_ns(), copies.gigabytes_per_second()), (20.0, Some(100.0)));
    assert_eq!(copies.share_of_wall, 0.2);
}

#[test]
fn attention_is_what_is_attended_to_and_the_padding_is_named() {
    let trace = text_fixture::parse(
        "backend 0 CPU cpu
         batch 0..9 0:63+1!1
         run 0..9 batch=0
         op CPU FLASH_ATTN_EXT 0..8 x run=0 f32[1,1,1] <- f32[1,1,1] f32[1,256,1] f32[1,256,1]
         op CPU ADD 8..9 y run=0 f32[4] <- f32[4] f32[4]",
    );
    let rows = totals_by(&trace, |event| Some(trace.op_name(event.node)));
    let (attention, sum) = (&rows[0].1, &rows[1].1);
    assert_eq!((attention.flops, attention.moved_bytes), (Some(2 * 64 * 2), Some(520)));
    assert_eq!(attention.padded, Some((2 * 256 * 2, 2 * 256 * 4 + 8)));
    assert_eq!((attention.attended_share(), sum.padded), (Some(0.25), None));
}

#[test]
fn estimates_count_and_are_told_apart() {
    let trace = text_fixture::parse(
        "backend 0 GPU gpu
         run 0..100
         op GPU ADD 0..10 x run=0 measured=device f32[8]
         op GPU MUL 10..100 y run=0 measured=device f32[8]
         run 100..300
         op GPU SPLIT 100..220 run=1 measured=device f32[8] <- f32[8]
         op GPU SPLIT 220..300 run=1 split=1 measured=device f32[4] <- f32[4]",
    );
    let rows = totals_by(&trace, |event| Some(trace.op_name(event.node)));
    let told: Vec<_> = rows
        .iter()
        .map(|(op, it)| (*op, it.calls(), it.measured_ns(), it.time_ns(), it.share_of_sum))
        .collect();
    let expected = [
        ("MUL", 2, 90.0, 180.0, 0.6),
        // What no sample is known for, and what is left of the others.
        ("SPLIT", 2, 200.0, 100.0, 100.0 / 300.0),
        ("ADD", 2, 10.0, 20.0, 20.0 / 300.0),
    ];
    assert_eq!(told, expected);
}

#[test]
fn one_unknown_call_makes_the_work_unknown() {
    let trace = text_fixture::parse(
        "backend 0 CPU cpu
         op CPU ADD 0..10 a f32[4] <- f32[4] f32[4]
         op CPU ADD 10..40 b",
    );
    let rows = totals_by(&trace, |_| Some(()));
    assert_eq!((rows[0].1.flops, rows[0].1.moved_bytes), (None, None));
}

/// Adding up the ops of each node first comes to the same as adding up events one by one.
#[test]
fn sums_of_nodes_come_to_the_same() {
    let trace = text_fixture::parse(
        "backend 0 CPU cpu
         backend 1 GPU gpu
         batch 0..40 0:63+1!1
         run 0..40 batch=0
         op CPU FLASH_ATTN_EXT 0..8 x run=0 f32[1,1,1] <- f32[1,1,1] f32[1,256,1] f32[1,256,1]
         op CPU FLASH_ATTN_EXT 8..9 x run=0 f32[1,1,1] <- f32[1,1,1] f32[1,256,1] f32[1,256,1]
         op CPU ADD 9..20 y run=0 f32[4] <- f32[4] f32[4] bytes=16
         copy GPU H2D 20..23 1000 y run=0 measured=device
         copy GPU H2D 23..25 1000 y run=0 measured=host_call
         op GPU ADD 25..36 z run=0 measured=device f32[8] <- f32[8] f32[8] bytes=32
         op GPU ADD 36..40 z run=0 measured=host_call f32[8] <- f32[8] f32[8] bytes=32
         op CPU ADD 40..51 w",
    );
    let sums = node_sums(&trace);
    let op = |event: &Event| Some((event.kind, trace.op_name(event.node)));
    assert_eq!(totals_by_node(&trace, &sums, op), totals_by(&trace, op));
    let backend = |event: &Event| Some(event.backend).filter(|_| event.is_op());
    assert_eq!(totals_by_node(&trace, &sums, backend), totals_by(&trace, backend));
}
