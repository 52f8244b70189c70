//! What a program's file says before the program is started: whether the agent can be loaded into
//! it.

use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, FileKind};
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Scripts that are interpreted by scripts end somewhere.
const MOST_INTERPRETERS: usize = 4;
/// Program headers lie at the beginning of a file.
const HEAD_BYTES: u64 = 64 * 1024;
/// A name that only glibc's loader shows.
const LOADERS_OWN: &[u8] = b"\0_rtld_global\0";

/// Why the agent cannot get into a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// It gets rights that its user does not have.
    MoreRights,
    Static,
    Musl,
    Bits32,
    OtherProcessor,
}

impl Obstacle {
    /// What it means, and what to try.
    pub(crate) fn sentence(self, program: &Path) -> String {
        let name = program.display();
        match self {
            Self::MoreRights => format!(
                "{name} is setuid, setgid or has capabilities, so the system loads nothing else \
                 into it: it cannot be recorded. Run the program behind it directly, or a copy \
                 without these rights."
            ),
            Self::Static => format!(
                "{name} is linked statically, so nothing can be loaded into it: only programs \
                 that it starts can be recorded. Use a build with shared libraries \
                 (-DBUILD_SHARED_LIBS=ON)."
            ),
            Self::Musl => format!(
                "{name} is built for musl, and the agent for glibc: only programs that it starts \
                 can be recorded. Use a build for glibc."
            ),
            Self::Bits32 => format!(
                "{name} is a 32-bit program, and the agent is not: only programs that it starts \
                 can be recorded. Use a 64-bit build."
            ),
            Self::OtherProcessor => format!(
                "{name} is built for another processor than the agent (x86-64): it cannot be \
                 recorded."
            ),
        }
    }
}

/// Where the command is, as the system will look for it.
pub(crate) fn find(command: &OsStr) -> Option<PathBuf> {
    let path = Path::new(command);
    if path.components().count() > 1 || command.as_encoded_bytes().contains(&b'/') {
        return Some(path.to_owned()).filter(|path| path.is_file());
    }
    let places = std::env::var_os("PATH")?;
    let is_program = |path: &PathBuf| {
        path.metadata()
            .is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&places).map(|place| place.join(path)).find(is_program)
}

/// The program that a command really starts (of a script, its interpreter), and why the
/// agent cannot get into it, if it cannot.
pub(crate) fn examine(command: &OsStr) -> Option<(PathBuf, Option<Obstacle>)> {
    let mut program = find(command)?;
    for _ in 0..MOST_INTERPRETERS {
        let head = head_of(&program)?;
        match interpreter(&head) {
            Some(interpreter) => program = interpreter,
            None => {
                let facts = program.metadata().ok()?;
                let obstacle = more_rights(&program, &facts).or_else(|| loading(&head));
                return Some((program, obstacle));
            }
        }
    }
    None
}

/// Whether a program has ggml inside and was stripped of its symbols, by which its functions would
/// be found: what ggml says when it gives up is there, and a table of symbols is not.
pub(crate) fn hides_ggml(program: &Path) -> bool {
    const ITS_WORDS: &[u8] = b"GGML_ASSERT(";
    let bytes = std::fs::read(program).unwrap_or_default();
    let has_words = || bytes.windows(ITS_WORDS.len()).any(|window| window == ITS_WORDS);
    is_stripped(&bytes).unwrap_or(false) && has_words()
}

fn is_stripped(file: &[u8]) -> Option<bool> {
    let header = FileHeader64::<Endianness>::parse(file).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, file).ok()?;
    Some(!sections.iter().any(|section| section.sh_type(endian) == elf::SHT_SYMTAB))
}

fn head_of(program: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    File::open(program).ok()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    Some(head)
}

fn interpreter(head: &[u8]) -> Option<PathBuf> {
    let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let text = std::str::from_utf8(line).ok()?;
    text.split_ascii_whitespace().next().map(PathBuf::from)
}

fn more_rights(program: &Path, facts: &Metadata) -> Option<Obstacle> {
    let mode = facts.permissions().mode();
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    let other_user = mode & 0o4000 != 0 && facts.uid() != user;
    let other_group = mode & 0o2010 == 0o2010 && facts.gid() != group;
    let capable = || {
        let mut value = [0_u8; 64];
        user != 0 && rustix::fs::getxattr(program, "security.capability", &mut value).is_ok()
    };
    (other_user || other_group || capable()).then_some(Obstacle::MoreRights)
}

/// What the file's own headers say about loading a library into it.
fn loading(head: &[u8]) -> Option<Obstacle> {
    match FileKind::parse(head) {
        Ok(FileKind::Elf64) => {}
        Ok(FileKind::Elf32) => return Some(Obstacle::Bits32),
        // A format the system knows and we do not is left to it.
        _ => return None,
    }
    let file = FileHeader64::<Endianness>::parse(head).ok()?;
    let endian = file.endian().ok()?;
    if file.e_machine.get(endian) != elf::EM_X86_64 {
        return Some(Obstacle::OtherProcessor);
    }
    for segment in file.program_headers(endian, head).ok()? {
        if let Some(loader) = segment.interpreter(endian, head).ok()? {
            let is_musl = loader.windows(7).any(|part| part == b"ld-musl");
            return is_musl.then_some(Obstacle::Musl);
        }
    }
    // Started with another program as its argument, glibc's loader loads the agent into that.
    let is_loader = head.windows(LOADERS_OWN.len()).any(|part| part == LOADERS_OWN);
    (!is_loader).then_some(Obstacle::Static)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_its_interpreter() {
        assert_eq!(interpreter(b"#! /usr/bin/env node\n"), Some("/usr/bin/env".into()));
        assert_eq!(interpreter(b"\x7fELF"), None);
    }

    #[test]
    fn this_program_can_be_recorded() {
        let program = std::env::current_exe().unwrap();
        assert_eq!(examine(program.as_os_str()), Some((program, None)));
        assert_eq!(examine("sh".as_ref()).map(|(_, obstacle)| obstacle), Some(None));
        assert_eq!(examine("no-such-command".as_ref()), None);
        let loader = "/lib64/ld-linux-x86-64.so.2";
        assert_eq!(examine(loader.as_ref()).map(|(_, obstacle)| obstacle), Some(None));
    }

    #[test]
    fn cut_headers_are_no_reason() {
        let head = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        for length in 0..600 {
            let obstacle = loading(&head[..length]);
            assert!(matches!(obstacle, None | Some(Obstacle::Static)), "{length}: {obstacle:?}");
        }
    }
}
