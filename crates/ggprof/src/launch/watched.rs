//! A recording that is looked at while it grows.

use super::holder::Holder;
use super::now_ns;
use super::spools::process_of;
use ggprof_analysis::live::{Counters, Frame, Watch};
use ggprof_trace::formats::spool::Live;
use std::io;
use std::path::Path;

pub(crate) struct Watched {
    live: Live,
    watch: Watch,
    /// `None` where the program cannot be seen from here.
    holder: Option<Holder>,
}

impl Watched {
    pub(crate) fn open(recording: &Path) -> io::Result<Watched> {
        let process = process_of(recording);
        let pid = process.split('.').next().and_then(|pid| pid.parse().ok());
        let file = recording.metadata()?;
        let holder = pid.and_then(|pid| Holder::find(&file, pid));
        Ok(Watched { live: Live::open(recording)?, watch: Watch::default(), holder })
    }

    /// Whether the program still runs; `None` where that cannot be seen.
    pub(crate) fn is_program_alive(&self) -> Option<bool> {
        self.holder.as_ref().map(Holder::is_alive)
    }

    /// What the program does, and did since the last look.
    pub(crate) fn look(&mut self) -> io::Result<Frame> {
        let now_ns = now_ns();
        let news = self.live.look(now_ns)?;
        Ok(self.watch.take(self.live.descriptions(), news, now_ns))
    }

    pub(crate) fn counters(&self) -> &Counters {
        self.watch.counters()
    }

    /// Tokens a second over so long, if tokens were generated all the time.
    pub(crate) fn generation_over(&self, span_ns: u64) -> Option<f64> {
        self.watch.generation_over(span_ns, now_ns())
    }
}
