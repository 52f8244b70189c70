//! A server's clock, brought to its client's by what cannot be otherwise: no server computes before it
//! was asked, and no client has a result before it was computed.
//!
//! Each such fact bounds the distance of the two clocks at one moment, from below or from above. Clocks
//! run apart evenly, so the distance is a line. All lines that keep all bounds are a polygon, if a line
//! is the point of its distances at the first and at the last moment. Its middle is taken, and the
//! distance to its farthest corner is how wrong that can be.

/// Crystals differ by some 100 millionths at most, and the kernel corrects a clock by up to 500.
const MOST_DRIFT: f64 = 1e-3;
/// Halvings of the slack that it takes to keep bounds that no line keeps.
const HALVINGS: usize = 60;

/// What one moment of the server says of the distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bound {
    /// By the server's clock.
    pub(super) at_ns: u64,
    /// The client's clock minus the server's.
    pub(super) ahead_ns: i64,
    pub(super) side: Side,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The distance is at least this: the server began after the client asked.
    AtLeast,
    /// At most this: the client had the result after the server ended.
    AtMost,
}

impl Bound {
    /// The server's moment came after the client's, or before it.
    pub(super) fn new(server_ns: u64, client_ns: u64, side: Side) -> Self {
        let ahead = i128::from(client_ns) - i128::from(server_ns);
        Self { at_ns: server_ns, ahead_ns: ahead.clamp(-FARTHEST, FARTHEST) as i64, side }
    }

    /// By how much a distance breaks it; negative where it keeps it.
    fn broken_by(&self, ahead_ns: i128) -> i128 {
        match self.side {
            Side::AtLeast => i128::from(self.ahead_ns) - ahead_ns,
            Side::AtMost => ahead_ns - i128::from(self.ahead_ns),
        }
    }
}

/// Further apart than clocks can be; numbers of damaged files must not overflow.
const FARTHEST: i128 = 1 << 62;

/// How a server's times become its client's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ClockLine {
    pub(super) origin_ns: u64,
    pub(super) ahead_ns: i64,
    pub(super) drift: f64,
}

impl ClockLine {
    pub(super) const SAME: ClockLine = ClockLine { origin_ns: 0, ahead_ns: 0, drift: 0.0 };

    /// The same for a client whose clock is further ahead.
    pub(super) fn after(self, more_ns: i64) -> Self {
        Self { ahead_ns: self.ahead_ns.saturating_add(more_ns), ..self }
    }

    pub(super) fn ahead_ns(&self, ns: u64) -> i128 {
        let since = i128::from(ns) - i128::from(self.origin_ns);
        i128::from(self.ahead_ns) + (since as f64 * self.drift).round() as i128
    }

    pub(super) fn ns(&self, ns: u64) -> u64 {
        let moved = i128::from(ns) + self.ahead_ns(ns);
        u64::try_from(moved).unwrap_or(if moved < 0 { 0 } else { u64::MAX })
    }

    /// How many bounds it breaks by more than the clocks' own error.
    pub(super) fn violations(&self, bounds: &[Bound], error_ns: u64) -> u64 {
        let breaks =
            |bound: &&Bound| bound.broken_by(self.ahead_ns(bound.at_ns)) > i128::from(error_ns);
        bounds.iter().filter(breaks).count() as u64
    }
}

/// The line in the middle of all that keep the bounds, and how far it can be from the true one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fit {
    pub(super) line: ClockLine,
    pub(super) error_ns: u64,
    /// By how much the bounds had to give way; 0 where a line keeps them all.
    pub(super) slack_ns: u64,
}

/// `None` unless there are bounds on both sides.
pub(super) fn fit(bounds: &[Bound]) -> Option<Fit> {
    let of = |side: Side| bounds.iter().find(|bound| bound.side == side);
    let (first, _) = (of(Side::AtLeast)?, of(Side::AtMost)?);
    let start_ns = bounds.iter().map(|bound| bound.at_ns).min()?;
    let end_ns = bounds.iter().map(|bound| bound.at_ns).max()?;
    let span = Span { start_ns, ns: (end_ns - start_ns).max(1) as f64, base_ns: first.ahead_ns };
    let planes: Vec<HalfPlane> = bounds.iter().map(|bound| span.half_plane(bound)).collect();
    let farthest = planes.iter().map(|plane| plane.value.abs()).fold(1.0, f64::max);
    let corners = |slack: f64| span.lines(&planes, farthest, slack);
    let mut kept = corners(0.0);
    let mut slack = 0.0;
    if kept.is_empty() {
        // All bounds meet if each gives way by so much.
        let (mut low, mut high) = (0.0, 2.0 * farthest + 1.0);
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            let found = corners(middle);
            match found.is_empty() {
                true => low = middle,
                false => (high, kept) = (middle, found),
            }
        }
        slack = high;
    }
    (!kept.is_empty()).then(|| span.middle(&kept, slack))
}

/// The moments and distances that bounds are counted from.
struct Span {
    start_ns: u64,
    ns: f64,
    base_ns: i64,
}

/// Lines on one side of a bound: with the distances `x` at the first and `y` at the last moment,
/// `(1 - along) * x + along * y` is at least the value (times the sign).
#[derive(Clone, Copy)]
struct HalfPlane {
    along: f64,
    value: f64,
    sign: f64,
}

impl HalfPlane {
    /// Not negative for lines that keep the bound.
    fn room(&self, (x, y): (f64, f64), slack: f64) -> f64 {
        self.sign * ((1.0 - self.along) * x + self.along * y - self.value) + slack
    }
}

