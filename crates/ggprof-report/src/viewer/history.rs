//! The page of many recordings: how fast the same was from commit to commit. It holds the answer and its
//! table, not the recordings.

use super::{bundle, page, table_words};
use crate::document::sentence;
use crate::{Block, Document};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use ggprof_analysis::catalogue::{CommitPoint, RecordedSpeed, Series};
use serde_json::{Value, json};
use std::io::{self, Write};

const TITLE: &str = "Speed of recordings";

/// Writes the page of an answer and of the document that has its table.
pub fn write_history(
    series: &[Series],
    document: &Document,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&serde_json::to_vec(&history(series, document))?)?;
    let data = BASE64_STANDARD.encode(packed.finish()?);
    page::write(TITLE, &bundle::history_script(), bundle::style(), &data, out)
}

fn history(series: &[Series], document: &Document) -> Value {
    let mut facts = Vec::new();
    let mut notes = Vec::new();
    for block in &document.blocks {
        match block {
            Block::Fact { title, values, .. } => {
                facts.push(json!([title, sentence(values, " · ")]))
            }
            Block::Note { text, .. } => notes.push(text),
            _ => {}
        }
    }
    json!({
        "title": TITLE,
        "facts": facts,
        "notes": notes,
        "series": series.iter().map(one).collect::<Vec<_>>(),
        "table": document.tables().next().map(|table| table_words::table(table, u8::MAX)),
    })
}

fn one(series: &Series) -> Value {
    let names: Vec<&str> = series.names.iter().map(|(_, name)| name.as_str()).collect();
    json!({
        "model": series.model,
        "phase": series.phase,
        "name": names.join(", "),
        "points": series.points.iter().map(point).collect::<Vec<_>>(),
    })
}

fn point(point: &CommitPoint) -> Value {
    let change = point.change.filter(|change| change.share.is_finite());
    json!({
        "commit": point.commit,
        "median": point.median,
        "lowest": point.lowest,
        "highest": point.highest,
        "change": change.map(|it| json!({"share": it.share, "certain": it.is_certain})),
        "runs": point.runs.iter().map(run).collect::<Vec<_>>(),
    })
}

fn run(run: &RecordedSpeed) -> Value {
    let at = run.at_unix_ns.map(|ns| ns / 1_000_000);
    json!({"file": run.file, "at": at, "speed": run.tokens_per_s})
}
