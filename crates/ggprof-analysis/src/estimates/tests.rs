use super::*;
use ggprof_trace::text_fixture;

/// Two graph runs with the times of their ops.
pub(crate) const TWO_SAMPLES: &str = "
    backend 0 GPU gpu
    run 0..200
    op GPU GET_ROWS 0..10 run=0 measured=device f32[8,1]
    op GPU MUL_MAT 10..100 run=0 measured=device f32[32,1]
    run 200..400
    op GPU GET_ROWS 200..220 run=1 measured=device f32[8,1]
    op GPU MUL_MAT 220..330 run=1 measured=device f32[32,1]";

/// The same, and two that were timed as a whole.
fn sampled() -> String {
    let whole = "
    run 400..600
    op GPU SPLIT 400..550 run=2 measured=device f32[32,1] <- f32[8,1]
    run 600..900
    op GPU SPLIT 600..750 run=3 measured=device f32[32,1] <- f32[8,1]";
    [TWO_SAMPLES, whole].concat()
}

fn by_op(text: &str) -> Vec<(String, f64, Option<f64>, f64)> {
    let trace = text_fixture::parse(text);
    let estimates = estimates_by(&trace, |event| Some(trace.op_name(event.node)));
    let mut rows: Vec<_> = estimates
        .into_iter()
        .map(|(op, it)| (op.to_owned(), it.ns, it.error_ns, it.calls))
        .collect();
    rows.sort_by(|one, other| one.0.cmp(&other.0));
    rows
}

#[test]
fn splits_give_their_time_to_ops_by_the_mean_of_the_samples() {
    let expected = [
        ("GET_ROWS".to_owned(), 30.0, Some(10.0), 2.0),
        ("MUL_MAT".to_owned(), 200.0, Some(20.0), 2.0),
        ("SPLIT".to_owned(), -230.0, None, 0.0),
    ];
    assert_eq!(by_op(&sampled()), expected);
}

#[test]
fn what_stays_in_a_group_is_exact() {
    let trace = text_fixture::parse(&sampled());
    assert_eq!(estimates_by(&trace, |event| Some(event.backend)), HashMap::new());
}

#[test]
fn keys_are_those_of_the_runs_that_were_not_sampled() {
    let trace = text_fixture::parse(&sampled());
    let mul_mat = |event: &Event| trace.op_name(event.node) == "MUL_MAT";
    let estimates = estimates_by(&trace, |event| event.graph_run.filter(|_| mul_mat(event)));
    // Without a key of their own the whole splits are one class.
    assert_eq!(estimates.len(), 1);
    let by_run = estimates_by(&trace, |event| Some((event.graph_run, mul_mat(event))));
    assert_eq!(by_run[&(Some(GraphRunId(3)), true)].ns, 100.0);
}

/// A part has what a key of it has, and the errors of its own samples.
#[test]
fn the_parts_of_a_recording_are_estimated_by_the_same_samples() {
    let text = format!(
        "{}\ncopy GPU H2D 700..705 64 run=0 measured=device\n\
        copy GPU H2D 800..890 64 run=3 measured=host_call",
        sampled()
    );
    let trace = text_fixture::parse(&text);
    let part_of = |event: &Event| event.graph_run;
    let op_of = |event: &Event| trace.op_name(event.node);
    let in_parts = estimates_in_parts(&trace, part_of, |event| [None, Some(op_of(event))]);
    let by_both = estimates_by(&trace, |event| Some((part_of(event), Some(op_of(event)))));
    let of_ops = in_parts.iter().filter(|((_, op), _)| op.is_some());
    assert_eq!(of_ops.map(|(key, it)| (*key, *it)).collect::<HashMap<_, _>>(), by_both);
    assert_eq!(by_both.len(), 7);
    // What ops take, splits lose; only the copy is more.
    let of_all: Vec<_> = in_parts.iter().filter(|((_, op), _)| op.is_none()).collect();
    let [((run, _), copy)] = of_all[..] else { panic!("{of_all:?}") };
    assert_eq!((*run, copy.ns), (Some(GraphRunId(3)), 5.0));
}

