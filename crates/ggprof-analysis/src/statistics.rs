//! What can be said of a difference under noise, from a few samples that need not be normal. Nothing
//! is dropped as an outlier, and the same samples always give the same answer.

mod seen;

pub use seen::{deviations_of_blocks_to_be_seen, deviations_to_be_seen};

/// The part of intervals that hold the true value.
pub const CONFIDENCE: f64 = 0.95;

/// How often chance alone may show a change. Five samples a side can tell with it, four cannot.
pub const ALARMS: f64 = 0.02;

const RESAMPLES: usize = 2000;

/// Above this many samples in all, the distribution of ranks is taken to be normal.
const MOST_EXACT: usize = 60;

/// Fewer blocks tell neither how much they vary nor a chance that means anything.
const LEAST_BLOCKS: usize = 8;

/// The middle one, or the mean of the two in the middle; 0 of none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    median_of(&mut sorted)
}

fn median_of(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    match (values.len(), values.len() / 2) {
        (0, _) => 0.0,
        (length, middle) if length % 2 == 1 => values[middle],
        (_, middle) => values[middle - 1].midpoint(values[middle]),
    }
}

/// How far a difference may be off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
    /// How often so many resamples lie on the other side of nothing, both sides counted; of blocks, not
    /// less often than so many of them can tell.
    pub chance: f64,
    /// The smallest chance that so many samples can show, however far apart they are.
    pub least_chance: f64,
    /// How much the difference varies.
    pub deviation: f64,
}

impl Interval {
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    /// From differences that could as well have been measured.
    fn of(mut differences: Vec<f64>, least_chance: f64) -> Self {
        differences.sort_unstable_by(f64::total_cmp);
        let count = differences.len();
        let at = |part: f64| differences[((count - 1) as f64 * part).round() as usize];
        let mean = differences.iter().sum::<f64>() / count as f64;
        let squares: f64 = differences.iter().map(|it| (it - mean).powi(2)).sum();
        let deviation = (squares / (count - 1) as f64).sqrt();
        let tail = (1.0 - CONFIDENCE) / 2.0;
        let below = differences.iter().filter(|&&it| it <= 0.0).count() + 1;
        let above = differences.iter().filter(|&&it| it >= 0.0).count() + 1;
        let chance = (2.0 * below.min(above) as f64 / (count + 1) as f64).min(1.0);
        Self { low: at(tail), high: at(1.0 - tail), chance, least_chance, deviation }
    }
}

/// Numbers that look random and are the same each time (SplitMix64).
#[derive(Debug, Clone)]
struct Dice(u64);

impl Dice {
    const SEED: u64 = 0x6767_7072_6f66;

    /// A nearly normal number with a deviation of 1: so many even ones add up to it.
    fn normal(&mut self) -> f64 {
        const ADDED: usize = 12;
        const STEPS: usize = 1 << 24;
        let sum: f64 = (0..ADDED).map(|_| f64::from(self.below(STEPS)) + 0.5).sum();
        sum / STEPS as f64 - ADDED as f64 / 2.0
    }

    fn below(&mut self, bound: usize) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(mixed ^ (mixed >> 31)) * bound as u128) >> 64) as u32
    }
}

/// Draws of as many samples as there are, with repetition, for two sides. Drawn once and used for
/// every row of a comparison, so that rows stay comparable.
#[derive(Debug, Clone)]
pub struct Resamples {
    a: Vec<u32>,
    b: Vec<u32>,
    sizes: (usize, usize),
    /// The smallest chance that so many samples can have, however they are drawn.
    least_chance: f64,
}

impl Resamples {
    /// Each side is drawn for itself.
    pub fn of_sides(a: usize, b: usize) -> Self {
        let mut dice = Dice(Dice::SEED);
        let mut draw = |size: usize| (0..size * RESAMPLES).map(|_| dice.below(size)).collect();
        Self { a: draw(a), b: draw(b), sizes: (a, b), least_chance: least_p(a, b) }
    }

