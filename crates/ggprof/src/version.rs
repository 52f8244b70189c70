//! What `ggprof --version` says: what this build was made from, carries and understands.

use ggprof_agents::{Agent, CARRIED, COMMIT, Libc};
use ggprof_spool::layout;
use std::sync::LazyLock;

static LONG: LazyLock<String> = LazyLock::new(|| {
    let commit = if COMMIT.is_empty() { "of a development build" } else { COMMIT };
    format!(
        "{version}\ncommit      {commit}\nagents      {agents}\nrecordings  writes format {newest}, \
         reads 1 to {newest}; reads the JSON of ggml's profiler",
        version = env!("CARGO_PKG_VERSION"),
        agents = agents(CARRIED),
        newest = layout::VERSION,
    )
});

pub(crate) fn long() -> &'static str {
    &LONG
}

fn agents(carried: &[Agent]) -> String {
    if carried.is_empty() {
        return "none inside; takes the one beside the command".to_owned();
    }
    let name = |agent: &Agent| {
        let libc = match agent.libc() {
            Libc::Glibc => "glibc",
            Libc::Musl => "musl",
        };
        format!("{} {libc} ({})", agent.processor(), &agent.sha256[..12])
    };
    carried.iter().map(name).collect::<Vec<_>>().join(", ")
}
