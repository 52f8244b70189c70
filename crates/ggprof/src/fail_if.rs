//! `--fail-if 'tg > 3%'`: a change that a script wants to hear of by the exit code.

use crate::quantity;
use ggprof_analysis::PhaseKind;
use ggprof_analysis::diff::{Diff, PhaseDiff};
use std::fmt;

/// A phase takes longer than before by more than so much.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FailIf {
    phase: Wanted,
    limit: Limit,
    text: String,
}

#[derive(Debug, Clone, PartialEq)]
enum Wanted {
    Any,
    Kind(PhaseKind),
    Label(String),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Limit {
    /// Of what it took.
    Share(f64),
    /// Per token.
    Nanos(f64),
}

/// What became of a condition, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Found {
    /// Such a change, and it is more than noise.
    Fails,
    /// There is one recording a side, and nothing is known of how much recordings differ.
    Alone,
    /// A change of that size could have been missed.
    Unclear,
    Holds,
    /// There is no such phase on both sides.
    NoPhase,
}

impl FailIf {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        const WORDS: &str = "write it like tg > 3%, pp512 > 5% or any > 200us";
        let (phase, limit) = text.split_once('>').ok_or(WORDS)?;
        let phase = match phase.trim() {
            "" => return Err(WORDS.to_owned()),
            "any" => Wanted::Any,
            "pp" => Wanted::Kind(PhaseKind::Prompt),
            "tg" => Wanted::Kind(PhaseKind::Generation),
            "mixed" => Wanted::Kind(PhaseKind::Mixed),
            "enc" => Wanted::Kind(PhaseKind::Encoding),
            "draft" => Wanted::Kind(PhaseKind::Draft),
            "graphs" => Wanted::Kind(PhaseKind::Graph),
            label => Wanted::Label(label.to_owned()),
        };
        let limit = match limit.trim().strip_suffix('%') {
            Some(percent) => percent.trim().parse().ok().map(|it: f64| Limit::Share(it / 100.0)),
            // A number alone would be seconds, which nobody means.
            None if !limit.trim().ends_with(char::is_alphabetic) => None,
            None => quantity::time(limit.trim()).ok().map(|it| Limit::Nanos(it.as_nanos() as f64)),
        };
        let is_sound = |limit: &Limit| match limit {
            Limit::Share(it) | Limit::Nanos(it) => it.is_finite() && *it >= 0.0,
        };
        let limit = limit.filter(is_sound).ok_or(WORDS)?;
        Ok(Self { phase, limit, text: text.trim().to_owned() })
    }

    pub(crate) fn look_at(&self, diff: &Diff) -> Found {
        let meant = diff.phases.iter().filter(|phase| self.is_meant(phase));
        meant.map(|phase| self.judge(phase)).min().unwrap_or(Found::NoPhase)
    }

    /// The smallest change that it asks about, of what a phase took.
    pub(crate) fn least_share(&self, phase: &PhaseDiff) -> Option<f64> {
        self.is_meant(phase).then(|| match self.limit {
            Limit::Share(share) => share,
            Limit::Nanos(ns) => ns / phase.total.a_ns,
        })
    }

    fn is_meant(&self, phase: &PhaseDiff) -> bool {
        match &self.phase {
            Wanted::Any => true,
            Wanted::Kind(kind) => phase.name.kind == *kind,
            Wanted::Label(label) => phase.name.label.as_ref() == Some(label),
        }
    }

    fn judge(&self, phase: &PhaseDiff) -> Found {
        let limit_ns = match self.limit {
            Limit::Share(share) => share * phase.total.a_ns,
            Limit::Nanos(ns) => ns,
        };
        let can_tell = phase.total.chance.is_some();
        let could_be = !can_tell || phase.most_ns().is_none_or(|most_ns| most_ns > limit_ns);
        match phase.total.ns() > limit_ns {
            true if phase.is_certain() => Found::Fails,
            _ if !phase.knows_noise() => Found::Alone,
            _ if could_be => Found::Unclear,
            _ => Found::Holds,
        }
    }
}

impl fmt::Display for FailIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_analysis::diff::{Change, PhaseName};
    use ggprof_analysis::statistics::Interval;

    fn diff(change_ns: f64, (low, high): (f64, f64), chance: f64) -> Diff {
        let interval = Interval { low, high, chance, least_chance: 0.001, deviation: high - low };
        let (a_ns, b_ns) = (100.0, 100.0 + change_ns);
        let (interval, chance, smallest_seen_ns) = (Some(interval), Some(chance), None);
        let total = Change { a_ns, b_ns, interval, chance, smallest_seen_ns };
        let name = PhaseName { kind: PhaseKind::Generation, label: Some("tg64".to_owned()) };
        let phase = PhaseDiff {
            name,
            recordings: (5, 5),
            units: (1, 1),
            total,
            usual_share: None,
            rows: vec![],
            alike: None,
            rest_ns: 0.0,
        };
        let (sizes, phases) = ((5, 5), vec![phase]);
        Diff { sizes, looks: 1, phases, only_a: vec![], only_b: vec![] }
    }

    /// Neither that there is a change nor that there is none.
    #[test]
    fn one_recording_a_side() {
        for change_ns in [0.5, 8.0] {
            let mut alone = diff(change_ns, (change_ns - 0.1, change_ns + 0.1), 0.001);
            alone.phases[0].recordings = (1, 1);
            assert_eq!(FailIf::parse("tg > 3%").unwrap().look_at(&alone), Found::Alone);
        }
    }

    /// However small the change: the interval of so few holds the truth too rarely.
    #[test]
    fn too_few_recordings_a_side() {
        let mut few = diff(0.5, (-1.0, 2.0), 0.4);
        (few.phases[0].recordings, few.phases[0].total.chance) = ((4, 4), None);
        assert_eq!(FailIf::parse("tg > 3%").unwrap().look_at(&few), Found::Unclear);
    }

    #[test]
    fn conditions() {
        let slower = diff(8.0, (6.0, 10.0), 0.01);
        let unclear = diff(8.0, (-2.0, 18.0), 0.4);
        let same = diff(0.5, (-1.0, 2.0), 0.4);
        for (text, diff, found) in [
            ("tg > 3%", &slower, Found::Fails),
            ("tg64>3 %", &slower, Found::Fails),
            ("tg > 12%", &slower, Found::Holds),
            ("tg > 1us", &slower, Found::Holds),
            ("pp > 3%", &slower, Found::NoPhase),
            ("tg > 3%", &unclear, Found::Unclear),
            ("tg > 3%", &same, Found::Holds),
        ] {
            assert_eq!(FailIf::parse(text).unwrap().look_at(diff), found, "{text}");
        }
        for text in ["tg", "> 3%", "tg > much", "tg > -3%", "tg < 3%", "tg > 3", "tg > 0.5 "] {
            assert!(FailIf::parse(text).is_err(), "{text}");
        }
    }
}
