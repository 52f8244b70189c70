//! The schedulers that are profiled: which of their graph runs count, and how to read them.

use crate::agent;
use crate::error::Error;
use crate::record::Records;
use ggprof_trace::Trace;
use ggprof_trace::formats::FileBytes;
use ggprof_trace::formats::spool::{self, Selection};
use std::collections::HashMap;
use std::ffi::c_void;
use std::fs::File;
use std::ops::RangeInclusive;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// One scheduler.
#[derive(Debug)]
pub(crate) struct Profiled {
    number: u32,
    /// The last graph run before recording was switched on; `None` while it is off.
    on_after: Option<u32>,
    /// The graph runs of earlier times when it was on.
    earlier: Vec<RangeInclusive<u32>>,
    pub(crate) records: Records,
}

static PROFILED: LazyLock<Mutex<HashMap<usize, Profiled>>> = LazyLock::new(Mutex::default);

/// Switches recording of a scheduler on or off.
pub(crate) fn switch(scheduler: *mut c_void, on: bool) -> Result<(), Error> {
    if scheduler.is_null() {
        return Err(Error::Invalid("the scheduler is NULL"));
    }
    if !on {
        with(scheduler, |profiled| {
            profiled.end_stretch();
            Ok(())
        })?;
        agent::record(lock().values().any(Profiled::is_on));
        return Ok(());
    }
    let number = agent::follow(scheduler)?;
    let mut all = lock();
    let profiled = all.entry(scheduler as usize).or_insert_with(|| Profiled::new(number));
    if profiled.number != number {
        // Another scheduler at the address of one that was freed.
        *profiled = Profiled::new(number);
    }
    profiled.on_after.get_or_insert_with(agent::runs);
    agent::record(true);
    Ok(())
}

/// Does something with a scheduler that is profiled.
pub(crate) fn with<R>(
    scheduler: *mut c_void,
    work: impl FnOnce(&mut Profiled) -> Result<R, Error>,
) -> Result<R, Error> {
    if scheduler.is_null() {
        return Err(Error::Invalid("the scheduler is NULL"));
    }
    let mut all = lock();
    // The records of schedulers that were freed go with them.
    all.retain(|&at, profiled| agent::number(at as *mut c_void) == Some(profiled.number));
    match all.get_mut(&(scheduler as usize)) {
        Some(profiled) => work(profiled),
        None => Err(Error::Invalid("the scheduler was freed, or is not profiled")),
    }
}

fn lock() -> MutexGuard<'static, HashMap<usize, Profiled>> {
    PROFILED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Profiled {
    fn new(number: u32) -> Self {
        Self { number, on_after: None, earlier: Vec::new(), records: Records::default() }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.on_after.is_some()
    }

    fn end_stretch(&mut self) {
        if let Some(after) = self.on_after.take() {
            self.earlier.push(after + 1..=agent::runs());
        }
    }

    /// Forgets all graph runs until now.
    pub(crate) fn reset(&mut self) {
        self.earlier.clear();
        self.records = Records::default();
        self.on_after = self.on_after.map(|_| agent::runs());
    }

    /// What was recorded of this scheduler since it was reset.
    pub(crate) fn trace(&self) -> Result<Trace, Error> {
        let mut runs = self.earlier.clone();
        runs.extend(self.on_after.map(|after| after + 1..=u32::MAX));
        let selection = Selection { scheduler: self.number, runs };
        let file = File::open(agent::recording()?)?;
        let length = file.metadata()?.len();
        let recording = FileBytes::new(file, length, Vec::new());
        let mut trace = spool::read_selection(&recording, &selection)
            .map_err(|error| Error::Io(error.to_string()))?;
        ggprof_analysis::charge(&mut trace);
        Ok(trace)
    }
}