    /// The samples of the two sides belong together: the first with the first, and so on.
    pub fn of_pairs(pairs: usize) -> Self {
        let Self { a, sizes, .. } = Self::of_sides(pairs, 0);
        // All differences have the same sign.
        let least_chance = 2.0 * 0.5_f64.powi(pairs.min(1000) as i32);
        Self { b: a.clone(), a, sizes: (sizes.0, sizes.0), least_chance }
    }

    fn draws(&self) -> impl Iterator<Item = (&[u32], &[u32])> {
        let (a, b) = self.sizes;
        (0..RESAMPLES).map(move |at| (&self.a[at * a..][..a], &self.b[at * b..][..b]))
    }

    /// Of the difference of medians, `b` less `a`. `None` with fewer than two samples on a side.
    pub fn of_medians(&self, a: &[f64], b: &[f64]) -> Option<Interval> {
        if a.len().min(b.len()) < 2 {
            return None;
        }
        let mut drawn = Vec::new();
        let mut median_of_drawn = |values: &[f64], draw: &[u32]| {
            drawn.clear();
            drawn.extend(draw.iter().map(|&at| values[at as usize]));
            median_of(&mut drawn)
        };
        let difference = |(of_a, of_b)| -median_of_drawn(a, of_a) + median_of_drawn(b, of_b);
        let interval = Interval::of(self.draws().map(difference).collect(), self.least_chance);
        Some(Interval { deviation: seen::deviation_of_medians(a, b), ..interval })
    }

    /// Of the difference of two rates, each an amount of all blocks over the units of all blocks.
    /// `None` with too few blocks on a side.
    pub fn of_rates(&self, a: &[(f64, f64)], b: &[(f64, f64)]) -> Option<Interval> {
        if a.len().min(b.len()) < LEAST_BLOCKS {
            return None;
        }
        let rate = |blocks: &[(f64, f64)], draw: &[u32]| {
            let sum = draw.iter().fold((0.0, 0.0), |(amount, units), &at| {
                let block = blocks[at as usize];
                (amount + block.0, units + block.1)
            });
            if sum.1 > 0.0 { sum.0 / sum.1 } else { 0.0 }
        };
        let differences = self.draws().map(|(of_a, of_b)| rate(b, of_b) - rate(a, of_a));
        let interval = Interval::of(differences.collect(), self.least_chance);
        Some(Interval { chance: interval.chance.max(self.least_chance), ..interval })
    }
}

/// How likely it is that the samples of two sides with the same distribution differ in rank as much
/// as these or more (Mann and Whitney, two-sided). 1 if a side has none.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 1.0;
    }
    let ranks = doubled_ranks(a, b);
    let of_a: u64 = ranks[..a.len()].iter().sum();
    match ranks.len() <= MOST_EXACT {
        true => exact(&ranks, a.len(), of_a),
        false => normal(&ranks, a.len(), of_a),
    }
}

/// The smallest answer that [`mann_whitney`] can give for so many samples.
pub fn least_p(a: usize, b: usize) -> f64 {
    let choices =
        (1..=a.min(b)).fold(1.0, |product: f64, at| product * (a.max(b) + at) as f64 / at as f64);
    (2.0 / choices).min(1.0)
}

/// Twice the rank of each sample, the same for equal ones: whole numbers.
fn doubled_ranks(a: &[f64], b: &[f64]) -> Vec<u64> {
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&one, &other| all[one].total_cmp(&all[other]));
    let mut ranks = vec![0; all.len()];
    let mut before = 0;
    for equal in order.chunk_by(|&one, &other| all[one] == all[other]) {
        let doubled = 2 * before + equal.len() + 1;
        equal.iter().for_each(|&at| ranks[at] = doubled as u64);
        before += equal.len();
    }
    ranks
}

