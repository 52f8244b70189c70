//! The linker of what is handed out: zig's, from the Python index, which knows the symbols of every
//! glibc and so links for an old one on any system.

use anyhow::anyhow;
use ggprof_e2e::pypi;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::shell;

/// For a program that ends at a panic. Crates that are compiled together with the standard library, whose
/// functions may unwind, have these tables in spite of that: half a megabyte.
const NO_UNWIND_TABLES: &str = "SECTIONS { /DISCARD/ : { \
    *(.eh_frame) *(.eh_frame_hdr) *(.gcc_except_table*) \
} } INSERT AFTER .comment;\n";

const ZIG: &str = "0.17.0";
/// What programs are linked for, in the words of zig.
pub(super) const OLDEST: &str = "x86_64-linux-gnu.2.17";

/// What rustc is told to link a program without them.
pub(super) fn without_unwind_tables() -> anyhow::Result<String> {
    let directory = shell::target().join("dist/linkers");
    fs::create_dir_all(&directory)?;
    let script = std::path::absolute(directory.join("no-unwind-tables.ld"))?;
    fs::write(&script, NO_UNWIND_TABLES)?;
    Ok(format!("-Clink-arg=-Wl,-T,{}", script.display()))
}

/// A program that rustc can use as linker, for a target in the words of zig.
pub(super) fn for_target(zig_target: &str) -> anyhow::Result<PathBuf> {
    let zig = pypi::unpacked("ziglang", ZIG).map_err(|problem| anyhow!(problem))?;
    let zig = zig.join("ziglang/zig");
    fs::set_permissions(&zig, Permissions::from_mode(0o755))?;
    let directory = shell::target().join("dist/linkers");
    fs::create_dir_all(&directory)?;
    let script = std::path::absolute(directory.join(zig_target))?;
    fs::write(&script, text(&zig.display().to_string(), zig_target))?;
    fs::set_permissions(&script, Permissions::from_mode(0o755))?;
    Ok(script)
}

/// Into a library, zig would put an unwinder of its own, and C++ exceptions of the program that pass
/// through hooks would meet two of them. The agent finds the program's own while it runs.
fn text(zig: &str, zig_target: &str) -> String {
    format!(
        r#"#!/bin/sh
is_library=
for word; do [ "$word" = -shared ] && is_library=yes; done
for word; do
    shift
    [ "$is_library$word" = yes-lgcc_s ] || set -- "$@" "$word"
done
exec '{zig}' cc -target {zig_target} "$@"
"#
    )
}
