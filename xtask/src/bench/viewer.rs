//! The viewer's pages of one and of ten million events: how large they are, and how long it takes to
//! write, to open and to navigate them.

use super::measure::{cost, median};
use super::recordings::{self, Made};
use crate::shell;
use ggprof_e2e::browser;
use std::path::Path;
use std::process::Command;

const RUNS: usize = 3;
const SIZES: [u64; 2] = [1_000_000, 10_000_000];

pub(super) fn run() -> anyhow::Result<()> {
    let ggprof = shell::build_ggprof()?;
    let directory = shell::target().join("bench");
    std::fs::create_dir_all(&directory)?;
    SIZES.iter().try_for_each(|&ops| measure(&ggprof, &directory, ops))
}

fn measure(ggprof: &Path, directory: &Path, ops: u64) -> anyhow::Result<()> {
    let file = directory.join(format!("{ops}.ggprof"));
    if !file.exists() {
        recordings::write(&file, &Made::of(ops))?;
    }
    let page = file.with_extension("html");
    let report = |options: &[&std::ffi::OsStr]| -> anyhow::Result<f64> {
        let costs =
            (0..RUNS).map(|_| cost(Command::new(ggprof).arg("report").arg(&file).args(options)));
        Ok(median(costs.collect::<anyhow::Result<Vec<_>>>()?).wall.as_secs_f64())
    };
    let written = report(&["--html-viewer".as_ref(), page.as_os_str()])?;
    let read = report(&["--by".as_ref(), "backend".as_ref()])?;
    println!("Viewer: {ops} events, Chromium without GPU");
    println!(
        "page of {:.1} MB, written in {written:.2} s including the reading (reading alone: {read:.2} s)",
        std::fs::metadata(&page)?.len() as f64 / 1e6
    );
    if let Some(mut measure) = browser::script("measure.mjs") {
        shell::run(measure.arg(&page))?;
    }
    Ok(())
}
