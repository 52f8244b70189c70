use super::*;
use ggprof_trace::formats::spool::{LiveOp, Standing};
use ggprof_trace::{BackendIndex, Batch, ContextChange, NodeId, Trace, text_fixture};

fn recorded() -> News {
    let standing = Standing { is_recording: true, ..Standing::default() };
    News { standing, ..News::default() }
}

/// Looks at batches that are written as in [`text_fixture`], each at once when it is over, and some
/// time later.
fn watched(text: &str, last_op_of: impl Fn(u32) -> Option<NodeId>) -> Watch {
    watched_trace(&text_fixture::parse(text), last_op_of)
}

fn watched_trace(trace: &Trace, last_op_of: impl Fn(u32) -> Option<NodeId>) -> Watch {
    let mut watch = Watch::default();
    let mut changes = trace.context_changes.iter().copied().peekable();
    for batch in &trace.batches {
        let end_ns = batch.end_ns.unwrap();
        let (mut begun, call) = (batch.clone(), batch.call);
        begun.end_ns = None;
        let op = |node| LiveOp { call, node, backend: BackendIndex(0), duration_ns: 1 };
        let news = News {
            begun: vec![begun],
            ended: vec![(call, end_ns)],
            changes: std::iter::from_fn(|| changes.next_if(|it| it.at_ns <= batch.start_ns))
                .collect(),
            ops: last_op_of(call).map(op).into_iter().collect(),
            ..recorded()
        };
        watch.take(trace, news, end_ns);
    }
    watch.take(trace, recorded(), watch.last_look_ns.unwrap() + 3 * SECOND_NS);
    watch
}

/// As it was recorded where a program's batches could not be read to their end.
#[test]
fn more_sequences_than_are_known_generate() {
    let mut trace =
        text_fixture::parse("backend 0 CPU cpu\nbatch 0..9 0:0+300!300\nbatch 20..29 0:300+4!1");
    trace.batches.iter_mut().for_each(|batch| batch.sequences.clear());
    let counters = watched_trace(&trace, |_| None).counters().clone();
    assert_eq!((counters.generated_tokens, counters.prompt_tokens), (300, 4));
}

/// A look takes some time, in which the program goes on; and results of a device are known later than they
/// were there.
#[test]
fn each_step_is_of_one_look() {
    let trace = text_fixture::parse(
        "backend 0 CPU cpu\nbatch 0..5 0:0+9!1\nbatch 10..20 0:9+1!1\nbatch 30..40 0:10+1!1",
    );
    let mut watch = Watch::default();
    let mut look = |begun: &[usize], ended: &[(usize, u64)], now_ns: u64| {
        let begun = begun.iter().map(|&at| Batch { end_ns: None, ..trace.batches[at].clone() });
        let ended = ended.iter().map(|&(at, end_ns)| (trace.batches[at].call, end_ns));
        let news = News { begun: begun.collect(), ended: ended.collect(), ..recorded() };
        let frame = watch.take(&trace, news, now_ns);
        (frame.batch_tokens.is_some(), frame.generation_speed > 0.0)
    };
    let (nothing, one) = ((false, false), (true, true));
    assert_eq!(look(&[0], &[(0, 5)], 7), (true, false));
    // It ended behind the moment that the look is about.
    assert_eq!(look(&[1], &[(1, 20)], 15), one);
    assert_eq!(look(&[2], &[], 35), nothing);
    assert_eq!(look(&[], &[], 50), nothing);
    // It ended before the last look.
    assert_eq!(look(&[], &[(2, 40)], 60), one);
    assert_eq!(look(&[], &[], 70), nothing);
}

#[test]
fn rejected_drafts_are_no_tokens() {
    let (mut text, mut now) = ("backend 0 CPU cpu\n".to_owned(), 0);
    let mut add = |what: &str| {
        let end = now + 10;
        match what.starts_with("removed") {
            true => text += &format!("change {now} {what}\n"),
            false => text += &format!("batch {now}..{end} {what}\n"),
        }
        now = end + 5;
    };
    add("0:0+99!1");
    for round in 0..10 {
        let next = 99 + 2 * round;
        // A smaller model drafts four tokens, and then this one checks them.
        (next..next + 4).for_each(|at| add(&format!("0:{at}+1!1 context=2")));
        add(&format!("removed 0 {} context=2", next + 2));
        add(&format!("0:{next}+5!5"));
        add(&format!("removed 0 {}", next + 2));
    }
    let watch = watched(&text, |_| None);
    // Two stay of each round; what became of the last is not known yet.
    let of_target = 1 + 9 * 2;
    // That the other context drafts is known from the second check on.
    let before = 2 * 4;
    let found = watch.counters().generated_tokens;
    assert!((of_target..=of_target + before).contains(&found), "{found}");
    assert!((99..=100).contains(&watch.counters().prompt_tokens));
    assert_eq!(watch.counters().first_token.count, 1 + 1);
    assert_eq!(watch.requests_under_way(now).0, 1);
}

