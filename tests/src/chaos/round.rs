//! One run: what its seed chooses, how it is carried out, and what came of it.

use std::path::Path;
use std::time::Duration;

use super::arrangement::{Arrangement, Place};
use super::baseline::Baseline;
use super::excuses::{Excuses, NOTHING};
use super::hazards::{Hazard, Kind};
use super::kinds;
use super::programs::{self, Program};
use super::ran::{self, Manner};
use super::random::Random;
use super::recorded::Recorded;
use super::verdict::Case;

/// The system does not allow one of the conditions.
const IMPOSSIBLE: i32 = 125;
const MOST_HAZARDS: u64 = 3;
/// On a machine that others use, too.
const LEAST_PATIENCE: Duration = Duration::from_secs(60);
const PATIENCE: u32 = 30;
/// How often a program is run alone to see whether it does by itself what it did recorded.
const DOUBTS: usize = 5;

/// What a seed chooses.
#[derive(Debug)]
pub struct Choice {
    pub seed: u64,
    pub program: &'static Program,
    pub hazards: Vec<Hazard>,
}

/// What came of it.
#[derive(Debug)]
pub enum Finding {
    Fine,
    /// The hazard ruins the program without us.
    Ruined,
    /// The program now and then does the same without us.
    Unsteady(Vec<String>),
    Impossible(String),
    Violated(Vec<String>),
}

impl Choice {
    pub fn of(seed: u64) -> Choice {
        let mut random = Random::new(seed);
        let program = random.one_of(programs::ALL);
        let count = random.between(1..=MOST_HAZARDS) as usize;
        let mut hazards: Vec<Hazard> = Vec::new();
        while hazards.len() < count {
            let kind = random.one_of(kinds::ALL);
            let hazard = kind.draw(&mut random);
            let is_new = hazards.iter().all(|other| other.kind.name != kind.name);
            if is_new && kind.fits(program) {
                hazards.push(hazard);
            }
        }
        Choice { seed, program, hazards }
    }

    /// For each hazard the first seed that has it alone, with a program that does not take long.
    pub fn one_of_each() -> Vec<Choice> {
        let is_short = |choice: &Choice| choice.hazards.len() == 1 && choice.program.is_quick;
        let first = |kind: &Kind| {
            let mut choices = (1..).map(Choice::of).filter(is_short);
            choices.find(|choice| choice.has(kind.name)).expect("seeds do not end")
        };
        kinds::ALL.iter().map(first).collect()
    }

    /// Whether the program or one of the hazards is called so.
    pub fn has(&self, name: &str) -> bool {
        self.program.name == name || self.hazards.iter().any(|hazard| hazard.kind.name == name)
    }

    fn excuses(&self) -> Excuses {
        self.hazards.iter().fold(NOTHING, |all, hazard| all.or(hazard.kind.excuses))
    }

    /// Runs the program alone and recorded.
    pub(super) fn run(&self, baseline: &Baseline, directory: &Path) -> Finding {
        let excuses = self.excuses();
        let run = |is_recorded: bool, name: &str| {
            let place = Place::new(directory.join(name)).expect("the directory is ours");
            let arrangement = Arrangement::of(&self.hazards, baseline, &place);
            let command = match is_recorded {
                true => arrangement.recorded(&baseline.program, &place),
                false => arrangement.plain(&baseline.program, &place),
            };
            _ = std::fs::write(place.at("command"), format!("{command:?}\n"));
            let has_launcher = is_recorded && !arrangement.by_variable;
            let manner = manner(has_launcher, &arrangement, baseline, excuses);
            (ran::run(command, &place, &manner), place, has_launcher)
        };
        let (plain, ..) = run(false, "plain");
        if plain.code == IMPOSSIBLE {
            return Finding::Impossible(plain.err);
        }
        if plain.hung {
            return Finding::Ruined;
        }
        let (recorded, place, has_launcher) = run(true, "recorded");
        let contents = Recorded::of(&place);
        let case = Case {
            excuses,
            has_launcher,
            baseline,
            plain: &plain,
            recorded: &recorded,
            contents: &contents,
        };
        let violations = case.violations();
        if violations.is_empty() {
            return if case.hazard_spares_program() { Finding::Fine } else { Finding::Ruined };
        }
        let again = |_| case.is_also_of(&run(false, "plain-again").0);
        let is_known = self.program.own_fault.is_some_and(|words| recorded.err.contains(words));
        if is_known || case.is_about_program() && (0..DOUBTS).any(again) {
            return Finding::Unsteady(violations);
        }
        Finding::Violated(violations)
    }
}

fn manner<'a>(
    has_launcher: bool,
    arrangement: &'a Arrangement,
    baseline: &Baseline,
    excuses: Excuses,
) -> Manner<'a> {
    Manner {
        has_launcher,
        disturbances: &arrangement.disturbances,
        usual: baseline.usual,
        limit: LEAST_PATIENCE.max(baseline.usual * PATIENCE),
        outlives_launcher: excuses.launcher_end,
    }
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "seed {}: {}", self.seed, self.program.name)?;
        self.hazards.iter().try_for_each(|hazard| write!(f, ", {hazard}"))
    }
}
