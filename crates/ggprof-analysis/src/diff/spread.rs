//! How much runs of the same differ: what a unit of each phase took in each of them.

use super::comparison::{PhaseName, by_name};
use super::ledger::Ledger;
use crate::phases::PhaseKind;
use crate::statistics::median;

#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    pub phase: PhaseName,
    /// In which there is such a phase.
    pub runs: usize,
    pub median_ns: f64,
    pub lowest_ns: f64,
    pub highest_ns: f64,
}

impl Spread {
    /// From the lowest to the highest, of the median; `None` of one run.
    pub fn share(&self) -> Option<f64> {
        let is_known = self.runs > 1 && self.median_ns > 0.0;
        is_known.then(|| (self.highest_ns - self.lowest_ns) / self.median_ns)
    }

    pub fn has_tokens(&self) -> bool {
        self.phase.kind != PhaseKind::Graph
    }
}

pub fn spreads(ledgers: &[Ledger]) -> Vec<Spread> {
    let spread = |(phase, times): (PhaseName, Vec<f64>)| Spread {
        phase,
        runs: times.len(),
        median_ns: median(&times),
        lowest_ns: times.iter().copied().fold(f64::INFINITY, f64::min),
        highest_ns: times.iter().copied().fold(0.0, f64::max),
    };
    by_name(ledgers).into_iter().map(spread).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::{Fusions, ledger};
    use ggprof_trace::text_fixture;

    #[test]
    fn of_three_runs() {
        let ledgers = [100, 130, 110].map(|end| {
            let trace = text_fixture::parse(&format!(
                "backend 0 CPU cpu
                 batch 0..{end} 0:0+10!1
                 run 0..{end} batch=0
                 op CPU ADD 0..{end} x run=0"
            ));
            ledger(&trace, &Fusions::default())
        });
        let spreads = spreads(&ledgers);
        let found: Vec<_> = spreads
            .iter()
            .map(|it| (it.phase.label.as_deref(), it.runs, it.median_ns, it.lowest_ns))
            .collect();
        assert_eq!(found, [(Some("pp10"), 3, 11.0, 10.0)]);
        assert!((spreads[0].share().unwrap() - 3.0 / 11.0).abs() < 1e-9);
    }
}
