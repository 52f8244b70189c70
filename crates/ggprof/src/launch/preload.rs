//! `LD_PRELOAD`: existing entries stay, and the agent is added after them.

use super::Agent;
use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::Path;

/// More levels of directories than the path of any program has.
const LEVELS: usize = 40;
/// Separates the entries of the list for musl and not for glibc. (So do a tab and a newline, but
/// those would also separate words in scripts that pass the list on without quotes.)
const ONLY_MUSL_SEPARATES: &str = "\x0b";

/// What musl is led to where there is no agent for it.
const NOTHING: &str = "/nothing-for-musl";

/// Where AddressSanitizer has its settings.
pub(crate) const SANITIZER: &str = "ASAN_OPTIONS";

/// Its settings for a program to be started. As a shared library it ends a program in which another one
/// comes first, unless told not to look; the agent stands in for nothing that it needs.
pub(crate) fn sanitizer_options() -> OsString {
    let mut options = std::env::var_os(SANITIZER).unwrap_or_default();
    options.push(if options.is_empty() { "" } else { ":" });
    options.push("verify_asan_link_order=0");
    options
}

/// The list for a program to be started, from the one that we were started with.
pub(crate) fn with_agent(agent: &Agent) -> OsString {
    appended(std::env::var_os("LD_PRELOAD").unwrap_or_default(), &agent.entry)
}

fn appended(mut list: OsString, entry: &OsStr) -> OsString {
    let ends_entry = |byte: &u8| matches!(byte, b':' | b' ');
    if list.as_bytes().split(ends_entry).any(|part| part == entry.as_bytes()) {
        return list;
    }
    if !list.is_empty() {
        list.push(":");
    }
    list.push(entry);
    list
}

/// What cannot be in a path of the list.
pub(super) fn is_separator(byte: u8) -> bool {
    byte == b':' || byte == 0x0b || byte.is_ascii_whitespace()
}

/// The agent by way of the program's own directory, and up from there. Only glibc knows
/// what `$ORIGIN` means: musl finds no such file and starts the program without us. With
/// the plain path it would load a library it cannot run and end the program.
pub(super) fn for_glibc(agent: &Path) -> OsString {
    let mut entry = OsString::from("$ORIGIN");
    entry.push("/..".repeat(LEVELS));
    entry.push(agent);
    entry
}

/// One entry by which a program of either C library, and all that it starts, finds the agent for
/// its own. glibc opens the whole of it: a path through a directory whose name ends in a character
/// that separates entries for musl. musl sees two entries: the first names nothing, and behind the
/// character comes the plain path of its own agent, or of nothing where there is none. In the directory
/// therefore lies, under that same path, a link to glibc's agent. (`$ORIGIN` would do without a link, but
/// then each process asks the system where its program is, which takes it 18 microseconds.)
pub(super) fn for_both(glibc: &Path, musl: Option<&Path>) -> io::Result<OsString> {
    let beside = glibc.parent().unwrap_or(Path::new("/"));
    let mut whole = beside.join("or").into_os_string();
    whole.push(ONLY_MUSL_SEPARATES);
    whole.push(musl.unwrap_or(Path::new(NOTHING)));
    let link = Path::new(&whole);
    if std::fs::read_link(link).ok().as_deref() != Some(glibc) {
        let parent = link.parent().unwrap_or(Path::new("/"));
        DirBuilder::new().mode(0o700).recursive(true).create(parent)?;
        match symlink(glibc, link) {
            // Another launcher may make it at the same time.
            Err(problem) if problem.kind() == io::ErrorKind::AlreadyExists => {
                (std::fs::read_link(link)? == glibc).then_some(()).ok_or(problem)?;
            }
            made => made?,
        }
    }
    Ok(whole)
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

    #[test]
    fn one_entry_leads_to_either_agent() {
        let directory = tempfile::tempdir().unwrap();
        let (glibc, musl) =
            (directory.path().join("g/agent.so"), directory.path().join("m/agent.so"));
        for agent in [&glibc, &musl] {
            std::fs::create_dir(agent.parent().unwrap()).unwrap();
            std::fs::write(agent, agent.as_os_str().as_bytes()).unwrap();
        }
        for _ in 0..2 {
            let entry = for_both(&glibc, Some(&musl)).unwrap().into_string().unwrap();
            assert_eq!(std::fs::read(&entry).unwrap(), glibc.as_os_str().as_bytes());
            let (first, second) = entry.split_once(char::is_whitespace).unwrap();
            assert!(!Path::new(first).exists(), "{first}");
            assert_eq!(Path::new(second), musl);
        }
    }

    #[test]
    fn without_an_agent_for_musl_it_is_led_to_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let glibc = directory.path().join("agent.so");
        std::fs::write(&glibc, "agent").unwrap();
        let entry = for_both(&glibc, None).unwrap().into_string().unwrap();
        assert_eq!(std::fs::read(&entry).unwrap(), b"agent");
        for part in entry.split(char::is_whitespace) {
            assert!(!Path::new(part).exists(), "{part}");
        }
    }
}
