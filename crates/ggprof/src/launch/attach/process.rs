//! The program to attach to: whether that can be done, and if not, what to do instead.

use super::loaded_agent::LoadedAgent;
use super::maps::{self, Mapping};
use super::{refusal, threads};
use crate::launch::{Agent, examine};
use anyhow::{Context, anyhow, bail};
use ggprof_agents::Libc;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Functions of ggml that programs use. A program that has loaded none cannot be computing.
const SIGN: &[u8] = b"ggml_backend_";
/// Pieces in which files are looked through.
const PIECE_BYTES: usize = 1 << 20;

/// A process that the agent can be loaded into.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) name: String,
    pub(crate) libc: Libc,
    /// The agent that it has loaded already.
    pub(super) agent: Option<LoadedAgent>,
    /// What will not be seen because the program runs already.
    pub(crate) unseen: Vec<&'static str>,
}

impl Process {
    pub(crate) fn examine(pid: u32, agent: &Agent) -> anyhow::Result<Process> {
        let directory = Path::new("/proc").join(pid.to_string());
        let status = std::fs::read_to_string(directory.join("status"))
            .map_err(|_| anyhow!("there is no process {pid}"))?;
        is_process(pid, &status)?;
        state_allows(pid, &status)?;
        Process::look_into(pid, agent, &directory, &status).map_err(|error| or_ended(pid, error))
    }

    /// What went wrong with it: that it has ended, if it has.
    pub(crate) fn or_ended(&self, error: anyhow::Error) -> anyhow::Error {
        or_ended(self.pid, error)
    }

    fn look_into(
        pid: u32,
        agent: &Agent,
        directory: &Path,
        status: &str,
    ) -> anyhow::Result<Process> {
        let name = field(status, "Name").unwrap_or_default().to_owned();
        user_allows(pid, status)?;
        tracer_allows(pid, status)?;
        stacks_allow(pid, status)?;
        filters_allow(pid)?;
        same_files(pid, status)?;
        let libc = program_allows(directory, agent)?;
        let maps = maps::of(pid)
            .with_context(|| format!("process {pid} does not show what it has loaded"))?;
        let agent = LoadedAgent::find(&maps);
        libc_allows(libc, agent.is_some())?;
        if !has_ggml(&maps) {
            bail!(
                "{name} (process {pid}) has not loaded ggml. Attach when it has loaded its model, or \
                 start it with `ggprof run`."
            );
        }
        let unseen = unseen(&maps);
        Ok(Process { pid, name, libc, agent, unseen })
    }
}

/// What went wrong with a process: that it has ended, if it has.
fn or_ended(pid: u32, error: anyhow::Error) -> anyhow::Error {
    let directory = Path::new("/proc").join(pid.to_string());
    let status = std::fs::read_to_string(directory.join("status"));
    let is_over = status.map_or(true, |status| is_over(&status));
    // While it ends it gives up its memory first, and then is no program any more.
    let program = directory.join("exe").read_link();
    let is_ending = program.is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    if is_over || is_ending {
        anyhow!("process {pid} ended before ggprof was attached to it")
    } else {
        error
    }
}

fn is_over(status: &str) -> bool {
    has_this_thread_ended(status) && !has_several_threads(status)
}

/// Of a process, this is its first thread.
pub(super) fn has_this_thread_ended(status: &str) -> bool {
    field(status, "State").is_some_and(|state| state.starts_with(['Z', 'X']))
}

fn has_several_threads(status: &str) -> bool {
    number(status, "Threads").is_some_and(|threads| threads > 1)
}

pub(super) fn field<'t>(status: &'t str, name: &str) -> Option<&'t str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

pub(super) fn number(status: &str, name: &str) -> Option<u32> {
    field(status, name)?.parse().ok()
}

/// The system shows threads by their numbers, too, and some tools list them like processes.
fn is_process(pid: u32, status: &str) -> anyhow::Result<()> {
    match number(status, "Tgid") {
        Some(process) if process != pid => bail!(
            "{pid} is a thread of process {process} ({}). Attach to the process: ggprof attach {process}",
            field(status, "Name").unwrap_or_default()
        ),
        _ => Ok(()),
    }
}

fn state_allows(pid: u32, status: &str) -> anyhow::Result<()> {
    match field(status, "State").unwrap_or_default().chars().next() {
        _ if is_over(status) => bail!("process {pid} has ended"),
        _ if has_this_thread_ended(status) => bail!(
            "the first thread of process {pid} has ended, and the system shows nothing of the others' \
             memory any more. Start it with `ggprof run`."
        ),
        Some('T') => bail!("process {pid} is stopped. Continue it first: kill -CONT {pid}"),
        _ => Ok(()),
    }
}

