use crate::documents;
use crate::render::{Style, console};
use expect_test::{Expect, expect};
use ggprof_trace::text_fixture;

/// What stands below the tables.
#[track_caller]
fn check(events: &str, expected: Expect) {
    let trace = text_fixture::parse(&format!(
        "backend 0 GPU gpu
         backend 1 CPU cpu
         memory w CPU_Mapped weights host
         memory c CPU compute host
         memory d GPU compute device
         {events}"
    ));
    let text = console(&documents::explain(&trace, "p", None), &Style::PLAIN);
    let from = text.find("What costs time").expect("findings");
    let to = text[from..].find("\nWhat if").map_or(text.len(), |at| from + at);
    expected.assert_eq(&text[from..to]);
}

#[test]
fn a_type_of_the_cache_that_the_device_does_not_support() {
    check(
        "run 0..1000
         op GPU MUL_MAT 0..100 Qcur-0 f32[8] <- q4_0[32,8] f32[32] run=0 split=0
         copy CPU D2H 100..120 32 Qcur-0 run=0 split=1
         ends d c
         op CPU FLASH_ATTN_EXT 120..900 kqv_out-0 f32[8] <- f32[8] q5_1[32] run=0 split=1
         placed c,c out=c GPU=no
         copy GPU H2D 900..920 32 kqv_out-0 run=0 split=2
         ends c d
         op GPU MUL_MAT 920..1000 ffn_out-0 f32[8] <- q4_0[32,8] f32[32] run=0 split=2",
        expect![[r#"
            What costs time, and what to change
             1. graphs 82.0%: the CPU computes FLASH_ATTN_EXT in a layer that GPU computes otherwise (about 820 ns a graph run)
                because  FLASH_ATTN_EXT (kqv_out-0 [8] f32 x [32] q5_1, which the device does not support) 780 ns; changing sides takes 40 ns
                    try  a type of the cache that the device supports: -ctk f16 -ctv f16 or q8_0 for both; or -fa off; or a build with GGML_CUDA_FA_ALL_QUANTS (certain)
        "#]],
    );
}

#[test]
fn a_layer_whose_weights_are_in_the_hosts_memory() {
    check(
        "run 0..1000
         op GPU MUL_MAT 0..100 Qcur-0 f32[8] <- q4_0[32,8] f32[32] run=0 split=0
         op GPU MUL_MAT 100..200 ffn_out-0 f32[8] <- q4_0[32,8] f32[32] run=0 split=0
         op CPU MUL_MAT 200..600 Qcur-1 f32[8] <- q4_0[32,8] f32[32] run=0 split=1
         placed w,c out=c GPU=yes
         op CPU MUL_MAT 600..1000 ffn_out-1 f32[8] <- q4_0[32,8] f32[32] run=0 split=1
         placed w,c out=c GPU=yes",
        expect![[r#"
            What costs time, and what to change
             1. graphs 60.0%: the CPU computes layer 1 of 2 while GPU waits (about 600 ns a graph run)
                because  MUL_MAT (Qcur-1 [32, 8] q4_0 x [32] f32, its weight in the host's memory and the batch too small to copy that) 400 ns, MUL_MAT (ffn_out-1 [32, 8] q4_0 x [32] f32, its weight in the host's memory and the batch too small to copy that) 400 ns; GPU would need about 200 ns
                    try  -ngl 3 (all layers), or as many more as fit (certain)
        "#]],
    );
}

#[test]
fn nothing_to_change() {
    check(
        "run 0..1000\nop GPU MUL_MAT 0..1000 Qcur-0 f32[8] run=0",
        expect![[r#"
        What costs time, and what to change
          No single cause takes 5% or more of a phase.
    "#]],
    );
}
