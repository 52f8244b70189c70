use super::*;
use crate::layers::places;
use crate::phases::phases;
use ggprof_trace::{CopyDirection, Provenance, Trace, merge, text_fixture};

/// The rows of the only phase, longest first; they add up to its wall time.
#[track_caller]
fn check(text: &str, expected: &[(Spent, u64)]) {
    let trace = text_fixture::parse(&format!("backend 0 GPU gpu\nbackend 1 CPU cpu\n{text}"));
    let phases = phases(&trace);
    let budgets = budgets(&trace, &phases, &places(&trace));
    let rows: Vec<(Spent, u64)> = budgets[0].rows.iter().map(|row| (row.spent, row.ns)).collect();
    assert_eq!(rows, expected);
    for (budget, phase) in budgets.iter().zip(&phases.phases) {
        assert_eq!(budget.rows.iter().map(|row| row.ns).sum::<u64>(), phase.wall_ns());
    }
}

const GPU: BackendIndex = BackendIndex(0);
const CPU: BackendIndex = BackendIndex(1);

fn on(backend: BackendIndex, part: ModelPart) -> Spent {
    Spent::Computing { backend, part }
}

#[test]
fn each_instant_counts_once() {
    check(
        "batch 0..90 0:5+1!1
         batch 120..200 0:6+1!1
         run 10..80 batch=0
         run 125..190 batch=1
         op CPU GET_ROWS 10..14 embd run=0 measured=host
         copy GPU H2D 15..25 64 embd run=0
         op GPU MUL_MAT 20..70 Qcur-0 run=0 measured=device
         op CPU ADD 60..75 ffn_out-0 run=0 measured=host
         op GPU MUL_MAT 130..190 result_output run=1 measured=device",
        &[
            (on(GPU, ModelPart::Output), 60),
            (on(GPU, ModelPart::Attention), 50),
            // 0..10, 80..90, 120..125, 190..200.
            (Spent::BuildingGraphs, 35),
            // From the call's return to the next call.
            (Spent::Program, 30),
            // 14..15 and 125..130: what comes next is the device's.
            (Spent::Launching { backend: GPU }, 6),
            (on(CPU, ModelPart::FeedForward), 5),
            (Spent::Copying(CopyDirection::HostToDevice), 5),
            (Spent::Scheduling, 5),
            (on(CPU, ModelPart::Rest), 4),
        ],
    );
}

#[test]
fn threads_that_wait_do_not_compute() {
    check(
        "run 0..100
         op CPU MUL_MAT 0..40 Qcur-0 run=0 measured=host threads=4:120:40:40
         op CPU MUL_MAT 50..90 ffn_out-0 run=0 measured=host threads=4:160:40:0
         op CPU MUL_MAT 92..100 result_output run=0 split=1 measured=host threads=4:32:8:0",
        &[
            (on(CPU, ModelPart::FeedForward), 40),
            (on(CPU, ModelPart::Attention), 30),
            (Spent::UnequalThreads, 10),
            (Spent::Barriers, 10),
            (on(CPU, ModelPart::Output), 8),
            // Between two splits.
            (Spent::Scheduling, 2),
        ],
    );
}

#[test]
fn what_is_only_called_or_waited_for_is_said_to_be() {
    check(
        "batch 0..20 0:5+1!1
         run 0..15 batch=0
         op GPU SPLIT 0..10 run=0 measured=host_call
         compile 2..6 matvec
         wait 25..60 run=0",
        &[
            (Spent::WaitingForDevice, 35),
            (Spent::Launching { backend: GPU }, 6),
            (Spent::Scheduling, 5),
            (Spent::BuildingGraphs, 5),
            (Spent::Program, 5),
            (Spent::CompilingPipelines, 4),
        ],
    );
}

