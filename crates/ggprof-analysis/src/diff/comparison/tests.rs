use super::*;
use crate::diff::{Fusions, fusions, ledger};
use expect_test::{Expect, expect};
use ggprof_trace::{Trace, text_fixture};
use std::fmt::Write;

/// Three tokens, each with these ops. `{}` stands for the beginning of a token and its graph run.
fn recording(ops: &[(&str, &str, u64)]) -> Trace {
    let mut text =
        "backend 0 GPU gpu\nbackend 1 CPU cpu\nbatch 0..1 0:0+4!1\nrun 0..1 batch=0\n".to_owned();
    let mut now = 1000;
    for token in 1..=3 {
        let mut lines = String::new();
        let start = now;
        for (before, after, ns) in ops {
            writeln!(lines, "op {before} {now}..{} {after} run={token}", now + ns).unwrap();
            now += ns;
        }
        let at = token + 3;
        writeln!(text, "batch {start}..{now} 0:{at}+1!1\nrun {start}..{now} batch={token}")
            .unwrap();
        text.push_str(&lines);
        now += 10;
    }
    text_fixture::parse(&text)
}

fn text(diff: &Diff) -> String {
    let mut text = String::new();
    for phase in &diff.phases {
        let label = phase.name.label.clone().unwrap_or_default();
        writeln!(text, "{:?} {label}: {:+.1}", phase.name.kind, phase.total.ns()).unwrap();
        for row in &phase.rows {
            let calls = row.by_calls_and_time();
            let calls = calls.map_or(String::new(), |(calls, time)| {
                format!(" (calls {calls:+.1}, time {time:+.1})")
            });
            let ns = row.change.ns();
            writeln!(text, "  {ns:+.1} {:?} {}{calls}", row.how, row.key).unwrap();
        }
    }
    text
}

#[track_caller]
fn check(a: &Trace, b: &Trace, expected: Expect) -> Diff {
    let (ledger_a, ledger_b) = (ledger(a, &fusions(b)), ledger(b, &fusions(a)));
    let diff = compare(&[ledger_a], &[ledger_b], Depth::Kernel);
    expected.assert_eq(&text(&diff));
    for phase in &diff.phases {
        let sum: f64 = phase.rows.iter().map(|row| row.change.ns()).sum();
        assert!((sum - phase.total.ns()).abs() < 1e-6, "{sum}");
    }
    diff
}

const NORM: (&str, &str, u64) = ("CPU RMS_NORM", "norm-0 f32[8] <- f32[8]", 10);
const SCALE: (&str, &str, u64) = ("CPU MUL", "attn_norm-0 f32[8] <- f32[8] f32[8]", 5);
const PRODUCT: (&str, &str, u64) = ("CPU MUL_MAT", "Qcur-0 f32[8] <- q4_0[32,8] f32[32]", 100);

