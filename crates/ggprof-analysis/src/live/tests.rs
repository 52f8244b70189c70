use super::*;
use ggprof_trace::formats::spool::LiveOp;
use ggprof_trace::text_fixture;

/// Looks at batches that are written as in [`text_fixture`], each at once when it is over.
fn watched(text: &str, last_op_of: impl Fn(u32) -> Option<NodeId>) -> Watch {
    let trace = text_fixture::parse(text);
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
            ..News::default()
        };
        watch.take(&trace, news, end_ns);
    }
    watch
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
    assert_eq!(watch.requests.len(), 1);
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
    let waits: Vec<u64> = watch.between_tokens.iter().map(|(_, waited_ns)| *waited_ns).collect();
    // From the second check on it is known who drafts.
    assert!(waits.ends_with(&[100, 100]), "{waits:?}");
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
    watch.take(&trace, News { begun, ended, changes, ..News::default() }, 40);
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
        let news = News { runs, busy, ..News::default() };
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
