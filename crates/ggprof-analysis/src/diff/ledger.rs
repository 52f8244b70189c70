//! Where the time of each phase of a recording went: every nanosecond from its start to its end under
//! one key, so that the parts add up to the whole.

use super::book::Book;
use super::cut::{Background, Cut, PhasePiece};
use super::event_keys::EventKeys;
use super::exclusive::{Span, divide};
use super::fusions::Fusions;
use super::interrupted::Usual;
use super::key::Key;
use super::whole_splits::WholeSplits;
use crate::estimates::CopyTimes;
use crate::phases::{PhaseKind, phases};
use ggprof_trace::{EventId, EventKind, Trace};
use hashbrown::HashMap;
use std::ops::Range;

/// One recording: its phases, without warm-ups.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ledger {
    pub phases: Vec<PhaseLedger>,
}

/// Phases with the same name, or of the same kind.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseLedger {
    pub kind: PhaseKind,
    /// `pp512`; `None` for all of its kind.
    pub label: Option<String>,
    /// Tokens, or graph runs where there are no tokens.
    pub units: u64,
    pub wall_ns: u64,
    pub entries: Vec<LedgerEntry>,
    /// Consecutive steps taken together.
    pub blocks: Vec<StepBlock>,
    /// The units of each step, to see whether two recordings did the same.
    pub steps: Vec<u64>,
}

/// What one key comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct LedgerEntry {
    pub key: Key,
    pub ns: u64,
    pub calls: f64,
    /// Of those, the ones that were interrupted.
    pub interrupted: u64,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepBlock {
    pub units: u64,
    pub wall_ns: u64,
    /// One for each entry.
    pub ns: Vec<u64>,
}

/// The ledger of a recording; what the other side computes together is taken together here, too.
pub fn ledger(trace: &Trace, fused_there: &Fusions) -> Ledger {
    let phases = phases(trace);
    let cut = Cut::new(&phases);
    let keys = EventKeys::new(trace, fused_there);
    let mut books: Vec<Book> =
        cut.groups.iter().map(|group| Book::new(keys.keys.len(), group)).collect();
    let pieces = cut.pieces(trace);
    let copies = CopyTimes::of(trace);
    let mut exclusive_ns = vec![0; trace.events.len()];
    let mut rest = &pieces[..];
    for (phase, mut background) in (0u32..).zip(cut.backgrounds(trace)) {
        let (of_phase, others) = rest.split_at(rest.partition_point(|piece| piece.phase <= phase));
        rest = others;
        let Some(book) = books.get_mut(cut.group_of(phase) as usize) else { continue };
        let span = &phases.phases[phase as usize];
        let within = (span.start_ns, span.end_ns);
        divide_phase((trace, &copies), of_phase, within, &mut background, &mut exclusive_ns, book);
    }
    enter(trace, &cut, &pieces, &keys, &exclusive_ns, &mut books);
    let finished = cut.groups.into_iter().zip(books);
    Ledger { phases: finished.map(|(group, book)| book.finish(group, &keys.keys)).collect() }
}

/// Divides the time of a phase among its events and what happened between them.
fn divide_phase(
    (trace, copies): (&Trace, &CopyTimes),
    pieces: &[PhasePiece],
    (from_ns, to_ns): (u64, u64),
    background: &mut Background,
    exclusive_ns: &mut [u64],
    book: &mut Book,
) {
    let take = |owner: Option<u32>, from_ns: u64, to_ns: u64| match owner {
        Some(event) => exclusive_ns[event as usize] += to_ns - from_ns,
        None => background.between(from_ns, to_ns, |activity, block, ns| {
            book.spend_outside(block, activity, ns);
        }),
    };
    let events = || pieces.iter().flat_map(|piece| whole(trace, copies, piece.events.clone()));
    if trace.device_work.is_empty() && events().is_sorted_by_key(|it| it.start_ns) {
        divide(events(), (from_ns, to_ns), take);
    } else {
        let mut spans: Vec<Span> = Vec::new();
        events().for_each(|event| add_spans(trace, event, &mut spans));
        spans.sort_by_key(|span| span.start_ns);
        divide(spans.into_iter(), (from_ns, to_ns), take);
    }
}

