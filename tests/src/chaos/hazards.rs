//! What a program can be exposed to, and how it takes effect.

use super::disturbance::Disturbance;
use super::excuses::Excuses;
use super::programs::Program;
use super::random::Random;

/// A kind of hazard.
#[derive(Debug)]
pub struct Kind {
    pub name: &'static str,
    pub(super) draw: fn(&mut Random) -> Vec<Effect>,
    pub(super) fits: fn(&Program) -> bool,
    pub(super) excuses: Excuses,
}

/// One of them, with its numbers.
#[derive(Debug, Clone)]
pub struct Hazard {
    pub kind: &'static Kind,
    pub effects: Vec<Effect>,
}

/// What is done to the program, or to the launcher as well.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// A word for `under_hazards.c`, in front of the program. `TEMPORARY` stands for the
    /// directory of temporary files.
    Inside(String),
    /// The same in front of the launcher, if there is one.
    Around(String),
    /// Address space beyond what the program needs, in bytes.
    SpareMemory(u64),
    /// A library of `host-programs/` preloaded before or behind the agent.
    Preloaded {
        source: &'static str,
        before: bool,
    },
    /// What `unrest.c` is to do. `LIBRARY` stands for one with a backend.
    Unrest {
        what: String,
        every_us: u64,
    },
    Variable(&'static str, &'static str),
    /// A variable that is a number.
    Number(&'static str, u64),
    /// Recorded by `GGML_PROFILE`, without a launcher.
    ByVariable,
    /// An option of `ggprof run`.
    Option(&'static [&'static str]),
    Disturbance(Disturbance),
}

impl Kind {
    pub(super) fn fits(&self, program: &Program) -> bool {
        (self.fits)(program)
    }

    pub(super) fn draw(&'static self, random: &mut Random) -> Hazard {
        Hazard { kind: self, effects: (self.draw)(random) }
    }
}

impl std::fmt::Display for Hazard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.kind.name, self.effects)
    }
}
