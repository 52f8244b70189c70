//! `ggprof run`: starts a command with the agent. When the command has ended, in whatever way, it
//! writes the files that the user asked for.

use crate::cli::{HowArgs, RunArgs, SummaryTo, VulkanArg};
use crate::exit::{self, Outcome};
use crate::format::Output;
use crate::launch::{self, Completed, Ended, Samples, Sensors, Spools};
use crate::recording::Recording;
use crate::{messages, output, terminal};
use clap::ValueEnum;
use ggprof_analysis::diff::{Fusions, ledger};
use ggprof_ggml::{PROFILE_VARIABLE, profile_file};
use ggprof_report::{Document, documents, render};
use ggprof_spool::names;
use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

pub(crate) fn run(arguments: &RunArgs) -> anyhow::Result<Outcome> {
    let plan = Plan::new(arguments, launch::is_of_ggml)?;
    plan.check(arguments)?;
    match arguments.repeat {
        1 => once(arguments, &plan, &mut |_| ()),
        runs => repeated(arguments, &plan, runs),
    }
}

/// Runs the command several times, each into files of its own, and prints how much the runs differ. Of
/// several processes, that with most events stands for its run. A run that fails is the last.
fn repeated(arguments: &RunArgs, plan: &Plan, runs: u32) -> anyhow::Result<Outcome> {
    let mut ledgers = Vec::new();
    let mut outcome = Outcome::Done;
    for number in 1..=runs {
        messages::progress(&format!("run {number} of {runs}"));
        let numbered = |output: &Output| output.of_one(&number.to_string());
        let outputs = plan.outputs.iter().map(numbered).collect();
        let plan = Plan { outputs, prints_summary: false, ..plan.clone() };
        let mut processes = Vec::new();
        let mut take = |recording: &Recording| {
            let trace = &recording.trace;
            processes.push((trace.events.len(), ledger(trace, &Fusions::default())));
        };
        outcome = once(arguments, &plan, &mut take)?;
        let largest = processes.into_iter().max_by_key(|(events, _)| *events);
        ledgers.extend(largest.map(|(_, ledger)| ledger));
        if outcome != Outcome::Command(0) {
            break;
        }
    }
    messages::progress_is_over();
    // Why there is nothing was said.
    if !ledgers.is_empty() {
        print_document(plan.summary_to, &documents::repeated(&ledgers))?;
    }
    Ok(outcome)
}

/// Runs the command; `take` sees what was recorded of each process.
fn once(
    arguments: &RunArgs,
    plan: &Plan,
    take: &mut dyn FnMut(&Recording),
) -> anyhow::Result<Outcome> {
    let agent = match plan.command.first() {
        Some(command) => launch::find_agent_for(command)?,
        None => launch::find_agent()?,
    };
    let spools = Spools::new()?;
    let program = plan.command.first().and_then(|command| launch::examine(command, &agent));
    if let Some(launch::Program { path, obstacle: Some(obstacle), .. }) = &program {
        messages::warning(&obstacle.sentence(path));
    }
    let samples = Arc::<Mutex<Samples>>::default();
    let _control = launch::ControlSocket::listen(spools.path(), samples.clone());
    let mut variables = variables(arguments, &spools);
    if arguments.vulkan != VulkanArg::Off {
        variables.extend(launch::announce_vulkan_layer(
            agent.library(program.as_ref().and_then(|program| program.libc)),
            spools.path(),
        ));
    }
    let ahead = launch::Ahead::of(spools.path());
    let observer = launch::Observer::of(spools.path(), samples.clone(), orders(arguments, plan));
    let mut sensors = None;
    let ended = launch::run(&plan.command, &agent, &variables, || {
        let read = || Sensors::read_into(samples.clone(), launch::Processes::Started);
        sensors = (!arguments.how.no_sensors).then(read);
    })?;
    drop((observer, ahead, sensors));
    if let Some(signal) = ended.crash() {
        messages::warning(&messages::crashed(signal));
    }
    for process in launch::outliving::stop_recordings(&spools) {
        messages::warning(&messages::goes_on(&process.name, process.pid));
    }
    let program = program.map(|program| program.path);
    let recorded = deliver_all(plan, spools, &samples, program, take);
    Ok(outcome(ended, recorded, arguments.strict))
}

