use crate::documents;
use crate::render::{Style, console};
use expect_test::{Expect, expect};
use ggprof_analysis::peaks::{CpuPeaks, Peaks, ReadRate, VERSION};
use ggprof_trace::text_fixture;

/// What stands below the tables.
#[track_caller]
fn check(events: &str, expected: Expect) {
    check_on(None, events, expected);
}

/// The same on a machine that was measured.
#[track_caller]
fn check_on(peaks: Option<&Peaks>, events: &str, expected: Expect) {
    let trace = text_fixture::parse(&format!(
        "backend 0 GPU gpu
         backend 1 CPU cpu
         memory w CPU_Mapped weights host
         memory c CPU compute host
         memory d GPU compute device
         {events}"
    ));
    let text = console(&documents::explain(&trace, "p", peaks), &Style::PLAIN);
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
                because  for a graph run: FLASH_ATTN_EXT (kqv_out-0 [8] f32 x [32] q5_1, which the device does not support) 780 ns; changing sides takes 40 ns
                    try  a type of the cache that the device supports: -ctk f16 -ctv f16, or q8_0 for both (certain)
        "#]],
    );
}

#[test]
fn heads_that_the_device_does_not_support() {
    check(
        "run 0..1000
         op GPU MUL_MAT 0..100 Qcur-0 f32[8] <- q4_0[32,8] f32[32] run=0 split=0
         op CPU FLASH_ATTN_EXT 120..900 kqv_out-0 f32[8] <- f32[8] f16[32] run=0 split=1
         placed c,c out=c GPU=no
         op GPU MUL_MAT 920..1000 ffn_out-0 f32[8] <- q4_0[32,8] f32[32] run=0 split=2",
        expect![[r#"
            What costs time, and what to change
             1. graphs 80.0%: the CPU computes FLASH_ATTN_EXT in a layer that GPU computes otherwise (about 800 ns a graph run)
                because  for a graph run: FLASH_ATTN_EXT (kqv_out-0 [8] f32 x [32] f16, which the device does not support) 780 ns; changing sides takes 20 ns
                    try  -fa off: the device has no flash attention for heads of this size (certain)
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
                because  for a graph run: MUL_MAT (Qcur-1 [32, 8] q4_0 x [32] f32, its weight in the host's memory and the batch too small to copy that) 400 ns, MUL_MAT (ffn_out-1 [32, 8] q4_0 x [32] f32, its weight in the host's memory and the batch too small to copy that) 400 ns; GPU would need about 200 ns
                    try  -ngl 3 (all layers), or as many more as fit (certain)
        "#]],
    );
}

/// libllama's options are those of libllama's programs: an image program takes none of them.
#[test]
fn options_of_libllama_are_not_advised_to_other_programs() {
    check(
        "run 0..1000
         op GPU CONV_2D 0..100 input_blocks.0 f32[8] <- f16[32,8] f32[32] run=0 split=0
         op GPU CONV_2D 100..200 middle_block.1 f32[8] <- f16[32,8] f32[32] run=0 split=0
         op CPU MUL_MAT 200..600 output_blocks.11 f32[8] <- f16[32,8] f32[32] run=0 split=1
         placed w,c out=c GPU=yes
         op CPU FLASH_ATTN_EXT 600..1000 attn1 f32[8] <- f32[8] f16[32] run=0 split=1
         placed c,c out=c GPU=no",
        expect![[r#"
            What costs time, and what to change
             1. graphs 80.0%: the CPU computes MUL_MAT, which belongs to no layer, while GPU waits (about 800 ns a graph run)
                because  for a graph run: MUL_MAT (output_blocks.11 [32, 8] f16 x [32] f32, its weight in the host's memory and the batch too small to copy that) 400 ns, FLASH_ATTN_EXT (attn1 [8] f32 x [32] f16, which the device does not support) 400 ns
                    try  put the weight into the memory of GPU: the program chooses that where it loads the model (certain)
        "#]],
    );
}

/// A token that reads 16.9 GB/s, and machines that can read so many.
#[test]
fn at_the_limit_and_below_it() {
    let token = "batch 0..1000 0:10+1!1
         run 0..1000 batch=0
         op CPU MUL_MAT 0..1000 Qcur-0 f32[64] <- f32[64,64] f32[64] run=0 measured=host";
    let peaks = |bytes_per_s: f64| Peaks {
        version: VERSION,
        measured_at_unix_s: 0,
        cpu: CpuPeaks {
            name: String::new(),
            processors: 2,
            read: vec![ReadRate { threads: 2, bytes_per_s }],
            compute: Vec::new(),
        },
        devices: Vec::new(),
    };
    check_on(
        Some(&peaks(20e9)),
        token,
        expect![[r#"
        What costs time, and what to change
          No single cause takes 5% or more of a phase. tg1 on CPU is at 84.5% of the memory bandwidth of this machine (16.9 GB/s): nothing to gain but fewer bytes (a smaller quantisation, fewer experts, a smaller cache).
    "#]],
    );
    check_on(
        Some(&peaks(22e9)),
        token,
        expect![[r#"
        What costs time, and what to change
          No single cause takes 5% or more of a phase. tg1 on CPU moves 16.9 GB/s, 76.8% of the memory bandwidth of this machine.
    "#]],
    );
    // No memory is faster than it is.
    check_on(
        Some(&peaks(10e9)),
        token,
        expect![[r#"
        What costs time, and what to change
          No single cause takes 5% or more of a phase. tg1 on CPU moves 16.9 GB/s, 169.0% of the memory bandwidth of this machine: its weights come from a cache, so this says nothing of what could be gained.
    "#]],
    );
}

/// All that was recorded is a program that waits.
#[test]
fn what_was_not_seen_is_said() {
    check(
        "run 0..1000
         op GPU SPLIT 0..100 - run=0 measured=host_call
         wait 100..1000 run=0",
        expect![[r#"
            What costs time, and what to change
              No single cause takes 5% or more of a phase, as far as it was seen.
              Of graphs, 90.0% is not explained: waiting for a device that was not seen to compute.
              Of graphs, 10.0% is not explained: calls that hand work to GPU, which gives no times of its own.
        "#]],
    );
    check(
        "",
        expect![[r#"
        What costs time, and what to change
          Nothing that computes was recorded, so there is nothing to explain.
    "#]],
    );
}

#[test]
fn large_parts_without_a_known_reason() {
    check(
        "run 0..1000
         op GPU MUL_MAT 0..400 Qcur-0 f32[8] run=0 measured=device
         op GPU MUL_MAT 700..1000 Qcur-0 f32[8] run=0 measured=device",
        expect![[r#"
            What costs time, and what to change
             1. graphs 30.0%: GPU waits for the host to launch work (at most 300 ns a graph run)
                because  30.0% of the time, in which nothing computes; splits a graph run: 1; usual with small kernels, graphs in many pieces and a slow or busy processor
                    try  more tokens at once (-ub, -np), nothing else on the processor that launches; `ggprof view` shows what happens then (worth a try)
        "#]],
    );
}

/// Of a prompt in one graph run, and in two.
#[test]
fn weights_that_are_copied() {
    let run = |at: u64| {
        let (start, middle, end) = (at * 1000, at * 1000 + 500, at * 1000 + 1000);
        format!(
            "copy GPU H2D {start}..{middle} 64 GPU#blk.0.attn_q.weight#0 run={at}\n\
             op GPU MUL_MAT {middle}..{end} Qcur-0 f32[64,100] <- f32[64,64] f32[64,100] run={at} \
             measured=device\n"
        )
    };
    let one = format!("batch 0..1000 0:0+100!1\nrun 0..1000 batch=0\n{}", run(0));
    check(
        &one,
        expect![[r#"
            What costs time, and what to change
             1. pp100 50.0%: 64 B of weights are copied to the device for a graph run (5 ns a token)
                because  blk.0.attn_q.weight: 64 B a graph run, 500 ns of it exposed
                    try  a larger -ngl (certain)
        "#]],
    );
    let two = format!(
        "batch 0..2000 0:0+200!1\nrun 0..1000 batch=0\nrun 1000..2000 batch=0\n{}{}",
        run(0),
        run(1)
    );
    check(
        &two,
        expect![[r#"
        What costs time, and what to change
         1. pp200 50.0%: 64 B of weights are copied to the device again for every graph run (5 ns a token)
            because  blk.0.attn_q.weight: 64 B a graph run, 500 ns of it exposed
                try  a larger -ngl; -ub 2048 to copy less often (certain)
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
