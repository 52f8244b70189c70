//! The requests that a server answered, for their rows and their list.

use super::tables::since;
use crate::documents::{request_waits, wait_words};
use ggprof_analysis::{Phases, Request, longest_waits};
use ggprof_trace::Trace;
use serde_json::{Value, json};

/// Waits that are listed.
const STALLS: usize = 10;

pub(super) fn requests(phases: &Phases, start_ns: u64) -> Value {
    let of = phases.requests.iter();
    json!({
        "list": of.map(|request| one(request, start_ns)).collect::<Vec<_>>(),
        "stalls": stalls(phases, start_ns),
    })
}

fn one(request: &Request, start_ns: u64) -> Value {
    let waits = request_waits(request);
    // Of one that began before, only the rest is known.
    let of_whole = |count: u64| Some(count).filter(|_| !request.began_before);
    json!({
        "number": request.number,
        "start": since(request.start_ns, start_ns),
        "end": since(request.end_ns, start_ns),
        "prompt": of_whole(request.prompt_tokens),
        "reused": of_whole(request.reused_tokens),
        "chunks": of_whole(request.chunks),
        "first": request.first_token_ns,
        "generated": request.generated,
        "rate": request.tokens_per_second(),
        "waits": waits.percentiles,
        "longest": waits.longest.map(|wait| wait.duration_ns()),
        "for": waits.longest.map(|wait| wait_words(wait.cause)),
        "warmUp": request.is_warm_up,
        "beganBefore": request.began_before,
    })
}

fn stalls(phases: &Phases, start_ns: u64) -> Vec<Value> {
    let waits = longest_waits(&phases.requests, STALLS);
    let stall = |(request, wait): &(u32, ggprof_analysis::Wait)| {
        json!({
            "request": request,
            "start": since(wait.start_ns, start_ns),
            "end": since(wait.end_ns, start_ns),
            "cause": wait.cause_ns,
            "for": wait_words(wait.cause),
        })
    };
    waits.iter().map(stall).collect()
}

/// Which requests each graph run computed for.
pub(super) fn of_runs(trace: &Trace, phases: &Phases) -> Vec<Vec<u32>> {
    let mut requests = vec![Vec::new(); trace.graph_runs.len()];
    for step in &phases.steps {
        for &run in &step.runs {
            requests[run as usize].extend(step.parts.iter().map(|part| part.request));
        }
    }
    requests
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    #[test]
    fn of_a_request_that_began_before_only_the_rest_is_known() {
        let trace = text_fixture::parse(
            "backend 0 CPU cpu
             batch 0..9 0:700+1!1
             run 0..9 batch=0
             op CPU ADD 0..9 x run=0",
        );
        let found = requests(&ggprof_analysis::phases(&trace), 0);
        let [request] = &found["list"].as_array().unwrap()[..] else { panic!("{found}") };
        for key in ["prompt", "reused", "chunks", "first"] {
            assert!(request[key].is_null(), "{key}: {request}");
        }
        assert_eq!((&request["generated"], &request["beganBefore"]), (&json!(1), &json!(true)));
    }
}
