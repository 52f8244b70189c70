//! The command as users run it: real processes, real files.

mod bad_conditions;
mod place;
mod report;
