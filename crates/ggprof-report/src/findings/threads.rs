//! Threads that wait for each other.

use super::{InWords, Told};
use crate::units;
use ggprof_analysis::findings::{Barriers, TooManyThreads, UnequalThreads};

impl InWords for Barriers {
    fn sentence(&self, _: &Told<'_>) -> String {
        format!("{} threads wait for each other more than for their work", self.threads)
    }

    fn evidence(&self, told: &Told<'_>) -> String {
        format!(
            "{} at barriers between ops, {} in ops that are too small to share",
            told.each(self.between_ns),
            told.each(self.in_ops_ns)
        )
    }

    fn advice(&self, _: &Told<'_>) -> String {
        format!("fewer threads: -t {}", (self.threads / 2).max(1))
    }
}

impl InWords for UnequalThreads {
    fn sentence(&self, _: &Told<'_>) -> String {
        format!("one of {} threads is slower, and the others wait for it", self.threads)
    }

    fn evidence(&self, told: &Told<'_>) -> String {
        let others = self.others.map_or_else(String::new, |others| {
            format!("; other programs used {others:.1} processors meanwhile")
        });
        let (op, share) = (told.trace.text(self.worst), units::share(self.worst_share));
        format!("in {op} the threads wait {share} of the time{others}")
    }

    fn advice(&self, _: &Told<'_>) -> String {
        format!(
            "stop what else runs, or leave it a core: -t {}; on processors with fast and slow cores \
             only the fast ones: -t or --cpu-mask",
            self.threads.saturating_sub(1).max(1)
        )
    }
}

impl InWords for TooManyThreads {
    fn sentence(&self, _: &Told<'_>) -> String {
        let threads = self.threads;
        match self.processors {
            Some(processors) => format!("{threads} threads compute on {processors} processors"),
            None => format!("{threads} threads are more than the memory can feed"),
        }
    }

    fn evidence(&self, _: &Told<'_>) -> String {
        match self.knee {
            Some(knee) => format!("{knee} threads already read as fast as this machine can"),
            None => "a thread that has no processor keeps all others waiting at the next barrier"
                .to_owned(),
        }
    }

    fn advice(&self, _: &Told<'_>) -> String {
        let Self { threads, processors, knee } = *self;
        match (processors, knee) {
            (None, Some(knee)) => format!("-t {knee}; for prompts more threads pay: -tb {threads}"),
            _ => {
                let most = knee.or(processors).unwrap_or(1);
                format!("-t {most} (and -tb {})", processors.unwrap_or(most))
            }
        }
    }
}