/// Some events of one stretch, from their starts to their ends. A call that started a copy is none of the
/// device's time.
fn whole<'t>(
    trace: &'t Trace,
    copies: &'t CopyTimes,
    events: Range<u32>,
) -> impl Iterator<Item = Span> + 't {
    let is_copy = trace.events.stretch_of(EventId(events.start)).kind == EventKind::Copy;
    let times = trace.events.spans(events.clone()).zip(trace.events.charges_of(events.clone()));
    let is_timed =
        move |at: u32| !is_copy || !copies.is_untimed(trace, &trace.events.get(EventId(at)));
    let timed = events.zip(times).filter(move |(at, _)| is_timed(*at));
    timed.map(move |(owner, ((start_ns, end_ns), charged_ns))| {
        let weight = part(charged_ns, end_ns - start_ns);
        Span { start_ns, end_ns, weight, is_copy, owner }
    })
}

/// Between its kernels an op does nothing.
fn add_spans(trace: &Trace, event: Span, spans: &mut Vec<Span>) {
    let work = trace.work_for(EventId(event.owner));
    if work.is_empty() {
        spans.push(event);
    }
    spans.extend(work.iter().map(|work| Span {
        start_ns: work.start_ns,
        end_ns: work.start_ns.saturating_add(work.duration_ns),
        weight: part(work.charged_ns, work.duration_ns),
        ..event
    }));
}

fn part(charged_ns: u64, duration_ns: u64) -> f64 {
    match duration_ns {
        0 => 0.0,
        // Nearly always: it saves a division.
        _ if charged_ns == duration_ns => 1.0,
        _ => charged_ns as f64 / duration_ns as f64,
    }
}

/// Enters the time of every event.
fn enter(
    trace: &Trace,
    cut: &Cut<'_>,
    pieces: &[PhasePiece],
    keys: &EventKeys,
    exclusive_ns: &[u64],
    books: &mut [Book],
) {
    let wholes = WholeSplits::of(trace, keys);
    let of_piece = |piece: &PhasePiece| {
        let events = piece.events.start as usize..piece.events.end as usize;
        keys.of_event[events.clone()].iter().copied().zip(exclusive_ns[events].iter().copied())
    };
    // Calls are compared with others of the same group of phases and the same key.
    let first_kind = |piece: &PhasePiece| cut.group_of(piece.phase) as usize * keys.keys.len();
    let usual = Usual::of(books.len() * keys.keys.len(), || {
        pieces.iter().flat_map(|piece| {
            let first = first_kind(piece);
            of_piece(piece).map(move |(key, ns)| (first + key as usize, ns))
        })
    });
    for piece in pieces {
        let book = &mut books[cut.group_of(piece.phase) as usize];
        let first = first_kind(piece);
        for (event, (key, ns)) in piece.events.clone().map(EventId).zip(of_piece(piece)) {
            if wholes.spread(trace, event, ns, piece.block, book) {
                continue;
            }
            let longer_ns = usual.longer_by(first + key as usize, ns);
            if longer_ns > 0 {
                book.interrupt(piece.block, key, longer_ns);
            }
            book.spend(piece.block, key, ns - longer_ns);
            book.call(key, if keys.is_call(event) { 1.0 } else { 0.0 });
        }
    }
}

impl PhaseLedger {
    /// Takes over what another one of the same kind has.
    pub(super) fn join(&mut self, other: &Self) {
        self.label = None;
        self.units += other.units;
        self.wall_ns += other.wall_ns;
        let keys = self.entries.iter().map(|entry| entry.key.clone());
        let mut place: HashMap<Key, usize> = keys.zip(0..).collect();
        let mut places = Vec::with_capacity(other.entries.len());
        for entry in &other.entries {
            let at = *place.entry(entry.key.clone()).or_insert(self.entries.len());
            match self.entries.get_mut(at) {
                Some(own) => own.add(entry),
                None => self.entries.push(entry.clone()),
            }
            places.push(at);
        }
        for block in &mut self.blocks {
            block.ns.resize(self.entries.len(), 0);
        }
        for block in &other.blocks {
            let mut ns = vec![0; self.entries.len()];
            places.iter().zip(&block.ns).for_each(|(&at, &of_it)| ns[at] += of_it);
            self.blocks.push(StepBlock { ns, ..*block });
        }
        self.steps.extend(&other.steps);
    }
}

