//! The command that carries its agent: it needs no file beside it, puts the agent where only its
//! user can change it, and does without a file where there is no such place.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use ggprof_e2e::ran::{Ran, names_in};
use ggprof_e2e::{built, published_ggml};
use tempfile::TempDir;

/// The command by itself, with a cache directory and a temporary directory of its own.
struct OneFile {
    home: TempDir,
}

impl OneFile {
    fn new() -> Self {
        let home = TempDir::new().unwrap();
        fs::create_dir(home.path().join("tmp")).unwrap();
        Self { home }
    }

    fn cache(&self) -> PathBuf {
        self.home.path().join("cache/ggprof")
    }

    fn ggprof(&self, words: &[&str]) -> Command {
        let mut command = Command::new(built::one_file());
        command.args(words).stdin(Stdio::null()).env_remove("LD_PRELOAD");
        command.env("XDG_CACHE_HOME", self.home.path().join("cache"));
        command.env("TMPDIR", self.home.path().join("tmp")).current_dir(self.home.path());
        command
    }

    /// Records the workload on the newest ggml.
    fn record(&self) -> Option<Ran> {
        let libraries = published_ggml::libraries(published_ggml::NEWEST)?;
        let mut command = self.ggprof(&["run", "--"]);
        command.arg(built::workload()).arg(libraries).args(["--threads", "1", "--graphs", "3"]);
        Some(Ran::of(command.output().unwrap()))
    }

    /// The library that programs load, as `doctor` tells.
    fn agent(&self) -> PathBuf {
        let ran = Ran::of(self.ggprof(&["doctor"]).output().unwrap());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let line = ran.out.lines().find_map(|line| line.strip_prefix("agent  "));
        PathBuf::from(line.unwrap_or_else(|| panic!("{ran:?}")))
    }
}

fn is_recorded(ran: &Ran) -> bool {
    ran.code == Some(0) && ran.err.contains("graph runs  3\n")
}

#[test]
fn it_records_with_nothing_beside_it() {
    let alone = OneFile::new();
    let Some(ran) = alone.record() else { return };
    assert!(is_recorded(&ran), "{ran:?}");
    assert_eq!(names_in(built::one_file().parent().unwrap()), ["ggprof"]);
    let agent = alone.agent();
    assert!(agent.starts_with(alone.cache().canonicalize().unwrap()), "{agent:?}");
    for (path, mode) in
        [(&*agent, 0o500), (agent.parent().unwrap(), 0o700), (&alone.cache(), 0o700)]
    {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, mode, "{path:?}");
    }
    // The next start uses the same file.
    let first = agent.metadata().unwrap();
    assert!(is_recorded(&alone.record().unwrap()));
    let second = agent.metadata().unwrap();
    assert_eq!((first.ino(), first.mtime_nsec()), (second.ino(), second.mtime_nsec()));
    // Nothing else is left but the way by which programs of each C library find their agent.
    assert_eq!(names_in(&alone.cache()).len(), 1);
    let beside = names_in(agent.parent().unwrap());
    let others: Vec<_> = beside.iter().filter(|name| !agent.ends_with(name)).collect();
    assert_eq!(others, ["or\u{b}"]);
    assert_eq!(names_in(&alone.home.path().join("tmp")), [""; 0]);
}

#[test]
fn a_file_that_is_not_the_agent_is_replaced() {
    let alone = OneFile::new();
    let agent = alone.agent();
    let right = fs::read(&agent).unwrap();
    let write = |bytes: &[u8]| {
        fs::remove_file(&agent).unwrap();
        fs::write(&agent, bytes).unwrap();
    };
    let mut changed = right.clone();
    changed[right.len() / 2] ^= 1;
    let damages: [&dyn Fn(); 4] = [
        &|| write(&changed),
        &|| write(&right[..right.len() / 2]),
        &|| fs::set_permissions(&agent, Permissions::from_mode(0o777)).unwrap(),
        &|| {
            let elsewhere = alone.home.path().join("elsewhere");
            fs::write(&elsewhere, &right).unwrap();
            fs::remove_file(&agent).unwrap();
            std::os::unix::fs::symlink(elsewhere, &agent).unwrap();
        },
    ];
    for damage in damages {
        damage();
        assert_eq!(alone.agent(), agent);
        let found = fs::symlink_metadata(&agent).unwrap();
        assert!(found.is_file() && found.permissions().mode() & 0o777 == 0o500, "{found:?}");
        assert!(fs::read(&agent).unwrap() == right);
    }
}

