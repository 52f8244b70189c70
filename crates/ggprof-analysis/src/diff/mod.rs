//! What changed between two sides of recordings, and what each change contributes.

mod alike;
mod book;
mod comparison;
mod cut;
mod event_keys;
mod exclusive;
mod fusions;
mod history;
mod identity;
mod interrupted;
mod kept_pairs;
mod key;
mod ledger;
mod matching;
mod setting;
mod spread;
mod whole_splits;

pub use comparison::{Change, Diff, DiffRow, PhaseDiff, PhaseName, compare, look};
pub use fusions::{Fusions, fusions};
pub use history::{Pair, learn, pairs, usual};
pub use identity::{Identity, Origin, identity};
pub use kept_pairs::{read_pairs, written_pairs};
pub use key::{Activity, Depth, Key, Match};
pub use ledger::{Ledger, LedgerEntry, PhaseLedger, StepBlock, ledger};
pub use setting::{
    Difference, Observed, Setting, Settings, Value, differences, placement, settings,
};
pub use spread::{Spread, spreads};
