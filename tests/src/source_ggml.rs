//! ggml built here from its published source, in ways that distributors and programs build it
//! and that resist hooks. The source is that of a crate, fetched by cargo; only the CPU backend
//! is compiled, plainly, because only the calls between its functions matter.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

use crate::built::target_directory;
use crate::compiling::{self, Job};
use crate::tool;

/// The crate that carries the source, and the version of ggml in it.
const CRATE: (&str, &str) = ("llama-cpp-sys-4", "0.11.0");
pub const VERSION: &str = "0.28.0";

pub(crate) const BASE: [&str; 7] = [
    "ggml.c",
    "ggml.cpp",
    "ggml-alloc.c",
    "ggml-backend.cpp",
    "ggml-backend-meta.cpp",
    "ggml-quants.c",
    "ggml-threading.cpp",
];
pub(crate) const REGISTRY: [&str; 2] = ["ggml-backend-reg.cpp", "ggml-backend-dl.cpp"];
/// The slowest to compile come first.
pub(crate) const CPU: [&str; 14] = [
    "ggml-cpu/ops.cpp",
    "ggml-cpu/repack.cpp",
    "ggml-cpu/unary-ops.cpp",
    "ggml-cpu/binary-ops.cpp",
    "ggml-cpu/ggml-cpu.c",
    "ggml-cpu/ggml-cpu.cpp",
    "ggml-cpu/traits.cpp",
    "ggml-cpu/vec.cpp",
    "ggml-cpu/quants.c",
    "ggml-cpu/hbm.cpp",
    "ggml-cpu/arch/x86/quants.c",
    "ggml-cpu/arch/x86/repack.cpp",
    "ggml-cpu/tiled/tiled.cpp",
    "ggml-cpu/tiled/tiled-kernel.cpp",
];

/// Links a library so that it calls its own functions directly, as Ubuntu links all of them.
pub const SYMBOLIC: &[&str] = &["-Wl,-Bsymbolic-functions"];

/// gcc compiles this source so that callers of its hidden functions count on registers which
/// these leave alone: `ggml_barrier`'s do.
const INTIMATE: &str = "ggml-cpu/ggml-cpu.c";
const INTIMATELY: [&str; 2] = ["-O3", "-fvisibility=hidden"];

/// Where schedulers are, and options by which gcc puts calls within it in line although other libraries could
/// have functions of the same names, as clang does it by itself.
const SCHEDULERS: &str = "ggml-backend.cpp";
const IN_LINE: [&str; 2] = ["-O3", "-fno-semantic-interposition"];

pub(crate) static BUILDING: Mutex<()> = Mutex::new(());

/// Who compiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compiler {
    Gcc,
    Clang,
}

impl Compiler {
    fn for_c(self) -> [&'static str; 2] {
        [if self == Self::Gcc { "gcc" } else { "clang" }, "-std=c11"]
    }

    fn for_cpp(self) -> [&'static str; 2] {
        [if self == Self::Gcc { "g++" } else { "clang++" }, "-std=c++17"]
    }
}

/// A directory with libggml-base.so, libggml-cpu.so and libggml.so, linked with these options.
/// `None`, with a sentence, where that is not possible.
pub fn libraries(compiler: Compiler, link: &[&str]) -> Option<PathBuf> {
    tool::fetched("ggml's source", built_libraries(compiler, link))
}

/// The same with only libggml-cpu.so linked so that it calls its own functions directly: the calls of
/// backends are seen through slots, and their ops are not.
pub fn with_symbolic_ops() -> Option<PathBuf> {
    tool::fetched("ggml's source", linked_libraries(Compiler::Gcc, &[], SYMBOLIC, Calls::Made))
}

/// A program of `host-programs/` that is linked with libraries whose schedulers compute without a call that
/// names the backend.
pub fn with_schedulers_in_line(source: &str) -> Option<PathBuf> {
    let libraries = linked_libraries(Compiler::Gcc, &[], &[], Calls::InLine);
    tool::fetched("ggml's source", libraries.and_then(|libraries| linked_with(source, &libraries)))
}

/// A program of `host-programs/` with ggml linked into it.
pub fn linked_into(source: &str) -> Option<PathBuf> {
    tool::fetched("ggml's source", built_program(source))
}

/// How a library keeps the ggml in it to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// It shows no function of ggml.
    Hidden,
    /// It shows all of them, but calls its own directly.
    Symbolic,
}

/// A library made of a program of `host-programs/`, whose `main` it shows as `compute`, and of
/// ggml.
pub fn library_around(source: &str, kept: Kept) -> Option<PathBuf> {
    tool::fetched("ggml's source", built_around(source, kept))
}

