//! `cargo xtask test`: everything that must hold, on any machine.

use crate::{shell, system};

/// How many tests of a test program run at once, by the name that these read.
const TEST_THREADS: &str = "RUST_TEST_THREADS";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    system::install_needed()?;
    // Programs for musl and for aarch64 are tested where Rust's libraries for them can be had.
    shell::has_library_for("x86_64-unknown-linux-musl");
    shell::has_library_for("aarch64-unknown-linux-gnu");
    // Fuzzing itself has its own task; here the targets must keep up with what they call.
    let mut fuzz = shell::cargo_command(&["check", "--manifest-path", "fuzz/Cargo.toml"]);
    // It shares what is compiled already.
    shell::run(fuzz.arg("--target-dir").arg(shell::target()))?;
    // All failures of a run are told, not those of the first test program only.
    let mut test = shell::cargo_command(&["test", "--workspace", "--no-fail-fast"]);
    // A test that cannot get its ggml or its browser must not pass in silence here.
    test.env("GGPROF_REQUIRE_GGML", "1").env("GGPROF_REQUIRE_BROWSER", "1");
    // Most tests wait for programs for a quarter of their time.
    if std::env::var_os(TEST_THREADS).is_none() {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        test.env(TEST_THREADS, (processors * 2).to_string());
    }
    shell::run(test.args(arguments))
}