#[test]
fn another_time_another_count_another_device() {
    check(
        &recording(&[NORM, SCALE, PRODUCT]),
        &recording(&[
            NORM,
            SCALE,
            SCALE,
            ("GPU MUL_MAT", "Qcur-0 f32[8] <- q4_0[32,8] f32[32]", 60),
            ("GPU ADD", "l_out-0 f32[8] <- f32[8] f32[8]", 3),
        ]),
        expect![[r#"
            Prompt pp4: +0.0
              +0.0 Same InRun
            Generation tg3: -32.0
              -40.0 OtherBackend Op attention MUL_MAT (calls +0.0, time -40.0)
              +5.0 Same Op attention MUL CPU (calls +5.0, time +0.0)
              +0.0 Same Op norm RMS_NORM CPU (calls +0.0, time +0.0)
              +0.0 Same Program
              +3.0 OnlyB Op residual ADD GPU
        "#]],
    );
}

#[test]
fn fused_ops_are_compared_with_their_parts() {
    check(
        &recording(&[NORM, SCALE, PRODUCT]),
        &recording(&[("CPU RMS_NORM", "norm-0 f32[8] <- f32[8] fused=RMS_NORM+MUL", 11), PRODUCT]),
        expect![[r#"
            Prompt pp4: +0.0
              +0.0 Same InRun
            Generation tg3: -4.0
              -4.0 Same Op norm RMS_NORM+MUL CPU (calls +0.0, time -4.0)
              +0.0 Same Op attention MUL_MAT CPU (calls +0.0, time +0.0)
              +0.0 Same Program
        "#]],
    );
}

#[test]
fn flash_attention_is_compared_with_what_it_replaces() {
    check(
        &recording(&[
            PRODUCT,
            ("CPU MUL_MAT", "kq-0 f32[32,1] <- f16[64,32] f32[64]", 20),
            ("CPU SOFT_MAX", "kq_soft_max-0 f32[32] <- f32[32]", 7),
            ("CPU MUL_MAT", "kqv-0 f32[64] <- f16[32,64] f32[32]", 22),
        ]),
        &recording(&[
            PRODUCT,
            ("CPU FLASH_ATTN_EXT", "node_7 f32[64] <- f32[64] f16[64,32] f16[64,32]", 30),
        ]),
        expect![[r#"
            Prompt pp4: +0.0
              +0.0 Same InRun
            Generation tg3: -19.0
              -19.0 SamePart Op attention CPU
              +0.0 Same Op attention MUL_MAT CPU (calls +0.0, time +0.0)
              +0.0 Same Program
        "#]],
    );
}

/// Medians of the parts need not add up to that of the whole.
#[test]
fn several_recordings_a_side() {
    let side = |times: &[u64]| -> Vec<Ledger> {
        let one = |ns: &u64| {
            let trace = recording(&[NORM, SCALE, (PRODUCT.0, PRODUCT.1, *ns)]);
            ledger(&trace, &Fusions::default())
        };
        times.iter().map(one).collect()
    };
    let slower = [110, 111, 112, 109, 108, 110];
    let diff = compare(&side(&[100, 103, 99, 101, 900, 850]), &side(&slower), Depth::Op);
    let phase = &diff.phases[1];
    // Two slow recordings of the first side are kept, and take the certainty away.
    assert_eq!((phase.total.ns().round(), phase.total.is_certain()), (8.0, false));
    let diff = compare(&side(&[100, 103, 99, 101, 98, 102]), &side(&slower), Depth::Op);
    let phase = &diff.phases[1];
    assert!(phase.total.is_certain(), "{:?}", phase.total);
    assert_eq!(phase.rows[0].key.op.as_deref(), Some("MUL_MAT"));
    assert!(phase.rows[0].change.is_certain() && !phase.rows[1].change.is_certain());
    let few = compare(&side(&[100; 4]), &side(&[110; 4]), Depth::Op);
    assert_eq!((few.phases[1].total.ns().round(), few.phases[1].total.is_certain()), (10.0, false));
}

/// Six recordings of a side, each slower as a whole by so many percent. `longer` tells what the op of a
/// number takes, of 1000 ns.
fn slower_as_a_whole(percent: [u64; 6], longer: impl Fn(usize) -> u64) -> Vec<Ledger> {
    const OPS: [&str; 8] = ["ADD", "SUB", "MUL", "DIV", "SQR", "SQRT", "SIN", "COS"];
    let one = |percent: &u64| {
        let before: Vec<String> = OPS.iter().map(|op| format!("CPU {op}")).collect();
        let ops = before.iter().enumerate().map(|(at, op)| {
            (op.as_str(), "x f32[8] <- f32[8]", longer(at) * (100 + percent) / 100)
        });
        ledger(&recording(&ops.collect::<Vec<_>>()), &Fusions::default())
    };
    percent.iter().map(one).collect()
}

fn adds_up(phase: &PhaseDiff) {
    let rows = phase.rows.iter().map(|row| &row.change).chain(&phase.alike);
    let all = rows.map(Change::ns).sum::<f64>() + phase.rest_ns;
    assert!((all - phase.total.ns()).abs() < 1e-6, "{all} of {}", phase.total.ns());
}

/// What all ops have in common is one figure, and no change of an op.
#[test]
fn recordings_that_are_slower_as_a_whole() {
    let a = slower_as_a_whole([0, 20, 4, 30, 12, 8], |_| 1000);
    let b = slower_as_a_whole([6, 22, 2, 28, 14, 10], |op| if op == 0 { 1050 } else { 1000 });
    let diff = compare(&a, &b, Depth::Op);
    let phase = &diff.phases[1];
    let op = |row: &DiffRow| row.key.op.clone().unwrap();
    let certain: Vec<_> = phase.rows.iter().filter(|row| row.change.is_certain()).map(op).collect();
    assert_eq!(certain, ["ADD"], "{}", text(&diff));
    let others = phase.rows[1..].iter().map(|row| row.change.ns().abs());
    assert!(others.fold(0.0, f64::max) < 5.0, "{}", text(&diff));
    let alike = phase.alike.expect("what they have in common");
    assert!((alike.ns() - 160.0).abs() < 5.0, "{alike:?}");
    assert!(!alike.is_certain() && alike.interval.is_some_and(|it| !it.excludes_zero()));
    adds_up(phase);
}

/// Most ops take longer on one side, by less than two sides of the same may differ. That is no noise, and
/// the others have not improved.
#[test]
fn most_ops_are_slower() {
    let a = slower_as_a_whole([0, 1, 2, 1, 0, 2], |_| 1000);
    let b = slower_as_a_whole([1, 0, 2, 0, 2, 1], |op| if op < 5 { 1080 } else { 1000 });
    let diff = compare(&a, &b, Depth::Op);
    let phase = &diff.phases[1];
    assert_eq!(phase.alike, None);
    let slower = phase.rows.iter().filter(|row| row.change.is_certain());
    assert!(slower.clone().count() == 5 && slower.clone().all(|row| row.change.ns() > 70.0));
    assert!(phase.rows[5..].iter().all(|row| row.change.ns().abs() < 15.0), "{}", text(&diff));
    adds_up(phase);
}