/// What became of the recordings. That the program ran is not touched by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recorded {
    Whole,
    /// There is none, it is empty, or something is missing from it.
    Incomplete,
    /// An output could not be written.
    Undelivered,
}

impl Recorded {
    /// Of a command that is about the recording only.
    pub(super) fn outcome(self) -> Outcome {
        match self {
            Recorded::Whole => Outcome::Done,
            Recorded::Incomplete => Outcome::Incomplete,
            Recorded::Undelivered => Outcome::Command(exit::FAILED),
        }
    }
}

/// Writes or prints the recordings of all processes, and says what is wrong with them.
pub(super) fn deliver_all(
    plan: &Plan,
    spools: Spools,
    samples: &Mutex<Samples>,
    program: Option<PathBuf>,
    take: &mut dyn FnMut(&Recording),
) -> Recorded {
    let files = spools.files();
    let without_agent = spools.without_agent();
    without_agent.iter().for_each(|sentence| messages::warning(sentence));
    if files.is_empty() && without_agent.is_empty() {
        messages::error(&anyhow::anyhow!(why_nothing(program.as_deref(), &spools)));
    }
    let (mut any_events, mut any_losses) = (false, !without_agent.is_empty());
    for file in &files {
        match deliver(plan, file, samples, files.len() > 1) {
            Ok(recording) => {
                take(&recording);
                any_events |= !recording.trace.events.is_empty();
                any_losses |= !recording.trace.losses.is_empty();
            }
            // Who stops reading has what was wanted.
            Err(error) if exit::is_closed_pipe(&error) => any_events = true,
            Err(error) => {
                messages::error(&error);
                let place = spools.keep();
                messages::note(&format!("The recording itself is kept in {}.", place.display()));
                return Recorded::Undelivered;
            }
        }
    }
    if files.len() > 1 && (plan.prints_summary || !plan.outputs.is_empty()) {
        messages::note(&shown_together(plan, &files));
    }
    if any_events && !any_losses { Recorded::Whole } else { Recorded::Incomplete }
}

/// How to see the recordings of several processes together.
fn shown_together(plan: &Plan, spools: &[PathBuf]) -> String {
    let output = plan.outputs.iter().find(|output| output.is_recording());
    let named = |output: &Output| -> Vec<PathBuf> {
        spools.iter().map(|spool| output.of_one(&launch::process_of(spool)).path).collect()
    };
    messages::shown_together(spools.len(), &output.map(named).unwrap_or_default())
}

/// Of a program that ran and was not recorded at all.
fn why_nothing(program: Option<&Path>, spools: &Spools) -> String {
    if let Some(process) = launch::outliving::any(spools) {
        return messages::goes_on_unrecorded(&process.name, process.pid);
    }
    match program.filter(|program| launch::hides_ggml(program)) {
        Some(program) => messages::stripped(program),
        None => messages::NOTHING_RECORDED.to_owned(),
    }
}

/// What to run and what to make of it.
#[derive(Clone)]
pub(super) struct Plan {
    command: Vec<OsString>,
    outputs: Vec<Output>,
    /// Where there are no outputs.
    prints_summary: bool,
    summary_to: SummaryTo,
}

impl Plan {
    /// Without a command.
    pub(super) fn of_outputs(outputs: Vec<Output>, summary_to: SummaryTo) -> Self {
        Self { command: Vec::new(), outputs, prints_summary: true, summary_to }
    }

    /// Takes the flags of the in-tree profiler out of the command, so that command lines that
    /// were written for it work. Programs that are not of ggml may mean something else by them.
    fn new(arguments: &RunArgs, is_of_ggml: fn(&OsStr) -> bool) -> anyhow::Result<Self> {
        let is_flag = |word: &OsString| word.to_string_lossy().starts_with("--profile");
        let takes_flags = arguments.command.iter().any(is_flag)
            && arguments.command.first().is_some_and(|command| is_of_ggml(command));
        let mut outputs = arguments.output.clone();
        outputs.extend(arguments.html.clone());
        let mut command = Vec::new();
        let mut words = arguments.command.iter();
        while let Some(word) = words.next() {
            if !takes_flags {
                command.push(word.clone());
            } else if word == "--profile" {
                continue;
            } else if word == "--profile-output" {
                let path = words.next().map(|path| named("--profile-output", path));
                outputs.extend(path.transpose()?);
            } else if let Some(path) = value_of(word, "--profile-output=") {
                outputs.push(named("--profile-output", path)?);
            } else {
                command.push(word.clone());
            }
        }
        if outputs.is_empty() {
            outputs.extend(output_of_environment().transpose()?);
        }
        let summary_to = arguments.how.summary_to;
        Ok(Self { command, outputs, prints_summary: true, summary_to })
    }

