//! What the numbers in the file header mean.

/// Bits of the header's `OPTIONS`.
pub const OPTION_THREADS: u32 = 1;
pub const OPTION_SERIALIZE: u32 = 2;
/// Set in a copy of the file that was made while the program ran.
pub const OPTION_SNAPSHOT: u32 = 4;
/// The program ran already when the agent was loaded.
pub const OPTION_ATTACHED: u32 = 8;

/// What a tick is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ClockKind {
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    MonotonicNs = 0,
    /// The processor's invariant cycle counter; clock samples give its rate.
    CycleCounter = 1,
}

/// Why recording stopped before the program did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum StopReason {
    None = 0,
    /// The disk, quota or file-size limit would not hold another chunk.
    NoSpace = 1,
    /// The file could not be opened again to grow it (moved, deleted, chroot).
    FileGone = 2,
    /// The agent met several internal faults and disarmed itself.
    Faults = 3,
    /// The system had no memory for the agent.
    NoMemory = 4,
}

impl StopReason {
    pub const ALL: [Self; 5] =
        [Self::None, Self::NoSpace, Self::FileGone, Self::Faults, Self::NoMemory];

    /// `None` for a number that a later version of the format has.
    pub fn of(word: u64) -> Option<StopReason> {
        Self::ALL.into_iter().find(|reason| *reason as u64 == word)
    }
}

/// What was asked for while the program ran: the header's `CONTROL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Control {
    /// Nothing: the window decides.
    Window = 0,
    Record = 1,
    Stop = 2,
}

/// Where the recording's window stands: the header's `WINDOW`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Window {
    Open = 0,
    NotYet = 1,
    Over = 2,
}

impl Control {
    pub fn of(word: u64) -> Control {
        match word {
            1 => Control::Record,
            2 => Control::Stop,
            _ => Control::Window,
        }
    }

    /// Whether to record, given this request and such a window.
    pub fn records(self, window: Window) -> bool {
        match self {
            Control::Window => window == Window::Open,
            Control::Record => true,
            Control::Stop => false,
        }
    }
}

impl Window {
    pub fn of(word: u64) -> Window {
        match word {
            1 => Window::NotYet,
            2 => Window::Over,
            _ => Window::Open,
        }
    }
}

/// Indices into the header's loss counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum LossCounter {
    /// Records not written because there was no block.
    NoBlock = 0,
    /// Graph runs not recorded because every lane was busy.
    NoLane = 1,
    /// Op shares that did not fit a thread's log.
    LogFull = 2,
    /// Threads for whose shares there was no log: all were taken, or there was no memory.
    NoLog = 3,
    /// Graph nodes beyond the recordable graph size.
    GraphTooLarge = 4,
    /// Ops seen outside any graph run the agent knows.
    OpOutsideRun = 5,
    /// Faults inside the agent that the guard caught.
    Fault = 6,
    /// Backends beyond the number the agent can follow.
    NoBackendSlot = 7,
    /// Node descriptions beyond the interner's bound.
    InternerFull = 8,
    /// Work of a device whose records its tracing library had no room for.
    DeviceRecords = 9,
    /// Forked children that used ggml and have no recording of their own; they count
    /// themselves in that of their parent.
    ForkedChild = 10,
    /// Ops of graphs of which only their number is known: it fits no known order of nodes, or
    /// the graph was broken off.
    UnclearTicks = 11,
}
