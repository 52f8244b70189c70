//! What a row of a comparison is about: as much of it as both sides have in common.

use crate::layers::Module;
use ggprof_trace::Shape;
use std::fmt;

/// Some of the time, told apart from others by all that is known of it. What is `None` or empty is
/// not known, or was left out so that two sides match.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Key {
    pub activity: Activity,
    /// The part of the model.
    pub module: Option<Module>,
    /// As ggml spells it; of a fusion all of them: `RMS_NORM+MUL`.
    pub op: Option<String>,
    /// Dimensions of the sources, then of the result.
    pub shape: Option<Vec<Shape>>,
    /// Types of the same.
    pub types: Option<Vec<String>>,
    /// The device's name.
    pub backend: Option<String>,
    /// Names of the kernels in their order.
    pub kernel: Option<String>,
}

/// What the time was spent on. Where nothing computed or copied, on what the program did instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Activity {
    #[default]
    Op,
    /// A copy, as far as nothing computed meanwhile.
    Copy,
    /// In a graph run, between ops: launches, wake-ups, other programs.
    InRun,
    /// The program waits for results, and no device computes.
    Waiting,
    /// In a call of libllama, outside of graph runs.
    InCall,
    /// Between two graph runs: sampling, grammars, the network.
    Program,
    /// What calls took beyond the usual, each much more: interrupts, time slices of other programs, page
    /// faults.
    Interrupted,
}

impl Activity {
    pub fn is_event(self) -> bool {
        matches!(self, Self::Op | Self::Copy)
    }
}

impl Key {
    pub fn of_activity(activity: Activity) -> Self {
        Self { activity, ..Self::default() }
    }
}

/// How finely rows are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Depth {
    /// By all that is known.
    #[default]
    Kernel,
    Shape,
    Op,
    Module,
    Backend,
}

impl Depth {
    /// The key without what is finer.
    pub fn cut(self, key: &Key) -> Key {
        let mut key = key.clone();
        match self {
            Self::Kernel => {}
            Self::Shape => key.kernel = None,
            Self::Op => {
                (key.kernel, key.shape, key.types, key.module) = (None, None, None, None);
            }
            Self::Module => {
                (key.kernel, key.shape, key.types) = (None, None, None);
                (key.op, key.backend) = (None, None);
            }
            Self::Backend => {
                (key.kernel, key.shape, key.types) = (None, None, None);
                (key.op, key.module) = (None, None);
            }
        }
        key
    }
}

/// How much two keys have in common that were matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Match {
    Same,
    OtherKernel,
    /// Another name put it into another part of the model.
    OtherModule,
    OtherBackend,
    OtherTypes,
    OtherShape,
    /// All that is left of a part of the model: `MUL_MAT`, `SOFT_MAX` against `FLASH_ATTN_EXT`.
    SamePart,
    OnlyA,
    OnlyB,
}

impl Match {
    /// From the finest to the coarsest.
    pub(super) const LEVELS: [Self; 7] = [
        Self::Same,
        Self::OtherKernel,
        Self::OtherModule,
        Self::OtherBackend,
        Self::OtherTypes,
        Self::OtherShape,
        Self::SamePart,
    ];

    /// What must be equal at this level.
    pub(super) fn common(self, key: &Key) -> Key {
        let mut key = key.clone();
        if self >= Self::OtherKernel {
            key.kernel = None;
        }
        if self == Self::OtherModule {
            key.module = None;
        }
        if self >= Self::OtherBackend {
            key.backend = None;
        }
        if self >= Self::OtherTypes {
            key.types = None;
        }
        if self >= Self::OtherShape {
            key.shape = None;
        }
        if self >= Self::SamePart && key.activity == Activity::Op {
            key.op = None;
        }
        key
    }
}

impl Key {
    /// What this and another one have in common.
    pub(super) fn common(mut self, other: &Self) -> Self {
        fn keep<T: PartialEq>(own: &mut Option<T>, other: &Option<T>) {
            if own != other {
                *own = None;
            }
        }
        keep(&mut self.module, &other.module);
        keep(&mut self.op, &other.op);
        keep(&mut self.shape, &other.shape);
        keep(&mut self.types, &other.types);
        keep(&mut self.backend, &other.backend);
        keep(&mut self.kernel, &other.kernel);
        self
    }
}

impl fmt::Display for Key {
    /// For tests and messages; reports have their own words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let module = self.module.map(Module::name);
        let texts = [module, self.op.as_deref(), self.backend.as_deref(), self.kernel.as_deref()];
        write!(f, "{:?}", self.activity)?;
        texts.into_iter().flatten().try_for_each(|text| write!(f, " {text}"))
    }
}