pub(crate) fn built_libraries(compiler: Compiler, link: &[&str]) -> Result<PathBuf, String> {
    linked_libraries(compiler, link, &[], Calls::Made)
}

/// How schedulers call the functions beside them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Calls {
    Made,
    InLine,
}

/// With more options for the library that has the ops.
fn linked_libraries(
    compiler: Compiler,
    link: &[&str],
    link_ops: &[&str],
    calls: Calls,
) -> Result<PathBuf, String> {
    let _one_at_a_time = BUILDING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let objects = Objects::compiled(compiler)?;
    let in_line = objects.0.join("schedulers-in-line.o");
    if calls == Calls::InLine && !in_line.is_file() {
        job(compiler, &source_directory()?, SCHEDULERS, &IN_LINE, in_line.clone()).run()?;
    }
    let object = |source: &&str| match *source == SCHEDULERS && calls == Calls::InLine {
        true => in_line.clone(),
        false => objects.of(source),
    };
    let name = std::iter::once(format!("{compiler:?}")).chain(link.iter().map(|&l| l.to_owned()));
    let name = name.chain(link_ops.iter().map(|option| format!("-ops{option}")));
    let name = name.chain((calls == Calls::InLine).then(|| "-in-line".to_owned()));
    let directory = directory()?.join(name.collect::<Vec<_>>().join("").replace(',', ""));
    std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let library = |name: &str, sources: &[&str], needs: &[&str]| {
        let mut command = Command::new(compiler.for_cpp()[0]);
        command.args(["-shared", "-Wl,--no-undefined", "-Wl,-rpath,$ORIGIN", "-L", "."]).args(link);
        command.args(["-o", name]).args(sources.iter().map(object));
        command.args(needs).args(["-ldl", "-lpthread", "-lm"]).current_dir(&directory);
        tool::output(&mut command)
    };
    if !directory.join("libggml.so").is_file() {
        library("libggml-base.so", &BASE, &[])?;
        library("libggml-cpu.so", &CPU, &[link_ops, &["-lggml-base"]].concat())?;
        library("libggml.so", &REGISTRY, &["-lggml-cpu", "-lggml-base"])?;
    }
    Ok(directory)
}

/// A program of `host-programs/`, beside the libraries that it is linked with.
fn linked_with(source: &str, libraries: &Path) -> Result<PathBuf, String> {
    let program = libraries.join(source.replace('.', "_"));
    let mut link = Compiler::Gcc.command(source, &source_directory()?);
    link.arg(host_program(source)).arg("-o").arg(&program).arg("-L").arg(libraries);
    link.args(["-Wl,-rpath,$ORIGIN", "-lggml", "-lggml-cpu", "-lggml-base", "-lm"]);
    tool::output(&mut link)?;
    Ok(program)
}

pub(crate) fn built_program(source: &str) -> Result<PathBuf, String> {
    let program = directory()?.join(source.replace('.', "_"));
    linked_together(source, &program, &[], &[])?;
    Ok(program)
}

pub(crate) fn built_around(source: &str, kept: Kept) -> Result<PathBuf, String> {
    let library = directory()?.join(format!("{}_{kept:?}.so", source.replace('.', "_")));
    let shown = library.with_extension("shown");
    std::fs::write(&shown, "{ global: compute; local: *; };\n").map_err(|e| e.to_string())?;
    let keep = match kept {
        Kept::Hidden => format!("-Wl,--version-script={}", shown.display()),
        Kept::Symbolic => SYMBOLIC.concat(),
    };
    linked_together(source, &library, &["-Dmain=compute"], &["-shared", &keep])?;
    Ok(library)
}

/// Links a program of `host-programs/`, compiled with more flags, and all of ggml.
fn linked_together(
    source: &str,
    result: &Path,
    compile_with: &[&str],
    link_with: &[&str],
) -> Result<(), String> {
    let _one_at_a_time = BUILDING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let objects = Objects::compiled(Compiler::Gcc)?;
    let main = result.with_extension("o");
    let mut compile = Compiler::Gcc.command(source, &source_directory()?);
    compile.args(compile_with).arg("-c").arg(host_program(source));
    tool::output(compile.arg("-o").arg(&main))?;
    let intimate = objects.0.join("intimate.o");
    if !intimate.is_file() {
        let ggml = source_directory()?;
        job(Compiler::Gcc, &ggml, INTIMATE, &INTIMATELY, intimate.clone()).run()?;
    }
    let all = BASE.iter().chain(&REGISTRY).chain(&CPU).filter(|source| **source != INTIMATE);
    // Another test may be running it.
    let fresh = result.with_extension("part");
    let mut link = Command::new(Compiler::Gcc.for_cpp()[0]);
    link.args(link_with).arg("-o").arg(&fresh).arg(&main);
    link.arg(intimate).args(all.map(|source| objects.of(source)));
    tool::output(link.args(["-ldl", "-lpthread", "-lm"]))?;
    std::fs::rename(fresh, result).map_err(|error| error.to_string())
}

