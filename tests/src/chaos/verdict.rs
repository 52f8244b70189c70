//! Whether a recorded run was as it should be, compared with the same run without the launcher,
//! given what the hazards excuse.

use super::baseline::Baseline;
use super::excuses::Excuses;
use super::ran::Ran;
use super::recorded::Recorded;

/// What may end a program early, as a shell tells it.
const SIGNALS: [i32; 4] = [128 + 1, 128 + 2, 128 + 9, 128 + 15];

#[derive(Debug)]
pub(super) struct Case<'a> {
    pub(super) excuses: Excuses,
    /// A launcher waited for the program, and could clean up after it.
    pub(super) has_launcher: bool,
    pub(super) baseline: &'a Baseline,
    pub(super) plain: &'a Ran,
    pub(super) recorded: &'a Ran,
    pub(super) contents: &'a Recorded,
}

impl Case<'_> {
    pub(super) fn violations(&self) -> Vec<String> {
        if self.recorded.hung {
            return vec!["it hangs".to_owned()];
        }
        let mut violations = Vec::new();
        // Where the hazard itself ruins the program, its end cannot be compared.
        if self.hazard_spares_program() {
            violations.extend(self.ending().or_else(|| self.output()));
            violations.extend(match self.contents.files {
                0 => self.absence(),
                _ => self.incompleteness(),
            });
        }
        violations.extend(self.left_behind());
        violations.extend(self.contents.faults.iter().cloned());
        violations
    }

    /// Whether the program does under the hazards what it does without.
    pub(super) fn hazard_spares_program(&self) -> bool {
        let plain = self.baseline.output_of(self.plain);
        let (baseline, plain_code) = (self.baseline, self.plain.code);
        let is_whole = plain_code == baseline.code && baseline.output.is_part_of(&plain);
        self.excuses.end || is_whole
    }

    /// Whether the program itself did something else than it does alone.
    pub(super) fn is_about_program(&self) -> bool {
        self.recorded.hung || self.ending().is_some() || self.output().is_some()
    }

    /// Whether another run without the launcher ended like the recorded one.
    pub(super) fn is_also_of(&self, plain: &Ran) -> bool {
        let [plain_out, out] = [plain, self.recorded].map(|ran| self.baseline.output_of(ran));
        // A signal ends each run somewhere else.
        let same_output = match self.excuses.end {
            true => out.is_part_of(&plain_out.or(self.baseline.output.clone())),
            false => out == plain_out,
        };
        plain.code == self.recorded.code && same_output && plain.hung == self.recorded.hung
    }

    fn ending(&self) -> Option<String> {
        let code = self.recorded.code;
        let ended_early = self.excuses.end && SIGNALS.contains(&code);
        let is_right = code == self.baseline.code || ended_early;
        (!is_right && !self.excuses.launcher_end)
            .then(|| format!("it ended with {code} instead of {}", self.plain.code))
    }

    fn output(&self) -> Option<String> {
        let out = self.baseline.output_of(self.recorded);
        let is_right = if self.excuses.end {
            let plain = self.baseline.output_of(self.plain);
            // What was to end the launcher did not reach the program, if that was killed before.
            let went_on = self.excuses.launcher_end && plain.is_part_of(&out);
            went_on || out.is_part_of(&plain.or(self.baseline.output.clone()))
        } else {
            out == self.baseline.output_of(self.plain)
        };
        (!is_right).then(|| "it printed something else".to_owned())
    }

    /// Whether a message says what is missing.
    fn is_said(&self) -> bool {
        let heard = self.recorded.err.lines().any(|line| line.starts_with("ggprof: "));
        heard || !self.contents.said.is_empty() || self.excuses.silence
    }

    fn announced(&self) -> usize {
        self.baseline.output_of(self.recorded).announced()
    }

    fn absence(&self) -> Option<String> {
        let is_excused = self.excuses.no_recording
            || self.excuses.asked_for_fewer
            || self.excuses.end && self.announced() == 0;
        if !is_excused {
            return Some("nothing was recorded".to_owned());
        }
        // A killed program says nothing, and without a launcher nothing else can.
        let nobody_could = self.excuses.launcher_end || self.excuses.end && !self.has_launcher;
        (!self.is_said() && !nobody_could)
            .then(|| "nothing was recorded, and nobody said so".to_owned())
    }

    fn incompleteness(&self) -> Option<String> {
        let (is, should) = (self.contents, &self.baseline.recorded);
        let figures = || {
            format!(
                "{} of {} graph runs, {} of {} nodes, {} of {} files; {} with losses, {} stopped, \
                 {} without their end, {} backends unseen",
                is.runs,
                should.runs,
                is.nodes.unwrap_or(0),
                should.nodes.unwrap_or(0),
                is.files,
                should.files,
                is.with_losses,
                is.stopped,
                is.without_end,
                is.unseen
            )
        };
        let is_whole = (is.runs, is.files) == (should.runs, should.files)
            && is.nodes.is_none_or(|nodes| Some(nodes) == should.nodes)
            && (is.with_losses, is.stopped) == (0, 0)
            && (is.nodes.is_none() || is.without_end == should.without_end);
        if is.runs > should.runs {
            return Some(format!("more was recorded than computed: {}", figures()));
        }
        if is_whole || self.excuses.asked_for_fewer {
            return None;
        }
        if self.excuses.end && is.runs >= self.announced() && is.with_losses == 0 {
            return None;
        }
        if !self.excuses.fewer_records {
            return Some(figures());
        }
        (!self.is_said()).then(|| format!("nobody said that there are {}", figures()))
    }

    fn left_behind(&self) -> Option<String> {
        let is_kept = ["recording itself is kept in ", "recording is kept"]
            .iter()
            .any(|words| self.recorded.err.contains(words));
        // What `unrest.c` starts may outlive the program that it disturbs, and a server the client
        // that started it, if a signal ended that.
        let is_programs = |name: &str| match name {
            "process true" => true,
            "process llama-server" => self.excuses.end,
            _ => false,
        };
        let left = self.recorded.left.iter();
        let left = left.filter(|name| !self.plain.left.contains(name) && !is_programs(name));
        let left: Vec<&str> = left.map(String::as_str).collect();
        let nobody_could = self.excuses.launcher_end || self.excuses.end && !self.has_launcher;
        // What is kept was named where nothing can be printed.
        let was_named = is_kept || self.excuses.silence;
        (!left.is_empty() && !was_named && !nobody_could)
            .then(|| format!("left behind: {}", left.join(", ")))
    }
}
