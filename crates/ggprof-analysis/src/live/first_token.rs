//! The first token of a request. Each part of a prompt may have a result, and nothing says which part is
//! the last one until something comes after it.

/// How far the first token of a request is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    /// It has none yet, or began before it was seen.
    Nothing {
        is_whole: bool,
    },
    /// There is a result, unless more of the prompt comes.
    Result {
        at_ns: u64,
        waited_ns: u64,
    },
    Told,
}

impl First {
    pub(super) fn is_there(self) -> bool {
        !matches!(self, First::Nothing { .. })
    }

    /// A result is there, of the prompt as far as it has come.
    pub(super) fn comes(&mut self, at_ns: u64, start_ns: u64) {
        *self = match *self {
            First::Nothing { is_whole: true } | First::Result { .. } => {
                First::Result { at_ns, waited_ns: at_ns.saturating_sub(start_ns) }
            }
            First::Nothing { is_whole: false } | First::Told => First::Told,
        };
    }

    /// The result was the first token, if there is one that nobody knows of: when, and how long it took.
    pub(super) fn tell(&mut self) -> Option<(u64, u64)> {
        let First::Result { at_ns, waited_ns } = *self else { return None };
        *self = First::Told;
        Some((at_ns, waited_ns))
    }
}
