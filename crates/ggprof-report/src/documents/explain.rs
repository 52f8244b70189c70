//! Why a recording is as slow as it is: where each token's time goes, and what to change.

use super::{budget, phases, summary};
use crate::Document;
use ggprof_analysis::budget::summed;
use ggprof_analysis::{budgets, phases as find_phases, places};
use ggprof_trace::Trace;

/// The explanation of a recording that people know as `name`.
pub fn explain(trace: &Trace, name: &str) -> Document {
    let mut document = Document::default();
    document.heading("explain", format!("ggprof explain: {name}"));
    summary::warn(&mut document, trace);
    let found = find_phases(trace);
    let budgets = summed(&found, &budgets(trace, &found, &places(trace)));
    phases::overview(&mut document, &found);
    budget::tables(&mut document, trace, &budgets);
    document
}