pub(crate) fn host_program(source: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("host-programs").join(source)
}

/// ggml's sources, compiled once per compiler.
struct Objects(PathBuf);

impl Objects {
    fn compiled(compiler: Compiler) -> Result<Objects, String> {
        let objects = Objects(directory()?.join(format!("objects-{compiler:?}")));
        std::fs::create_dir_all(&objects.0).map_err(|error| error.to_string())?;
        let ggml = source_directory()?;
        let missing = CPU.iter().chain(&BASE).chain(&REGISTRY);
        let missing: Vec<&str> = missing.copied().filter(|s| !objects.of(s).is_file()).collect();
        let job = |source| job(compiler, &ggml, source, &[], objects.of(source));
        compiling::run_all(missing.into_iter().map(job).collect())?;
        Ok(objects)
    }

    fn of(&self, source: &str) -> PathBuf {
        self.0.join(format!("{}.o", source.replace('/', "_")))
    }
}

/// Compiles a source of ggml.
pub(crate) fn job(
    compiler: Compiler,
    ggml: &Path,
    source: &str,
    flags: &[&str],
    object: PathBuf,
) -> Job {
    let mut command = compiler.command(source, ggml);
    // Some processors' kernels, so that the ops take a natural time; no fine tuning.
    command.args(["-mavx2", "-mfma", "-mf16c"]).args(flags);
    command.arg("-c").arg(ggml.join("src").join(source));
    Job { command, result: object }
}

impl Compiler {
    /// Compiles a C or C++ source against ggml's headers.
    pub(crate) fn command(self, source: &str, ggml: &Path) -> Command {
        let [program, standard] =
            if source.ends_with(".c") { self.for_c() } else { self.for_cpp() };
        let mut command = Command::new(program);
        command.args([standard, "-O1", "-fPIC", "-w", "-D_GNU_SOURCE", "-DGGML_USE_CPU"]);
        command.args(["-DGGML_SCHED_MAX_COPIES=4", "-DGGML_VERSION=\"source\""]);
        command.arg("-DGGML_COMMIT=\"source\"");
        for place in ["include", "src", "src/ggml-cpu"] {
            command.arg("-I").arg(ggml.join(place));
        }
        command.arg("-I").arg(directory().unwrap_or_default());
        command
    }
}

/// Where everything is built, with the header that ggml's build system would write.
pub(crate) fn directory() -> Result<PathBuf, String> {
    let directory = target_directory().join("ggml-source").join(VERSION);
    std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let header = format!("#define GGML_VERSION \"{VERSION}\"\n#define GGML_COMMIT \"crate\"\n");
    std::fs::write(directory.join("ggml-version.h"), header).map_err(|error| error.to_string())?;
    directory.canonicalize().map_err(|error| error.to_string())
}

/// ggml's directory in the crate's source, which cargo keeps where it keeps all of them.
pub(crate) fn source_directory() -> Result<PathBuf, String> {
    static FETCHED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    FETCHED.get_or_init(|| source_of(CRATE.1)).clone()
}

/// The same of another version of the crate.
pub(crate) fn source_of(version: &str) -> Result<PathBuf, String> {
    let (name, _) = CRATE;
    let package = directory()?.join(format!("fetch-{version}"));
    std::fs::create_dir_all(&package).map_err(|error| error.to_string())?;
    let manifest = format!(
        "[package]\nname = \"fetch\"\nedition = \"2024\"\n[lib]\npath = \"lib.rs\"\n\
         [dependencies]\n{name} = \"={version}\"\n[workspace]\n"
    );
    let text = |error: std::io::Error| error.to_string();
    std::fs::write(package.join("Cargo.toml"), manifest).map_err(text)?;
    std::fs::write(package.join("lib.rs"), "").map_err(text)?;
    let mut metadata = Command::new("cargo");
    metadata.args(["metadata", "--quiet", "--format-version", "1"]).current_dir(&package);
    let metadata = tool::output(&mut metadata)?;
    let wanted = format!("/{name}-{version}/Cargo.toml\"");
    let place = metadata.split("\"manifest_path\":\"").find_map(|rest| {
        let end = rest.find('"')?;
        rest[..=end].ends_with(&wanted).then(|| PathBuf::from(&rest[..end]))
    });
    let place = place.ok_or_else(|| format!("cargo does not say where {name} is"))?;
    Ok(place.with_file_name("llama.cpp").join("ggml"))
}
