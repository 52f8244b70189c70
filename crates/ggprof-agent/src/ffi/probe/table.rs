//! Finds the slots of a backend's function table: in a child process, a fake backend is passed to
//! ggml's public functions, and the slot is the word through which the call arrives. Counting
//! fields would not work, because the table grew in the middle between versions.
//!
//! In the first child, every word of the fake backend is a function that reports its number
//! (`fake`). If that crashes, some code follows a word as a pointer to data: forks keep other
//! things after the table. Then every word points to a page of its own that cannot be accessed. A
//! call to such a page reveals the slot, and gets an answer. An access to one reveals that the word
//! is a data pointer; the next child's fake backend has null there or, if ggml insists, zeros.

use super::fake::{self, CALLS, FakeWord, Found, Stop, WORDS};
use super::why;
use super::workbench::{F32, Workbench};
use crate::ffi::api::{Makers, Pointer};
use crate::ffi::rehearsal::{Stage, rehearse};

/// Byte offsets of the slots in `struct ggml_backend`; 0 where not found (the struct begins with
/// an identifier, so no slot is at 0).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BackendLayout {
    pub(crate) free: usize,
    pub(crate) cpy_tensor_async: usize,
    pub(crate) synchronize: usize,
    pub(crate) graph_compute: usize,
}

/// A function may follow a word or two more than expected, or crash; then another child continues.
const MOST_CHILDREN: usize = 16;

/// Public functions of ggml that call one of a backend's table.
pub(super) const FUNCTIONS: usize = 5;
const GRAPH_COMPUTE_ASYNC: usize = 0;
const GRAPH_COMPUTE: usize = 1;
const SYNCHRONIZE: usize = 2;
const FREE: usize = 3;
const COPY_ASYNC: usize = 4;

pub(super) fn find(makers: &Makers) -> Result<BackendLayout, &'static str> {
    let calls = find_calls(makers)?;
    let slot = |function: usize, call: usize| calls[function][call] * size_of::<usize>();
    let first_of = |candidates: [usize; 2]| candidates.into_iter().find(|&at| at != 0);
    let graph_compute = first_of([slot(GRAPH_COMPUTE_ASYNC, 0), slot(GRAPH_COMPUTE, 0)]);
    Ok(BackendLayout {
        graph_compute: graph_compute.ok_or("no function of ggml called the table of a backend")?,
        // To compute a graph and wait for it is to compute it and to synchronise.
        synchronize: first_of([slot(SYNCHRONIZE, 0), slot(GRAPH_COMPUTE, 1)]).unwrap_or(0),
        free: slot(FREE, 0),
        cpy_tensor_async: slot(COPY_ASYNC, 0),
    })
}

/// The words that each function calls, in order.
fn find_calls(makers: &Makers) -> Result<[[usize; CALLS]; FUNCTIONS], &'static str> {
    let mut left_out = [false; FUNCTIONS];
    let functions = [FakeWord::Function; WORDS];
    if let Ok(Found { calls, stop: None }) =
        rehearse(|stage| call_all(makers, &functions, left_out, stage))
    {
        return Ok(calls);
    }
    let mut words = [FakeWord::Untouchable; WORDS];
    for _ in 0..MOST_CHILDREN {
        let tried = rehearse(|stage| call_all(makers, &words, left_out, stage));
        let Found { calls, stop } = tried.map_err(why)?;
        match stop {
            None => return Ok(calls),
            Some((_, Stop::Followed(word))) if words[word] == FakeWord::Untouchable => {
                words[word] = FakeWord::Nothing;
            }
            Some((_, Stop::FollowedNothing)) if words.contains(&FakeWord::Nothing) => {
                let empty = words.iter_mut().filter(|word| **word == FakeWord::Nothing);
                empty.for_each(|word| *word = FakeWord::Zeros);
            }
            Some((function, _)) => left_out[function] = true,
        }
    }
    Err("ggml follows too many words of a backend as pointers")
}

/// The child's part.
fn call_all(
    makers: &Makers,
    words: &[FakeWord; WORDS],
    left_out: [bool; FUNCTIONS],
    stage: *mut Stage<Found>,
) -> Found {
    // Functions that take a graph or tensors get real ones, if they can be made.
    let bench = Workbench::new(makers).ok();
    let things = bench.and_then(|bench| {
        let [a, b] = [bench.vector(F32, 16).ok()?, bench.vector(F32, 16).ok()?];
        Some((a, b, bench.graph_of(bench.node(a, b).ok()?).ok()?))
    });
    let things = things.unwrap_or_default();
    let fake = fake::install(words, stage);
    for function in (0..FUNCTIONS).filter(|&function| !left_out[function]) {
        fake.begin(function);
        // SAFETY: in a child made for this: whatever the function does with the fake is answered,
        // or ends the child.
        unsafe { call(makers, function, fake.backend(), things) };
    }
    fake.found()
}

/// # Safety
/// As above.
unsafe fn call(
    makers: &Makers,
    function: usize,
    backend: Pointer,
    (a, b, graph): (Pointer, Pointer, Pointer),
) {
    // SAFETY: the caller's contract.
    unsafe {
        match function {
            GRAPH_COMPUTE_ASYNC => {
                makers.ggml_backend_graph_compute_async.map(|call| call(backend, graph));
            }
            GRAPH_COMPUTE => {
                makers.ggml_backend_graph_compute.map(|call| call(backend, graph));
            }
            SYNCHRONIZE => makers.ggml_backend_synchronize.map_or((), |call| call(backend)),
            FREE => makers.ggml_backend_free.map_or((), |call| call(backend)),
            _ => makers
                .ggml_backend_tensor_copy_async
                .map_or((), |call| call(backend, backend, a, b)),
        }
    }
}
