//! How much slower or faster a recording was as a whole. On a busy machine all ops of a recording take
//! longer together: another program uses the memory or the other half of a core, the clock is lower.
//! That is no change of an op, and would hide those that are.

use crate::statistics::{least_p, mann_whitney, median};

/// From fewer ops it cannot be told what happened to all of them.
const LEAST_OPS: usize = 5;

/// Sides that are further apart are not the same ops under noise, but others.
const MOST_APART: f64 = 0.1;

/// If chance makes the factors of the two sides differ as much more rarely than this, they are taken for a
/// change: of most ops, maybe not of all. Divided by it, those would look improved that are as they were.
/// Less would let more of such changes pass for noise; more would keep more noise in the rows.
const LEAST_CHANCE: f64 = 0.1;

/// For each recording of both sides, how many times as long its ops took as usual. `ops` has for each
/// op that both sides have what it took in each recording, those of the first side before those of
/// the second. `None` if that cannot be told, or the sides differ in it by more than noise does.
///
/// The factors do not depend on which recording is of which side. So chance makes sides different
/// that are divided by them as rarely as others.
pub(super) fn factors(ops: &[Vec<f64>], (a, b): (usize, usize)) -> Option<Vec<f64>> {
    if ops.len() < LEAST_OPS || least_p(a, b) > LEAST_CHANCE {
        return None;
    }
    let usual: Vec<f64> = ops.iter().map(|of_op| median(of_op)).collect();
    let factor = |recording: usize| {
        let ratios: Vec<f64> = ops
            .iter()
            .zip(&usual)
            .filter(|(_, usual)| **usual > 0.0)
            .map(|(of_op, usual)| of_op[recording] / usual)
            .collect();
        median(&ratios)
    };
    let factors: Vec<f64> = (0..a + b).map(factor).collect();
    let (of_a, of_b) = factors.split_at(a);
    let apart = median(of_b) / median(of_a) - 1.0;
    let is_noise = apart.abs() <= MOST_APART && mann_whitney(of_a, of_b) > LEAST_CHANCE;
    (factors.iter().all(|&factor| factor > 0.0) && is_noise).then_some(factors)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Six ops in three recordings a side, the first op slower on the second side.
    fn ops(slow: [f64; 6], first: f64) -> Vec<Vec<f64>> {
        let op = |ns: f64, more: f64| -> Vec<f64> {
            let of_b = |at: usize| if at >= 3 { more } else { 1.0 };
            slow.iter().enumerate().map(|(at, slow)| ns * slow * of_b(at)).collect()
        };
        [op(100.0, first)].into_iter().chain((1..6).map(|at| op(f64::from(at), 1.0))).collect()
    }

    #[test]
    fn what_all_ops_have_in_common() {
        let slow = [1.0, 1.5, 0.9, 1.0, 1.4, 1.0];
        let factors = factors(&ops(slow, 1.05), (3, 3)).unwrap();
        let each: Vec<f64> = factors.iter().map(|it| it / factors[0]).collect();
        slow.iter().zip(&each).for_each(|(slow, found)| assert!((slow - found).abs() < 1e-9));
    }

    #[test]
    fn sides_that_are_apart_and_too_little_stay_as_they_are() {
        let apart = ops([1.0, 1.1, 1.2, 1.15, 1.25, 1.3], 1.0);
        // By little, but each recording of one side.
        let little = ops([1.0, 1.01, 1.02, 1.03, 1.04, 1.05], 1.0);
        let steady = ops([1.0; 6], 1.05);
        assert!(factors(&steady, (3, 3)).is_some());
        for (ops, sizes) in [
            (&apart[..], (3, 3)),
            (&little, (3, 3)),
            (&steady[..4], (3, 3)),
            (&steady, (2, 2)),
            (&steady, (1, 1)),
        ] {
            assert_eq!(factors(ops, sizes), None, "{ops:?}");
        }
    }
}
