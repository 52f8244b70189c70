//! The results of all runs, counted by program and by hazard.

use std::collections::BTreeMap;

use super::round::{Choice, Finding};

#[derive(Debug, Default)]
pub struct Tally {
    all: Counts,
    programs: BTreeMap<&'static str, Counts>,
    hazards: BTreeMap<&'static str, Counts>,
    /// Why runs were not possible.
    obstacles: BTreeMap<String, usize>,
    hazards_in_all: usize,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    runs: usize,
    ruined: usize,
    unsteady: usize,
    impossible: usize,
    violations: usize,
}

impl Counts {
    fn add(&mut self, finding: &Finding) {
        self.runs += 1;
        match finding {
            Finding::Fine => {}
            Finding::Ruined => self.ruined += 1,
            Finding::Unsteady(_) => self.unsteady += 1,
            Finding::Impossible(_) => self.impossible += 1,
            Finding::Violated(_) => self.violations += 1,
        }
    }

    fn cells(&self) -> String {
        let Counts { runs, ruined, unsteady, impossible, violations } = self;
        format!("{runs} | {ruined} | {unsteady} | {impossible} | {violations}")
    }
}

impl Tally {
    pub(super) fn count(&mut self, choice: &Choice, finding: &Finding) {
        self.all.add(finding);
        self.programs.entry(choice.program.name).or_default().add(finding);
        for hazard in &choice.hazards {
            self.hazards.entry(hazard.kind.name).or_default().add(finding);
        }
        self.hazards_in_all += choice.hazards.len();
        if let Finding::Impossible(reason) = finding {
            *self.obstacles.entry(reason.clone()).or_default() += 1;
        }
    }

    pub fn runs(&self) -> usize {
        self.all.runs
    }

    pub fn violations(&self) -> usize {
        self.all.violations
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "| | runs | ruined without us | unsteady | not possible | violations |")?;
        writeln!(f, "| :--- | ---: | ---: | ---: | ---: | ---: |")?;
        for (name, counts) in self.programs.iter().chain(&self.hazards) {
            writeln!(f, "| {name} | {} |", counts.cells())?;
        }
        writeln!(f, "| all | {} |", self.all.cells())?;
        for (reason, count) in &self.obstacles {
            writeln!(f, "{count} not possible: {reason}")?;
        }
        let (runs, hazards) = (self.all.runs, self.hazards_in_all);
        write!(f, "{runs} runs, {hazards} hazards, {} violations", self.all.violations)
    }
}