impl LedgerEntry {
    fn add(&mut self, other: &Self) {
        self.ns += other.ns;
        self.calls += other.calls;
        self.interrupted += other.interrupted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use ggprof_trace::text_fixture;
    use std::fmt::Write;

    fn check(fixture: &str, expected: Expect) {
        let trace = text_fixture::parse(fixture);
        let mut text = String::new();
        for phase in ledger(&trace, &Fusions::default()).phases {
            let PhaseLedger { kind, label, units, wall_ns, entries, blocks, .. } = phase;
            let label = label.unwrap_or_default();
            let blocks = blocks.len();
            writeln!(text, "{kind:?} {label}: {wall_ns} ns for {units}, {blocks} blocks").unwrap();
            for LedgerEntry { key, ns, calls, .. } in entries {
                writeln!(text, "  {key}: {ns} ns, {calls} calls").unwrap();
            }
        }
        expected.assert_eq(&text);
    }

    #[test]
    fn all_of_the_time_has_a_name() {
        check(
            "backend 0 GPU gpu
             backend 1 CPU cpu
             batch 0..100 0:0+3!1
             run 10..90 batch=0
             op CPU GET_ROWS 20..30 embd run=0 f32[8,3] <- f32[8,9] i32[3]
             copy GPU H2D 25..40 96 embd run=0 f32[8,3]
             op GPU MUL_MAT 50..80 Qcur-0 run=0 f32[8,3] <- f32[8,8] f32[8,3]
             batch 110..150 0:3+1!1
             run 110..120 batch=1
             op GPU MUL_MAT 112..140 Qcur-0 run=1 f32[8] <- f32[8,8] f32[8] measured=device
             kernel matvec 112..120
             kernel matvec 130..140
             wait 120..145 run=1
             batch 170..200 0:4+1!1
             run 170..200 batch=2
             op GPU MUL_MAT 170..190 Qcur-0 run=2 f32[8] <- f32[8,8] f32[8] measured=device
             kernel matvec 170..190",
            expect![[r#"
                Prompt pp3: 100 ns for 3, 1 blocks
                  Op input GET_ROWS CPU: 10 ns, 1 calls
                  Copy input copy_H2D GPU: 10 ns, 1 calls
                  Op attention MUL_MAT GPU: 30 ns, 1 calls
                  InRun: 30 ns, 0 calls
                  InCall: 20 ns, 0 calls
                Generation tg2: 90 ns for 2, 1 blocks
                  Op attention MUL_MAT GPU matvec: 38 ns, 2 calls
                  InRun: 12 ns, 0 calls
                  Waiting: 15 ns, 0 calls
                  InCall: 5 ns, 0 calls
                  Program: 20 ns, 0 calls
            "#]],
        );
    }

    /// Beside a copy that the device timed, a call that started one is time of the run.
    #[test]
    fn calls_that_start_copies_are_no_copying() {
        check(
            "backend 0 GPU gpu
             batch 0..100 0:3+1!1
             run 0..100 batch=0
             copy GPU H2D 0..10 96 x run=0 measured=device
             copy GPU H2D 10..40 96 x run=0 measured=host
             copy GPU H2D 40..60 96 x run=0 measured=host_call
             op GPU MUL_MAT 60..100 Qcur-0 run=0 f32[8] <- f32[8,8] f32[8]",
            expect![[r#"
                Generation tg1: 100 ns for 1, 1 blocks
                  Copy other copy_H2D GPU: 10 ns, 3 calls
                  Op attention MUL_MAT GPU: 40 ns, 1 calls
                  InRun: 50 ns, 0 calls
            "#]],
        );
    }
}