/// Tokens are there when the smaller model has read the batch, too.
#[test]
fn what_is_read_again_takes_longer() {
    let mut text =
        "backend 0 CPU cpu\nbatch 0..10 0:0+9!1\nbatch 10..20 0:0+9!1 context=2\n".to_owned();
    for round in 0..4 {
        let (now, next) = (100 + round * 100, 9 + 2 * round);
        text += &format!("batch {now}..{} 0:{next}+1!1 context=2\n", now + 10);
        text += &format!("batch {}..{} 0:{next}+2!2\n", now + 10, now + 20);
        text += &format!("batch {}..{} 0:{next}+2!1 context=2\n", now + 20, now + 50);
    }
    text += "batch 520..530 0:17+1!1\n";
    let watch = watched(&text, |_| None);
    let waits: Vec<u64> =
        watch.steps.requests.between_tokens.iter().map(|(_, waited_ns)| *waited_ns).collect();
    // From the second check on it is known who drafts.
    assert!(waits.ends_with(&[100, 100, 80]), "{waits:?}");
}

#[test]
fn one_token_that_is_left_of_a_prompt_is_read() {
    let text = "backend 0 CPU cpu
        batch 0..10 0:0+9!1
        batch 20..30 0:9+1!1
        change 35 removed 0 8
        batch 40..50 0:8+1!1
        batch 60..70 0:9+1!1";
    let counters = watched(text, |_| None).counters().clone();
    assert_eq!((counters.prompt_tokens, counters.generated_tokens), (10, 2));
    // A benchmark generates from nothing.
    let text = "backend 0 CPU cpu\nbatch 0..10 0:0+1!1\nbatch 20..30 0:1+1!1\nbatch 40..50 0:2+1!1";
    let counters = watched(text, |_| None).counters().clone();
    assert_eq!((counters.prompt_tokens, counters.generated_tokens), (0, 3));
}

#[test]
fn embeddings_have_no_first_token() {
    let text = "backend 0 CPU cpu
        op CPU ADD 0..1 result_embd_pooled run=0
        op CPU MUL_MAT 1..2 result_output run=0
        batch 0..10 0:0+7!7
        batch 20..30 0:0+5!1";
    let trace = text_fixture::parse(text);
    let node = |name: &str| trace.nodes.ids().find(|&node| trace.tensor_name(node) == Some(name));
    let last = |call| node(if call == 1 { "result_embd_pooled" } else { "result_output" });
    let watch = watched(text, last);
    assert_eq!(watch.counters().first_token.count, 1);
    assert_eq!((watch.counters().prompt_tokens, watch.counters().generated_tokens), (12, 0));
}

/// As with `--pooling none`, where the graph ends in logits.
#[test]
fn embeddings_that_are_read_are_no_tokens() {
    let text = "backend 0 CPU cpu
        batch 0..10 0:0+7!7
        change 12 read 1
        batch 20..30 0:0+5!1";
    let trace = text_fixture::parse(text);
    let begun: Vec<_> =
        trace.batches.iter().cloned().map(|it| Batch { end_ns: None, ..it }).collect();
    let ended = trace.batches.iter().filter_map(|it| Some((it.call, it.end_ns?))).collect();
    let changes = trace.context_changes.clone();
    let mut watch = Watch::default();
    watch.take(&trace, News { begun, ended, changes, ..recorded() }, 40);
    watch.take(&trace, recorded(), 3 * SECOND_NS);
    assert_eq!(watch.counters().first_token.count, 1);
    assert_eq!((watch.counters().prompt_tokens, watch.counters().generated_tokens), (12, 0));
}