#[test]
fn other_contexts_gaps_and_unseen_runs() {
    check(
        "batch 0..20 0:5+1!1
         batch 20..50 0:1+1!1 context=2
         batch 60..80 0:6+1!1
         batch 90..99 0:7+1!1
         run 0..20 batch=0 number=1
         run 25..45 batch=1 number=2
         run 60..80 batch=2 number=3
         run 90..99 batch=3 number=4
         op GPU MUL_MAT 0..20 Qcur-0 run=0 measured=device
         op GPU MUL_MAT 25..45 Qcur-0 run=1 measured=device
         op GPU MUL_MAT 60..80 Qcur-0 run=2 measured=device",
        &[
            (on(GPU, ModelPart::Attention), 40),
            (Spent::Program, 30),
            (Spent::OtherRuns, 20),
            (Spent::UnseenRun, 9),
        ],
    );
}

/// The wall time of a phase leaves gaps out.
#[test]
fn gaps_are_in_no_budget() {
    check(
        "run 0..20 number=1
         run 60..80 number=3
         op GPU MUL_MAT 0..20 Qcur-0 f32[64] run=0
         op GPU MUL_MAT 60..80 Qcur-0 f32[64] run=1",
        &[(on(GPU, ModelPart::Attention), 20)],
    );
}

#[test]
fn between_its_kernels_an_op_does_nothing() {
    check(
        "run 0..100
         op GPU MUL_MAT 0..100 Qcur-0 run=0 measured=device
         kernel quantize 0..20
         kernel matvec 70..100",
        &[(on(GPU, ModelPart::Attention), 50), (Spent::Launching { backend: GPU }, 50)],
    );
}

/// As in the sampled run of the same kind: 60 ns for attention, 20 for the other. The rest is time in
/// which nothing computed.
#[test]
fn splits_timed_as_a_whole_are_shared_out_by_samples() {
    let text = "backend 0 GPU gpu
         run 0..100
         run 100..200
         op GPU MUL_MAT 0..60 Qcur-0 f32[8,1] run=0 measured=device
         op GPU MUL_MAT 60..80 ffn_out-0 f32[32,1] run=0 measured=device
         op GPU SPLIT 100..200 x f32[32,1] <- f32[8,1] run=1 measured=device";
    let trace = text_fixture::parse(text);
    let phases = phases(&trace);
    let budgets = budgets(&trace, &phases, &places(&trace));
    let rows: Vec<_> =
        budgets[0].rows.iter().map(|row| (row.spent, row.ns, row.estimated_ns)).collect();
    assert_eq!(
        rows,
        [
            (on(GPU, ModelPart::Attention), 120, 60),
            (on(GPU, ModelPart::FeedForward), 40, 20),
            (Spent::Launching { backend: GPU }, 20, 20),
            (Spent::Scheduling, 20, 0),
        ]
    );
}

#[test]
fn each_phase_shares_out_its_own_splits() {
    let text = "backend 0 GPU gpu
         batch 0..100 0:0+4!1
         batch 100..200 1:0+4!1
         batch 200..300 2:0+4!1
         run 0..100 batch=0
         run 100..200 batch=1
         run 200..300 batch=2
         op GPU MUL_MAT 0..60 Qcur-0 f32[8,4] run=0 measured=device
         op GPU MUL_MAT 60..100 ffn_out-0 f32[32,1] run=0 measured=device
         op GPU SPLIT 100..200 x f32[32,1] <- f32[8,4] run=1 measured=device
         op GPU SPLIT 200..300 x f32[32,1] <- f32[8,4] run=2 measured=device";
    let trace = text_fixture::parse(text);
    let phases = phases(&trace);
    let budgets = budgets(&trace, &phases, &places(&trace));
    let attention = |budget: &Budget| budget.sum(|it| it == on(GPU, ModelPart::Attention));
    assert_eq!(budgets.iter().map(attention).collect::<Vec<_>>(), [60, 60, 60]);
}

