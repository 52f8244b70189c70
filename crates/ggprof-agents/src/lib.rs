//! The agents that the command carries: packed libraries, each for one processor and one C library.
//! `build.rs` puts them here. How they get into a program is the launcher's business.

#![forbid(unsafe_code)]

use lzma_rust2::Lzma2Reader;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::{self, Read};

/// Those of this build: none in a development build.
pub static CARRIED: &[Agent] = include!(concat!(env!("OUT_DIR"), "/agents.rs"));

/// The commit that this build was made from; empty in a development build, and where git could not
/// tell.
pub const COMMIT: &str = env!("GGPROF_COMMIT");

/// Of how much the packer knew, at most; the same as in `build.rs`.
const DICTIONARY_BYTES: u32 = 1 << 23;

/// A library that is loaded into programs.
#[derive(Debug)]
pub struct Agent {
    /// As Rust calls it: `x86_64-unknown-linux-gnu`.
    pub target: &'static str,
    /// Of the library, in hexadecimal digits.
    pub sha256: &'static str,
    length: usize,
    /// The target of the agent that this one is packed as a difference to.
    base: Option<&'static str>,
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
        let base = CARRIED.iter().find(|other| Some(other.target) == self.base);
        let base = base.map(Agent::unpacked).transpose()?;
        self.unpacked_from(base.as_deref())
    }

    fn unpacked_from(&self, base: Option<&[u8]>) -> io::Result<Vec<u8>> {
        let mut library = Vec::with_capacity(self.length);
        Lzma2Reader::new(self.packed, DICTIONARY_BYTES, base).read_to_end(&mut library)?;
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
    use lzma_rust2::{Lzma2Options, Lzma2Writer};
    use std::io::Write as _;

    fn packed(library: &[u8], base: Option<&[u8]>) -> &'static [u8] {
        let mut options = Lzma2Options::with_preset(9);
        options.lzma_options.dict_size = DICTIONARY_BYTES;
        options.lzma_options.preset_dict = base.map(<[u8]>::to_vec);
        let mut encoder = Lzma2Writer::new(Vec::new(), options);
        encoder.write_all(library).unwrap();
        encoder.finish().unwrap().leak()
    }

    #[test]
    fn its_bytes_are_known_packed_and_unpacked() {
        let agent = Agent {
            target: "x86_64-unknown-linux-musl",
            sha256: "d4f0bc5a29de06b510f9aa428f1eedba926012b591fef7a518e776a7c9bd1824",
            length: 5,
            base: None,
            packed: packed(b"agent", None),
        };
        assert_eq!(agent.unpacked().unwrap(), b"agent");
        assert_eq!((agent.processor(), agent.libc()), ("x86_64", Libc::Musl));
        for (bytes, is_it) in [("agent", true), ("agenT", false), ("agents", false), ("", false)] {
            assert_eq!(agent.is(bytes.as_bytes()).unwrap(), is_it, "{bytes}");
        }
    }

    #[test]
    fn one_that_resembles_another_is_short() {
        let base: Vec<u8> = (0..100_000_u32)
            .flat_map(|it| it.wrapping_mul(it).wrapping_mul(2_654_435_761).to_le_bytes())
            .collect();
        let mut other = base.clone();
        other.splice(1000..1010, *b"something else");
        let packed = packed(&other, Some(&base));
        assert!(packed.len() < 1000, "{}", packed.len());
        let (target, sha256) = ("aarch64-unknown-linux-musl", "");
        let agent = Agent { target, sha256, length: other.len(), base: None, packed };
        assert!(agent.unpacked_from(Some(&base)).unwrap() == other);
    }

    #[test]
    fn what_this_build_carries_can_be_unpacked() {
        for agent in CARRIED {
            assert!(agent.is(&agent.unpacked().unwrap()[..]).unwrap(), "{}", agent.target);
        }
    }
}
