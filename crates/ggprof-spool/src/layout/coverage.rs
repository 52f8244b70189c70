//! What a coverage record says: what it is about, how that is seen, and why not or not in a better
//! way. All of it is numbers, for programs to decide by; reports have the words for people.

use super::{Coverage, NONE};

macro_rules! numbered {
    ($($(#[$doc:meta])* $name:ident: $int:ty {
        $($(#[$variant_doc:meta])* $variant:ident = $number:literal,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr($int)]
        pub enum $name { $($(#[$variant_doc])* $variant = $number,)* }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// `None` for a number that this version does not know.
            pub fn of(number: $int) -> Option<Self> {
                Self::ALL.iter().copied().find(|&known| known as $int == number)
            }

            /// As the document and other formats call it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant)),* }
            }
        }
    )*};
}

numbered! {
    /// What a coverage record speaks of.
    Covered: u16 {
        /// Host time of each split on the backend.
        Splits = 1,
        /// Each computed node.
        Ops = 2,
        /// How long threads wait at barriers.
        BarrierWaits = 3,
        /// Kernels that compute several nodes at once.
        Fusions = 4,
        /// Copies through the backend's own asynchronous copy.
        AsyncCopies = 5,
        /// Struct offsets of this ggml.
        Layout = 6,
        /// Copies the scheduler makes itself.
        Copies = 7,
        /// Kernels of the backend's device, by the device's clock.
        Kernels = 8,
        /// Buffers as they are made and freed.
        Memory = 10,
        /// What other backends say of nodes that the processor computes.
        Placement = 11,
        /// Which experts were chosen.
        Experts = 12,
    }

    /// How a coverage record's subject is observed.
    CoveredHow: u8 {
        /// It is not; the record says why.
        Not = 0,
        FunctionTable = 1,
        GotSlot = 2,
        /// One node at a time, with a synchronise after it.
        Serialized = 3,
        /// Found by building known objects through the public API.
        Probed = 4,
        /// ggml's abort callback, called by the first thread after each node.
        AbortCallback = 5,
        /// The dynamic linker binds ggml's own calls to the agent.
        SymbolName = 6,
        /// Timestamps written by the device between the program's own commands.
        DeviceTimestamps = 7,
        /// The activity records of the vendor's tracing library.
        ActivityRecords = 8,
        /// A jump at the function's entry.
        InlineHook = 9,
        /// Asked for one node at a time, as it would have taken them anyway.
        NodeByNode = 10,
        /// ggml is asked.
        Asked = 11,
    }

    /// Why a coverage record's subject is not observed, or not better, or what else is to be said
    /// of it. The record's detail is a text to show, never to decide by.
    CoveredWhy: u32 {
        /// There is nothing to say; or, before version 3, the detail says it.
        Untold = 0,
        /// The library announces its ops by no call that can be seen.
        NotAnnounced = 1,
        TooManyLibraries = 2,
        HookedHalfWay = 3,
        SlotsNotWritable = 4,
        /// The compiler left no call that announces an op.
        CallsInlined = 5,
        /// No hook can be placed at a function's entry; the detail says what is in the way.
        EntryRefused = 6,
        /// The fields of this ggml's tensors and graphs are not known.
        FieldsUnknown = 7,
        /// The detail says which part of this ggml's structs was not found.
        LayoutNotFound = 8,
        /// ggml calls its own copy directly.
        CopiesCalledDirectly = 9,
        NoBarrierCalls = 10,
        NoOpFunctions = 11,
        /// Of several threads only the first is seen.
        FirstThreadOnly = 12,
        /// The program's user wants no times of Vulkan devices.
        VulkanOff = 13,
        /// The Vulkan loader did not load the agent's layer.
        LayerNotLoaded = 14,
        DeviceLost = 15,
        /// The detail says what the device or its driver lacks.
        DeviceWithoutTimes = 16,
        /// The detail says what the vendor's tracing library, or the lack of it, is about.
        TracingRefused = 17,
        /// Only the time of whole splits was asked for.
        WholeSplitsOnly = 18,
        /// Seen, now and then.
        InSamples = 19,
        /// Seen, with CUDA graphs that are shorter than the program's own.
        ShorterGraphs = 20,
        /// Seen; shorter CUDA graphs were asked for, and this ggml does not know how.
        GraphsNotShortened = 21,
        /// Seen; shorter CUDA graphs were asked for, and whether this ggml knows how is unknown.
        GraphsPerhapsShortened = 22,
        /// Seen; the work is left to the library that the detail names.
        LeftToLibrary = 23,
        /// The compiler put the barrier after each op in line.
        BarrierInlined = 24,
        /// Seen; the program's user has switched CUDA graphs off.
        GraphsOff = 25,
        /// The device was opened before ggprof attached to the program.
        AttachedTooLate = 26,
        /// ggml makes its own buffers by direct calls.
        BuffersMadeDirectly = 30,
        /// Seen as they are made; ggml frees its own by direct calls.
        FreesNotSeen = 31,
        /// This ggml has no function to ask a backend about a node.
        NothingToAsk = 32,
        /// Asking a backend about a node was tried out in a child process, and the detail says what
        /// happened there.
        AskingFailed = 33,
        /// This ggml has no function that is known to make a graph of one node.
        NoGraphOfOneNode = 34,
    }
}

impl CoveredHow {
    /// Whether ops are seen by hooks that are to see every one: what they miss is a loss.
    pub fn is_hook_on_ops(self) -> bool {
        matches!(self, Self::GotSlot | Self::InlineHook | Self::AbortCallback)
    }

    /// Whether ops that are seen in this way are all seen. Those of devices may be seen now and then only.
    pub fn sees_every_op(self) -> bool {
        !matches!(self, Self::Not | Self::DeviceTimestamps | Self::ActivityRecords)
    }
}

impl Coverage {
    /// Of records that are, the last one holds.
    pub fn is_about_the_same(&self, other: &Self) -> bool {
        let ggml = |it: &Self| (it.backend == NONE).then_some((it.instance, it.library));
        (self.what, self.backend, ggml(self)) == (other.what, other.backend, ggml(other))
    }
}

/// A reason as a record carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Why<'a> {
    pub code: CoveredWhy,
    pub detail: &'a str,
}

impl Why<'static> {
    pub const UNTOLD: Self = Self::plain(CoveredWhy::Untold);

    pub const fn plain(code: CoveredWhy) -> Self {
        Self { code, detail: "" }
    }
}
