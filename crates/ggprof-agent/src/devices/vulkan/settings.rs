//! The user's settings for Vulkan.

use std::sync::OnceLock;

use ggprof_spool::names;

use crate::config::Environment;
use crate::recorder::current;

/// How Vulkan devices are timed (`GGPROF_VULKAN`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Not at all: the agent stays out of Vulkan.
    Off,
    /// Where ggml itself synchronises.
    Group,
    /// Before and after each command.
    Pair,
    /// One command at a time.
    Serial,
    /// As `Group`, but in some graphs only; of the others, the beginning and the end.
    #[default]
    Sample,
}

impl Mode {
    #[unsafe(link_section = ".text.asleep")]
    pub(crate) fn from(environment: &Environment) -> Result<Mode, String> {
        let words = [
            ("sample", Mode::Sample),
            ("group", Mode::Group),
            ("pair", Mode::Pair),
            ("serial", Mode::Serial),
            ("off", Mode::Off),
        ];
        environment.word(names::VULKAN, &words)
    }
}

static MODE: OnceLock<Mode> = OnceLock::new();

pub(super) fn understand(environment: &Environment) -> Result<(), String> {
    let mode = Mode::from(environment)?;
    let _ = MODE.set(mode);
    Ok(())
}

/// How devices are to be timed; not at all where nothing can be recorded.
pub(crate) fn mode() -> Mode {
    // In this order: the first call parses the settings.
    let may_be = current::is_understood_and_on();
    MODE.get().filter(|_| may_be).copied().unwrap_or(Mode::Off)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_one_of_five_words() {
        let of = |variable| Mode::from(&Environment::of(&[variable]));
        assert_eq!(of("GGPROF_VULKAN="), Ok(Mode::Sample));
        assert_eq!(of("GGPROF_VULKAN=pair"), Ok(Mode::Pair));
        let problem = "GGPROF_VULKAN is \"all\" and not one of sample, group, pair, serial, off";
        assert_eq!(of("GGPROF_VULKAN=all"), Err(problem.to_owned()));
    }
}
