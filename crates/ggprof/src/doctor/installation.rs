//! Checks the installation and the machine.

use crate::exit::Outcome;
use crate::launch::{self, Agent, Energy, Spools};
use ggprof_report::{Block, Cell, Document, Fact};
use std::path::{Path, PathBuf};
use std::process::Command;

const ONLY_IN_MEMORY: &str = "\
The agent is in memory, because no directory is fit for its file: programs can load it while ggprof \
runs, in the same container. Set XDG_CACHE_HOME to a directory of yours, on a file system from which \
programs can be run.";

pub(crate) fn examine() -> anyhow::Result<(Document, Outcome)> {
    let mut document = Document::default();
    document.heading("installation", "ggprof doctor: the installation");
    fact(&mut document, "command", &std::env::current_exe()?.display().to_string());
    let outcome = agent(&mut document);
    let libraries = known_libraries();
    clock(&mut document);
    cuda(&mut document, &libraries);
    vulkan(&mut document, &libraries);
    sensors(&mut document);
    left_recordings(&mut document);
    let advice = "`ggprof doctor -- COMMAND` looks at a program.";
    fact(&mut document, "next", advice);
    Ok((document, outcome))
}

fn fact(document: &mut Document, title: &'static str, words: &str) {
    document.fact(title, title, vec![Fact::new("value", Cell::text(words), "{}")]);
}

fn warn(document: &mut Document, words: impl Into<String>) {
    document.blocks.push(Block::Warning(words.into()));
}

/// Finds the agent and loads it into a program that is sure to be there: ourselves.
fn agent(document: &mut Document) -> Outcome {
    match launch::find_agent().and_then(|agent| Ok((loads(&agent)?, agent))) {
        Ok((None, agent)) => {
            fact(document, "agent", &agent.path.display().to_string());
            if let Some(musl) = &agent.musl {
                fact(document, "agent for musl", &musl.display().to_string());
            }
            if agent.is_in_memory() {
                warn(document, ONLY_IN_MEMORY);
            }
            Outcome::Done
        }
        Ok((Some(problem), agent)) => {
            let path = agent.path.display();
            warn(document, format!("the agent {path} cannot be loaded: {problem}"));
            Outcome::Incomplete
        }
        Err(error) => {
            warn(document, error.to_string());
            Outcome::Incomplete
        }
    }
}

/// What the dynamic linker has against the agent.
fn loads(agent: &Agent) -> anyhow::Result<Option<String>> {
    let list = launch::preload_with_agent(agent);
    let mut version = Command::new(std::env::current_exe()?);
    let output = version.arg("--version").env("LD_PRELOAD", list).output()?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Ok((!output.status.success() || !said.is_empty()).then_some(said))
}

/// The libraries that the system's programs find, by name and place.
fn known_libraries() -> Vec<String> {
    let places = ["ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig"];
    let output = places.iter().find_map(|place| Command::new(place).arg("-p").output().ok());
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.unwrap_or_default().lines().map(|line| line.trim().to_owned()).collect()
}

fn has(libraries: &[String], name: &str) -> bool {
    libraries.iter().any(|line| line.starts_with(name))
}

fn clock(document: &mut Document) {
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = std::fs::read_to_string(source).unwrap_or_default();
    fact(
        document,
        "clock",
        match source.trim() {
            "tsc" => "the processor's cycle counter",
            "arch_sys_counter" => "the system's counter",
            _ => "clock_gettime, because the system does not trust the cycle counter",
        },
    );
}

/// Which clocks, watts and joules recordings will have, and why not the others.
fn sensors(document: &mut Document) {
    let readable = launch::readable_sensors(Path::new("/"));
    let clock = match readable.has_processor_clock {
        true => "clock",
        false => "no clock (the kernel has no cpufreq here, as in most virtual machines)",
    };
    let energy = match readable.processor_energy {
        Energy::Readable => "energy",
        Energy::Forbidden => {
            "no energy (only the administrator may read RAPL's counter: \
             /sys/class/powercap/intel-rapl:0/energy_uj)"
        }
        Energy::Absent => "no energy (the machine has no RAPL counter, as most virtual ones)",
    };
    let mut told = vec![format!("processors: {clock}, {energy}")];
    for (name, figures) in &readable.devices {
        told.push(format!("{name}: {}", figures.join(", ")));
    }
    if readable.devices.is_empty() {
        told.push("devices: none that NVIDIA's library (libnvidia-ml.so.1) tells of".to_owned());
    }
    fact(document, "sensors", &told.join("; "));
}

fn cuda(document: &mut Document, libraries: &[String]) {
    if !has(libraries, "libcuda.so.1") && !Path::new("/dev/nvidiactl").exists() {
        return fact(document, "CUDA", "no driver here");
    }
    let toolkits = std::env::var_os("CUDA_HOME").map(PathBuf::from).into_iter();
    let mut toolkits = toolkits.chain(["/usr/local/cuda".into(), "/opt/cuda".into()]);
    let cupti = |place: PathBuf| place.join("extras/CUPTI/lib64/libcupti.so").exists();
    match has(libraries, "libcupti.so") || toolkits.any(cupti) {
        true => fact(document, "CUDA", "driver and CUPTI found: times of the device"),
        false => warn(
            document,
            "CUDA: there is a driver but no CUPTI (libcupti.so), which gives the times of the \
             device. Install the CUDA toolkit or the Python package nvidia-cuda-cupti, and put its \
             directory into LD_LIBRARY_PATH.",
        ),
    }
}

fn vulkan(document: &mut Document, libraries: &[String]) {
    if !has(libraries, "libvulkan.so.1") {
        return fact(document, "Vulkan", "no loader here (Debian: libvulkan1)");
    }
    let named = std::env::var("VK_ICD_FILENAMES").or_else(|_| std::env::var("VK_DRIVER_FILES"));
    let drivers = match named {
        Ok(list) => list,
        Err(_) => ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d"]
            .iter()
            .flat_map(|place| std::fs::read_dir(place).into_iter().flatten().flatten())
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect::<Vec<_>>()
            .join(", "),
    };
    match drivers.is_empty() {
        true => fact(document, "Vulkan", "a loader but no driver (Debian: mesa-vulkan-drivers)"),
        false => fact(document, "Vulkan", &format!("loader found, with {drivers}")),
    }
}

/// What was left by programs that were killed before GGML_PROFILE could be served, and by
/// launchers that were killed.
fn left_recordings(document: &mut Document) {
    let left = Spools::left_behind();
    if let Some(newest) = left.last() {
        let others = match left.len() {
            1 => String::new(),
            n => format!(" and {} more beside it", n - 1),
        };
        warn(
            document,
            format!(
                "recordings were left behind: {}{others}. A program or its `ggprof run` was killed, or \
                 a report could not be written. Open them with `ggprof report FILE`, and remove \
                 what you do not need.",
                newest.display()
            ),
        );
    }
}