#[test]
fn a_place_that_somebody_else_could_change_is_not_used() {
    let temporary = |alone: &OneFile| alone.home.path().join("tmp").canonicalize().unwrap();
    // Others may write there.
    let alone = OneFile::new();
    fs::create_dir_all(alone.cache()).unwrap();
    fs::set_permissions(alone.cache(), Permissions::from_mode(0o755)).unwrap();
    assert!(alone.agent().starts_with(temporary(&alone)));
    assert_eq!(names_in(&alone.cache()), [""; 0]);
    // Others may put another directory in its place.
    let alone = OneFile::new();
    fs::create_dir_all(alone.cache().parent().unwrap()).unwrap();
    fs::set_permissions(alone.cache().parent().unwrap(), Permissions::from_mode(0o777)).unwrap();
    assert!(alone.agent().starts_with(temporary(&alone)));
    // Nothing is made in another user's directory: it would be there for ever, and that user shut out.
    let alone = OneFile::new();
    let others = alone.cache().parent().unwrap().to_owned();
    fs::create_dir_all(&others).unwrap();
    if chown(&others, Some(65534), None).is_ok() {
        assert!(alone.agent().starts_with(temporary(&alone)));
        assert_eq!(names_in(&others), [""; 0]);
    }
    // It is another user's.
    let alone = OneFile::new();
    fs::create_dir_all(alone.cache()).unwrap();
    fs::set_permissions(alone.cache(), Permissions::from_mode(0o700)).unwrap();
    match chown(alone.cache(), Some(65534), None) {
        Ok(()) => assert!(alone.agent().starts_with(temporary(&alone))),
        Err(_) => eprintln!("not tested: only root can give a directory to somebody else"),
    }
}

/// Where nothing can be run from any directory that can be written, the agent is in memory.
#[test]
fn without_a_directory_it_is_in_memory() {
    let alone = OneFile::new();
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let one_file = built::one_file();
    let script = "for place in /tmp /var/tmp /dev/shm; do \
                    mount -t tmpfs -o noexec tmpfs $place || exit 125; \
                  done; export XDG_CACHE_HOME=/dev/null HOME=/dev/null TMPDIR=/tmp; cd /; \
                  \"$1\" doctor; \"$1\" env >&2; exec \"$1\" run -- \"$2\" \"$3\" --graphs 3";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", script, "sh"]);
    command.arg(&one_file).arg(built::workload()).arg(libraries).current_dir("/");
    let ran = Ran::of(command.stdin(Stdio::null()).env_remove("LD_PRELOAD").output().unwrap());
    if ran.code != Some(0) && ran.out.is_empty() {
        eprintln!("not tested: {}", ran.err);
        return;
    }
    assert!(is_recorded(&ran), "{ran:?}");
    assert!(ran.out.contains("agent  /proc/"), "{ran:?}");
    assert!(ran.out.contains("! The agent is in memory"), "{ran:?}");
    assert!(ran.err.contains("in memory it would be gone with this command"), "{ran:?}");
    assert_eq!(names_in(&alone.home.path().join("tmp")), [""; 0]);
}

#[test]
fn programs_that_are_started_later_find_it() {
    let alone = OneFile::new();
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let variables = Ran::of(alone.ggprof(&["env"]).output().unwrap()).out;
    let script = format!("{variables}\nexec \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh"]).arg(built::workload()).arg(libraries);
    command.args(["--graphs", "3"]).env("GGML_PROFILE", "p.json").current_dir(alone.home.path());
    command.env("TMPDIR", alone.home.path().join("tmp")).env_remove("LD_PRELOAD");
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(alone.home.path().join("p.json").is_file(), "{ran:?}");
}

#[test]
fn its_version_tells_what_is_inside() {
    let ran = Ran::of(OneFile::new().ggprof(&["--version"]).output().unwrap());
    let lines: Vec<&str> = ran.out.lines().collect();
    let [version, commit, agents, formats] = lines[..] else { panic!("{ran:?}") };
    assert!(version.starts_with("ggprof "), "{version}");
    assert!(commit.starts_with("commit      ") && !commit.contains("development"), "{commit}");
    assert!(agents.starts_with("agents      x86_64 glibc ("), "{agents}");
    let formats_expected = format!("writes format {}", ggprof_spool::layout::VERSION);
    assert!(formats.contains(&formats_expected), "{formats}");
    let beside = Ran::of(Command::new(built::ggprof()).arg("--version").output().unwrap());
    assert!(beside.out.contains("agents      none inside"), "{beside:?}");
}
