//! What to know of figures where kernels were recorded in samples only.

use crate::document::Block;
use crate::{Cell, Document, units};
use ggprof_analysis::{Contexts, Sampling, sampling};
use ggprof_trace::Trace;

/// Nothing where every op was measured.
pub(super) fn note(document: &mut Document, trace: &Trace) {
    let sentences = sampling(trace).into_iter().map(|found| sentence(trace, &found));
    document.blocks.extend(sentences.map(Block::Warning));
}

/// Which figures are measured, and how far the others can be trusted.
fn sentence(trace: &Trace, found: &Sampling) -> String {
    let label = trace.backend(found.backend).label();
    let words = |ns: f64| Cell::Nanos(ns).words();
    let mut text = format!(
        "{label}: kernels were recorded for {} of {} splits ({}). The other {} took {} on the device, \
         which is exact",
        found.sampled,
        found.sampled + found.whole,
        Cell::Share(found.sampled_share()).words(),
        found.whole,
        words(found.whole_ns as f64),
    );
    if found.ops.is_empty() {
        return text + "; which of their ops took how long is not known.";
    }
    let error = match found.error_ns() {
        Some(error_ns) => format!(" (standard error {})", words(error_ns)),
        None => String::new(),
    };
    let estimated = words(found.estimated_ns());
    let samples = if found.sampled == 0 { "of the rest of the recording" } else { "" };
    let samples = format!("by the mean of the samples {samples}");
    let samples = samples.trim_end();
    text.push_str(&format!("; {estimated} of it are estimated to be kernels{error}, {samples}"));
    if found.unlike > 0 {
        text.push_str(&format!("; {} of them are of a kind without samples", found.unlike));
    }
    if let Some(contexts) = found.contexts.filter(Contexts::are_unlike) {
        text.push_str(&attention(contexts));
    }
    text.push('.');
    text
}

/// What estimates of attention leave out.
fn attention(Contexts { sampled_to, whole_to }: Contexts) -> String {
    let count = |tokens: u64| units::count(tokens.into());
    let sampled_to = count(sampled_to);
    match whole_to.map(count) {
        Some(whole_to) => format!(
            "; attention was sampled in contexts of up to {sampled_to} tokens and is estimated alike in \
             those of up to {whole_to}, where it may take longer"
        ),
        None => format!(
            "; attention was sampled with up to {sampled_to} cells of the cache and is estimated alike for \
             all of the rest, whose contexts are not known"
        ),
    }
}
