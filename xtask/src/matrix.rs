//! `cargo xtask matrix`: which programs and builds of ggml are recorded, how completely, and at
//! what cost.

use anyhow::bail;
use ggprof_e2e::matrix::{self, Finding};

/// Pairs of runs without and with the agent. `--pairs N` changes it.
const PAIRS: usize = 5;

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let pairs = match arguments {
        [] => PAIRS,
        [flag, number] if flag == "--pairs" => number.parse()?,
        _ => bail!("cargo xtask matrix [--pairs N], by default {PAIRS}"),
    };
    println!("| program | nodes | recorded | ops seen by | speed | same output |");
    println!("| :--- | ---: | ---: | :--- | ---: | :--- |");
    let mut failed = 0;
    for row in matrix::all() {
        match row.find(pairs.max(1)) {
            Ok(finding) => {
                failed += usize::from(!finding.is_complete() || finding.same_result == Some(false));
                println!("| {} | {} |", row.name, cells(finding));
            }
            Err(reason) => println!("| {} | | | not run: {reason} | | |", row.name),
        }
    }
    if failed > 0 {
        bail!("{failed} of them were not recorded completely or did not compute the same");
    }
    Ok(())
}

fn cells(mut finding: Finding) -> String {
    finding.speeds.sort_by(f64::total_cmp);
    let speed = finding.speeds.get(finding.speeds.len() / 2);
    let speed = speed.map_or_else(String::new, |ratio| format!("x {ratio:.3}"));
    let same = match finding.same_result {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "",
    };
    let ways = finding.ways.join(", ");
    format!("{} | {} | {ways} | {speed} | {same}", finding.expected, finding.recorded)
}
