//! The launcher looks at what its program does, once a second: for a file of metrics, and for
//! snapshots when something happens. The program is not touched.

use super::RecordedProcess;
use super::sensors::{self, Samples};
use super::spools::{process_of, recordings_in};
use super::watched::Watched;
use crate::format::Output;
use crate::quantity::Event;
use crate::{messages, output};
use ggprof_analysis::live::{Counters, Frame, LiveWait};
use ggprof_report::live::open_metrics;
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// What `tg<N` is about.
const GENERATION_OVER_NS: u64 = 5_000_000_000;
/// After a snapshot the same trouble may go on for a while.
const BETWEEN_SNAPSHOTS: Duration = Duration::from_secs(10);

/// What to do while the program runs.
pub(crate) struct Orders {
    pub(crate) metrics_file: Option<PathBuf>,
    pub(crate) snapshot_when: Vec<Event>,
    pub(crate) most_snapshots: u32,
    /// Writes a copy of the recording of a process, the first, second … one.
    pub(crate) write_snapshot: fn(&Path, &str, &Output) -> anyhow::Result<()>,
    /// Where the first, second … snapshot goes.
    pub(crate) snapshot_file: Box<dyn Fn(u32) -> Output + Send>,
}

/// Looks until it is dropped, and once more then.
pub(crate) struct Observer {
    over: Arc<AtomicBool>,
    worker: Option<JoinHandle<()>>,
}

impl Observer {
    /// Recordings appear in this directory. Without orders nothing is looked at.
    pub(crate) fn of(spools: &Path, samples: Arc<Mutex<Samples>>, orders: Orders) -> Observer {
        let over = Arc::new(AtomicBool::new(false));
        let is_wanted = orders.metrics_file.is_some() || !orders.snapshot_when.is_empty();
        let (until, spools) = (over.clone(), spools.to_owned());
        let worker = is_wanted.then(|| {
            std::thread::spawn(move || {
                let (watched, troubles) = (BTreeMap::new(), BTreeMap::new());
                let mut work = Work {
                    orders,
                    samples,
                    watched,
                    troubles,
                    taken: 0,
                    last: None,
                    fails_to_write: false,
                };
                while !until.load(Ordering::Relaxed) {
                    std::thread::park_timeout(BETWEEN_LOOKS);
                    work.look(&spools);
                }
            })
        });
        Observer { over, worker }
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(worker) = self.worker.take() {
            worker.thread().unpark();
            let _ = worker.join();
        }
    }
}

struct Work {
    orders: Orders,
    samples: Arc<Mutex<Samples>>,
    watched: BTreeMap<PathBuf, Watched>,
    troubles: BTreeMap<PathBuf, Trouble>,
    taken: u32,
    last: Option<Instant>,
    /// The last metrics could not be written.
    fails_to_write: bool,
}

impl Work {
    fn look(&mut self, spools: &Path) {
        for file in recordings_in(spools) {
            if !self.watched.contains_key(&file) {
                // One whose header is not written yet comes later.
                let Ok(watched) = Watched::open(&file) else { continue };
                self.watched.insert(file.clone(), watched);
            }
            let Some(watched) = self.watched.get_mut(&file) else { continue };
            let Ok(frame) = watched.look() else { continue };
            let speed = || watched.generation_over(GENERATION_OVER_NS);
            let trouble = self.troubles.entry(file.clone()).or_default();
            let event = trouble.happens(&self.orders.snapshot_when, &frame, speed);
            if let Some(event) = event.filter(|event| self.snapshot(&file, *event)) {
                self.troubles.entry(file).or_default().tell(event, &frame);
            }
        }
        self.write_metrics();
    }

    /// A disk that is full may have room later.
    fn write_metrics(&mut self) {
        let Some(path) = &self.orders.metrics_file else { return };
        let mut sum = Counters::default();
        self.watched.values().for_each(|watched| sum.add_all(watched.counters()));
        let text = open_metrics(&sum, &sensors::lock(&self.samples).latest());
        let written = output::to_file(path, |out| out.write_all(text.as_bytes()));
        match written {
            Ok(()) if std::mem::take(&mut self.fails_to_write) => {
                messages::note("metrics are written again.");
            }
            Err(error) if !std::mem::replace(&mut self.fails_to_write, true) => {
                messages::warning(&format!("metrics cannot be written now: {error:#}"));
            }
            Ok(()) | Err(_) => {}
        }
    }

    /// Whether there is one now. What was not written may be the next time.
    fn snapshot(&mut self, recording: &Path, event: Event) -> bool {
        let is_soon = self.last.is_some_and(|last| last.elapsed() < BETWEEN_SNAPSHOTS);
        if is_soon || self.taken >= self.orders.most_snapshots {
            return false;
        }
        self.last = Some(Instant::now());
        let to = (self.orders.snapshot_file)(self.taken + 1);
        let written = copy(recording).and_then(|copy| {
            (self.orders.write_snapshot)(copy.path(), &process_of(recording), &to)
        });
        match &written {
            Ok(()) => {
                self.taken += 1;
                messages::note(&format!("{event} happened: see {}.", to.path.display()));
            }
            Err(error) => {
                messages::warning(&format!("{event} happened, but no snapshot: {error:#}"));
            }
        }
        written.is_ok()
    }
}

