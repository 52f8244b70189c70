//! What a program does when it is left alone, and what is recorded of it then.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::arrangement::{Arrangement, Place};
use super::output::Output;
use super::programs::Program;
use super::ran::{self, Manner, Ran};
use super::recorded::Recorded;

/// Much more than any of the programs takes.
const LONGEST: Duration = Duration::from_secs(180);

#[derive(Debug)]
pub(super) struct Baseline {
    pub(super) program: Command,
    prints_figures: bool,
    pub(super) code: i32,
    pub(super) output: Output,
    pub(super) usual: Duration,
    pub(super) peak_bytes: u64,
    pub(super) recorded: Recorded,
}

/// Why a program cannot be exposed to anything.
#[derive(Debug, Clone)]
pub(super) enum Unfit {
    /// It cannot be fetched here, or does not run.
    Unavailable(String),
    /// It is not recorded well even when it is left alone.
    Violated(String),
}

impl Baseline {
    pub(super) fn of(program: &Program, directory: &Path) -> Result<Baseline, Unfit> {
        let command = program.command().map_err(Unfit::Unavailable)?;
        let arrangement = Arrangement::default();
        let place = |name| Place::new(directory.join(name)).expect("the directory is ours");
        // The first run finds files that are not in memory yet.
        let plain_place = place("plain");
        let once =
            || ran::run(arrangement.plain(&command, &plain_place), &plain_place, &manner(false));
        once();
        let plain = once();
        let recorded_place = place("recorded");
        let recorded = ran::run(
            arrangement.recorded(&command, &recorded_place),
            &recorded_place,
            &manner(true),
        );
        let contents = Recorded::of(&recorded_place);
        let output = |ran: &Ran| Output::of(if program.prints_figures { "" } else { &ran.out });
        check(&plain, &recorded, &contents, output(&plain) == output(&recorded))?;
        Ok(Baseline {
            program: command,
            prints_figures: program.prints_figures,
            code: plain.code,
            output: output(&plain),
            usual: plain.time,
            peak_bytes: plain.peak_bytes,
            recorded: contents,
        })
    }

    /// What a run printed that can be compared.
    pub(super) fn output_of(&self, ran: &Ran) -> Output {
        Output::of(if self.prints_figures { "" } else { &ran.out })
    }
}

fn manner(has_launcher: bool) -> Manner<'static> {
    Manner {
        has_launcher,
        disturbances: &[],
        usual: Duration::ZERO,
        limit: LONGEST,
        outlives_launcher: false,
    }
}

fn check(plain: &Ran, recorded: &Ran, contents: &Recorded, same: bool) -> Result<(), Unfit> {
    if plain.hung || plain.code != 0 {
        return Err(Unfit::Unavailable(format!("it ends with {}: {}", plain.code, plain.err)));
    }
    if recorded.code != 0 || !same || !contents.faults.is_empty() || contents.runs == 0 {
        return Err(Unfit::Violated(format!("without a hazard: {recorded:?} {contents:?}")));
    }
    Ok(())
}