#[test]
fn one_sample_has_no_error_and_whole_splits_no_more_time_than_they_took() {
    let found = by_op(
        "backend 0 GPU gpu
         run 0..200
         op GPU ADD 0..80 run=0 measured=device f32[8,1]
         op GPU MUL 80..100 run=0 measured=device f32[32,1]
         run 400..600
         op GPU SPLIT 400..450 run=1 measured=device f32[32,1] <- f32[8,1]",
    );
    let told: Vec<_> = found.iter().map(|row| (row.1, row.2)).collect();
    assert_eq!(told, [(40.0, None), (10.0, None), (-50.0, None)]);
}

#[test]
fn copies_are_as_long_as_those_that_the_device_timed() {
    let found = by_op(
        "backend 0 GPU gpu
         copy GPU H2D 0..10 64 measured=device
         copy GPU H2D 20..32 64 measured=device
         copy GPU H2D 100..900 64 measured=host_call
         copy GPU H2D 1000..1900 80 measured=host
         copy GPU H2D 2000..2900 4096 measured=host_call",
    );
    assert_eq!(found, [("copy_H2D".to_owned(), 22.0, Some(2.0), 0.0)]);
}

/// As software devices and those with memory that the host sees do.
#[test]
fn where_the_host_writes_itself_its_time_is_that_of_the_copy() {
    let trace = text_fixture::parse(
        "backend 0 GPU gpu
         copy GPU D2H 0..10 64 measured=device
         copy GPU D2H 20..90 64 measured=host
         copy GPU H2D 100..900 64 measured=host
         copy GPU H2D 1000..1010 64 measured=host_call
         copy GPU D2D 1100..1110 64 measured=host",
    );
    let times = CopyTimes::of(&trace);
    let is_untimed: Vec<bool> =
        trace.events.copies().map(|event| times.is_untimed(&trace, &event)).collect();
    assert_eq!(is_untimed, [false, true, false, true, true]);
}

/// Two sizes with the same number of bits, from pinned memory and from memory that is not.
#[test]
fn copies_of_the_same_size_between_the_same_memory_tell_most() {
    let found = |copy: &str| {
        let text = format!(
            "backend 0 GPU gpu
             memory p CUDA_Host weights host
             memory w CPU weights host
             memory d GPU compute device
             copy GPU H2D 0..10 64 measured=device
             ends p d
             copy GPU H2D 20..40 120 measured=device
             ends p d
             copy GPU H2D 50..150 64 measured=device
             ends w d
             copy GPU H2D {copy} measured=host_call
             ends p d"
        );
        by_op(&text)[0].1
    };
    assert_eq!(found("200..900 64"), 10.0);
    assert_eq!(found("200..900 120"), 20.0);
    assert_eq!(found("200..900 100"), 15.0);
}

#[test]
fn a_part_of_a_recording_is_estimated_by_all_of_it() {
    let mut trace = text_fixture::parse(&format!(
        "{}
         copy GPU H2D 190..195 64 run=0 measured=device
         copy GPU H2D 850..890 64 run=3 measured=host_call",
        sampled()
    ));
    trace.select(&[false, false, false, true], (600, 900));
    let op_of = |event: &Event| Some(trace.op_name(event.node));
    let estimates = estimates_by(&trace, op_of);
    let told = |op: &str| estimates[op].ns;
    assert_eq!([told("GET_ROWS"), told("MUL_MAT"), told("copy_H2D")], [15.0, 100.0, 5.0]);
    let rows = crate::totals::totals_by(&trace, op_of);
    let rows: Vec<_> =
        rows.iter().map(|(op, totals)| (*op, totals.time_ns(), totals.calls())).collect();
    let expected =
        [("MUL_MAT", 100.0, 1), ("SPLIT", 35.0, 1), ("GET_ROWS", 15.0, 1), ("copy_H2D", 5.0, 1)];
    assert_eq!(rows, expected);
    // The average is that of all calls, and not of those that were measured.
    let whole = text_fixture::parse(&sampled());
    let rows = crate::totals::totals_by(&whole, |event| Some(whole.op_name(event.node)));
    let product = &rows.iter().find(|(op, _)| *op == "MUL_MAT").unwrap().1;
    assert_eq!((product.calls(), product.time_ns(), product.avg_ns()), (4, 400.0, 100.0));
}
