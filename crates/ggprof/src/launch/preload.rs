//! `LD_PRELOAD`: existing entries stay, and the agent is added after them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// More levels of directories than the path of any program has.
const LEVELS: usize = 40;

/// The list for a program to be started, from the one that we were started with.
pub(crate) fn with_agent(agent: &Path) -> OsString {
    appended(std::env::var_os("LD_PRELOAD").unwrap_or_default(), &entry(agent))
}

fn appended(mut list: OsString, entry: &OsString) -> OsString {
    let is_separator = |byte: &u8| *byte == b':' || byte.is_ascii_whitespace();
    if list.as_bytes().split(is_separator).any(|part| part == entry.as_bytes()) {
        return list;
    }
    if !list.is_empty() {
        list.push(":");
    }
    list.push(entry);
    list
}

/// The agent by way of the program's own directory, and up from there. Only glibc knows
/// what `$ORIGIN` means: musl finds no such file and starts the program without us. With
/// the plain path it would load a library it cannot run and end the program.
fn entry(agent: &Path) -> OsString {
    let mut entry = OsString::from("$ORIGIN");
    entry.push("/..".repeat(LEVELS));
    entry.push(agent);
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_stays_and_the_agent_comes_once() {
        let agent = OsString::from("/a.so");
        for (before, after) in [
            ("", "/a.so"),
            ("/other.so", "/other.so:/a.so"),
            ("/other.so /more.so", "/other.so /more.so:/a.so"),
            ("/a.so:/other.so", "/a.so:/other.so"),
        ] {
            assert_eq!(appended(before.into(), &agent), after);
        }
    }
}
