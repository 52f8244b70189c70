//! What a program's file says before the program is started: whether the agent can be loaded into
//! it.

use super::Agent;
use ggprof_agents::Libc;
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
/// Program headers lie at the beginning of a file, and what a library shows not far behind.
const HEAD_BYTES: u64 = 128 * 1024;
/// Names that only the loaders show, among their first bytes.
const GLIBCS_OWN: &[u8] = b"\0_rtld_global\0";
const MUSLS_OWN: &[u8] = b"\0__dls3\0";

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
                "{name} is built for musl, and this ggprof has no agent for musl: only programs \
                 that it starts can be recorded. Use a build for glibc, or a released ggprof."
            ),
            Self::Bits32 => format!(
                "{name} is a 32-bit program, and the agent is not: only programs that it starts \
                 can be recorded. Use a 64-bit build."
            ),
            Self::OtherProcessor => format!(
                "{name} is built for another processor than the agents of this ggprof: it cannot be \
                 recorded. Use a ggprof for that processor."
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

/// A program's file, as far as it concerns the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// The processor it is built for, in the words of Rust, if there can be an agent for it.
    pub(crate) processor: Option<&'static str>,
    /// The C library whose loader it names.
    pub(crate) libc: Option<Libc>,
    /// Why the agent cannot get into it.
    pub(crate) obstacle: Option<Obstacle>,
}

/// The program that a command really starts: of a script, its interpreter.
pub(crate) fn examine(command: &OsStr, agent: &Agent) -> Option<Program> {
    let mut program = follow(command)?;
    // An obstacle for an agent that is not there.
    if program.obstacle == Some(Obstacle::Musl) && agent.musl.is_some() {
        program.obstacle = None;
    }
    if program.processor.is_some_and(|processor| processor != agent.processor) {
        program.obstacle = Some(Obstacle::OtherProcessor);
    }
    Some(program)
}

/// The processor that a command's program is built for, as far as that can be told and there can be an
/// agent for it.
pub(super) fn processor_of(command: &OsStr) -> Option<&'static str> {
    follow(command)?.processor
}

fn follow(command: &OsStr) -> Option<Program> {
    let mut program = find(command)?;
    for _ in 0..MOST_INTERPRETERS {
        let head = head_of(&program)?;
        match interpreter(&head) {
            Some(interpreter) => program = interpreter,
            None => {
                let facts = program.metadata().ok()?;
                let Loading { processor, libc, obstacle } = loading(&head);
                let obstacle = more_rights(&program, &facts).or(obstacle);
                return Some(Program { path: program, processor, libc, obstacle });
            }
        }
    }
    None
}

/// Whether a command is a program of ggml: linked with its libraries, or with ggml inside. Of those
/// that only start one, such as scripts, it cannot be told.
pub(crate) fn is_of_ggml(command: &OsStr) -> bool {
    const ITS_NAMES: [&[u8]; 5] =
        [b"libggml", b"ggml_backend", b"libllama", b"libwhisper", b"libstable-diffusion"];
    let bytes = find(command).and_then(|program| std::fs::read(program).ok()).unwrap_or_default();
    let names = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
    bytes.starts_with(&elf::ELFMAG) && ITS_NAMES.into_iter().any(names)
}

/// Whether a program has ggml inside and was stripped of its symbols, by which its functions would
/// be found: what ggml says when it gives up is there, and a table of symbols is not. Programs that use
/// ggml's words and not its code call a function of a library when they give up.
pub(crate) fn hides_ggml(program: &Path) -> bool {
    const ITS_WORDS: &[u8] = b"GGML_ASSERT(";
    let bytes = std::fs::read(program).unwrap_or_default();
    let has_words = || bytes.windows(ITS_WORDS.len()).any(|window| window == ITS_WORDS);
    names_no_function(&bytes).unwrap_or(false) && has_words()
}

/// Whether a file has no table of symbols and neither shows nor needs a function of ggml.
fn names_no_function(file: &[u8]) -> Option<bool> {
    let header = FileHeader64::<Endianness>::parse(file).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, file).ok()?;
    if sections.iter().any(|section| section.sh_type(endian) == elf::SHT_SYMTAB) {
        return Some(false);
    }
    let dynamic = sections.symbols(endian, file, elf::SHT_DYNSYM).ok()?;
    let mut names = dynamic.iter().filter_map(|symbol| dynamic.symbol_name(endian, symbol).ok());
    Some(!names.any(|name| name.starts_with(b"ggml_")))
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
#[derive(Debug, Default)]
struct Loading {
    processor: Option<&'static str>,
    libc: Option<Libc>,
    obstacle: Option<Obstacle>,
}

