//! How large a true change must be to be found four times out of five.
//!
//! Both sides vary by what the samples show, and a change is called one if its ranks are as rare as asked
//! for and its interval does not contain zero (`super::mann_whitney`, `super::Resamples`). Few samples need
//! more than a formula for many says: their ranks come in steps, and how much they vary is hardly known. So
//! both is tried out on random samples.

use super::{CONFIDENCE, Dice, MOST_EXACT, distribution, least_p, upper_tail};
use std::cmp::Ordering;

/// A change that chance shows too rarely lies so many deviations above the limit in 80 % of cases.
const FOUR_OF_FIVE: f64 = 0.84;

/// Comparisons that are tried out.
const TRIALS: usize = 1000;

/// How much the difference of two medians varies, told from the samples: a bootstrap of all that could be
/// drawn.
pub(super) fn deviation_of_medians(a: &[f64], b: &[f64]) -> f64 {
    let variance = |side: &[f64]| {
        let mut sorted = side.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let chances = chances_to_be_median(sorted.len());
        let mean: f64 = sorted.iter().zip(&chances).map(|(value, chance)| value * chance).sum();
        sorted.iter().zip(&chances).map(|(value, it)| it * (value - mean).powi(2)).sum::<f64>()
    };
    (variance(a) + variance(b)).sqrt()
}

/// How often each of so many samples is the median of as many draws, by its rank; of an even number, each of
/// the two in the middle counts half.
fn chances_to_be_median(count: usize) -> Vec<f64> {
    // The chance that at least `wanted` of the draws are among the first `rank`.
    let at_least = |wanted: usize, rank: usize| {
        let part = rank as f64 / count as f64;
        let mut term = (1.0 - part).powi(count as i32);
        let mut below = 0.0;
        for drawn in 0..wanted {
            below += term;
            term *= (count - drawn) as f64 / (drawn + 1) as f64 * part / (1.0 - part);
        }
        if rank == count { 1.0 } else { 1.0 - below }
    };
    let middles = [count.div_ceil(2), count / 2 + 1];
    let until =
        |rank: usize| middles.map(|wanted| at_least(wanted, rank)).iter().sum::<f64>() / 2.0;
    (1..=count).map(|rank| until(rank) - until(rank - 1)).collect()
}

/// So many times the deviation of the medians of two sides is seen where chance may show a change this
/// rarely; `None` if samples of that number cannot show it.
pub fn deviations_to_be_seen((a, b): (usize, usize), chance: f64) -> Option<f64> {
    if a.min(b) < 2 || least_p(a, b) > chance {
        return None;
    }
    if a + b > MOST_EXACT {
        // Ranks need less than medians of so many: 0.955 and 0.637 of the samples that a mean needs.
        let of_ranks = (deviations_beyond(chance) + FOUR_OF_FIVE) * (0.637_f64 / 0.955).sqrt();
        return Some(of_ranks.max(deviations_beyond(1.0 - CONFIDENCE) + FOUR_OF_FIVE));
    }
    let wins = least_wins(a, b, chance)?;
    let chances = (chances_to_be_median(a), chances_to_be_median(b));
    let mut dice = Dice(Dice::SEED);
    let mut draw = |count: usize| -> Vec<f64> { (0..count).map(|_| dice.normal()).collect() };
    let mut before = (draw(a), draw(b));
    let mut needed: Vec<f64> = Vec::with_capacity(TRIALS);
    for _ in 0..TRIALS {
        // How much they vary is told from other samples than those that have the change.
        let deviation = deviation_of_medians(&before.0, &before.1);
        before = (draw(a), draw(b));
        needed.push(shift_to_be_seen(&mut before, wins, &chances) / deviation);
    }
    needed.sort_unstable_by(f64::total_cmp);
    Some(needed[TRIALS * 4 / 5])
}

/// The same of blocks, of which a mean is drawn.
pub fn deviations_of_blocks_to_be_seen(chance: f64) -> f64 {
    deviations_beyond(chance).max(deviations_beyond(1.0 - CONFIDENCE)) + FOUR_OF_FIVE
}

