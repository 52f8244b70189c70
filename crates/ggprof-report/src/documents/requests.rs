//! The requests that a server answered, and what they waited for.

use crate::{Cell, Column, Document, Table};
use ggprof_analysis::phases::median_and_p95;
use ggprof_analysis::{Cause, Phases, Request, Wait, longest_waits, phases};
use ggprof_trace::Trace;

/// Waits that are listed.
const STALLS: usize = 10;

/// A program hands over batches, not requests.
const QUEUE: &str = "A request begins with its first batch. How long it was in the program's queue \
                     before, no recording can tell: neither clock nor first token count that.";

/// What stands for the clock where a recording has none.
const NO_CLOCK: &str = "This recording does not say what time it was: \"since start\" counts from its \
                        first event.";

const UNKNOWN: &str = "Which requests there were is not known: the program's calls of libllama were not \
                       seen.";

const WHOLE: &str = "Not all of these requests lies in the part that was asked about: figures are those \
                     of whole requests.";

const REQUESTS: [Column; 16] = [
    Column::right("request", "request", 0),
    Column::right("clock_unix_ns", "clock", 0),
    Column::right("since_start_ns", "since start", 0),
    Column::right("start_ns", "", 9),
    Column::right("prompt_tokens", "prompt", 0),
    Column::right("reused_tokens", "reused", 2),
    Column::right("chunks", "chunks", 4),
    Column::right("first_token_ns", "first token", 0),
    Column::right("generated_tokens", "generated", 0),
    Column::right("tokens_per_s", "speed", 1),
    Column::right("wait_p50_ns", "wait p50", 3),
    Column::right("wait_p95_ns", "p95", 3),
    Column::right("longest_wait_ns", "longest", 1),
    Column::left("longest_wait_for", "waiting for", 2),
    Column::left("warm_up", "trial", 1),
    Column::left("began_before", "began before the recording", 1),
];

const WAITS: [Column; 8] = [
    Column::right("request", "request", 0),
    Column::right("clock_unix_ns", "clock", 0),
    Column::right("since_start_ns", "since start", 0),
    Column::right("start_ns", "", 9),
    Column::right("wait_ns", "wait", 0),
    Column::right("cause_ns", "of it", 0),
    Column::left("cause", "waiting for", 0),
    Column::right("cause_request", "", 9),
];

pub(super) fn all(document: &mut Document, trace: &Trace) {
    let phases = phases(trace);
    document.heading("requests", "Requests");
    if !phases.are_known_in_part() {
        document.note("requests_from", UNKNOWN);
        return;
    }
    let since_start = since_start(trace);
    let rows = phases.requests.iter().map(|it| row(trace, &since_start, it)).collect();
    document.table(Table { key: "requests", columns: REQUESTS.to_vec(), rows });
    note_part(document, phases.requests.len());
    document.note("requests_from", QUEUE);
    if phases.requests.iter().any(|request| !request.is_inside) {
        document.note("requests_whole", WHOLE);
    }
    if !has_clock(trace) {
        document.note("no_clock", NO_CLOCK);
    }
    stalls(document, trace, &phases);
}

fn stalls(document: &mut Document, trace: &Trace, phases: &Phases) {
    let since_start = since_start(trace);
    let row = |(request, wait): &(u32, Wait)| {
        vec![
            Cell::Number((*request).into()),
            clock(trace, wait.start_ns),
            since_start(wait.start_ns),
            Cell::Nanos(wait.start_ns as f64),
            Cell::Nanos(wait.duration_ns() as f64),
            Cell::Nanos(wait.cause_ns as f64),
            Cell::Text(wait_words(wait.cause)),
            Cell::or_nothing(other_request(wait.cause), |it| Cell::Number(it.into())),
        ]
    };
    document.heading("stalls", "Stalls: the longest waits between two tokens of a sequence");
    let waits = longest_waits(&phases.requests, STALLS);
    let rows = waits.iter().map(row).collect();
    document.table(Table { key: "stalls", columns: WAITS.to_vec(), rows });
    if waits.is_empty() {
        let words =
            "No token waited for another request's prompt, or for more than twice the median.";
        document.note("no_stalls", words);
    }
}

