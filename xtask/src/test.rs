//! `cargo xtask test`: everything that must hold, on any machine.

use crate::{shell, system};

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    system::install_needed()?;
    // Programs for musl and for aarch64 are tested where Rust's libraries for them can be had.
    shell::has_library_for("x86_64-unknown-linux-musl");
    shell::has_library_for("aarch64-unknown-linux-gnu");
    // Fuzzing itself has its own task; here the targets must keep up with what they call.
    shell::cargo(&["check", "--manifest-path", "fuzz/Cargo.toml"])?;
    let mut test = shell::cargo_command(&["test", "--workspace"]);
    // A test that cannot get its ggml or its browser must not pass in silence here.
    test.env("GGPROF_REQUIRE_GGML", "1").env("GGPROF_REQUIRE_BROWSER", "1");
    shell::run(test.args(arguments))
}