/// The ways to choose so many of the ranks, by their sum.
fn distribution(ranks: &[u64], chosen: usize) -> Vec<f64> {
    let width = ranks.iter().sum::<u64>() as usize + 1;
    let mut ways = vec![0.0_f64; (chosen + 1) * width];
    ways[0] = 1.0;
    for &rank in ranks {
        for count in (1..=chosen).rev() {
            for at in (rank as usize..width).rev() {
                ways[count * width + at] += ways[(count - 1) * width + at - rank as usize];
            }
        }
    }
    ways.split_off(chosen * width)
}

/// From the ways that are as far from the middle.
fn exact(ranks: &[u64], chosen: usize, sum: u64) -> f64 {
    let most: u64 = ranks.iter().sum();
    let of_all = distribution(ranks, chosen);
    let all: f64 = of_all.iter().sum();
    // The middle of the distribution, doubled once more so that it is a whole number.
    let middle = most * chosen as u64 * 2 / ranks.len() as u64;
    let distance = (2 * sum).abs_diff(middle);
    let is_as_far = |at: usize| (2 * at as u64).abs_diff(middle) >= distance;
    let as_far: f64 = (0..of_all.len()).filter(|&at| is_as_far(at)).map(|at| of_all[at]).sum();
    (as_far / all).min(1.0)
}

fn normal(ranks: &[u64], chosen: usize, sum: u64) -> f64 {
    let (n, a) = (ranks.len() as f64, chosen as f64);
    let mean = ranks.iter().sum::<u64>() as f64 / n;
    let squares: f64 = ranks.iter().map(|&rank| (rank as f64 - mean).powi(2)).sum();
    let variance = a * (n - a) / (n * (n - 1.0)) * squares;
    if variance == 0.0 {
        return 1.0;
    }
    // A step of the doubled ranks is two: half of it is taken off for the continuity.
    let away = ((sum as f64 - a * mean).abs() - 1.0).max(0.0) / variance.sqrt();
    (2.0 * upper_tail(away)).min(1.0)
}

