//! The builds, and what is to be seen of each.

use super::Build;
use super::change::{Change, UNCHANGED, backends, calls, graphs, tensors};
use super::form::{Form, Host, Linking};
use crate::source_ggml::SYMBOLIC;
use crate::trial::Expected;

const PLAIN: Linking = Linking::PLAIN;
const DROPPED: Linking = link(&["-Wl,--gc-sections"]);
const NO_PIE: Linking = link(&["-no-pie"]);

/// Functions that programs seldom use, and which a linker drops where it may.
const SELDOM_USED: &str = "{ global: *; local: ggml_get_data; ggml_get_name; \
ggml_graph_n_nodes; ggml_graph_nodes; ggml_op_desc; ggml_backend_sched_get_backend; };\n";
/// What ggml calls and its headers do not have.
const INTERNALS: &str = "{ global: *; local: ggml_barrier; ggml_cpu_extra_compute_forward; };\n";
const LLAMAS: &str = "{ global: llama_*; local: *; };\n";

const A: Expected = Expected::Recorded("A");
const B: Expected = Expected::Recorded("B");
const C: Expected = Expected::Recorded("C");
const ONE_BY_ONE: Expected = Expected::Recorded("node by node");
const NO_WAY: Expected = Expected::Because("NoGraphOfOneNode");

pub(super) fn builds() -> Vec<Build> {
    let mut all = changed_libraries();
    all.extend(linked_otherwise());
    all.extend(with_llama());
    all
}

fn changed_libraries() -> Vec<Build> {
    let no_names = Expected::Because("this ggml has no ggml_op_name");
    let crashes = Expected::Because("trying out this ggml in a child process crashed");
    vec![
        libraries(&backends::POINTER_OF_FREE, A).selected(),
        libraries(&backends::POINTER_OF_COMPUTE, A),
        libraries(&backends::POINTER_OF_SYNCHRONIZE, A),
        libraries(&backends::POINTER_ALWAYS_SET, A).selected(),
        libraries(&backends::FIELDS_IN_TABLE, A),
        libraries(&backends::FIELDS_BEFORE_TABLE, A),
        libraries(&backends::MUCH_BEFORE_TABLE, A).selected(),
        libraries(&tensors::LONGER_TENSOR, A),
        libraries(&tensors::SHORTER_TENSOR, A),
        libraries(&tensors::FIVE_DIMENSIONS, A).selected(),
        libraries(&tensors::SIXTEEN_SOURCES, A),
        libraries(&tensors::LONG_NAMES, A),
        libraries(&tensors::TENSOR_REORDERED, A).selected(),
        libraries(&graphs::GRAPH_FIELDS_IN_FRONT, A),
        libraries(&graphs::GRAPH_REORDERED, A),
        libraries(&graphs::NODES_ELSEWHERE, A).selected(),
        accelerated(&UNCHANGED, ONE_BY_ONE),
        accelerated(&graphs::GRAPH_REORDERED, ONE_BY_ONE),
        accelerated(&graphs::ARRAYS_ELSEWHERE, ONE_BY_ONE).selected(),
        accelerated(&graphs::NO_WAY_TO_VIEW, NO_WAY).selected(),
        libraries(&calls::SYNCHRONIZE_RENAMED, A).selected(),
        libraries(&calls::GET_DATA_RENAMED, A),
        libraries(&calls::OP_NAME_RENAMED, no_names).selected(),
        libraries(&calls::VERSION_NUMBER, A).selected(),
        libraries(&calls::INIT_PARAMS, crashes),
        libraries(&calls::COMPUTE_PARAMS, A),
        libraries(&calls::BARRIER_ARGUMENTS, A).selected(),
        libraries(&calls::ANNOUNCEMENT_ARGUMENTS, A).selected(),
        libraries(&calls::COMPUTES_AHEAD, C).selected(),
    ]
}

fn linked_otherwise() -> Vec<Build> {
    let build = |name, form, expected| Build { name, form, ..libraries(&UNCHANGED, expected) };
    let program = |name, linking| build(name, Form::Program(linking), C);
    let hides = |script| Linking { script: Some(script), ..PLAIN };
    let strip = |what, linking| Linking { strip: Some(what), ..linking };
    let one = |name, linking, expected| build(name, Form::OneLibrary(linking), expected);
    let hides_internals = Linking { options: SYMBOLIC, ..hides(INTERNALS) };
    vec![
        build("functions that are not shown", Form::Libraries(hides(SELDOM_USED)), A).selected(),
        one("one library that hides its internals", hides_internals, C).selected(),
        one("one library stripped of its internals", strip("-s", hides_internals), B).selected(),
        program("inside a program", PLAIN),
        program("inside a program without PIE", NO_PIE),
        program("inside a program, unused functions dropped", DROPPED),
        program(
            "inside a program without PIE, unused functions dropped",
            link(&["-no-pie", "-Wl,--gc-sections"]),
        )
        .selected(),
        program("inside a program stripped of debug", strip("-g", PLAIN)),
        Build {
            expected: Expected::Because("has ggml inside and was stripped of its symbols"),
            ..program("inside a program stripped of symbols", strip("-s", PLAIN)).selected()
        },
    ]
}

/// llama.cpp calls more of ggml than our programs do.
fn with_llama() -> Vec<Build> {
    let build = |name, form| Build { name, form, host: Host::Tokens, ..libraries(&UNCHANGED, C) };
    let program = |name, linking| build(name, Form::Program(linking));
    let shows_all = link(&["-rdynamic"]);
    vec![
        program("llama.cpp inside a program", PLAIN),
        program("llama.cpp inside a program without PIE", NO_PIE),
        program("llama.cpp inside a program, unused functions dropped", DROPPED).selected(),
        program("llama.cpp inside a program that shows all", shows_all).selected(),
        program(
            "llama.cpp inside a program that shows its functions only",
            Linking { script: Some(LLAMAS), ..shows_all },
        ),
        build(
            "llama.cpp inside a library that calls itself directly",
            Form::Library(link(&["-Wl,-Bsymbolic"])),
        )
        .selected(),
    ]
}

/// Three libraries.
fn libraries(change: &'static Change, expected: Expected) -> Build {
    Build {
        name: change.name,
        change,
        form: Form::Libraries(PLAIN),
        host: Host::Graphs,
        expected,
        is_selected: false,
    }
}

/// The same, with a program that has a backend of its own.
fn accelerated(change: &'static Change, expected: Expected) -> Build {
    let name = format!("{}, an accelerator", change.name).leak();
    Build { name, host: Host::Accelerated, ..libraries(change, expected) }
}

const fn link(options: &'static [&'static str]) -> Linking {
    Linking { options, ..PLAIN }
}

impl Build {
    fn selected(self) -> Build {
        Build { is_selected: true, ..self }
    }
}
