//! A recording that is looked at while it grows.

use super::now_ns;
use ggprof_analysis::live::{Counters, Frame, Watch};
use ggprof_trace::formats::spool::Live;
use std::io;
use std::path::Path;

pub(crate) struct Watched {
    live: Live,
    watch: Watch,
}

impl Watched {
    pub(crate) fn open(recording: &Path) -> io::Result<Watched> {
        Ok(Watched { live: Live::open(recording)?, watch: Watch::default() })
    }

    /// What the program does, and did since the last look.
    pub(crate) fn look(&mut self) -> io::Result<Frame> {
        let now_ns = now_ns();
        let news = self.live.look()?;
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