#[test]
fn what_began_before_it_is_watched_has_no_first_token() {
    let text = "backend 0 CPU cpu
        batch 0..10 0:1000+1!1
        batch 20..30 0:1001+1!1
        batch 40..50 1:0+8!1";
    let watch = watched(text, |_| None);
    assert_eq!(watch.counters().first_token.count, 1);
    assert_eq!(watch.counters().between_tokens.count, 1);
}

/// A server tries a new context, and then warms up.
#[test]
fn trials_are_no_requests_however_many_there_are() {
    let text = "backend 0 CPU cpu
        batch 0..10 0:0+2!1
        change 11 cleared
        batch 20..30 0:0+2!1
        change 31 cleared
        batch 40..50 0:0+8!1
        batch 60..70 0:8+1!1";
    let watch = watched(text, |_| None);
    assert_eq!(watch.counters().first_token.count, 1);
    assert_eq!((watch.counters().prompt_tokens, watch.counters().generated_tokens), (8, 1));
    // What was no trial is counted when something goes on from there.
    let text = "backend 0 CPU cpu
        batch 0..10 0:0+2!1
        batch 20..30 0:2+1!1";
    assert_eq!(watched(text, |_| None).counters().first_token.count, 1);
}

/// It sees all that was recorded so far, which may have taken longer than a second.
#[test]
fn the_first_look_is_of_as_long_as_it_says() {
    let trace = text_fixture::parse("backend 0 CPU cpu\n");
    let (backend, second) = (BackendIndex(0), SECOND_NS);
    // Ten seconds, half of each computing; and once, an hour before.
    let runs: Vec<(u64, u64)> =
        (3600..3610).map(|at| (at * second, at * second + second / 2)).collect();
    let look = |runs: Vec<(u64, u64)>| {
        let busy = runs.iter().map(|&(start, end)| (backend, start, end)).collect();
        let news = News { runs, busy, ..recorded() };
        let mut watch = Watch::default();
        watch.take(&trace, news, 3610 * second)
    };
    let frame = look(runs.clone());
    assert_eq!((frame.interval_ns, frame.runs), (10 * second, 10));
    assert_eq!((frame.backends[0].busy, frame.backends[0].idle.outside), (Some(0.5), 0.5));
    let frame = look([vec![(0, second)], runs].concat());
    assert_eq!((frame.interval_ns, frame.runs), (60 * second, 10));
    assert_eq!(frame.backends[0].busy, Some(5.0 / 60.0));
}

/// Looks at these times, in milliseconds, at what is written as in [`text_fixture`] in such.
fn looks(text: &str, times: &[u64]) -> (Watch, Vec<Frame>) {
    let (trace, mut watch, mut before_ns) = (text_fixture::parse(text), Watch::default(), 0);
    let ns = |ms: u64| ms * 1_000_000;
    let frames = times.iter().map(|&now| {
        let is_new = |at: u64| ns(at) > before_ns && at <= now || (at == 0 && before_ns == 0);
        let (mut begun, mut ended) = (Vec::new(), Vec::new());
        for batch in &trace.batches {
            let end = batch.end_ns.unwrap();
            let (start_ns, end_ns) = (ns(batch.start_ns), None);
            begun.extend(is_new(batch.start_ns).then(|| Batch {
                start_ns,
                end_ns,
                ..batch.clone()
            }));
            ended.extend(is_new(end).then_some((batch.call, ns(end))));
        }
        let changes = trace.context_changes.iter().filter(|it| is_new(it.at_ns));
        let changes = changes.map(|it| ContextChange { at_ns: ns(it.at_ns), ..*it }).collect();
        before_ns = ns(now);
        watch.take(&trace, News { begun, ended, changes, ..recorded() }, ns(now))
    });
    let frames = frames.collect();
    (watch, frames)
}

#[test]
fn a_batch_may_take_longer_than_what_is_remembered() {
    let text = "backend 0 CPU cpu
        batch 0..100000 0:0+9!1
        batch 100001..100011 0:9+1!1";
    let (watch, _) = looks(text, &[10_000, 70_000, 99_000, 101_000]);
    let Counters { first_token, between_tokens, .. } = watch.counters();
    assert_eq!((first_token.count, first_token.sum_ns / SECOND_NS), (1, 100));
    assert_eq!((between_tokens.count, between_tokens.sum_ns / 1_000_000), (1, 11));
}

