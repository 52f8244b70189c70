//! Vulkan instances and devices that come and go, made by ggml and by other code in the process:
//! the program prints and ends as it does without the agent, and takes no more memory over time.

use std::path::PathBuf;
use std::process::{Command, Output};

use ggprof_e2e::ran::Ran;
use ggprof_e2e::under_agent::UnderAgent;
use ggprof_e2e::{built, published_ggml};
use ggprof_spool::layout::LossCounter;

/// Who stands above and below us in the loader's chain. Mesa's layer, which chooses devices and
/// is there unless refused, comes before ours. The validation layer comes behind, unless it is
/// looked for in a place of the user's.
const CHAINS: [&[(&str, &str)]; 4] = [
    &[],
    &[("NODEVICE_SELECT", "1")],
    &[("VK_INSTANCE_LAYERS", VALIDATION)],
    &[("VK_LAYER_PATH", "/usr/share/vulkan/explicit_layer.d"), ("VK_INSTANCE_LAYERS", VALIDATION)],
];
const VALIDATION: &str = "VK_LAYER_KHRONOS_validation";
/// Names of applications; the first is how ggml calls itself.
const APPLICATIONS: [&str; 2] = ["ggml-vulkan", "another"];
/// What a process may grow by more than without us, in kB. Recording starts meanwhile.
const TOLERATED_KB: i64 = 3000;

/// A host program's words, on the software device.
struct Program {
    program: PathBuf,
    device: PathBuf,
    arguments: Vec<String>,
}

impl Program {
    fn new(source: &str, arguments: &[&str]) -> Option<Program> {
        let device = published_ggml::vulkan_device()?;
        let arguments = arguments.iter().map(|&word| word.to_owned()).collect();
        Some(Program { program: built::host_program(source), device, arguments })
    }

    fn prepared(&self, mut command: Command, chain: &[(&str, &str)]) -> Command {
        command.env("VK_ICD_FILENAMES", &self.device).envs(chain.iter().copied());
        command
    }

    /// Without the agent.
    fn alone(&self, chain: &[(&str, &str)]) -> Output {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        let output = self.prepared(command, chain).output().expect("it starts");
        assert!(output.status.success(), "{chain:?} {output:?}");
        output
    }

    /// With it; the same must come out.
    #[track_caller]
    fn check(&self, chain: &[(&str, &str)], expected: &Output) -> Output {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        let output = UnderAgent::of(self.prepared(command, chain)).run();
        let words = &self.arguments;
        assert_eq!(output.status, expected.status, "{words:?} {chain:?} {output:?}");
        assert_eq!(output.stdout, expected.stdout, "{words:?} {chain:?}");
        output
    }
}

/// By how many kB the program says that it has grown.
fn growth(output: &Output) -> i64 {
    let text = String::from_utf8_lossy(&output.stderr);
    let number = text.lines().find_map(|line| line.strip_prefix("grew="));
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn instances_and_devices_come_and_go_and_leave_nothing() {
    // The validation layer takes its time to begin.
    for (rounds, devices, chains) in [("200", "0", &CHAINS[..2]), ("25", "2", &CHAINS)] {
        for application in APPLICATIONS {
            let words = [application, rounds, devices];
            let Some(program) = Program::new("vulkan_comes_and_goes.c", &words) else { return };
            for chain in chains {
                let alone = program.alone(chain);
                let output = program.check(chain, &alone);
                let (own, with_us) = (growth(&alone), growth(&output));
                let enough = with_us <= own.max(0) + TOLERATED_KB;
                assert!(enough, "{words:?} {chain:?}: {with_us} kB, without us {own} kB");
            }
        }
    }
}

#[test]
fn two_instances_at_once_do_not_meet() {
    let Some(program) = Program::new("vulkan_two_instances.c", &[]) else { return };
    for chain in CHAINS {
        program.check(chain, &program.alone(chain));
    }
}

#[test]
fn what_vulkan_refuses_stays_refused() {
    for application in APPLICATIONS {
        let Some(program) = Program::new("vulkan_refuses.c", &[application]) else { return };
        for chain in CHAINS {
            program.check(chain, &program.alone(chain));
        }
    }
}

#[test]
fn threads_have_instances_of_their_own() {
    let Some(program) = Program::new("vulkan_in_threads.c", &[]) else { return };
    for chain in &CHAINS[..2] {
        program.check(chain, &program.alone(chain));
    }
    // And by an agent that checks the order of its locks.
    let mut checked = UnderAgent::of(program.prepared(Command::new(&program.program), &[]));
    checked.command.env("LD_PRELOAD", built::checked_agent());
    assert_eq!(checked.run_well().stdout, program.alone(&[]).stdout);
    assert_eq!(checked.recording().header.losses[LossCounter::Fault as usize], 0);
}

/// Lets the loader find our layer before that of a directory. `exec` keeps the process: the
/// manifest of the shell stays.
const OURS_FIRST: &str =
    r#"export VK_LAYER_PATH="${GGPROF_SPOOL%/*}/vulkan-layer-$$-0:$0"; exec "$@""#;

/// A driver that cannot do what timing needs gets no more than the program's own wishes.
#[test]
fn a_driver_may_refuse_what_we_add() {
    let Some(mut program) = Program::new("vulkan_comes_and_goes.c", &[]) else { return };
    let library = built::host_library("vulkan_layer_that_refuses.c");
    let directory = tempfile::TempDir::new().expect("a directory");
    let manifest = format!(
        r#"{{ "file_format_version": "1.1.2", "layer": {{ "name": "VK_LAYER_TEST_refuses",
            "type": "GLOBAL", "library_path": "{}", "api_version": "1.3.0",
            "implementation_version": "1", "description": "" }} }}"#,
        library.canonicalize().expect("it was just built").display()
    );
    std::fs::write(directory.path().join("refuses.json"), manifest).expect("it can be written");
    let text = |path: &std::path::Path| path.to_str().expect("a path of ours").to_owned();
    let words = ["-c".to_owned(), OURS_FIRST.to_owned(), text(directory.path())];
    program.arguments = words.into_iter().chain([text(&program.program)]).collect();
    program.arguments.extend(["ggml", "3", "2"].map(str::to_owned));
    program.program = "sh".into();
    let chain = [("VK_INSTANCE_LAYERS", "VK_LAYER_TEST_refuses")];
    let alone = program.alone(&chain);
    let output = program.check(&chain, &alone);
    let refused = |output: &Output| {
        String::from_utf8_lossy(&output.stderr).lines().filter(|line| *line == "refused").count()
    };
    assert_eq!((refused(&alone), refused(&output)), (0, 6));
}

