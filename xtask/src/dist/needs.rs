//! What a file needs from the system it will run on: nothing of glibc that is newer than 2.17, and no
//! unwinder inside a library.

use anyhow::bail;
use std::path::Path;

use crate::shell;

const OLDEST: (u32, u32) = (2, 17);

pub(super) fn check(file: &Path) -> anyhow::Result<()> {
    let output = shell::command("readelf", &["--dyn-syms", "--wide"]).arg(file).output()?;
    let symbols = String::from_utf8_lossy(&output.stdout);
    let is_for_musl = file.to_string_lossy().contains("musl");
    let wrong = complaints(&symbols, is_for_musl);
    if !wrong.is_empty() || !output.status.success() {
        bail!("{} needs what old systems lack: {}", file.display(), wrong.join(", "));
    }
    Ok(())
}

/// Every process that a recorded program starts loads the agent, and with it each library that it names:
/// beside the C library there is none that all of them have.
pub(super) fn check_alone(agent: &Path) -> anyhow::Result<()> {
    let output = shell::command("readelf", &["--dynamic", "--wide"]).arg(agent).output()?;
    let others = others(&String::from_utf8_lossy(&output.stdout));
    if !others.is_empty() || !output.status.success() {
        bail!("{} makes every process load {}", agent.display(), others.join(", "));
    }
    Ok(())
}

/// The libraries that a dynamic section names, but for the C library and the loader.
fn others(dynamic: &str) -> Vec<String> {
    let named = dynamic.lines().filter(|line| line.contains("(NEEDED)"));
    let names = named.filter_map(|line| line.split_once('[')?.1.split_once(']').map(|it| it.0));
    let is_other = |name: &&str| !name.starts_with("libc.so") && !name.starts_with("ld-linux");
    names.filter(is_other).map(str::to_owned).collect()
}

/// Undefined symbols that an old system does not have. glibc's have versions: one without is too new
/// for the linker to know.
fn complaints(symbols: &str, is_for_musl: bool) -> Vec<String> {
    let undefined = symbols.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, _, _, _, binding, _, "UND", name, ..] = words[..] else { return None };
        (binding == "GLOBAL").then_some(name)
    });
    let is_wrong = |name: &&str| match name.split_once("@GLIBC_") {
        Some((_, version)) => number(version).is_none_or(|version| version > OLDEST),
        None => !is_for_musl || name.starts_with("_Unwind"),
    };
    undefined.filter(is_wrong).map(str::to_owned).collect()
}

fn number(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_beside_that_of_c_are_named() {
        let dynamic = "\
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x0000000000000001 (NEEDED)             Shared library: [libdl.so.2]
 0x0000000000000001 (NEEDED)             Shared library: [ld-linux-x86-64.so.2]
 0x000000000000000e (SONAME)             Library soname: [libm.so.6]
";
        assert_eq!(others(dynamic), ["libdl.so.2"]);
    }

    #[test]
    fn what_is_too_new_is_named() {
        let symbols = "\
     1: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND open@GLIBC_2.2.5 (2)
     2: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND hypot@GLIBC_2.35 (3)
     3: 0000000000000000     0 FUNC    WEAK   DEFAULT  UND statx
     4: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND gettid
     5: 0000000000001000     9 FUNC    GLOBAL DEFAULT   12 dlopen
";
        assert_eq!(complaints(symbols, false), ["hypot@GLIBC_2.35", "gettid"]);
        assert_eq!(complaints(symbols, true), ["hypot@GLIBC_2.35"]);
    }
}
