//! How each backend was observed.

use super::backends::BackendMap;
use super::tables::Tables;
use crate::model::{Coverage, Covered, CoveredHow, CoveredWhy, LossKind, Trace};
use ggprof_spool::layout;

/// Before this version, nothing but the kernels of a device said that they show its ops.
const KERNELS_TELL_OF_OPS: u32 = 7;

/// The last word about each thing, in the order in which things were first spoken of.
#[derive(Debug, Default)]
pub(super) struct LastWords(Vec<layout::Coverage>);

impl LastWords {
    pub(super) fn take(&mut self, word: layout::Coverage) {
        match self.0.iter_mut().find(|before| before.is_about_the_same(&word)) {
            Some(before) => *before = word,
            None => self.0.push(word),
        }
    }

    /// How this is seen of a backend; `None` where nothing known was said of it.
    pub(super) fn how(&self, backend: u32, what: Covered) -> Option<CoveredHow> {
        let of_it = |word: &&layout::Coverage| (word.backend, word.what) == (backend, what as u16);
        self.0.iter().find(of_it).and_then(|word| CoveredHow::of(word.how))
    }

    /// Leaves what is about these backends, or about none.
    pub(super) fn retain(&mut self, is_kept: impl Fn(u32) -> bool) {
        self.0.retain(|word| word.backend == layout::NONE || is_kept(word.backend));
    }
}

/// What was observed of each backend, the same for several of them said once.
pub(super) fn take(tables: &Tables, backends: &BackendMap, version: u32, trace: &mut Trace) {
    for word in &tables.coverage.0 {
        let (Some(what), Some(how)) = (Covered::of(word.what), CoveredHow::of(word.how)) else {
            trace.lose(LossKind::DamagedRecord, || "unknown coverage kind".to_owned());
            continue;
        };
        let subject = match backends.get(&word.backend) {
            Some(&index) => trace.backend(index).label(),
            None => tables.text(word.library),
        };
        let entry = Coverage {
            subject: subject.to_owned(),
            what,
            how,
            why: CoveredWhy::of(word.why).unwrap_or(CoveredWhy::Untold),
            detail: tables.text(word.detail).to_owned(),
        };
        if !trace.coverage.contains(&entry) {
            trace.coverage.push(entry);
        }
    }
    if version < KERNELS_TELL_OF_OPS {
        ops_by_kernels(&mut trace.coverage);
    }
}

/// Says of an older recording what newer ones say themselves.
fn ops_by_kernels(coverage: &mut [Coverage]) {
    let kernels: Vec<Coverage> = coverage
        .iter()
        .filter(|entry| entry.what == Covered::Kernels && entry.is_observed())
        .cloned()
        .collect();
    for ops in coverage.iter_mut().filter(|it| it.what == Covered::Ops && !it.is_observed()) {
        if let Some(seen) = kernels.iter().find(|entry| entry.subject == ops.subject) {
            (ops.how, ops.why) = (seen.how, CoveredWhy::Untold);
            ops.detail.clear();
        }
    }
}