/// How much must be added to the second side to be seen: ranks ask for so many pairs in which it is the
/// larger one, the interval for nearly all of what could be drawn.
fn shift_to_be_seen(
    (a, b): &mut (Vec<f64>, Vec<f64>),
    wins: usize,
    chances: &(Vec<f64>, Vec<f64>),
) -> f64 {
    a.sort_unstable_by(f64::total_cmp);
    b.sort_unstable_by(f64::total_cmp);
    let mut pairs: Vec<(f64, f64)> = Vec::with_capacity(a.len() * b.len());
    for (one, chance) in a.iter().zip(&chances.0) {
        pairs.extend(b.iter().zip(&chances.1).map(|(other, it)| (one - other, chance * it)));
    }
    pairs.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    let mut rest = 1.0 - (1.0 - CONFIDENCE) / 2.0;
    let of_interval = pairs.iter().find(|(_, chance)| {
        rest -= chance;
        rest <= 0.0
    });
    let of_interval = of_interval.or(pairs.last()).map_or(0.0, |pair| pair.0);
    pairs[wins - 1].0.max(of_interval)
}

/// In how many of all pairs the second side must be the larger one.
fn least_wins(a: usize, b: usize, chance: f64) -> Option<usize> {
    let ranks: Vec<u64> = (1..=(a + b) as u64).map(|rank| 2 * rank).collect();
    let ways = distribution(&ranks, b);
    let all: f64 = ways.iter().sum();
    let least_sum = b * (b + 1);
    let mut above = 0.0;
    let is_rare = |wins: &usize| {
        above += ways[least_sum + 2 * wins];
        2.0 * above / all <= chance
    };
    (0..=a * b).rev().take_while(is_rare).last()
}

/// How many deviations a normal number is away from the middle this rarely, on both sides.
fn deviations_beyond(chance: f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    while high - low > 1e-6 {
        let middle = f64::midpoint(low, high);
        match (2.0 * upper_tail(middle)).total_cmp(&chance) {
            Ordering::Greater => low = middle,
            _ => high = middle,
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{ALARMS, Resamples, mann_whitney};

    #[test]
    fn deviations() {
        for (chance, expected) in [(0.05, 1.96), (0.02, 2.326)] {
            assert!((deviations_beyond(chance) - expected).abs() < 1e-3);
        }
        let chances = chances_to_be_median(3);
        for (found, expected) in chances.iter().zip([7.0, 13.0, 7.0]) {
            assert!((found - expected / 27.0).abs() < 1e-9, "{chances:?}");
        }
        assert!((chances_to_be_median(6).iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn pairs_that_the_larger_side_must_win() {
        // From published tables: the smaller U is at most so large.
        for (n, chance, u) in [(5, 0.05, 2), (5, 0.02, 1), (6, 0.05, 5), (10, 0.05, 23)] {
            assert_eq!(least_wins(n, n, chance), Some(n * n - u), "{n} at {chance}");
        }
        assert_eq!(least_wins(4, 4, 0.02), None);
    }

    #[test]
    fn too_few_see_nothing() {
        for (sizes, chance) in [((4, 4), ALARMS), ((1, 200), ALARMS), ((5, 5), ALARMS / 3.0)] {
            assert_eq!(deviations_to_be_seen(sizes, chance), None, "{sizes:?}");
        }
        let [few, some, many] = [5, 10, 40].map(|n| deviations_to_be_seen((n, n), ALARMS).unwrap());
        assert!(few > some && some > many && many > 2.5, "{few} {some} {many}");
    }

    /// What is said to be seen four times out of five is.
    #[test]
    fn four_times_out_of_five() {
        const TIMES: usize = 250;
        let mut dice = Dice(7);
        for n in [5, 6, 7, 10] {
            let factor = deviations_to_be_seen((n, n), ALARMS).unwrap();
            let resamples = Resamples::of_sides(n, n);
            let mut draw = || -> Vec<f64> { (0..n).map(|_| dice.normal()).collect() };
            let seen = (0..TIMES).filter(|_| {
                let size = factor * deviation_of_medians(&draw(), &draw());
                let (a, b) = (draw(), draw().iter().map(|it| it + size).collect::<Vec<_>>());
                let interval = resamples.of_medians(&a, &b).unwrap();
                mann_whitney(&a, &b) <= ALARMS && interval.low > 0.0
            });
            let share = seen.count() as f64 / TIMES as f64;
            assert!((0.73..0.87).contains(&share), "{n}: {share}");
        }
    }
}