    /// Whether all files can be written that were asked for.
    fn check(&self, arguments: &RunArgs) -> anyhow::Result<()> {
        let outputs = self.outputs.iter().map(|output| &output.path);
        let paths = || outputs.clone().chain(&arguments.metrics_file).map(PathBuf::as_path);
        output::apart(paths())?;
        paths().try_for_each(output::check)
    }
}

fn orders(arguments: &RunArgs, plan: &Plan) -> launch::Orders {
    let first = plan.outputs.first().filter(|output| output.path.as_os_str() != "-").cloned();

    launch::Orders {
        metrics_file: arguments.metrics_file.clone(),
        snapshot_when: arguments.snapshot_when.clone(),
        most_snapshots: arguments.snapshots,
        write_snapshot: |copy, process, to| {
            let recording = Recording::of_process(copy, process)?;
            let completed = Completed::as_it_is(copy)?;
            present(&recording, &completed, std::slice::from_ref(to), SummaryTo::Stderr)
        },
        snapshot_file: Box::new(move |number| match &first {
            Some(output) => output.of_one(&format!("snapshot-{number}")),
            None => {
                Output::recording(format!("snapshot-{number}{}", names::RECORDING_ENDING).into())
            }
        }),
    }
}

/// `GGML_PROFILE` means here what it means without a launcher.
fn output_of_environment() -> Option<anyhow::Result<Output>> {
    let value = std::env::var_os(PROFILE_VARIABLE)?;
    profile_file(&value).map(|path| named(PROFILE_VARIABLE, path))
}

/// The file that an option or a variable names.
fn named(who: &str, path: impl AsRef<OsStr>) -> anyhow::Result<Output> {
    let path = path.as_ref();
    Output::named(path.into()).map_err(|why| anyhow::anyhow!("{who} {}: {why}.", path.display()))
}

fn value_of<'w>(word: &'w OsStr, flag: &str) -> Option<&'w str> {
    word.to_str()?.strip_prefix(flag)
}

fn variables(arguments: &RunArgs, spools: &Spools) -> Vec<(&'static str, OsString)> {
    let mut variables = variables_of(&arguments.how, spools);
    for (name, on) in [(names::SERIALIZE, arguments.serialize), (names::PAUSED, arguments.paused)] {
        variables.push((name, yes_or_nothing(on)));
    }
    variables.push((names::VULKAN, name_of(arguments.vulkan)));
    let nanoseconds = |time: std::time::Duration| u64::try_from(time.as_nanos()).ok();
    for (name, number) in [
        (names::START_AFTER_NS, arguments.start_after.and_then(nanoseconds)),
        (names::DURATION_NS, arguments.duration.and_then(nanoseconds)),
        (names::FIRST_GRAPH, arguments.graphs.map(|graphs| graphs.first)),
        (names::LAST_GRAPH, arguments.graphs.and_then(|graphs| graphs.last)),
    ] {
        variables.push((name, number_or_nothing(number)));
    }
    variables
}

/// What the agent is told, whether it comes with the program or later.
pub(super) fn variables_of(how: &HowArgs, spools: &Spools) -> Vec<(&'static str, OsString)> {
    vec![
        (names::SPOOL, spools.pattern()),
        (names::THREADS, yes_or_nothing(how.threads)),
        (names::CUDA, name_of(how.cuda)),
        (names::BUDGET, how.budget.to_string().into()),
        (names::MAX_BYTES, number_or_nothing(how.max_size.map(launch::size_for_agent))),
    ]
}

fn name_of(value: impl ValueEnum) -> OsString {
    let named = value.to_possible_value();
    named.map(|value| value.get_name().to_owned()).unwrap_or_default().into()
}

fn yes_or_nothing(yes: bool) -> OsString {
    if yes { "1" } else { "" }.into()
}

