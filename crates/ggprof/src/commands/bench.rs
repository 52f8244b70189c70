//! `ggprof bench`: two commands in turns, each recorded, until it is clear whether they differ.

use super::diff;
use crate::baseline::Baseline;
use crate::cli::{BenchArgs, Cli, Command};
use crate::comparison::Sides;
use crate::exit::Outcome;
use crate::launch::{Interrupted, Interruption, Trial, numbered_recordings, remove_recordings};
use crate::recording::Recording;
use crate::{interruption, messages};
use anyhow::{anyhow, bail};
use clap::Parser;
use ggprof_analysis::diff::{Depth, Diff};
use ggprof_spool::names;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A change worth knowing, where nobody says otherwise.
const WORTH_KNOWING: f64 = 0.01;

/// Pairs at the first look, and at the last one, where nobody says otherwise. With five, a phase that has
/// changed can be certain at one look, and not as one of several.
const LEAST_PAIRS: usize = 7;
const MOST_PAIRS: usize = 20;

/// From one look to the next there are so many times as many pairs.
const GROWTH: f64 = 1.4;

pub(crate) fn bench(arguments: &BenchArgs) -> anyhow::Result<Outcome> {
    let commands = commands(&arguments.command)?;
    commands.iter().try_for_each(|side| check_options(&arguments.record, &side.command))?;
    arguments.print.check(&[])?;
    let looks = planned(arguments)?;
    let baseline = Baseline::of(&arguments.judged)?;
    let interruption = Interruption::listen();
    let place = Place::new(arguments.keep.as_deref())?;
    let (began, took) = (Instant::now(), Vec::new());
    let mut bench = Bench { arguments, commands, place, interruption, began, took };
    bench.warm_up()?;
    bench.place.clear();
    let mut sides = bench.first_pair(looks[0])?;
    sides.are_looked_at(looks.len());
    diff::check_phases(&arguments.judged, &sides.diff(Depth::Backend))?;
    let mut failed = None;
    for pair in 2..=*looks.last().unwrap_or(&1) {
        let is_decided = || bench.is_decided(&sides.diff(Depth::Backend));
        if bench.is_late() || looks.contains(&(pair - 1)) && is_decided() {
            break;
        }
        if let Err(error) = bench.pair(pair, looks_until(&looks, pair), &mut sides) {
            failed = Some(not_all(error, pair)?);
            break;
        }
    }
    messages::progress_is_over();
    bench.interruption.check()?;
    // Recordings that are not kept go, so that a signal may end the rest as it ends any command.
    drop(bench);
    interruption::watch();
    failed.iter().for_each(|sentence| messages::warning(sentence));
    let outcome =
        diff::finish(&sides, baseline, &arguments.judged, &arguments.shown, &arguments.print)?;
    Ok(if failed.is_some() && outcome == Outcome::Done { Outcome::Incomplete } else { outcome })
}

/// A pair could not be made. What was made before it is compared, unless the user does not want that.
fn not_all(error: anyhow::Error, pair: usize) -> anyhow::Result<String> {
    match error.is::<Interrupted>() {
        true => Err(error),
        false => Ok(format!("pair {pair} is left out, and there are no more: {error:#}")),
    }
}

/// The looks that were asked for.
fn planned(arguments: &BenchArgs) -> anyhow::Result<Vec<usize>> {
    match (arguments.pairs, arguments.max_pairs) {
        (Some(least), Some(most)) if least > most => bail!(
            "--pairs {least} are more than --max-pairs {most}. Leave one of them out, or say --pairs {most}."
        ),
        (None, Some(most)) => Ok(looks(LEAST_PAIRS.min(most), most)),
        (least, most) => Ok(looks(least.unwrap_or(LEAST_PAIRS), most.unwrap_or(MOST_PAIRS))),
    }
}

/// After how many pairs it is looked whether more are needed.
fn looks(least: usize, most: usize) -> Vec<usize> {
    let mut looks = vec![least];
    while let Some(&last) = looks.last().filter(|&&last| last < most) {
        let next = ((last as f64 * GROWTH).ceil() as usize).max(last + 1);
        looks.push(next.min(most));
    }
    looks
}

fn looks_until(looks: &[usize], pair: usize) -> usize {
    looks.iter().copied().find(|&look| look >= pair).unwrap_or(pair)
}

/// A command and what is set for it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Side {
    variables: Vec<(OsString, OsString)>,
    command: Vec<OsString>,
}