/// The part of a normal distribution above so many deviations, exact to 1e-7 (the rational
/// approximation 26.2.17 of Abramowitz and Stegun's handbook).
fn upper_tail(deviations: f64) -> f64 {
    const COEFFICIENTS: [f64; 5] =
        [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let t = 1.0 / (1.0 + 0.231_641_9 * deviations);
    let series = COEFFICIENTS.iter().rev().fold(0.0, |sum, coefficient| (sum + coefficient) * t);
    let density = (-deviations * deviations / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    (density * series).clamp(0.0, 1.0)
}

/// What each chance means where so many were looked at (Benjamini and Hochberg): of all that are
/// called changes because theirs is below a limit, at most that part is expected to be none.
pub fn false_discovery_rates(chances: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_by(|&one, &other| chances[one].total_cmp(&chances[other]));
    let mut rates = vec![1.0; chances.len()];
    let mut lowest = 1.0_f64;
    for (place, &at) in order.iter().enumerate().rev() {
        lowest = lowest.min(chances[at] * chances.len() as f64 / (place + 1) as f64);
        rates[at] = lowest;
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is_near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 5e-4, "{found} instead of {expected}");
    }

    #[test]
    fn medians() {
        for (values, expected) in
            [(&[][..], 0.0), (&[3.0], 3.0), (&[5.0, 1.0], 3.0), (&[9.0, 1.0, 2.0], 2.0)]
        {
            assert_eq!(median(values), expected);
        }
    }

    /// From published tables of the exact distribution.
    #[test]
    fn ranks_of_small_samples() {
        let up =
            |from: u32, count: u32| -> Vec<f64> { (from..from + count).map(f64::from).collect() };
        for (n, least) in [(3, 0.1), (4, 2.0 / 70.0), (5, 2.0 / 252.0), (6, 2.0 / 924.0)] {
            is_near(mann_whitney(&up(1, n), &up(100, n)), least);
            is_near(least_p(n as usize, n as usize), least);
        }
        is_near(least_p(3, 5), 2.0 / 56.0);
        // One pair out of order: U = 1 of 5 against 5.
        let a = [1.0, 2.0, 3.0, 4.0, 6.0];
        let b = [5.0, 7.0, 8.0, 9.0, 10.0];
        is_near(mann_whitney(&a, &b), 4.0 / 252.0);
        is_near(mann_whitney(&b, &a), 4.0 / 252.0);
        assert_eq!(mann_whitney(&[1.0, 1.0], &[1.0, 1.0]), 1.0);
        assert_eq!(mann_whitney(&[], &[1.0]), 1.0);
        // Three of six values are equal, so more choices are as far from the middle.
        is_near(mann_whitney(&[1.0, 2.0, 2.0], &[2.0, 3.0, 4.0]), 0.3);
    }

    #[test]
    fn many_samples_are_nearly_normal() {
        let a: Vec<f64> = (0..30).map(f64::from).collect();
        let b: Vec<f64> = (0..30).map(|at| f64::from(at) + 6.5).collect();
        let ranks = doubled_ranks(&a, &b);
        let sum = ranks[..30].iter().sum();
        assert!((exact(&ranks, 30, sum) - normal(&ranks, 30, sum)).abs() < 1e-3);
        is_near(upper_tail(1.96), 0.025);
        is_near(upper_tail(0.0), 0.5);
    }

    #[test]
    fn rates_of_false_discoveries() {
        let rates = false_discovery_rates(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in rates.iter().zip([0.02, 0.04, 0.04, 0.02]) {
            is_near(*found, expected);
        }
        assert_eq!(false_discovery_rates(&[]), [0.0; 0]);
    }

    #[test]
    fn intervals_hold_the_difference_and_stay_the_same() {
        let a = [10.0, 11.0, 9.0, 10.5, 9.5];
        let b = [12.0, 13.0, 11.5, 12.5, 40.0];
        let interval = Resamples::of_sides(5, 5).of_medians(&a, &b).unwrap();
        assert!(interval.low < 2.5 && interval.high > 2.5, "{interval:?}");
        assert!(interval.excludes_zero() && interval.deviation > 0.0);
        assert_eq!(Resamples::of_sides(5, 5).of_medians(&a, &b), Some(interval));
        assert_eq!(Resamples::of_sides(1, 5).of_medians(&a[..1], &b), None);
    }

    /// However far apart they are, few blocks do not make a small chance.
    #[test]
    fn few_blocks_tell_little() {
        let blocks = |count: usize, ns: f64| vec![(ns, 1.0); count];
        let chance = |resamples: Resamples, count: usize| {
            let found = resamples.of_rates(&blocks(count, 1.0), &blocks(count, 9.0));
            found.map(|interval| interval.chance)
        };
        for few in [0, 1, 2, 7] {
            assert_eq!(chance(Resamples::of_pairs(few), few), None, "{few}");
            assert_eq!(chance(Resamples::of_sides(few, few), few), None, "{few}");
        }
        is_near(chance(Resamples::of_pairs(8), 8).unwrap(), 2.0 / 256.0);
        is_near(chance(Resamples::of_sides(8, 8), 8).unwrap(), 2.0 / 2001.0);
    }

    /// Blocks that become slower on both sides alike say more if they are taken in pairs.
    #[test]
    fn pairs_of_blocks_take_away_a_common_trend() {
        let blocks = |more: f64| -> Vec<(f64, f64)> {
            (0..16).map(|at| (100.0 + 10.0 * f64::from(at) + more, 1.0)).collect()
        };
        let (a, b) = (blocks(0.0), blocks(5.0));
        let apart = Resamples::of_sides(16, 16).of_rates(&a, &b).unwrap();
        let paired = Resamples::of_pairs(16).of_rates(&a, &b).unwrap();
        assert!(!apart.excludes_zero(), "{apart:?}");
        assert!(paired.excludes_zero() && (paired.low - 5.0).abs() < 1e-9, "{paired:?}");
    }
}