/// As some bindings ask for, and as programs that measure perplexity do.
#[test]
fn results_of_all_of_a_prompt_are_no_first_tokens() {
    let prompt = "backend 0 CPU cpu
        batch 0..100 0:0+512!512
        batch 100..200 0:512+512!512
        batch 200..250 0:1024+100!100\n";
    let of_prompt = |text: &str| {
        let (watch, _) = looks(text, &[250, 1000, 10_000]);
        let found = &watch.counters().first_token;
        (found.count, found.sum_ns / 1_000_000)
    };
    assert_eq!(of_prompt(&format!("{prompt}batch 260..270 0:1124+1!1")), (1, 250));
    assert_eq!(of_prompt(prompt), (0, 0));
    // One that wants no more than the first token.
    assert_eq!(of_prompt("backend 0 CPU cpu\nbatch 0..100 0:0+9!1"), (1, 100));
}

#[test]
fn requests_in_flight_are_those_that_go_on() {
    let generate = |text: &mut String, sequence: u32, from: u64| {
        for token in 0..5 {
            let (start, at) = (from + 10 * token, 9 + token);
            *text += &format!("batch {start}..{} {sequence}:{at}+1!1\n", start + 9);
        }
    };
    let prompt =
        |sequence: u32, start: u64, end: u64| format!("batch {start}..{end} {sequence}:0+9!1\n");
    // One client, whose requests come to one slot after the other.
    let mut text = "backend 0 CPU cpu\n".to_owned();
    for sequence in 0..4 {
        let start = 100 * u64::from(sequence);
        text += &prompt(sequence, start, start + 20);
        generate(&mut text, sequence, start + 20);
    }
    let (_, frames) = looks(&text, &[90, 190, 290, 390, 3000]);
    let requests: Vec<u64> = frames.iter().map(|frame| frame.requests).collect();
    assert_eq!(requests, [1, 1, 1, 1, 0]);
    // The prompt of another one comes between two tokens.
    let mut text = "backend 0 CPU cpu\n".to_owned() + &prompt(0, 0, 20);
    generate(&mut text, 0, 20);
    text += &prompt(1, 100, 5000);
    text += "batch 5001..5010 0:14+1!1 1:9+1!1\n";
    let (_, frames) = looks(&text, &[90, 4000, 5020]);
    let requests: Vec<u64> = frames.iter().map(|frame| frame.requests).collect();
    assert_eq!(requests, [1, 2, 2]);
}

/// A program that hangs while it computes a token may never have it.
#[test]
fn a_wait_is_seen_while_it_lasts() {
    let text = "backend 0 CPU cpu
        batch 0..20 0:0+9!1
        batch 20..30 0:9+1!1
        batch 40..9000 0:10+1!1";
    let (_, frames) = looks(text, &[35, 3000, 9000]);
    let waits = frames.iter().map(|frame| frame.longest_gap);
    let waits: Vec<_> = waits.map(|it| (it.start_ns / 1_000_000, it.ns / 1_000_000)).collect();
    assert_eq!(waits, [(20, 10), (30, 2970), (30, 8970)]);
}

/// As between `ctl stop` and `ctl start`.
#[test]
fn what_is_not_recorded_is_no_wait() {
    let text = "backend 0 CPU cpu
        batch 0..20 0:0+9!1
        batch 20..30 0:9+1!1
        batch 9000..9010 0:10+1!1
        batch 9010..9020 0:11+1!1";
    let waits = |is_stopped: bool| {
        let trace = text_fixture::parse(text);
        let (mut watch, mut waits) = (Watch::default(), Vec::new());
        for (at, batch) in trace.batches.iter().enumerate() {
            let ended = vec![(batch.call, batch.end_ns.unwrap())];
            let begun = vec![Batch { end_ns: None, ..batch.clone() }];
            let now_ns = batch.end_ns.unwrap();
            let frame = watch.take(&trace, News { begun, ended, ..recorded() }, now_ns);
            waits.push(frame.longest_gap.ns);
            if is_stopped && at == 1 {
                watch.take(&trace, News::default(), 5000);
            }
        }
        assert_eq!(watch.counters().first_token.count, 1);
        waits
    };
    assert_eq!(waits(false), [0, 10, 8980, 10]);
    assert_eq!(waits(true), [0, 10, 0, 10]);
}
