//! `cargo xtask matrix`: which programs and builds of ggml are recorded, how completely, and at
//! what cost.

use anyhow::bail;
use ggprof_e2e::matrix::{self, Finding};

/// Pairs of runs without and with the agent. `--pairs N` changes it.
const PAIRS: usize = 10;

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let pairs = match arguments {
        [] => PAIRS,
        [flag, number] if flag == "--pairs" => number.parse()?,
        _ => bail!("cargo xtask matrix [--pairs N], by default {PAIRS}"),
    };
    println!("| program | nodes | recorded | ops seen by | speed | same output |");
    println!("| :--- | ---: | ---: | :--- | ---: | :--- |");
    let mut complaints = Vec::new();
    for row in matrix::all() {
        match row.find(pairs.max(1)) {
            Ok(finding) => {
                let complaint = row.complaint(&finding);
                complaints.extend(complaint.map(|words| format!("{}: {words}", row.name)));
                println!("| {} | {} |", row.name, cells(&finding));
            }
            Err(reason) => println!("| {} | | | not run: {reason} | | |", row.name),
        }
    }
    if !complaints.is_empty() {
        bail!("{}", complaints.join("\n"));
    }
    Ok(())
}

fn cells(finding: &Finding) -> String {
    let same = match finding.same_result {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "",
    };
    let ways = finding.ways.join(", ");
    let speed = speed(finding.speeds.clone());
    format!("{} | {} | {ways} | {speed} | {same}", finding.expected, finding.recorded)
}

/// The middle of all pairs, and between which figures half of them lie: how much of it is the
/// machine's own unrest.
fn speed(mut speeds: Vec<f64>) -> String {
    speeds.sort_by(f64::total_cmp);
    let at = |quarter: usize| speeds.get(speeds.len().saturating_sub(1) * quarter / 4);
    let (Some(lower), Some(median), Some(upper)) = (at(1), at(2), at(3)) else {
        return String::new();
    };
    format!("{median:.2} ({lower:.2} to {upper:.2})")
}