fn row(trace: &Trace, since_start: &dyn Fn(u64) -> Cell, request: &Request) -> Vec<Cell> {
    let RequestWaits { percentiles, longest } = request_waits(request);
    let nanos = |ns: u64| Cell::Nanos(ns as f64);
    // Of one that began before, only the rest is known.
    let of_whole = |count: u64| match request.began_before {
        true => Cell::Nothing,
        false => Cell::Count(count.into()),
    };
    let mark = |is_so: bool| Cell::text(if is_so { "yes" } else { "" });
    vec![
        Cell::Number(request.number.into()),
        clock(trace, request.start_ns),
        since_start(request.start_ns),
        nanos(request.start_ns),
        of_whole(request.prompt_tokens),
        of_whole(request.reused_tokens),
        of_whole(request.chunks),
        Cell::or_nothing(request.first_token_ns, nanos),
        Cell::Count(request.generated.into()),
        Cell::or_nothing(request.tokens_per_second(), Cell::TokensPerSecond),
        Cell::or_nothing(percentiles, |(p50, _)| nanos(p50)),
        Cell::or_nothing(percentiles, |(_, p95)| nanos(p95)),
        Cell::or_nothing(longest, |wait| nanos(wait.duration_ns())),
        Cell::or_nothing(longest, |wait| Cell::Text(wait_words(wait.cause))),
        mark(request.is_warm_up),
        mark(request.began_before),
    ]
}

/// What a request's tokens waited.
pub(crate) struct RequestWaits<'a> {
    /// Median and 95th percentile.
    pub(crate) percentiles: Option<(u64, u64)>,
    pub(crate) longest: Option<&'a Wait>,
}

pub(crate) fn request_waits(request: &Request) -> RequestWaits<'_> {
    let mut waits: Vec<u64> = request.waits.iter().map(Wait::duration_ns).collect();
    waits.sort_unstable();
    let percentiles = (!waits.is_empty()).then(|| median_and_p95(&waits));
    let longest = request.waits.iter().max_by_key(|wait| wait.duration_ns());
    RequestWaits { percentiles, longest }
}

/// More rows than anybody reads.
const MANY_ROWS: usize = 50;

/// How to see less of a table that has a row for all that happened.
pub(super) fn note_part(document: &mut Document, rows: usize) {
    if rows > MANY_ROWS {
        let words = format!(
            "{rows} rows: --from and --to (14:03, or 90s after the start) show a part, also --phase \
             and --request."
        );
        document.note("part", words);
    }
}

pub(super) fn clock(trace: &Trace, ns: u64) -> Cell {
    Cell::or_nothing(trace.unix_ns(ns), Cell::Clock)
}

fn has_clock(trace: &Trace) -> bool {
    trace.span_ns().is_some_and(|(start_ns, _)| trace.unix_ns(start_ns).is_some())
}

/// How long after the start of the recording, where the clock is not known.
pub(super) fn since_start(trace: &Trace) -> impl Fn(u64) -> Cell + use<> {
    let start_ns = trace.span_ns().filter(|_| !has_clock(trace)).map(|(start_ns, _)| start_ns);
    move |ns| Cell::or_nothing(start_ns, |start_ns| Cell::Nanos(ns.saturating_sub(start_ns) as f64))
}

pub(crate) fn other_request(cause: Cause) -> Option<u32> {
    match cause {
        Cause::SharedWithPrompt { request } | Cause::OtherPrompt { request } => Some(request),
        Cause::OwnStep
        | Cause::OtherGeneration
        | Cause::OtherGraph
        | Cause::Nobody
        | Cause::Unrecorded => None,
    }
}

pub(crate) fn wait_words(cause: Cause) -> String {
    match cause {
        Cause::OwnStep => "its own token".to_owned(),
        Cause::SharedWithPrompt { request } => {
            format!("the prompt of request {request}, in the same batch")
        }
        Cause::OtherPrompt { request } => format!("the prompt of request {request}"),
        Cause::OtherGeneration => "tokens of others".to_owned(),
        Cause::OtherGraph => "another graph".to_owned(),
        Cause::Nobody => "the program: nothing was computed".to_owned(),
        Cause::Unrecorded => "something that was not recorded".to_owned(),
    }
}
