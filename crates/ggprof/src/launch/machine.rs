//! What the machine runs on, for the recording: the operating system with its kernel, NVIDIA's driver, and
//! how well it knows the time of day. (The agent sees Vulkan's drivers by itself.)

use super::day_clock;
use ggprof_spool::appendix::Appendix;
use ggprof_spool::layout::{MACHINE_DAY_CLOCK, MACHINE_DRIVER, MACHINE_SYSTEM, Machine};
use std::fs;
use std::path::Path;

pub(super) fn put(appendix: &mut Appendix) {
    let root = Path::new("/");
    let facts = [
        (MACHINE_SYSTEM, system(root)),
        (MACHINE_DRIVER, nvidia(root)),
        (MACHINE_DAY_CLOCK, day_clock::text()),
    ];
    for (what, text) in facts.into_iter().filter_map(|(what, text)| Some((what, text?))) {
        let head = Machine { what, text_bytes: text.len() as u32, ..Machine::default() };
        appendix.put(&[&head.encode()[..], text.as_bytes()].concat());
    }
}

/// Such as `Debian GNU/Linux 13 (trixie), Linux 6.12.48`.
fn system(root: &Path) -> Option<String> {
    let kernel = fs::read_to_string(root.join("proc/sys/kernel/osrelease")).ok();
    let kernel = kernel.map(|release| format!("Linux {}", release.trim()));
    let facts: Vec<String> = distribution(root).into_iter().chain(kernel).collect();
    (!facts.is_empty()).then(|| facts.join(", "))
}

fn distribution(root: &Path) -> Option<String> {
    let release = fs::read_to_string(root.join("etc/os-release")).ok()?;
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim().trim_matches('"').to_owned()).filter(|name| !name.is_empty())
}

/// The driver says in its first line, among other words, what version it has.
fn nvidia(root: &Path) -> Option<String> {
    let text = fs::read_to_string(root.join("proc/driver/nvidia/version")).ok()?;
    let mut words = text.lines().next()?.split_whitespace();
    let is_version =
        |word: &&str| word.contains('.') && word.split('.').all(|part| part.parse::<u32>().is_ok());
    words.find(is_version).map(|version| format!("NVIDIA {version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_files_of_a_system_say() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!((system(root.path()), nvidia(root.path())), (None, None));
        let put = |file: &str, text: &str| {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        put("proc/sys/kernel/osrelease", "6.12.48\n");
        assert_eq!(system(root.path()).as_deref(), Some("Linux 6.12.48"));
        put("etc/os-release", "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n");
        let both = "Debian GNU/Linux 13 (trixie), Linux 6.12.48";
        assert_eq!(system(root.path()).as_deref(), Some(both));
        let first = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31\n";
        put("proc/driver/nvidia/version", &format!("{first}GCC version:  gcc 13.2.0\n"));
        assert_eq!(nvidia(root.path()).as_deref(), Some("NVIDIA 550.90.07"));
    }
}
