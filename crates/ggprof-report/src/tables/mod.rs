//! Recordings as tables that engines for many of them read: DuckDB, ClickHouse, Spark. `docs/tables.md`
//! describes them, with questions to ask.
//!
//! A row names its recording, so that files of many recordings make one table. Nothing here tells
//! paths or arguments, nor hosts unless they are asked for.

mod copies;
mod events;
mod findings;
mod ops;
mod phases;
mod recordings;
mod requests;
mod waits;

use crate::parquet::{self, Value};
use ggprof_analysis::hosts::Hosts;
use ggprof_analysis::{Peaks, Phases, phases as find_phases};
use ggprof_trace::{BackendIndex, StringId, Trace};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::{self, Write};

/// The version of all tables. A column that is new does not change it; one that goes, or means
/// something else, does.
pub const SCHEMA: u32 = 2;

/// The last one is complete only where all others are, so it is written last.
pub const TABLES: [EngineTable; 8] = [
    EngineTable::Phases,
    EngineTable::Ops,
    EngineTable::Events,
    EngineTable::Copies,
    EngineTable::Requests,
    EngineTable::Waits,
    EngineTable::Findings,
    EngineTable::Recordings,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineTable {
    Phases,
    Ops,
    Events,
    Copies,
    Requests,
    Waits,
    Findings,
    Recordings,
}

impl EngineTable {
    pub fn name(self) -> &'static str {
        match self {
            Self::Phases => "phases",
            Self::Ops => "ops",
            Self::Events => "events",
            Self::Copies => "copies",
            Self::Requests => "requests",
            Self::Waits => "waits",
            Self::Findings => "findings",
            Self::Recordings => "recordings",
        }
    }
}

/// A recording whose tables are wanted.
#[derive(Debug)]
pub struct Recording<'t> {
    trace: &'t Trace,
    /// The file that it was read from, without its folder.
    file: Option<&'t str>,
    peaks: Option<&'t Peaks>,
    id: String,
    phases: Phases,
    hosts: Hosts,
    /// What each backend is called in the tables.
    backends: Vec<String>,
}

impl<'t> Recording<'t> {
    pub fn new(trace: &'t Trace, file: Option<&'t str>, peaks: Option<&'t Peaks>) -> Self {
        let (id, phases) = (recording_id(trace), find_phases(trace));
        let plain =
            Self { trace, file, peaks, id, phases, hosts: Hosts::default(), backends: Vec::new() };
        plain.naming(Hosts::of(trace))
    }

    /// The tables name the hosts of servers.
    pub fn with_hosts(self) -> Self {
        self.naming(Hosts::default())
    }

    fn naming(mut self, hosts: Hosts) -> Self {
        let labels = self.trace.backends.iter().map(|backend| backend.label().to_owned());
        self.backends = labels.map(|label| hosts.without(label)).collect();
        self.hosts = hosts;
        self
    }

    /// What all rows call it.
    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn write(&self, table: EngineTable, out: &mut dyn Write) -> io::Result<()> {
        match table {
            EngineTable::Phases => written(out, table, phases::fields(), phases::rows(self)),
            EngineTable::Ops => written(out, table, ops::fields(), ops::rows(self)),
            EngineTable::Events => {
                let context = events::Context::new(self);
                written(out, table, events::fields(), context.rows())
            }
            EngineTable::Copies => written(out, table, copies::fields(), copies::rows(self)),
            EngineTable::Requests => written(out, table, requests::fields(), requests::rows(self)),
            EngineTable::Waits => written(out, table, waits::fields(), waits::rows(self)),
            EngineTable::Findings => written(out, table, findings::fields(), findings::rows(self)),
            EngineTable::Recordings => {
                written(out, table, recordings::fields(), recordings::rows(self))
            }
        }
    }

    fn backend(&self, backend: BackendIndex) -> &str {
        &self.backends[usize::from(backend.0)]
    }

    /// The names of kernels in one text; `None` without any.
    fn joined(&self, kernels: &[StringId]) -> Option<String> {
        let names: Vec<&str> = kernels.iter().map(|&name| self.trace.text(name)).collect();
        (!names.is_empty()).then(|| names.join(" + "))
    }
}

fn written<R>(
    out: &mut dyn Write,
    table: EngineTable,
    fields: Vec<parquet::Field<R>>,
    rows: impl IntoIterator<Item = R>,
) -> io::Result<()> {
    let ordered_by = fields.iter().map(|field| field.name).find(|&name| name == "start_ns");
    let about =
        vec![("ggprof.schema", SCHEMA.to_string()), ("ggprof.table", table.name().to_owned())];
    parquet::write(out, &parquet::Table { fields, ordered_by, about }, rows)
}

/// What a recording is called by its contents: the same one gets the same each time, and no two
/// different ones do.
pub fn recording_id(trace: &Trace) -> String {
    let mut hash = Sha256::new();
    hash.update(&trace.writer);
    if let Some(facts) = &trace.provenance {
        hash.update(facts.recorded_at_unix_ns.to_le_bytes());
        hash.update(facts.pid.to_le_bytes());
        hash.update(&facts.command);
    }
    for event in trace.events.iter() {
        hash.update(event.start_ns.to_le_bytes());
        hash.update(event.duration_ns.to_le_bytes());
    }
    hash.finalize()[..8].iter().fold(String::new(), |mut id, byte| {
        let _ = write!(id, "{byte:02x}");
        id
    })
}

/// `None` for an empty text.
fn known(text: &str) -> Value<'_> {
    Some(text).filter(|text| !text.is_empty()).into()
}

#[cfg(test)]
mod tests;
