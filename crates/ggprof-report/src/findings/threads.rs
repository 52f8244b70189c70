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
        format!("fewer threads: -t {}", self.fewer)
    }
}

impl InWords for UnequalThreads {
    fn sentence(&self, _: &Told<'_>) -> String {
        let threads = self.threads;
        match self.others {
            Some(_) => format!("other programs use processors that the {threads} threads need"),
            None => format!("one of {threads} threads is slower, and the others wait for it"),
        }
    }

    fn evidence(&self, told: &Told<'_>) -> String {
        let others = self.others.map_or_else(String::new, |others| {
            format!("; other programs used {others:.1} processors meanwhile")
        });
        let (op, share) = (told.trace.text(self.worst), units::share(self.worst_share));
        format!("in {op} the threads wait {share} of the time{others}")
    }

    fn advice(&self, _: &Told<'_>) -> String {
        let fewer = self.threads.saturating_sub(1).max(1);
        match self.others {
            Some(_) => format!("stop what else runs, or leave it a core: -t {fewer}"),
            None => format!(
                "on processors with fast and slow cores only the fast ones: -t or --cpu-mask; or leave a \
                 core to other threads: -t {fewer}"
            ),
        }
    }
}

impl InWords for TooManyThreads {
    fn sentence(&self, _: &Told<'_>) -> String {
        let threads = self.threads;
        match self.processors {
            Some(1) => format!("{threads} threads compute on one processor"),
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
                format!("-t {most} (and -tb {}, if it is given)", processors.unwrap_or(most))
            }
        }
    }
}
