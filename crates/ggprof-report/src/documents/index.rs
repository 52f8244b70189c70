//! How fast many recordings were, by what they are kept apart by.

use crate::document::Fact;
use crate::{Cell, Column, Document, Table};
use ggprof_analysis::catalogue::{CommitPoint, Dimension, Series};

const SPEED: [Column; 10] = [
    Column::left("model", "model", 2),
    Column::left("phase", "phase", 0),
    Column::right("recordings", "recordings", 1),
    Column::right("tokens_per_s", "speed", 0),
    Column::right("tokens_per_s_deviation", "±", 1),
    Column::right("lowest_tokens_per_s", "lowest", 4),
    Column::right("highest_tokens_per_s", "highest", 4),
    Column::right("change", "change", 0),
    Column::left("noise", "?", 0),
    Column::left("last_unix_ns", "last recorded", 3),
];

/// What the catalogue holds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Catalogued {
    pub recordings: usize,
    /// Of these, read now and not before.
    pub read: usize,
    /// Files that hold a recording that another file holds, too.
    pub copies: usize,
    pub unreadable: usize,
    /// Recordings of which something is lost or damaged.
    pub damaged: usize,
}

/// The answer, where recordings are kept apart by these.
pub fn index(series: &[Series], by: &[Dimension], catalogued: Catalogued) -> Document {
    let mut document = Document::default();
    let count = |count: usize| {
        Cell::or_nothing(Some(count).filter(|&it| it > 0), |it| Cell::Count(it as u128))
    };
    document.fact(
        "catalogue",
        "recordings",
        vec![
            Fact::new("recordings", Cell::Count(catalogued.recordings as u128), "{}"),
            Fact::new("read", count(catalogued.read), "new or changed: {}"),
            Fact::new("copies", count(catalogued.copies), "copies, which do not count: {}"),
            Fact::new("damaged", count(catalogued.damaged), "damaged or cut off: {}"),
            Fact::new("unreadable", count(catalogued.unreadable), "files that cannot be read: {}"),
        ],
    );
    document.heading(
        "speeds",
        match by.contains(&Dimension::Commit) {
            true => "Speed by commit, in the order of their first recordings",
            false => "Speed",
        },
    );
    if series.is_empty() {
        document.note("empty", "No recording has a speed that was asked for.");
        return document;
    }
    document.table(table(series, by));
    if let Some(text) = put_together(series, by) {
        document.note("put_together", text);
    }
    document
}

fn table(series: &[Series], by: &[Dimension]) -> Table {
    let others = Dimension::ALL.into_iter().filter(|it| !by.contains(it));
    let mut columns: Vec<Column> =
        by.iter().map(|&it| Column::left(key(it), title(it), 0)).collect();
    columns.extend(SPEED);
    columns.extend(others.map(|it| Column::left(key(it), "", 9)));
    let rows = series.iter().flat_map(|one| one.points.iter().map(|point| row(one, point, by)));
    Table { key: "speeds", columns, rows: rows.collect() }
}

fn row(series: &Series, point: &CommitPoint, by: &[Dimension]) -> Vec<Cell> {
    let named = |dimension: &Dimension| match dimension {
        Dimension::Commit => point.commit.clone(),
        _ => series.names.iter().find(|(it, _)| it == dimension).map(|(_, name)| name.clone()),
    };
    let mut cells: Vec<Cell> = by.iter().map(|it| text(named(it))).collect();
    let last = point.runs.iter().filter_map(|run| run.at_unix_ns).max();
    let several = |speed: f64| Some(speed).filter(|_| point.runs.len() > 1);
    let change = point.change.filter(|change| change.share.is_finite());
    cells.extend([
        text(Some(series.model.clone())),
        Cell::text(&series.phase),
        Cell::Count(point.runs.len() as u128),
        Cell::TokensPerSecond(point.median),
        Cell::or_nothing(point.deviation, Cell::TokensPerSecond),
        Cell::or_nothing(several(point.lowest), Cell::TokensPerSecond),
        Cell::or_nothing(several(point.highest), Cell::TokensPerSecond),
        Cell::or_nothing(change, |change| Cell::ShareChange(change.share)),
        Cell::or_nothing(change.filter(|change| !change.is_certain), |_| Cell::text("~")),
        Cell::or_nothing(last, Cell::Date),
    ]);
    cells.extend(point.others.iter().map(|(_, name)| match name {
        Ok(name) => text(Some(name.clone())),
        Err(count) => Cell::Text(format!("{count} different")),
    }));
    cells
}

fn text(text: Option<String>) -> Cell {
    text.filter(|text| !text.is_empty()).map_or(Cell::Nothing, Cell::Text)
}

/// What rows have in them that makes a difference.
fn put_together(series: &[Series], by: &[Dimension]) -> Option<String> {
    let points = || series.iter().flat_map(|one| &one.points);
    let differs = |dimension: &Dimension| {
        points().flat_map(|point| &point.others).any(|(it, name)| it == dimension && name.is_err())
    };
    let kept: Vec<Dimension> =
        Dimension::ALL.into_iter().filter(|&it| it != Dimension::File && differs(&it)).collect();
    let words = |dimensions: &[Dimension], between: &str| {
        dimensions.iter().map(|&it| key(it)).collect::<Vec<_>>().join(between)
    };
    let all = [by, &kept].concat();
    (!kept.is_empty()).then(|| {
        format!(
            "Some rows put together recordings that differ in {}; --by {} keeps them apart.",
            words(&kept, ", "),
            words(&all, ",")
        )
    })
}

/// What programs and `--by` call it.
fn key(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Commit => "commit",
        Dimension::Device => "device",
        Dimension::Program => "program",
        Dimension::Threads => "threads",
        Dimension::Cache => "cache",
        Dimension::Cpu => "cpu",
        Dimension::File => "file",
    }
}

fn title(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Commit => "ggml and libllama",
        other => key(other),
    }
}