fn user_allows(pid: u32, status: &str) -> anyhow::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    let user: Option<u32> =
        field(status, "Uid").and_then(|ids| ids.split_whitespace().next()?.parse().ok());
    match user {
        Some(user) if user != own => bail!(
            "process {pid} belongs to another user ({user}), whose files ggprof would write. Run \
             ggprof as that user: {}",
            refusal::as_user_of(pid, status)
        ),
        _ => Ok(()),
    }
}

fn tracer_allows(pid: u32, status: &str) -> anyhow::Result<()> {
    match tracer(status) {
        None => Ok(()),
        Some(tracer) => bail!(
            "process {pid} is being debugged by process {tracer}, and two cannot do that at once. End \
             the other one first."
        ),
    }
}

/// Who debugs a thread.
pub(super) fn tracer(status: &str) -> Option<&str> {
    field(status, "TracerPid").filter(|tracer| *tracer != "0")
}

/// With a second stack of return addresses, a thread could not go back by itself from a call that it
/// was asked to make (`way_back`).
fn stacks_allow(pid: u32, status: &str) -> anyhow::Result<()> {
    match field(status, "x86_Thread_features").is_some_and(|features| features.contains("shstk")) {
        true => bail!(
            "process {pid} uses shadow stacks, with which ggprof cannot attach safely. Start it with \
             `ggprof run`."
        ),
        false => Ok(()),
    }
}

/// The agent asks the system for more than the program does, and a filter of the program's own may end it
/// for that. Filters that hold for us as well, as those of a container, were made for programs of all kinds.
fn filters_allow(pid: u32) -> anyhow::Result<()> {
    let status = |directory: String| std::fs::read_to_string(directory + "/status").ok();
    let own = status("/proc/self".to_owned()).map_or(0, |status| filters(&status));
    let of_thread = |thread: i32| status(format!("/proc/{pid}/task/{thread}"));
    let more = |status: String| filters(&status) > own;
    match threads::of(pid)?.into_iter().filter_map(of_thread).any(more) {
        true => bail!(
            "process {pid} limits what it may ask of the system (seccomp), and could be ended for what \
             ggprof's agent asks. Start it without that limit."
        ),
        false => Ok(()),
    }
}

/// How many filters decide about a thread's calls of the system. Kernels before 5.9 say only that there are
/// some; the oldest kind allows next to nothing.
fn filters(status: &str) -> u32 {
    match number(status, "Seccomp") {
        None | Some(0) => 0,
        Some(1) => u32::MAX,
        Some(_) => number(status, "Seccomp_filters").unwrap_or(1),
    }
}

/// The program must find the agent's file, and we the recording, under the same paths.
fn same_files(pid: u32, status: &str) -> anyhow::Result<()> {
    let link =
        |process: &str, name: &str| Path::new("/proc").join(process).join(name).read_link().ok();
    let place = |process: &str| Some((link(process, "ns/mnt")?, link(process, "root")?));
    let theirs = &*pid.to_string();
    match place(theirs) {
        found if found == place("self") => Ok(()),
        None => Err(refusal::forbidden(pid)),
        Some((_, root))
            if link(theirs, "ns/pid") == link("self", "ns/pid") && root == Path::new("/") =>
        {
            bail!(
                "process {pid} does not see all files as you do, as services of systemd with PrivateTmp. \
                 Run ggprof among its files, and name the output (-o) with its whole path: {}",
                refusal::among_files_of(pid, status)
            )
        }
        Some(_) => bail!(
            "process {pid} runs in a container, where files have other paths. Run ggprof inside: copy \
             the command there and use the program's number there, as in `docker cp ggprof \
             CONTAINER:/tmp/` and `docker exec -it CONTAINER /tmp/ggprof attach 1`. The container \
             needs the right to trace processes (`--cap-add SYS_PTRACE`)."
        ),
    }
}

/// A program for another processor runs inside an emulator, which is what the system knows.
fn emulator_allows(program: &Path) -> anyhow::Result<()> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with("qemu-") {
        bail!(
            "the program runs in an emulator ({name}), because it is built for another processor: it \
             cannot be attached to. Start it with `ggprof run`."
        );
    }
    Ok(())
}

fn program_allows(directory: &Path, agent: &Agent) -> anyhow::Result<Libc> {
    let file = directory.join("exe");
    let path = file.read_link().unwrap_or_else(|_| file.clone());
    emulator_allows(&path)?;
    let program = examine(file.as_os_str(), agent)
        .with_context(|| format!("{} cannot be read", path.display()))?;
    if let Some(obstacle) = program.obstacle {
        bail!("{}", obstacle.sentence(&path));
    }
    program
        .libc
        .with_context(|| format!("{} is not a program that loads libraries", path.display()))
}

/// The agent's memory of each thread is reached without the loader's help, for speed. musl grants that only
/// to what comes with the program.
fn libc_allows(libc: Libc, is_loaded: bool) -> anyhow::Result<()> {
    if libc == Libc::Musl && !is_loaded {
        bail!(
            "the program is for musl, whose loader does not load ggprof's agent into programs that run \
             already. Start it with `ggprof run`."
        );
    }
    Ok(())
}