/// The two sides: words before and behind `--vs`. Without it, the same command twice.
fn commands(words: &[OsString]) -> anyhow::Result<[Side; 2]> {
    let between = words.iter().position(|word| word == "--vs");
    let (a, b) = match between {
        Some(at) => (&words[..at], &words[at + 1..]),
        None => (words, &[][..]),
    };
    let b = if b.first().is_some_and(|word| word == "--") { &b[1..] } else { b };
    let a = side(a);
    if a.command.is_empty() {
        bail!("there is no command before --vs. Write: ggprof bench -- COMMAND --vs -- COMMAND.");
    }
    if between.is_some() && b.is_empty() {
        bail!("there is nothing behind --vs. Name a command, or variables for the first one.");
    }
    let mut b = side(b);
    if b.command.is_empty() {
        b.command = a.command.clone();
        b.variables = [&a.variables[..], &b.variables].concat();
    }
    Ok([a, b])
}

/// What `--record` gives to each `ggprof run`, looked at before the first of them.
fn check_options(options: &[OsString], command: &[OsString]) -> anyhow::Result<()> {
    let words = ["ggprof", "run"].map(OsString::from).into_iter();
    let words = words.chain(options.iter().cloned()).chain(["--".into()]);
    match Cli::try_parse_from(words.chain(command.iter().cloned())) {
        Err(wrong) => wrong.exit(),
        Ok(Cli { command: Command::Run(run) }) if run.command != command => bail!(
            "--record takes options of `ggprof run`, and {} is none.",
            run.command[0].display()
        ),
        Ok(Cli { command: Command::Run(run) }) if run.repeat > 1 => bail!(
            "a run of `ggprof bench` is made once. Say --pairs {} instead of --record=--repeat.",
            run.repeat
        ),
        Ok(_) => Ok(()),
    }
}

fn side(words: &[OsString]) -> Side {
    let mut variables = Vec::new();
    let mut rest = words;
    while let Some(variable) = rest.first().and_then(|word| assignment(word)) {
        variables.push(variable);
        rest = &rest[1..];
    }
    Side { variables, command: rest.to_vec() }
}

/// `NAME=value`, as before a command in a shell.
fn assignment(word: &OsStr) -> Option<(OsString, OsString)> {
    let (name, value) = word.to_str()?.split_once('=')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then(|| (name.into(), value.into()))
}

/// Where the recordings are.
struct Place {
    directory: PathBuf,
    /// Removed at the end.
    _temporary: Option<TempDir>,
}

impl Place {
    fn new(keep: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(directory) = keep {
            std::fs::create_dir_all(directory)
                .map_err(|error| anyhow!(messages::cannot_write(directory, &error)))?;
            return Ok(Self { directory: directory.to_owned(), _temporary: None });
        }
        let temporary = tempfile::Builder::new().prefix("ggprof-bench-").tempdir()?;
        Ok(Self { directory: temporary.path().to_owned(), _temporary: Some(temporary) })
    }

    /// Takes away what an earlier bench has kept here: beside recordings of this one, `a?.ggprof` would be
    /// of both.
    fn clear(&self) {
        let earlier = NAMES.iter().flat_map(|name| numbered_recordings(&self.directory, name));
        let removed = earlier.filter(|path| std::fs::remove_file(path).is_ok()).count();
        if removed > 0 {
            let directory = self.directory.display();
            messages::note(&format!(
                "{removed} recordings of an earlier bench were removed from {directory}."
            ));
        }
    }
}

struct Bench<'a> {
    arguments: &'a BenchArgs,
    commands: [Side; 2],
    place: Place,
    interruption: Interruption,
    began: Instant,
    /// How long each pair took.
    took: Vec<Duration>,
}

const NAMES: [&str; 2] = ["a", "b"];

