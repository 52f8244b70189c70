//! The launcher looks at what its program does, once a second: for a file of metrics, and for
//! snapshots when something happens. The program is not touched.

use super::RecordedProcess;
use super::sensors::{self, Samples};
use super::spools::{process_of, recordings_in};
use super::watched::Watched;
use crate::format::Output;
use crate::quantity::Event;
use crate::{messages, output};
use ggprof_analysis::live::{Counters, Frame};
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
                let mut work = Work { orders, samples, watched, troubles, taken: 0, last: None };
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
            if let Some(event) = trouble.happens(&self.orders.snapshot_when, &frame, speed) {
                self.snapshot(&file, event);
            }
        }
        self.write_metrics();
    }

    fn write_metrics(&mut self) {
        let Some(path) = &self.orders.metrics_file else { return };
        let mut sum = Counters::default();
        self.watched.values().for_each(|watched| sum.add_all(watched.counters()));
        let text = open_metrics(&sum, &sensors::lock(&self.samples).latest());
        if let Err(error) = output::to_file(path, |out| out.write_all(text.as_bytes())) {
            messages::warning(&format!("no more metrics are written: {error:#}"));
            self.orders.metrics_file = None;
        }
    }

    fn snapshot(&mut self, recording: &Path, event: Event) {
        let is_soon = self.last.is_some_and(|last| last.elapsed() < BETWEEN_SNAPSHOTS);
        if is_soon || self.taken >= self.orders.most_snapshots {
            return;
        }
        self.last = Some(Instant::now());
        self.taken += 1;
        let to = (self.orders.snapshot_file)(self.taken);
        let written = copy(recording).and_then(|copy| {
            (self.orders.write_snapshot)(copy.path(), &process_of(recording), &to)
        });
        match written {
            Ok(()) => messages::note(&format!("{event} happened: see {}.", to.path.display())),
            Err(error) => {
                messages::warning(&format!("{event} happened, but no snapshot: {error:#}"));
            }
        }
    }
}

/// What was told of a program already.
#[derive(Default)]
struct Trouble {
    /// The begin of the graph run that was the last one to be too long. It may go on for long, and is none
    /// the better for more snapshots.
    told_run: Option<u64>,
}

impl Trouble {
    /// The first of the events that is new.
    fn happens(
        &mut self,
        events: &[Event],
        frame: &Frame,
        speed: impl Fn() -> Option<f64>,
    ) -> Option<Event> {
        let longer = |ns: u64, limit: Duration| u128::from(ns) > limit.as_nanos();
        let happens = |event: &Event| match *event {
            // It is over when it is seen, so that no later look sees it.
            Event::GapLongerThan(limit) => longer(frame.longest_gap_ns, limit),
            Event::RunLongerThan(limit) => {
                longer(frame.longest_run_ns, limit) && frame.longest_run_start_ns != self.told_run
            }
            Event::GenerationBelow(least) => speed().is_some_and(|found| found < least),
        };
        let event = events.iter().copied().find(happens)?;
        if matches!(event, Event::RunLongerThan(_)) {
            self.told_run = frame.longest_run_start_ns;
        }
        Some(event)
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
    use ggprof_trace::formats::spool::News;

    const SECOND_NS: u64 = 1_000_000_000;

    /// What happens at each look at these news, a second apart.
    fn events(limit: Event, news: Vec<News>) -> Vec<bool> {
        let trace = Trace::default();
        let (mut watch, mut trouble) = (Watch::default(), Trouble::default());
        let looks = (1..).zip(news).map(|(second, news)| {
            let frame = watch.take(&trace, news, second * SECOND_NS);
            trouble.happens(&[limit], &frame, || None).is_some()
        });
        looks.collect()
    }

    #[test]
    fn one_long_run_happens_once() {
        let under_way = |since| News { run_since_ns: Some(since), ..News::default() };
        let done = |start, end| News { runs: vec![(start, end)], ..News::default() };
        // One that goes on for three seconds and ends in the fourth, and another one.
        let news = vec![
            under_way(1),
            under_way(1),
            under_way(1),
            done(1, 3 * SECOND_NS + 1),
            News::default(),
            done(4 * SECOND_NS, 5 * SECOND_NS),
        ];
        let found = events(Event::RunLongerThan(Duration::from_millis(500)), news);
        assert_eq!(found, [true, false, false, false, false, true]);
    }

    #[test]
    fn one_long_gap_happens_once() {
        let done = |start, end| News { runs: vec![(start, end)], ..News::default() };
        let news = vec![
            done(1, 2),
            News::default(),
            News::default(),
            done(3 * SECOND_NS, 3 * SECOND_NS + 1),
            done(3 * SECOND_NS + 2, 3 * SECOND_NS + 3),
            News::default(),
        ];
        let found = events(Event::GapLongerThan(Duration::from_millis(500)), news);
        assert_eq!(found, [false, false, false, true, false, false]);
    }
}
