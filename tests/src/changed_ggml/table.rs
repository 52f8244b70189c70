//! The builds.

use super::change::{self, Change};
use super::form::{Form, Host, Linking};
use super::{Build, Expected};

const PLAIN: Linking = Linking::PLAIN;

/// Functions that programs seldom use, and which the linker drops where it may.
const SELDOM_USED: &str = "{ global: *; local: ggml_get_data; ggml_get_name; \
ggml_graph_n_nodes; ggml_graph_nodes; ggml_op_desc; ggml_backend_sched_get_backend; };\n";

/// All builds.
pub fn all() -> Vec<Build> {
    let mut all: Vec<Build> = [
        &change::POINTER_OF_FREE,
        &change::POINTER_OF_COMPUTE,
        &change::POINTER_OF_SYNCHRONIZE,
        &change::POINTER_ALWAYS_SET,
        &change::FIELDS_IN_TABLE,
        &change::FIELDS_BEFORE_TABLE,
        &change::MUCH_BEFORE_TABLE,
        &change::LONGER_TENSOR,
        &change::SHORTER_TENSOR,
        &change::FIVE_DIMENSIONS,
        &change::SIXTEEN_SOURCES,
        &change::LONG_NAMES,
        &change::TENSOR_REORDERED,
        &change::GRAPH_FIELDS_IN_FRONT,
        &change::GRAPH_REORDERED,
        &change::NODES_ELSEWHERE,
        &change::SYNCHRONIZE_RENAMED,
        &change::GET_DATA_RENAMED,
        &change::OP_NAME_RENAMED,
        &change::INIT_PARAMS,
        &change::COMPUTE_PARAMS,
        &change::BARRIER_ARGUMENTS,
        &change::ANNOUNCEMENT_ARGUMENTS,
    ]
    .map(libraries)
    .into();
    all.push(Build {
        name: "functions that are not shown",
        form: Form::Libraries(Linking { script: Some(SELDOM_USED), ..PLAIN }),
        ..libraries(&change::UNCHANGED)
    });
    let program = |name, linking| Build {
        name,
        change: &change::UNCHANGED,
        form: Form::Program(linking),
        host: Host::Graphs,
        expected: Expected::Recorded("C"),
    };
    let link = |options| Linking { options, ..PLAIN };
    let strip = |options| Linking { strip: Some(options), ..PLAIN };
    all.extend([
        program("inside a program", PLAIN),
        program("inside a program without PIE", link(&["-no-pie"])),
        program("inside a program, unused functions dropped", link(&["-Wl,--gc-sections"])),
        program(
            "inside a program without PIE, unused functions dropped",
            link(&["-no-pie", "-Wl,--gc-sections"]),
        ),
        program("inside a program stripped of debug", strip("-g")),
        Build {
            expected: Expected::Because("stripped"),
            ..program("inside a program stripped of symbols", strip("-s"))
        },
    ]);
    let llama = |name, linking| Build { host: Host::Tokens, ..program(name, linking) };
    all.extend([
        llama("llama.cpp inside a program", PLAIN),
        llama("llama.cpp inside a program without PIE", link(&["-no-pie"])),
        llama("llama.cpp inside a program, unused functions dropped", link(&["-Wl,--gc-sections"])),
        llama("llama.cpp inside a program that shows all", link(&["-rdynamic"])),
        llama(
            "llama.cpp inside a program that shows its functions only",
            Linking {
                options: &["-rdynamic"],
                script: Some("{ global: llama_*; local: *; };\n"),
                ..PLAIN
            },
        ),
        Build {
            form: Form::Library(link(&["-Wl,-Bsymbolic"])),
            ..llama("llama.cpp inside a library that calls itself directly", PLAIN)
        },
    ]);
    all
}

/// Those that tests run.
pub fn selected() -> Vec<Build> {
    all()
}

/// Three libraries.
fn libraries(change: &'static Change) -> Build {
    Build {
        name: change.name,
        change,
        form: Form::Libraries(PLAIN),
        host: Host::Graphs,
        expected: Expected::Recorded("A"),
    }
}
