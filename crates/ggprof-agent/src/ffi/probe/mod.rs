//! Finds the fields of ggml's structs and the slots of a backend's function table. ggml's own
//! version number is not reliable: one number was published with two layouts, and forks change what
//! they like. So a child process (`rehearsal`) builds tensors, graphs and a fake backend with known
//! values and looks where the values are. What cannot be confirmed is not read, and coverage gives
//! the reason.
//!
//! * `workbench`: making tensors and graphs with whatever functions this ggml has;
//! * `words`: looking at their bytes;
//! * `tensors`, `graphs`: the fields of the two;
//! * `table`, `fake`: the slots of a backend.

mod fake;
mod graphs;
mod table;
mod tensors;
mod words;
mod workbench;

use super::api::{Makers, OneNodeFunctions, Symbols};
use super::graph::GraphLayout;
use super::rehearsal::{self, Failure};
use super::tensor::TensorLayout;
pub(crate) use table::BackendLayout;
use workbench::Workbench;

/// What was found about one copy of ggml: each part, or why it was not found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probed {
    pub(crate) layouts: Result<(TensorLayout, GraphLayout), &'static str>,
    pub(crate) backend: Result<BackendLayout, &'static str>,
}

pub(crate) fn probe(symbols: &Symbols) -> Probed {
    let makers = Makers::of(symbols);
    let one_node = OneNodeFunctions::of(symbols);
    let without_views = OneNodeFunctions { ggml_graph_view: None, ..one_node };
    let tried = |one_node| rehearsal::rehearse(|_| find_layouts(&makers, one_node));
    // Only one of these functions may be to blame for a crash, and the layouts are needed for more.
    let or_else = |found, one_node| match found {
        Err(Failure::Crashed) => tried(one_node),
        found => found,
    };
    let layouts = or_else(or_else(tried(Some(&one_node)), Some(&without_views)), None);
    Probed {
        layouts: layouts.unwrap_or_else(|failure| Err(why(failure))),
        backend: table::find(&makers),
    }
}

fn find_layouts(
    makers: &Makers,
    one_node: Option<&OneNodeFunctions>,
) -> Result<(TensorLayout, GraphLayout), &'static str> {
    let bench = Workbench::new(makers)?;
    let graph = graphs::find(&bench, one_node)?;
    Ok((tensors::find(&bench, &graph)?, graph))
}

/// The reason in words.
pub(crate) fn why(failure: Failure) -> &'static str {
    match failure {
        Failure::NoChild => {
            "the system could not create the child process in which ggml is tried out"
        }
        Failure::TooLong => "trying out this ggml in a child process did not end",
        Failure::Crashed => "trying out this ggml in a child process crashed that process",
        Failure::NotKept => {
            "this system or emulator cannot keep signals of the child process in which ggml is tried out \
             from the program"
        }
    }
}
