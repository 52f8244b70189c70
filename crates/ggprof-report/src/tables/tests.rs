//! The documentation says what the tables have.

use super::*;
use crate::parquet::Field;
use ggprof_trace::{Provenance, merge, text_fixture};

const DOCUMENTATION: &str = include_str!("../../../../docs/tables.md");

/// The lines of the documentation about a table's columns.
fn described<R>(fields: Vec<Field<R>>) -> String {
    let line = |field: &Field<R>| {
        format!("| `{}` | {} | {} |\n", field.name, field.kind.name(), field.what)
    };
    fields.iter().map(line).collect()
}

#[test]
fn all_columns_are_documented() {
    let tables = [
        (EngineTable::Recordings, described(recordings::fields())),
        (EngineTable::Phases, described(phases::fields())),
        (EngineTable::Ops, described(ops::fields())),
        (EngineTable::Events, described(events::fields())),
        (EngineTable::Copies, described(copies::fields())),
        (EngineTable::Requests, described(requests::fields())),
        (EngineTable::Waits, described(waits::fields())),
        (EngineTable::Findings, described(findings::fields())),
    ];
    let is_missing = |(_, lines): &&(EngineTable, String)| !DOCUMENTATION.contains(lines);
    let missing: String = tables
        .iter()
        .filter(is_missing)
        .map(|(table, lines)| format!("### {}\n\n{lines}\n", table.name()))
        .collect();
    assert!(missing.is_empty(), "docs/tables.md should say:\n{missing}");
    assert!(DOCUMENTATION.contains(&format!("The version is {SCHEMA}.")));
}

#[test]
fn recordings_are_known_by_their_contents() {
    let trace =
        |text: &str| text_fixture::parse(&format!("backend 0 GPU gpu\nop GPU ADD {text} a"));
    let id = |trace: &Trace| Recording::new(trace, None, None).id().to_owned();
    assert_eq!(id(&trace("0..10")), id(&trace("0..10")));
    assert_ne!(id(&trace("0..10")), id(&trace("0..11")));
    assert_eq!(id(&trace("0..10")).len(), 16);
}

#[test]
fn a_table_without_rows_is_a_file_too() {
    let trace = text_fixture::parse("backend 0 GPU gpu\nop GPU ADD 0..1 a");
    let recording = Recording::new(&trace, None, None);
    for table in TABLES {
        let mut file = Vec::new();
        recording.write(table, &mut file).unwrap();
        assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"), "{}", table.name());
    }
}

/// Of two recordings, what a backend is called begins with its process.
#[test]
fn hosts_are_named_only_where_they_are_asked_for() {
    let client = |pid| {
        let text = "backend 0 RPC[secret.corp:50052] gpu secret.corp:50052
             backend 1 CPU cpu
             run 0..10
             op RPC[secret.corp:50052] MUL_MAT 0..10 a run=0
             copy RPC[secret.corp:50052] H2D 0..1 8 a run=0";
        let mut trace = text_fixture::parse(text);
        let clock_anchors = vec![(0, 1_000_000_000)];
        trace.provenance = Some(Provenance { pid, clock_anchors, ..Provenance::default() });
        trace
    };
    let merged = merge(vec![client(1), client(2)]).unwrap();
    for trace in [&merged, &client(3)] {
        let recording = Recording::new(trace, None, None);
        let named = Recording::new(trace, None, None).with_hosts();
        let tells = |recording: &Recording<'_>| {
            let devices = ggprof_analysis::hosts::devices(recording.trace, &recording.hosts);
            [&recording.backends[..], &devices[..]].concat().iter().any(|it| it.contains("secret"))
        };
        assert_eq!((tells(&recording), tells(&named)), (false, true));
    }
}