fn loading(head: &[u8]) -> Loading {
    match FileKind::parse(head) {
        Ok(FileKind::Elf64) => loading_of_elf64(head).unwrap_or_default(),
        Ok(FileKind::Elf32) => Loading { obstacle: Some(Obstacle::Bits32), ..Loading::default() },
        // A format the system knows and we do not is left to it.
        _ => Loading::default(),
    }
}

fn loading_of_elf64(head: &[u8]) -> object::Result<Loading> {
    let file = FileHeader64::<Endianness>::parse(head)?;
    let endian = file.endian()?;
    let processor = match file.e_machine.get(endian) {
        elf::EM_X86_64 => Some("x86_64"),
        elf::EM_AARCH64 => Some("aarch64"),
        _ => None,
    };
    let (libc, obstacle) = match processor {
        Some(_) => loader_of(file, head)?,
        None => (None, Some(Obstacle::OtherProcessor)),
    };
    Ok(Loading { processor, libc, obstacle })
}

fn loader_of(
    file: &FileHeader64<Endianness>,
    head: &[u8],
) -> object::Result<(Option<Libc>, Option<Obstacle>)> {
    let endian = file.endian()?;
    for segment in file.program_headers(endian, head)? {
        if let Some(loader) = segment.interpreter(endian, head)? {
            return Ok(match loader.windows(7).any(|part| part == b"ld-musl") {
                true => (Some(Libc::Musl), Some(Obstacle::Musl)),
                false => (Some(Libc::Glibc), None),
            });
        }
    }
    // Started with another program as its argument, a loader loads the agent into that.
    let names = |name: &[u8]| head.windows(name.len()).any(|part| part == name);
    Ok(match (names(GLIBCS_OWN), names(MUSLS_OWN)) {
        (true, _) => (Some(Libc::Glibc), None),
        (false, true) => (Some(Libc::Musl), Some(Obstacle::Musl)),
        (false, false) => (None, Some(Obstacle::Static)),
    })
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
        let processor = Some(std::env::consts::ARCH);
        let (libc, obstacle) = (Some(Libc::Glibc), None);
        let found = Program { path: program.clone(), processor, libc, obstacle };
        assert_eq!(follow(program.as_os_str()), Some(found));
        assert_eq!(follow("no-such-command".as_ref()), None);
        let loader = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
        let loader = loader.iter().find(|path| Path::new(path).exists());
        for command in std::iter::once(&"sh").chain(loader) {
            let found = follow(command.as_ref()).map(|found| (found.libc, found.obstacle));
            assert_eq!(found, Some((Some(Libc::Glibc), None)), "{command}");
        }
    }

    #[test]
    fn the_processor_is_told() {
        let mut head = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        /// Where the header has it.
        const MACHINE: usize = 18;
        for (machine, processor) in [
            (elf::EM_X86_64, Some("x86_64")),
            (elf::EM_AARCH64, Some("aarch64")),
            (elf::EM_RISCV, None),
        ] {
            head[MACHINE..MACHINE + 2].copy_from_slice(&machine.0.to_le_bytes());
            let found = loading(&head);
            assert_eq!(found.processor, processor);
            let is_other = found.obstacle == Some(Obstacle::OtherProcessor);
            assert_eq!(is_other, processor.is_none());
        }
    }

    #[test]
    fn other_programs_are_not_of_ggml() {
        for command in ["sh", "/bin/ls", "no-such-command"] {
            assert!(!is_of_ggml(command.as_ref()), "{command}");
        }
        // The words that it looks for are in it.
        assert!(is_of_ggml(std::env::current_exe().unwrap().as_os_str()));
    }

    #[test]
    fn cut_headers_are_no_reason() {
        let head = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        for length in 0..600 {
            let obstacle = loading(&head[..length]).obstacle;
            assert!(matches!(obstacle, None | Some(Obstacle::Static)), "{length}: {obstacle:?}");
        }
    }
}
