//! The agents that the command carries: packed libraries, each for one processor and one C library.
//! `build.rs` puts them here. How they get into a program is the launcher's business.

#![forbid(unsafe_code)]

use flate2::read::DeflateDecoder;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::{self, Read};

/// Those of this build: none in a development build.
pub static CARRIED: &[Agent] = include!(concat!(env!("OUT_DIR"), "/agents.rs"));

/// The commit that this build was made from; empty in a development build, and where git could not
/// tell.
pub const COMMIT: &str = env!("GGPROF_COMMIT");

/// A library that is loaded into programs.
#[derive(Debug)]
pub struct Agent {
    /// As Rust calls it: `x86_64-unknown-linux-gnu`.
    pub target: &'static str,
    /// Of the library, in hexadecimal digits.
    pub sha256: &'static str,
    length: usize,
    packed: &'static [u8],
}

/// The C libraries that there are agents for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Libc {
    Glibc,
    Musl,
}

impl Agent {
    /// The processor, in the words of Rust.
    pub fn processor(&self) -> &'static str {
        self.target.split('-').next().unwrap_or_default()
    }

    pub fn libc(&self) -> Libc {
        if self.target.ends_with("musl") { Libc::Musl } else { Libc::Glibc }
    }

    /// The library's bytes.
    pub fn unpacked(&self) -> io::Result<Vec<u8>> {
        let mut library = Vec::with_capacity(self.length);
        DeflateDecoder::new(self.packed).read_to_end(&mut library)?;
        Ok(library)
    }

    /// Whether a file has this library's bytes.
    pub fn is(&self, mut file: impl Read) -> io::Result<bool> {
        let mut bytes = Vec::with_capacity(self.length + 1);
        file.by_ref().take(self.length as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes.len() == self.length && digits(&Sha256::digest(&bytes)) == self.sha256)
    }
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "agent", packed by raw deflate.
    const AGENT: Agent = Agent {
        target: "x86_64-unknown-linux-musl",
        sha256: "d4f0bc5a29de06b510f9aa428f1eedba926012b591fef7a518e776a7c9bd1824",
        length: 5,
        packed: &[0x4b, 0x4c, 0x4f, 0xcd, 0x2b, 0x01, 0x00],
    };

    #[test]
    fn its_bytes_are_known_packed_and_unpacked() {
        assert_eq!(AGENT.unpacked().unwrap(), b"agent");
        assert_eq!((AGENT.processor(), AGENT.libc()), ("x86_64", Libc::Musl));
        for (bytes, is_it) in [("agent", true), ("agenT", false), ("agents", false), ("", false)] {
            assert_eq!(AGENT.is(bytes.as_bytes()).unwrap(), is_it, "{bytes}");
        }
    }

    #[test]
    fn what_this_build_carries_can_be_unpacked() {
        for agent in CARRIED {
            assert!(agent.is(&agent.unpacked().unwrap()[..]).unwrap(), "{}", agent.target);
        }
    }
}
