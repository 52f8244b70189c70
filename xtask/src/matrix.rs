//! `cargo xtask matrix`: which programs and builds of ggml are recorded, how completely, and at
//! what cost.

use crate::system;
use anyhow::bail;
use ggprof_e2e::matrix::{self, Finding};
use ggprof_e2e::{changed_ggml, old_ggml, rust_programs};

/// Pairs of runs without and with the agent. `--pairs N` changes it; words behind it choose rows.
const PAIRS: usize = 10;

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let (pairs, words) = match arguments {
        [] => (PAIRS, ""),
        [flag, number] if flag == "--pairs" => (number.parse()?, ""),
        [flag, number, words] if flag == "--pairs" => (number.parse()?, words.as_str()),
        [flag] if flag == "--changed" => return changed(""),
        [flag, words] if flag == "--changed" => return changed(words),
        _ => return Err(crate::misused("matrix")),
    };
    // Installed with the C++ compiler of the same name.
    system::install("clang++", "clang")?;
    println!("Speed is that of the recorded program over that of the same without the agent.");
    println!();
    println!(
        "| program | for | nodes | recorded | ops seen by | best speed | in pairs | same output |"
    );
    println!("| :--- | :--- | ---: | ---: | :--- | ---: | ---: | :--- |");
    let mut complaints = Vec::new();
    for row in matrix::all() {
        let program = format!("{} | {}", row.name, row.platform.words());
        if !program.contains(words) {
            continue;
        }
        match row.find(pairs.max(1)) {
            Ok(finding) => {
                let complaint = row.complaint(&finding);
                complaints.extend(complaint.map(|words| format!("{}: {words}", row.name)));
                println!("| {program} | {} |", cells(&finding));
            }
            Err(reason) => println!("| {program} | | | not run: {reason} | | | |"),
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
    let (best, pairs) = (best(&finding.speeds), in_pairs(&finding.speeds));
    format!("{} | {} | {ways} | {best} | {pairs} | {same}", finding.expected, finding.recorded)
}

/// The best run with over the best run without: others on the machine make runs slower, and
/// never faster.
fn best(speeds: &[(f64, f64)]) -> String {
    let best = |all: &mut dyn Iterator<Item = f64>| all.max_by(f64::total_cmp);
    let without = best(&mut speeds.iter().map(|(without, _)| *without));
    let with = best(&mut speeds.iter().map(|(_, with)| *with));
    without.zip(with).map_or_else(String::new, |(without, with)| format!("{:.2}", with / without))
}

/// The middle of all pairs, and between which figures half of them lie: how much of it is the
/// machine's own unrest.
fn in_pairs(speeds: &[(f64, f64)]) -> String {
    let mut ratios: Vec<f64> = speeds.iter().map(|(without, with)| with / without).collect();
    ratios.sort_by(f64::total_cmp);
    let at = |quarter: usize| ratios.get(ratios.len().saturating_sub(1) * quarter / 4);
    let (Some(lower), Some(median), Some(upper)) = (at(1), at(2), at(3)) else {
        return String::new();
    };
    format!("{median:.2} ({lower:.2} to {upper:.2})")
}

/// Builds of a ggml that was changed, Rust programs, and old ggml: what is recorded of each, and why not all of
/// it. Only those with the words in their names.
fn changed(words: &str) -> anyhow::Result<()> {
    system::install_for_bindings()?;
    println!("| build | nodes | recorded | ops seen by, or why not | same output | ended |");
    println!("| :--- | ---: | ---: | :--- | :--- | :--- |");
    let mut complaints = Vec::new();
    let all = [changed_ggml::all(), rust_programs::all(), old_ggml::all()].into_iter().flatten();
    for trial in all.filter(|trial| trial.name.contains(words)) {
        match trial.find() {
            Ok(finding) => {
                let complaint = trial.complaint(&finding);
                complaints.extend(complaint.map(|words| format!("{}: {words}", trial.name)));
                println!("| {} | {finding} |", trial.name);
            }
            Err(reason) => println!("| {} | | | not run: {reason} | | |", trial.name),
        }
    }
    if !complaints.is_empty() {
        bail!("{}", complaints.join("\n"));
    }
    Ok(())
}
