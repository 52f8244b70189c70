use super::*;
use crate::phases::phases;
use expect_test::{Expect, expect};
use ggprof_trace::{Process, ProcessIndex, RemoteLink, text_fixture};
use std::fmt::Write as _;

#[track_caller]
fn check(events: &str, expected: Expect) {
    let trace = text_fixture::parse(&format!(
        "backend 0 GPU gpu
         backend 1 CPU cpu
         memory w CPU_Mapped weights host
         memory c CPU compute host
         memory kv CPU any host
         memory d GPU compute device
         memory gw GPU weights device
         {events}"
    ));
    let found = placement(&trace, &phases(&trace));
    let mut text = String::new();
    for row in &found.rows {
        let Caused { copies, copy_bytes, copy_ns, splits, .. } = row.caused;
        let layers: Vec<u32> = row.layers.iter().map(|layer| layer.0).collect();
        writeln!(
            text,
            "{} {} {} {layers:?} {:?} own {} copies {copies} of {copy_bytes} in {copy_ns} splits {splits}",
            trace.backend(row.backend).label(),
            row.module.name(),
            row.op,
            row.reason,
            row.own_ns,
        )
        .unwrap();
    }
    expected.assert_eq(&text);
}

#[test]
fn an_unsupported_op_pays_for_the_copies_around_it() {
    check(
        "run 0..100
         op GPU MUL_MAT 0..10 Qcur-0 f32[8] <- q4_0[32,8] f32[32] run=0 split=0
         copy CPU D2H 10..14 32 Qcur-0 run=0 split=1
         ends d c
         op CPU ADD 14..15 node_1 f32[8] <- f32[8] f32[8] run=0 split=1
         placed c,c out=c GPU=yes
         op CPU FLASH_ATTN_EXT 15..55 kqv_out-0 f32[8] <- f32[8] q8_0[32] run=0 split=1
         placed c,c out=c GPU=no
         copy GPU H2D 55..60 32 kqv_out-0 run=0 split=2
         ends c d
         copy GPU H2D 60..61 4 inp_pos run=0 split=2
         ends c d input
         op GPU MUL_MAT 61..80 ffn_out-0 f32[8] <- q4_0[32,8] f32[32] run=0 split=2",
        expect![[r#"
            CPU attention FLASH_ATTN_EXT [0] Unsupported own 40 copies 2 of 64 in 9 splits 1
            GPU ffn MUL_MAT [0] OnDevice own 19 copies 0 of 0 in 0 splits 0
            GPU attention MUL_MAT [0] OnDevice own 10 copies 0 of 0 in 0 splits 0
            CPU other ADD [] Neighbours own 1 copies 0 of 0 in 0 splits 0
        "#]],
    );
}

#[test]
fn weights_caches_and_inputs_in_host_memory() {
    check(
        "run 0..100
         op CPU GET_ROWS 0..1 inp_embd f32[32] <- q4_0[32,8] i32[1] run=0 split=0
         placed w,c out=c GPU=no
         op CPU MUL_MAT 1..11 ffn_out-1 f32[8] <- q4_0[32,8] f32[32] run=0 split=0
         placed w,c out=c GPU=yes
         op CPU MUL_MAT 11..20 ffn_up-1 f32[8,64] <- q4_0[32,8] f32[32,64] run=0 split=0
         placed w,c out=c GPU=offloads
         op CPU SET_ROWS 20..22 cache_k_l1 f32[8] <- f32[8] run=0 split=0
         placed c out=kv GPU=yes
         op CPU SOFT_MAX 22..24 kq_soft-1 f32[8] <- f32[8] f32[8] from=kq-1,cache_k_l1 run=0 split=0
         placed c,kv out=c GPU=yes
         op CPU MUL_MAT_ID 24..26 ffn_moe_up-2 f32[8] <- q4_0[32,8] f32[32] run=0 split=0
         placed gw,c out=c GPU=yes",
        expect![[r#"
            CPU ffn MUL_MAT [1] WeightOnHost { memory: MemoryIndex(0), offload: Declined } own 10 copies 0 of 0 in 0 splits 1
            CPU ffn MUL_MAT [1] WeightOnHost { memory: MemoryIndex(0), offload: SwitchedOff } own 9 copies 0 of 0 in 0 splits 0
            CPU experts MUL_MAT_ID [2] Neighbours own 2 copies 0 of 0 in 0 splits 0
            CPU attention SET_ROWS [1] CacheOnHost { memory: MemoryIndex(2) } own 2 copies 0 of 0 in 0 splits 0
            CPU attention SOFT_MAX [1] CacheOnHost { memory: MemoryIndex(2) } own 2 copies 0 of 0 in 0 splits 0
            CPU input GET_ROWS [] GraphInput own 1 copies 0 of 0 in 0 splits 0
        "#]],
    );
}

#[test]
fn a_copied_weight_belongs_to_the_device_that_took_the_op_over() {
    check(
        "run 0..100
         copy GPU H2D 0..50 4096 blk.3.ffn_up.weight <- q4_0[32,8] run=0 split=0
         ends w d
         op GPU MUL_MAT 50..60 ffn_up-3 f32[8,64] <- q4_0[32,8] f32[32,64] run=0 split=0",
        expect![[r#"
            GPU ffn MUL_MAT [3] OnDevice own 10 copies 1 of 4096 in 50 splits 0
        "#]],
    );
}

#[test]
fn nothing_is_guessed_where_nothing_was_asked() {
    check(
        "run 0..100
         op CPU MUL_MAT 50..60 ffn_up-3 f32[8,64] <- q4_0[32,8] f32[32,64] run=0 split=0",
        expect![[r#"
            CPU ffn MUL_MAT [3] Unknown own 10 copies 0 of 0 in 0 splits 1
        "#]],
    );
    let trace = text_fixture::parse("backend 0 CPU cpu\nop CPU ADD 0..1 a");
    let found = placement(&trace, &phases(&trace));
    assert_eq!(found.rows[0].reason, Reason::OnlyBackend);
    assert!(found.on_host(&trace).next().is_none() && !found.has_device);
}

/// Of splits that were timed as wholes the ops are known from samples.
#[test]
fn what_was_not_measured_op_by_op_is_estimated() {
    let trace = text_fixture::parse(
        "backend 0 GPU gpu
         run 0..100
         op GPU MUL_MAT 0..30 Qcur-0 f32[8] <- q4_0[32,8] f32[32] run=0 measured=device
         op GPU ADD 30..40 l_out-0 f32[16] <- f32[16] run=0 measured=device
         run 100..200
         op GPU SPLIT 100..142 run=1 measured=device f32[16] <- f32[8]
         run 200..300
         op GPU SPLIT 200..242 run=2 measured=device f32[16] <- f32[8]",
    );
    let found = placement(&trace, &phases(&trace));
    let row = |row: &PlacementRow| (row.op.clone(), row.calls, row.own_ns, row.estimated_ns);
    let mut rows: Vec<_> = found.rows.iter().map(row).collect();
    rows.sort();
    let expected = [("ADD", 3, 30, 20), ("MUL_MAT", 3, 90, 60), ("SPLIT", 2, 4, 0)];
    assert_eq!(rows, expected.map(|(op, calls, own, part)| (op.to_owned(), calls, own, part)));
    let cell = |cell: &MapCell| (cell.layer.map(|it| it.0), cell.own_ns, cell.estimated_ns);
    let cells: Vec<_> = found.map.iter().map(cell).collect();
    assert_eq!(cells, [(None, 4, 0), (Some(0), 90, 60), (Some(0), 30, 20)]);
}

/// A call that only starts a copy says nothing of how long the device took.
#[test]
fn copies_of_which_only_the_call_was_timed_are_estimated() {
    let caused = |copies: &str| {
        let trace = text_fixture::parse(&format!(
            "backend 0 GPU gpu
             backend 1 CPU cpu
             run 0..900
             op CPU ADD 0..10 l_out-0 f32[8] <- f32[8] run=0 split=0
             {copies}
             op GPU MUL_MAT 800..810 Qcur-1 f32[8] <- q4_0[32,8] f32[32] run=0 split=1"
        ));
        let found = placement(&trace, &phases(&trace));
        found.on_host(&trace).next().unwrap().caused
    };
    let call = "copy GPU H2D 20..420 32 l_out-0 run=0 split=1 measured=host_call";
    let timed = "copy GPU H2D 500..505 32 l_out-0 run=0 split=1 measured=device";
    let both = caused(&[call, timed].join("\n"));
    assert_eq!((both.copies, both.copy_ns, both.estimated_copy_ns), (2, 10, 5));
    let unknown = caused(call);
    assert_eq!((unknown.copies, unknown.copy_ns, unknown.estimated_copy_ns), (1, 0, 0));
}

/// The client's own processor is on the host beside the server, and the server's is not.
#[test]
fn what_a_server_computes_is_on_a_device() {
    let mut trace = text_fixture::parse(
        "backend 0 RPC0 gpu
         backend 1 CPU cpu
         backend 2 SERVER cpu
         run 0..100
         op RPC0 MUL_MAT 0..10 Qcur-0 f32[8] <- q4_0[32,8] f32[32] run=0 split=0
         op SERVER MUL_MAT 20..60 Qcur-0 f32[8] <- q4_0[32,8] f32[32] run=0 split=0
         op CPU ADD 70..80 node_1 f32[8] <- f32[8] f32[8] run=0 split=1",
    );
    trace.processes = vec![Process::default(), Process::default()];
    for (backend, process) in trace.backends.iter_mut().zip([0, 0, 1]) {
        backend.process = Some(ProcessIndex(process));
    }
    trace.remote_links.push(RemoteLink {
        client: ProcessIndex(0),
        server: ProcessIndex(1),
        endpoint: String::new(),
        calls: 1,
        runs: 1,
        matched: 1,
        bounds: 0,
        violations: 0,
    });
    let found = placement(&trace, &phases(&trace));
    let reasons = found.rows.iter().map(|row| (trace.backend(row.backend).label(), row.reason));
    let mut reasons: Vec<_> = reasons.collect();
    reasons.sort();
    assert_eq!(
        reasons,
        [("CPU", Reason::Unknown), ("RPC0", Reason::OnDevice), ("SERVER", Reason::OnDevice)]
    );
    let on_host: Vec<_> = found.on_host(&trace).map(|row| row.backend).collect();
    assert_eq!(on_host, [BackendIndex(1)]);
}
