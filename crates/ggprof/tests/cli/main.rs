//! The command as users run it: real processes, real files.

mod bad_conditions;
mod diff;
mod exports;
mod index;
mod parts;
mod peaks;
mod place;
mod report;
mod sums;