/// A pipeline that is compiled long after them makes runs that are not quiet of the same ones.
#[test]
fn quiet_runs_come_to_the_same_as_others() {
    let text = "backend 0 CPU cpu
         run 0..100
         run 100..190
         run 200..290
         op CPU MUL_MAT 3..40 Qcur-0 run=0 measured=host threads=4:120:37:20
         op CPU MUL_MAT 50..90 node_4 run=0 measured=host threads=3:100:40:9
         op CPU ADD 92..99 ffn_out-0 run=0 split=1 measured=host threads=1:7:7:0
         op CPU MUL_MAT 100..140 Qcur-0 run=1 measured=host threads=4:160:40:0
         op CPU ADD 141..141 ffn_out-0 run=1 measured=host threads=4:0:0:0
         op CPU MUL_MAT 150..190 ffn_out-0 run=1 measured=host
         op CPU MUL_MAT 210..250 Qcur-0 run=2 measured=host threads=4:150:40:10
         op CPU ADD 240..260 ffn_out-0 run=2 measured=host threads=4:60:20:10";
    let rows = |text: &str| {
        let trace = text_fixture::parse(text);
        let phases = phases(&trace);
        let budgets = budgets(&trace, &phases, &places(&trace));
        budgets.iter().map(|budget| budget.rows.clone()).collect::<Vec<_>>()
    };
    let quiet = rows(text);
    assert_eq!(quiet, rows(&format!("{text}\ncompile 900..901 matvec")));
    assert!(!quiet[0].is_empty());
}

#[test]
fn what_another_process_does_is_in_no_budget() {
    let process = |pid: u32, by_ns: u64| {
        let mut trace = text_fixture::parse(
            "backend 0 GPU gpu
             backend 1 CPU cpu
             batch 0..60 0:5+1!1
             batch 100..160 0:6+1!1
             run 10..50 batch=0
             run 110..150 batch=1
             op GPU MUL_MAT 12..40 Qcur-0 run=0 measured=device
             op GPU MUL_MAT 112..140 Qcur-0 run=1 measured=device
             copy GPU H2D 62..65 64 embd
             compile 2..6 matvec run=0
             wait 70..75 run=0",
        );
        let clock_anchors = vec![(0, 1_000_000_000 + by_ns)];
        trace.provenance = Some(Provenance { pid, clock_anchors, ..Provenance::default() });
        trace
    };
    let rows = |trace: &Trace| -> Vec<Vec<u64>> {
        let phases = phases(trace);
        let budgets = budgets(trace, &phases, &places(trace));
        assert_eq!(summed(&phases, &budgets).len(), budgets.len(), "each has its own");
        budgets.iter().map(|it| it.rows.iter().map(|row| row.ns).collect()).collect()
    };
    let alone = rows(&process(1, 0));
    let both = merge(vec![process(1, 0), process(2, 3_000_000 + 33)]).unwrap();
    assert_eq!(rows(&both), [&alone[..], &alone[..]].concat());
    let both = merge(vec![process(1, 0), process(2, 33)]).unwrap();
    assert_eq!(rows(&both), [&alone[..], &alone[..]].concat());
}

/// Prompts of a server: ten of one length, or each of another one.
#[test]
fn many_different_phases_are_called_by_their_kind() {
    let label = |tokens: &dyn Fn(u64) -> u64| {
        let prompt = |at: u64| {
            let (start, end, tokens) = (at * 100, at * 100 + 50, tokens(at));
            format!(
                "batch {start}..{end} 0:0+{tokens}!1\nrun {start}..{end} batch={at}\nchange {end} cleared\n"
            )
        };
        // The first one of all may be a trial.
        let prompts: String = (0..11).map(prompt).collect();
        let trace = text_fixture::parse(&format!("backend 0 CPU cpu\n{prompts}"));
        let phases = phases(&trace);
        let sums = summed(&phases, &budgets(&trace, &phases, &places(&trace)));
        let prompts = sums.into_iter().filter(|sum| sum.kind == PhaseKind::Prompt);
        prompts.map(|sum| sum.label).collect::<Vec<_>>()
    };
    assert_eq!(label(&|_| 20), ["pp20"]);
    assert_eq!(label(&|at| 20 + at), ["prompt"]);
}
