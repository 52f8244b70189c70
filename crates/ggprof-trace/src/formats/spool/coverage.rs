//! How each backend was observed.

use super::backends::BackendMap;
use super::tables::Tables;
use crate::model::{Coverage, Covered, CoveredHow, CoveredWhy, LossKind, Trace};
use ggprof_spool::layout;

/// What was observed of each backend, the same for several of them said once.
pub(super) fn take(tables: &Tables, backends: &BackendMap, trace: &mut Trace) {
    for record in &tables.coverage {
        let (Some(what), Some(how)) = (Covered::of(record.what), CoveredHow::of(record.how)) else {
            trace.lose(LossKind::DamagedRecord, || "nobody knows what it observes".to_owned());
            continue;
        };
        let entry = Coverage {
            subject: subject(tables, backends, trace, record),
            what,
            how,
            why: CoveredWhy::of(record.why).unwrap_or(CoveredWhy::Untold),
            detail: tables.text(record.detail).to_owned(),
        };
        if !trace.coverage.contains(&entry) {
            trace.coverage.push(entry);
        }
    }
    ops_by_kernels(trace);
}

/// A backend whose ops no call announces, but whose device tells of its kernels, is seen by
/// those.
fn ops_by_kernels(trace: &mut Trace) {
    let kernels = |entry: &&Coverage| (entry.what, entry.is_observed()) == (Covered::Kernels, true);
    let by_kernels: Vec<(String, CoveredHow)> = trace
        .coverage
        .iter()
        .filter(kernels)
        .map(|entry| (entry.subject.clone(), entry.how))
        .collect();
    let unseen = trace
        .coverage
        .iter_mut()
        .filter(|entry| entry.what == Covered::Ops && !entry.is_observed());
    for entry in unseen {
        if let Some(&(_, how)) = by_kernels.iter().find(|(subject, _)| *subject == entry.subject) {
            (entry.how, entry.why) = (how, CoveredWhy::Untold);
            entry.detail.clear();
        }
    }
}

fn subject(
    tables: &Tables,
    backends: &BackendMap,
    trace: &Trace,
    record: &layout::Coverage,
) -> String {
    match backends.get(&record.backend) {
        Some(&index) => trace.backend(index).label().to_owned(),
        None => tables.text(record.library).to_owned(),
    }
}
