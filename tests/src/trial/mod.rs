//! A program that is run with and without the agent. It must do the same in both cases, and either
//! every node is recorded, or a message or coverage says why not.

use std::process::Command;

mod finding;

pub use finding::Finding;

/// A program to try, and what is to be seen of it.
pub struct Trial {
    pub name: String,
    pub(crate) command: Box<dyn Fn() -> Result<Command, String>>,
    pub(crate) computes: Computes,
    pub(crate) expected: Expected,
}

/// What a program computes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Computes {
    pub(crate) graphs: usize,
    /// Nodes of all graphs that do work, if that is known.
    pub(crate) nodes: Option<usize>,
    /// How many threads compute each of them, if that is known.
    pub(crate) threads: Option<u16>,
}

/// What a recording is to show.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected {
    /// Every node, by this tier.
    Recorded(&'static str),
    /// Not every node, with these words among the reasons.
    Because(&'static str),
}

impl std::fmt::Debug for Trial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.name)
    }
}

impl Trial {
    /// What is wrong with what was found.
    pub fn complaint(&self, finding: &Finding) -> Option<String> {
        if let Some(end) = &finding.ended {
            return Some(format!("recorded, {end}"));
        }
        if !finding.same_output {
            return Some("it did not print the same".to_owned());
        }
        let is_complete = finding.is_complete(self.computes);
        match self.expected {
            Expected::Recorded(how) if !is_complete => {
                Some(format!("not every node was recorded by {how}"))
            }
            Expected::Recorded(how) if finding.ways.iter().any(|way| way != how) => {
                Some(format!("ops were not seen by {how}"))
            }
            // The tiers that see every thread.
            Expected::Recorded("A" | "C")
                if self.computes.threads.is_some_and(|n| !finding.threads.iter().eq([&n])) =>
            {
                Some("not every thread was seen".to_owned())
            }
            Expected::Recorded(_) if finding.overlaps > 0 => {
                Some(format!("{} ops overlap", finding.overlaps))
            }
            Expected::Recorded(_) => None,
            Expected::Because(_) if is_complete => Some("every node was recorded".to_owned()),
            Expected::Because(words) if !finding.reasons.iter().any(|r| r.contains(words)) => {
                Some(format!("nothing says: {words}"))
            }
            Expected::Because(_) => None,
        }
    }
}
