//! `ggprof env`: what a shell must export so that `GGML_PROFILE` works in it.

use crate::exit::Outcome;
use crate::{launch, output};
use anyhow::bail;
use ggprof_spool::names;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

pub(crate) fn env() -> anyhow::Result<Outcome> {
    let agent = launch::find_agent()?;
    if agent.is_in_memory() {
        bail!(
            "there is no directory for the recording agent from which programs can be run, and in \
             memory it would be gone with this command. Set XDG_CACHE_HOME to such a directory."
        );
    }
    let variables = [
        ("LD_PRELOAD", launch::preload_with_agent(&agent)),
        (launch::SANITIZER, launch::sanitizer_options()),
        (names::COMMAND, std::env::current_exe()?.into_os_string()),
    ];
    output::to_stdout(|out| {
        variables.iter().try_for_each(|(name, value)| out.write_all(&export(name, value)))
    })?;
    Ok(Outcome::Done)
}

/// A line for a POSIX shell, whatever the value holds.
fn export(name: &str, value: &OsString) -> Vec<u8> {
    let mut line = format!("export {name}='").into_bytes();
    for &byte in value.as_bytes() {
        match byte {
            b'\'' => line.extend_from_slice(br"'\''"),
            _ => line.push(byte),
        }
    }
    line.extend_from_slice(b"'\n");
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_for_the_shell() {
        let line = export("A", &OsString::from("it's $HOME\n`x`"));
        assert_eq!(line, b"export A='it'\\''s $HOME\n`x`'\n");
    }
}