fn has_ggml(maps: &[Mapping]) -> bool {
    let code = || maps.iter().filter(|mapping| mapping.is_code && mapping.inode != 0);
    let is_named = |mapping: &Mapping| mapping.file_name().contains("ggml");
    code().any(is_named) || code().any(|mapping| holds(&mapping.path, SIGN))
}

/// Whether a file holds these bytes somewhere.
fn holds(file: &PathBuf, part: &[u8]) -> bool {
    let Ok(mut file) = File::open(file) else { return false };
    let mut piece = vec![0; PIECE_BYTES];
    let mut kept = 0;
    while let Ok(read) = file.read(&mut piece[kept..])
        && read > 0
    {
        let filled = kept + read;
        if piece[..filled].windows(part.len()).any(|window| window == part) {
            return true;
        }
        // What is cut in two is found with the next piece.
        kept = filled.min(part.len() - 1);
        piece.copy_within(filled - kept..filled, 0);
    }
    false
}

fn unseen(maps: &[Mapping]) -> Vec<&'static str> {
    let is_loaded = |part: &str| maps.iter().any(|mapping| mapping.file_name().contains(part));
    let mut unseen = Vec::new();
    if is_loaded("libvulkan.so") {
        unseen.push(
            "Vulkan's own times cannot be had of a program that runs already: its devices are shown \
             by the time that the host waited.",
        );
    }
    if is_loaded("libcuda.so") {
        unseen.push(
            "CUDA graphs that the program captured before are shown as a whole until it captures them \
             anew.",
        );
    }
    unseen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_the_way_is_said() {
        let status = |state: &str, tracer: &str| format!("State:\t{state}\nTracerPid:\t{tracer}\n");
        assert!(is_process(7, "Tgid:\t7\n").is_ok());
        assert!(is_process(8, "Name:\tit\nTgid:\t7\n").is_err());
        assert!(state_allows(1, &status("S (sleeping)", "0")).is_ok());
        assert!(state_allows(1, &status("T (stopped)", "0")).is_err());
        assert!(state_allows(1, &status("Z (zombie)", "0")).is_err());
        assert!(is_over("State:\tZ (zombie)\nThreads:\t1\n"));
        assert!(!is_over("State:\tZ (zombie)\nThreads:\t2\n"));
        let error = |pid| or_ended(pid, anyhow!("it is locked")).to_string();
        assert_eq!(error(std::process::id()), "it is locked");
        assert_eq!(error(u32::MAX), "process 4294967295 ended before ggprof was attached to it");
        assert!(tracer_allows(1, &status("S", "0")).is_ok());
        assert!(tracer_allows(1, &status("S", "17")).is_err());
        assert!(user_allows(1, "Uid:\t4294967294\t0\t0\t0\n").is_err());
        assert!(
            stacks_allow(1, "x86_Thread_features:\t\nx86_Thread_features_locked:\tshstk\n").is_ok()
        );
        assert!(stacks_allow(1, "x86_Thread_features:\tshstk\n").is_err());
        assert!(filters_allow(std::process::id()).is_ok());
        for (seccomp, count) in [
            ("", 0),
            ("Seccomp:\t0\nSeccomp_filters:\t0\n", 0),
            ("Seccomp:\t1\n", u32::MAX),
            ("Seccomp:\t2\n", 1),
            ("Seccomp:\t2\nSeccomp_filters:\t3\n", 3),
        ] {
            assert_eq!(filters(seccomp), count, "{seccomp}");
        }
        assert!(same_files(std::process::id(), "").is_ok());
        for (libc, is_loaded, is_allowed) in
            [(Libc::Glibc, false, true), (Libc::Musl, true, true), (Libc::Musl, false, false)]
        {
            assert_eq!(libc_allows(libc, is_loaded).is_ok(), is_allowed, "{libc:?} {is_loaded}");
        }
        assert!(emulator_allows(Path::new("/usr/bin/llama-server")).is_ok());
        assert!(emulator_allows(Path::new("/usr/bin/qemu-aarch64-static")).is_err());
    }

    #[test]
    fn bytes_are_found_across_pieces() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        for at in [0, 7, PIECE_BYTES - 5, 2 * PIECE_BYTES - 20] {
            let mut bytes = vec![b'g'; 2 * PIECE_BYTES];
            bytes[at..at + SIGN.len()].copy_from_slice(SIGN);
            std::fs::write(&file, &bytes).unwrap();
            assert!(holds(&file, SIGN), "{at}");
        }
        std::fs::write(&file, vec![b'g'; PIECE_BYTES + 3]).unwrap();
        assert!(!holds(&file, SIGN));
    }
}