impl Bench<'_> {
    /// Reads the model from the disk, and compiles what is compiled once.
    fn warm_up(&mut self) -> anyhow::Result<()> {
        for side in [0, 1] {
            messages::progress(&format!("warming up {}", NAMES[side].to_uppercase()));
            let file = self.place.directory.join(format!("warm-up{}", names::RECORDING_ENDING));
            self.trial(side, &file)?;
            // It is left out.
            remove_recordings(&file);
        }
        Ok(())
    }

    fn first_pair(&mut self, until: usize) -> anyhow::Result<Sides> {
        let began = Instant::now();
        let [a, b] = [self.run(0, 1, until)?, self.run(1, 1, until)?];
        self.took.push(began.elapsed());
        Ok(Sides::of_first(&a, &b))
    }

    /// Each second pair the other way round, so that what changes with time favours neither side.
    fn pair(&mut self, pair: usize, until: usize, sides: &mut Sides) -> anyhow::Result<()> {
        let began = Instant::now();
        let order = if pair.is_multiple_of(2) { [1, 0] } else { [0, 1] };
        // Both or none of them.
        let recordings = [self.run(order[0], pair, until)?, self.run(order[1], pair, until)?];
        order.into_iter().zip(&recordings).for_each(|(side, it)| sides.add(side, it));
        self.took.push(began.elapsed());
        Ok(())
    }

    fn run(&self, side: usize, pair: usize, until: usize) -> anyhow::Result<Recording> {
        let name = NAMES[side];
        let left = self.left(pair, until);
        messages::progress(&format!("pair {pair} of {until}, {}{left}", name.to_uppercase()));
        let file = self.place.directory.join(format!("{name}{pair}{}", names::RECORDING_ENDING));
        let made = self.trial(side, &file)?;
        let mut recording = with_most_events(&made)?;
        recording.name = format!("{name}{pair}");
        Ok(recording)
    }

    /// How long it will take until then, as far as known.
    fn left(&self, pair: usize, until: usize) -> String {
        let Some(all) = self.took.iter().sum::<Duration>().checked_div(self.took.len() as u32)
        else {
            return String::new();
        };
        let seconds = all.as_secs_f64() * (until + 1 - pair) as f64;
        match seconds < 90.0 {
            true => format!(", {seconds:.0} s left"),
            false => format!(", {:.0} min left", seconds / 60.0),
        }
    }

    fn trial(&self, side: usize, file: &Path) -> anyhow::Result<Vec<PathBuf>> {
        let Side { variables, command } = &self.commands[side];
        let (options, interruption) = (&self.arguments.record, &self.interruption);
        Trial { variables, options, command, interruption }.record(file)
    }

    /// Whether no further pair is to begin.
    fn is_late(&self) -> bool {
        self.arguments.max_time.is_some_and(|most| self.began.elapsed() > most)
    }

    /// Whether more pairs would tell nothing new.
    fn is_decided(&self, diff: &Diff) -> bool {
        let least = |phase| {
            let asked = self.arguments.judged.fail_if.iter();
            let asked = asked.filter_map(|condition| condition.least_share(phase));
            asked.fold(None, |least: Option<f64>, it| Some(least.map_or(it, |other| other.min(it))))
        };
        diff.phases.iter().all(|phase| {
            let wanted = least(phase).unwrap_or(WORTH_KNOWING) * phase.total.a_ns;
            let would_have_been_seen = phase.smallest_seen_ns().is_some_and(|seen| seen <= wanted);
            phase.total.is_certain() || would_have_been_seen
        })
    }
}

/// Of several processes, the one that stands for the run. The size of the files says nothing: most of a
/// short recording is empty.
fn with_most_events(paths: &[PathBuf]) -> anyhow::Result<Recording> {
    let mut largest = Recording::open(&paths[0])?;
    for path in &paths[1..] {
        let other = Recording::open(path)?;
        if other.trace.events.len() > largest.trace.events.len() {
            largest = other;
        }
    }
    Ok(largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[track_caller]
    fn check(line: &str, expected: [(&str, &str); 2]) {
        let found = commands(&words(line)).unwrap().map(|side| {
            let variables: Vec<String> = side
                .variables
                .iter()
                .map(|(name, value)| format!("{}={}", name.display(), value.display()))
                .collect();
            (variables.join(" "), side.command.join(" ".as_ref()).into_string().unwrap())
        });
        let expected = expected.map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn two_sides() {
        check("x -m y --vs -- z -m y", [("", "x -m y"), ("", "z -m y")]);
        check("x --vs z", [("", "x"), ("", "z")]);
        check("x -m y", [("", "x -m y"), ("", "x -m y")]);
        check("x --vs -- A=1 B=", [("", "x"), ("A=1 B=", "x")]);
        check("A=1 x --vs -- A=2", [("A=1", "x"), ("A=1 A=2", "x")]);
        check("A=1 x y=2 --vs -- B=3 z", [("A=1", "x y=2"), ("B=3", "z")]);
        for wrong in ["--vs -- x", "x --vs", "x --vs --", "A=1 --vs -- x"] {
            assert!(commands(&words(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn looks_become_rarer() {
        assert_eq!(looks(5, 20), [5, 7, 10, 14, 20]);
        assert_eq!(looks(5, 5), [5]);
        assert_eq!(looks(1, 4), [1, 2, 3, 4]);
    }
}