/// Ways to a program that lose the agent and keep the announcement of its layer: in the same
/// process, and in another one.
const WITHOUT_AGENT: [&[&str]; 2] =
    [&["env", "-u", "LD_PRELOAD"], &["sh", "-c", r#"unset LD_PRELOAD; "$0" "$@"; exit $?"#]];

fn recorded_without_agent(program: &Program, way: &[&str], chain: &[(&str, &str)]) -> Ran {
    let mut command = Command::new(built::ggprof());
    command.args(["run", "--cuda", "full", "--"]).args(way);
    command.arg(&program.program).args(&program.arguments).env_remove("LD_PRELOAD");
    Ran::of(program.prepared(command, chain).output().expect("ggprof runs"))
}

/// The Vulkan loader opens the agent while threads run, and closes it with the last instance:
/// it must change nothing, and be there still. What it cannot record it says.
#[test]
fn a_mere_layer_passes_everything_on() {
    for (application, told) in
        [("ggml", "used ggml and was not recorded"), ("another", "nothing was recorded")]
    {
        let Some(program) = Program::new("vulkan_then_opens.c", &[application]) else { return };
        for chain in &CHAINS[..2] {
            let expected = Ran::of(program.alone(chain));
            for way in WITHOUT_AGENT {
                let ran = recorded_without_agent(&program, way, chain);
                assert_eq!(ran.out, expected.out, "{application} {way:?}");
                assert_eq!(ran.code, expected.code, "{ran:?}");
                let said = ran.said();
                assert!(said.len() == 1 && said[0].contains(told), "{said:?}");
                assert_eq!(said[0].contains("removed LD_PRELOAD"), application == "ggml");
            }
        }
    }
}

#[test]
fn ggml_computes_as_ever_beside_a_mere_layer() {
    let newest = published_ggml::NEWEST;
    let Some((libraries, environment)) = published_ggml::vulkan_libraries(newest) else { return };
    let libraries = libraries.to_str().expect("a path of ours");
    let arguments = [libraries, "--split", "--threads", "1", "--graphs", "3", "--embd", "64"];
    let device = environment[0].1.clone();
    let arguments = arguments.map(str::to_owned).to_vec();
    let program = Program { program: built::workload(), device, arguments };
    for way in WITHOUT_AGENT {
        let ran = recorded_without_agent(&program, way, &[("GGML_VK_VISIBLE_DEVICES", "0")]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.out.contains("done graphs=3"), "{ran:?}");
        assert!(ran.said()[0].contains("ggprof-workload (process "), "{ran:?}");
    }
}

/// Others have addresses in them for as long as the process lives.
#[test]
fn our_libraries_are_never_unloaded() {
    for library in [built::agent(), built::profiler_library().join("libggml-profiler.so")] {
        let output = Command::new("readelf").arg("-dW").arg(&library).output();
        let text = String::from_utf8(output.expect("it comes with gcc").stdout).expect("text");
        let flags = text.lines().find(|line| line.contains("(FLAGS_1)")).unwrap_or_default();
        assert!(flags.contains("NODELETE"), "{}: {flags}", library.display());
    }
}