/// Empty without a value: a ggprof around this one may have set it.
fn number_or_nothing(number: Option<u64>) -> OsString {
    number.map_or_else(String::new, |number| number.to_string()).into()
}

/// The program's own exit code. Ours appear only on request (`--strict`), and only where the program
/// itself succeeded.
fn outcome(ended: Ended, recorded: Recorded, strict: bool) -> Outcome {
    match (ended.code(), recorded) {
        (0, Recorded::Incomplete) if strict => Outcome::Incomplete,
        (0, Recorded::Undelivered) if strict => Outcome::Command(exit::FAILED),
        (code, _) => Outcome::Command(code),
    }
}

/// Writes or prints the recording of one process.
fn deliver(
    plan: &Plan,
    file: &Path,
    samples: &Mutex<Samples>,
    one_of_many: bool,
) -> anyhow::Result<Recording> {
    let process = launch::process_of(file);
    let completed = Completed::of(file, samples)?;
    let recording = Recording::of_completed(&completed, &process)?;
    let named =
        |output: &Output| if one_of_many { output.of_one(&process) } else { output.clone() };
    let outputs: Vec<Output> = plan.outputs.iter().map(named).collect();
    if outputs.is_empty() && !plan.prints_summary {
        recording.warn_of_losses();
        return Ok(recording);
    }
    present(&recording, &completed, &outputs, plan.summary_to)?;
    Ok(recording)
}

/// Writes a recording, which was read from `completed`, to these files; without any, prints its
/// summary.
pub(super) fn present(
    recording: &Recording,
    completed: &Completed<'_>,
    outputs: &[Output],
    summary_to: SummaryTo,
) -> anyhow::Result<()> {
    for output in outputs {
        let copy = |out: &mut dyn Write| std::io::copy(&mut completed.open()?, out).map(|_| ());
        output::to_file(&output.path, |out| output.write(recording, copy, out))?;
        messages::note(&format!("Profile written to {}.", output.path.display()));
    }
    if outputs.is_empty() {
        return print_summary(summary_to, recording);
    }
    recording.warn_of_losses();
    Ok(())
}

pub(super) fn print_summary(to: SummaryTo, recording: &Recording) -> anyhow::Result<()> {
    let document = documents::summary(&recording.trace, &recording.name, recording.peaks.as_ref());
    print_document(to, &document)
}

fn print_document(to: SummaryTo, document: &Document) -> anyhow::Result<()> {
    let is_for_stdout = match to {
        SummaryTo::Auto => std::io::stdout().is_terminal(),
        SummaryTo::Stdout => true,
        SummaryTo::Stderr => false,
    };
    match is_for_stdout {
        true => {
            let text = render::console(document, &terminal::stdout_style());
            output::to_stdout(|out| out.write_all(text.as_bytes()))
        }
        false => {
            messages::note_styled(&render::console(document, &terminal::stderr_style()));
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    #[track_caller]
    fn check(line: &str, command: &str, outputs: &[&str]) {
        let cli = Cli::parse_from(line.split(' '));
        let Command::Run(arguments) = cli.command else { panic!("{line}") };
        let plan = Plan::new(&arguments, |command| command == "a").expect(line);
        assert_eq!(plan.command.join(" ".as_ref()), command);
        let paths: Vec<_> = plan.outputs.iter().map(|output| output.path.as_path()).collect();
        assert_eq!(paths, outputs.iter().map(Path::new).collect::<Vec<_>>());
    }

    #[test]
    fn the_flags_of_the_in_tree_profiler_are_taken_out() {
        check("ggprof run -- a -m x", "a -m x", &[]);
        check("ggprof run a -m x --threads 4", "a -m x --threads 4", &[]);
        check("ggprof run -o p.json --html t.html -- a", "a", &["p.json", "t.html"]);
        check("ggprof run -- a --profile -m x", "a -m x", &[]);
        check("ggprof run -- a --profile --profile-output p.txt -m x", "a -m x", &["p.txt"]);
        check("ggprof run -- a --profile-output=p.txt", "a", &["p.txt"]);
        check("ggprof run --profile-output p.txt -- a", "a", &["p.txt"]);
        let others = "docker compose --profile gpu up --profile-output x";
        check(&format!("ggprof run -- {others}"), others, &[]);
    }
}