impl Span {
    fn half_plane(&self, bound: &Bound) -> HalfPlane {
        HalfPlane {
            along: (bound.at_ns - self.start_ns) as f64 / self.ns,
            value: (i128::from(bound.ahead_ns) - i128::from(self.base_ns)) as f64,
            sign: if bound.side == Side::AtLeast { 1.0 } else { -1.0 },
        }
    }

    /// The corners of the polygon of all lines that keep the bounds and drift no more than clocks do.
    fn lines(&self, planes: &[HalfPlane], farthest: f64, slack: f64) -> Vec<(f64, f64)> {
        let drift = MOST_DRIFT * self.ns;
        let far = 2.0 * (farthest + slack) + drift;
        let mut corners =
            vec![(-far, -far - drift), (far, far - drift), (far, far + drift), (-far, drift - far)];
        for plane in planes {
            corners = clipped(&corners, |corner| plane.room(corner, slack));
            if corners.is_empty() {
                break;
            }
        }
        corners
    }

    fn middle(&self, corners: &[(f64, f64)], slack: f64) -> Fit {
        let count = corners.len() as f64;
        let sum = corners.iter().fold((0.0, 0.0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        let (x, y) = (sum.0 / count, sum.1 / count);
        let distance = |corner: &(f64, f64)| (corner.0 - x).abs().max((corner.1 - y).abs());
        let error = corners.iter().map(distance).fold(0.0, f64::max) + slack;
        let line = ClockLine {
            origin_ns: self.start_ns,
            ahead_ns: self.base_ns.saturating_add(x.round() as i64),
            drift: (y - x) / self.ns,
        };
        // Rounding takes less than a nanosecond at each end.
        Fit { line, error_ns: error.ceil() as u64 + 1, slack_ns: slack.ceil() as u64 }
    }
}

/// The part of a polygon where there is room.
fn clipped(corners: &[(f64, f64)], room: impl Fn((f64, f64)) -> f64) -> Vec<(f64, f64)> {
    let mut kept = Vec::with_capacity(corners.len() + 1);
    for (at, &corner) in corners.iter().enumerate() {
        let next = corners[(at + 1) % corners.len()];
        let (here, there) = (room(corner), room(next));
        if here >= 0.0 {
            kept.push(corner);
        }
        if (here < 0.0) != (there < 0.0) {
            let part = here / (here - there);
            kept.push((
                corner.0 + part * (next.0 - corner.0),
                corner.1 + part * (next.1 - corner.1),
            ));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server whose clock is so far behind, seen through exchanges that take from 20 to 90 µs each
    /// way.
    fn exchanges(ahead_ns: i64, drift: f64, count: u64) -> Vec<Bound> {
        let mut bounds = Vec::new();
        for at in 0..count {
            let server = 5_000_000_000 + at * 10_000_000;
            let truly = |server: u64| {
                let ahead = ahead_ns + ((server - 5_000_000_000) as f64 * drift) as i64;
                server.wrapping_add_signed(ahead)
            };
            let (there, back) = (20_000 + at * 7919 % 70_000, 20_000 + at * 104_729 % 70_000);
            bounds.push(Bound::new(server, truly(server) - there, Side::AtLeast));
            let end = server + 4_000_000;
            bounds.push(Bound::new(end, truly(end) + back, Side::AtMost));
        }
        bounds
    }

    #[test]
    fn distance_and_drift_are_found_within_the_bound() {
        for (ahead_ns, drift) in
            [(3_000_000_000, 50e-6), (-3_000_000_000, -50e-6), (0, 0.0), (77, 3e-4)]
        {
            let bounds = exchanges(ahead_ns, drift, 300);
            let fit = fit(&bounds).unwrap();
            assert_eq!(fit.slack_ns, 0);
            assert!(fit.error_ns < 60_000, "{fit:?}");
            assert_eq!(fit.line.violations(&bounds, 1), 0);
            for at_ns in [5_000_000_000, 6_500_000_000, 8_000_000_000] {
                let truly = ahead_ns + ((at_ns - 5_000_000_000) as f64 * drift) as i64;
                let off = (fit.line.ahead_ns(at_ns) - i128::from(truly)).unsigned_abs();
                assert!(off <= u128::from(fit.error_ns), "{off} {fit:?}");
            }
        }
    }

    #[test]
    fn bounds_of_one_side_say_nothing() {
        let mut bounds = exchanges(0, 0.0, 5);
        bounds.retain(|bound| bound.side == Side::AtLeast);
        assert_eq!(fit(&bounds), None);
        assert_eq!(fit(&[]), None);
    }

    #[test]
    fn what_no_clock_does_is_counted_and_widens_the_bound() {
        let mut bounds = exchanges(0, 0.0, 100);
        bounds.push(Bound::new(5_400_000_000, 5_401_000_000, Side::AtLeast));
        let fit = fit(&bounds).unwrap();
        assert!(fit.slack_ns > 400_000 && fit.error_ns > fit.slack_ns, "{fit:?}");
        assert!(fit.line.violations(&bounds, 1) > 0);
    }

    #[test]
    fn numbers_of_damaged_files_do_no_harm() {
        let wild = [
            Bound::new(0, u64::MAX, Side::AtLeast),
            Bound::new(u64::MAX, 0, Side::AtMost),
            Bound::new(7, 7, Side::AtMost),
        ];
        let found = fit(&wild).unwrap();
        assert!(found.line.ns(u64::MAX) >= found.line.ns(0) || found.line.drift.abs() > 0.0);
    }
}
