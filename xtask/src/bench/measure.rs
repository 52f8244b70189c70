//! Seconds and memory of one command, and comparing two commands that run alternately.

use anyhow::{Context, bail};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use wait4::Wait4;

#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    pub(super) wall: Duration,
    /// Of all its threads.
    pub(super) processor: Duration,
    pub(super) peak_bytes: u64,
}

/// Runs the command with its output thrown away.
pub(super) fn cost(command: &mut Command) -> anyhow::Result<Cost> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    let used = child.wait4()?;
    let wall = start.elapsed();
    if !used.status.success() {
        bail!("{command:?} failed: {}", used.status);
    }
    let processor = used.rusage.utime + used.rusage.stime;
    Ok(Cost { wall, processor, peak_bytes: used.rusage.maxrss })
}

/// The median of each figure.
pub(super) fn median(costs: Vec<Cost>) -> Cost {
    Cost {
        wall: middle(&costs, |cost| cost.wall),
        processor: middle(&costs, |cost| cost.processor),
        peak_bytes: middle(&costs, |cost| cost.peak_bytes),
    }
}

fn middle<T: Ord + Copy>(costs: &[Cost], figure: impl Fn(&Cost) -> T) -> T {
    let mut figures: Vec<T> = costs.iter().map(figure).collect();
    figures.sort_unstable();
    figures[figures.len() / 2]
}

/// The median of values, and the least and greatest of the middle half.
pub(crate) fn median_and_range(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    (at(0.5), at(0.25), at(0.75))
}

/// Runs the two in turns, changing who goes first.
pub(super) fn pairs<A, B>(
    count: usize,
    without: impl Fn() -> anyhow::Result<A>,
    with: impl Fn() -> anyhow::Result<B>,
) -> anyhow::Result<Vec<(A, B)>> {
    let mut pairs = Vec::with_capacity(count);
    for turn in 0..count {
        pairs.push(if turn % 2 == 0 {
            let without = without()?;
            (without, with()?)
        } else {
            let with = with()?;
            (without()?, with)
        });
    }
    Ok(pairs)
}

/// The number after the last `key` in a program's output.
pub(super) fn value(text: &str, key: &str) -> anyhow::Result<f64> {
    let rest = text.rsplit_once(key).with_context(|| format!("no {key} in {text:?}"))?.1;
    let number = rest.split_whitespace().next().unwrap_or_default();
    number.parse().with_context(|| format!("{key}{number}"))
}