/// What there is a snapshot of already. It may go on for long, and is none the better for more of them.
#[derive(Default)]
struct Trouble {
    /// The begin of the graph run that was too long.
    told_run: Option<u64>,
    /// The begin of the time in which nothing came.
    told_gap: Option<u64>,
}

impl Trouble {
    /// The first of the events that is new.
    fn happens(
        &self,
        events: &[Event],
        frame: &Frame,
        speed: impl Fn() -> Option<f64>,
    ) -> Option<Event> {
        let is_new = |wait: LiveWait, limit: Duration, told: Option<u64>| {
            u128::from(wait.ns) > limit.as_nanos() && Some(wait.start_ns) != told
        };
        events.iter().copied().find(|event| match *event {
            Event::GapLongerThan(limit) => is_new(frame.longest_gap, limit, self.told_gap),
            Event::RunLongerThan(limit) => {
                frame.longest_run.is_some_and(|run| is_new(run, limit, self.told_run))
            }
            Event::GenerationBelow(least) => speed().is_some_and(|found| found < least),
        })
    }

    fn tell(&mut self, event: Event, frame: &Frame) {
        match event {
            Event::GapLongerThan(_) => self.told_gap = Some(frame.longest_gap.start_ns),
            Event::RunLongerThan(_) => self.told_run = frame.longest_run.map(|run| run.start_ns),
            Event::GenerationBelow(_) => {}
        }
    }
}

/// A copy of the recording as it is now.
fn copy(recording: &Path) -> anyhow::Result<tempfile::NamedTempFile> {
    let file = tempfile::Builder::new().prefix("ggprof-snapshot-").tempfile()?;
    RecordedProcess::copy(recording, |offset, piece| file.as_file().write_all_at(piece, offset))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_analysis::live::Watch;
    use ggprof_trace::Trace;
    use ggprof_trace::formats::spool::{News, Standing};

    const SECOND_NS: u64 = 1_000_000_000;

    fn recorded() -> News {
        let standing = Standing { is_recording: true, ..Standing::default() };
        News { standing, ..News::default() }
    }

    fn under_way(since: u64) -> News {
        News { run_since_ns: Some(since), ..recorded() }
    }

    fn done(start: u64, end: u64) -> News {
        News { runs: vec![(start, end)], ..recorded() }
    }

    /// What happens at each look at these news, a second apart, of which some leave a snapshot.
    #[track_caller]
    fn check(limit: Event, looks: Vec<(News, bool)>, expected: &[bool]) {
        let trace = Trace::default();
        let (mut watch, mut trouble) = (Watch::default(), Trouble::default());
        let looks = (1..).zip(looks).map(|(second, (news, is_written))| {
            let frame = watch.take(&trace, news, second * SECOND_NS);
            let event = trouble.happens(&[limit], &frame, || None);
            event.filter(|_| is_written).into_iter().for_each(|it| trouble.tell(it, &frame));
            event.is_some()
        });
        assert_eq!(looks.collect::<Vec<_>>(), expected);
    }

    const HALF_A_SECOND: Duration = Duration::from_millis(500);

    #[test]
    fn one_long_run_happens_once() {
        // One that goes on for three seconds and ends in the fourth, and another one.
        let looks = vec![
            (under_way(1), true),
            (under_way(1), true),
            (under_way(1), true),
            (done(1, 3 * SECOND_NS + 1), true),
            (recorded(), true),
            (done(4 * SECOND_NS, 5 * SECOND_NS), true),
        ];
        let expected = [true, false, false, false, false, true];
        check(Event::RunLongerThan(HALF_A_SECOND), looks, &expected);
    }

    #[test]
    fn what_could_not_be_written_happens_again() {
        let looks = vec![(under_way(1), false), (under_way(1), true), (under_way(1), true)];
        check(Event::RunLongerThan(HALF_A_SECOND), looks, &[true, true, false]);
    }

    /// A program that hangs may never go on.
    #[test]
    fn one_long_gap_happens_once_and_while_it_lasts() {
        let looks = vec![
            (done(1, SECOND_NS - 1), true),
            (recorded(), true),
            (recorded(), true),
            (done(3 * SECOND_NS, 3 * SECOND_NS + 1), true),
            (done(5 * SECOND_NS - 2, 5 * SECOND_NS - 1), true),
        ];
        let expected = [false, true, false, false, true];
        check(Event::GapLongerThan(HALF_A_SECOND), looks, &expected);
        // Nothing is expected of a program that has ended, or while it is not recorded.
        let stopped = || News { standing: Standing::default(), ..News::default() };
        let looks = vec![
            (done(1, SECOND_NS - 1), true),
            (stopped(), true),
            (done(3 * SECOND_NS, 4 * SECOND_NS), true),
        ];
        check(Event::GapLongerThan(HALF_A_SECOND), looks, &[false; 3]);
    }
}
