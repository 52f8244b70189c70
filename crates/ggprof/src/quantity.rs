//! Times, sizes and ranges as people write them: `30s`, `200MB`, `10..20`.

use std::time::Duration;

pub(crate) fn time(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 6] =
        [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("m", 60.0), ("h", 3600.0)];
    let seconds = with_unit(text, &UNITS).ok_or("write it like 500ms, 30s, 2min or 1h")?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "that is too long".to_owned())
}

/// A time in which something can happen.
pub(crate) fn some_time(text: &str) -> Result<Duration, String> {
    match time(text)? {
        Duration::ZERO => Err("nothing would be recorded in no time".to_owned()),
        time => Ok(time),
    }
}

/// A part of something, from 0 to 100.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "write a number, such as 1 or 0.5")?;
    match (0.0..=100.0).contains(&number) {
        true => Ok(number),
        false => Err("percent of the program's time are from 0 to 100".to_owned()),
    }
}

pub(crate) fn count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "write a whole number, or 0 for all".to_owned())
}

/// How many of something that there must be.
pub(crate) fn some<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    let number = text.parse().ok().filter(|&number: &u64| number > 0);
    let number = number.and_then(|number| N::try_from(number).ok());
    number.ok_or_else(|| "write a whole number from 1 on".to_owned())
}

/// A moment of a recording, as people say when it was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Moment {
    SinceStart(Duration),
    /// Of some day.
    Clock(jiff::civil::Time),
    /// Where the user is.
    Date(jiff::civil::DateTime),
    Instant(jiff::Timestamp),
}

pub(crate) fn moment(text: &str) -> Result<Moment, String> {
    if text.contains('-') {
        let instant = text.parse().map(Moment::Instant);
        let date = || text.parse().map(Moment::Date);
        let words = "write a date like 2026-11-16T00:00:01, or 2026-11-16 for its beginning";
        return instant.or_else(|_| date()).map_err(|_| words.to_owned());
    }
    if text.contains(':') {
        let time = text.parse().map(Moment::Clock);
        return time.map_err(|_| "write a clock time like 14:03 or 14:03:27.5".to_owned());
    }
    let words = "write it like 14:03:27, or 90s after the start";
    time(text).map(Moment::SinceStart).map_err(|_| words.to_owned())
}

pub(crate) fn day(text: &str) -> Result<jiff::civil::Date, String> {
    text.parse().map_err(|_| "write a day like 2026-08-22".to_owned())
}

/// When a day begins where the user is, in nanoseconds since 1970.
pub(crate) fn start_of(day: jiff::civil::Date) -> Option<u64> {
    let start = day.to_zoned(jiff::tz::TimeZone::system()).ok()?;
    u64::try_from(start.timestamp().as_nanosecond()).ok()
}

/// Something that a snapshot is written of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Event {
    GapLongerThan(Duration),
    RunLongerThan(Duration),
    /// Tokens a second.
    GenerationBelow(f64),
}

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Event::GapLongerThan(time) => write!(f, "gap>{time:?}"),
            Event::RunLongerThan(time) => write!(f, "run>{time:?}"),
            Event::GenerationBelow(speed) => write!(f, "tg<{speed}"),
        }
    }
}

pub(crate) fn event(text: &str) -> Result<Event, String> {
    let words = "write it like gap>500ms, run>2s or tg<10";
    let (what, limit) = text.split_once(['<', '>']).ok_or(words)?;
    let sign = text[what.len()..].chars().next();
    match (what.trim(), sign) {
        ("gap", Some('>')) => time(limit.trim()).map(Event::GapLongerThan),
        ("run", Some('>')) => time(limit.trim()).map(Event::RunLongerThan),
        ("tg", Some('<')) => {
            let speed = limit.trim().parse().ok().filter(|speed: &f64| *speed > 0.0);
            speed.map(Event::GenerationBelow).ok_or_else(|| words.to_owned())
        }
        _ => Err(words.to_owned()),
    }
}

/// Bytes; the smallest that a recording can be limited to is 4 MiB.
pub(crate) fn recording_size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 8] = [
        ("b", 1.0),
        ("kb", 1e3),
        ("kib", 1024.0),
        ("mb", 1e6),
        ("mib", 1_048_576.0),
        ("gb", 1e9),
        ("gib", 1_073_741_824.0),
        ("tb", 1e12),
    ];
    const LEAST: f64 = 4.0 * 1_048_576.0;
    let bytes = with_unit(&text.to_lowercase(), &UNITS).ok_or("write it like 200MB or 1GiB")?;
    if bytes < LEAST {
        return Err(format!(
            "that is {bytes:.0} bytes, and descriptions of ops alone need more: give it at least 4MiB, \
             which is {LEAST:.0}"
        ));
    }
    Ok(bytes as u64)
}

/// Graph runs, counted from 1; both ends belong to the range, and either can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Graphs {
    pub(crate) first: u64,
    pub(crate) last: Option<u64>,
}

pub(crate) fn graphs(text: &str) -> Result<Graphs, String> {
    let range = || {
        let (first, last) = text.split_once("..")?;
        let first = if first.is_empty() { 1 } else { first.parse().ok()? };
        let last = if last.is_empty() { None } else { Some(last.parse().ok()?) };
        Some(Graphs { first, last })
    };
    match range().ok_or("write it like 100..200, 100.. or ..200")? {
        Graphs { first: 0, .. } | Graphs { last: Some(0), .. } => {
            Err("graph runs are counted from 1: the first is 1..1".to_owned())
        }
        Graphs { first, last: Some(last) } if last < first => {
            Err(format!("{last} is before {first}, so there is nothing between them"))
        }
        graphs => Ok(graphs),
    }
}

/// A number with one of the units; a number alone counts in the unit of factor 1.
fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    let factor = match unit {
        "" => 1.0,
        unit => units.iter().find(|(name, _)| *name == unit)?.1,
    };
    let number: f64 = digits.trim_end().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, ms) in
            [("30s", 30_000), ("500ms", 500), ("2min", 120_000), ("1.5 h", 5_400_000), ("7", 7_000)]
        {
            assert_eq!(time(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "-1s", "1 week", "1e400s", "nans", "1e30h"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn moments() {
        let date = |day, hour, minute, second| {
            Moment::Date(jiff::civil::date(2026, 11, day).at(hour, minute, second, 0))
        };
        for (text, meant) in [
            ("90s", Moment::SinceStart(Duration::from_secs(90))),
            ("14:03", Moment::Clock(jiff::civil::time(14, 3, 0, 0))),
            ("14:03:27.5", Moment::Clock(jiff::civil::time(14, 3, 27, 500_000_000))),
            ("2026-11-16T00:00:01", date(16, 0, 0, 1)),
            ("2026-11-16 23:59", date(16, 23, 59, 0)),
            ("2026-11-18", date(18, 0, 0, 0)),
            ("1970-01-01T00:00:07Z", Moment::Instant(jiff::Timestamp::new(7, 0).unwrap())),
        ] {
            assert_eq!(moment(text), Ok(meant), "{text}");
        }
        for text in ["", "14:", "25:00", "2026-13-01", "2026-11-16T", "-5s", "14:03-02:00"] {
            assert!(moment(text).is_err(), "{text}");
        }
    }

    #[test]
    fn days() {
        let (one, next) = (day("2026-08-22").unwrap(), day("2026-08-23").unwrap());
        assert!(start_of(one) < start_of(next) && start_of(one) > Some(1_780_000_000_000_000_000));
        assert!(["", "22.8.2026", "2026-13-01", "yesterday"].iter().all(|text| day(text).is_err()));
    }

    #[test]
    fn percents_and_times_that_are_some() {
        assert_eq!((percent("0"), percent("2.5"), percent("100")), (Ok(0.0), Ok(2.5), Ok(100.0)));
        for text in ["", "-1", "101", "nan", "inf", "1%"] {
            assert!(percent(text).is_err(), "{text}");
        }
        assert!(some_time("1us").is_ok() && some_time("0s").is_err() && some_time("x").is_err());
    }

    #[test]
    fn numbers_of_what_there_must_be() {
        assert_eq!((some("1"), some("4294967295")), (Ok(1_u32), Ok(u32::MAX)));
        for text in ["", "0", "-1", "2.5", "ten", "4294967296"] {
            assert!(some::<u32>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("200MB", 200_000_000),
            ("1GiB", 1 << 30),
            ("4194304", 4 << 20),
            ("8 mib", 8 << 20),
            ("1.5gb", 1_500_000_000),
        ] {
            assert_eq!(recording_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "MB", "1MB", "-5GB", "10 pages"] {
            assert!(recording_size(text).is_err(), "{text}");
        }
        assert!(recording_size("4MB").is_err_and(|why| why.contains("that is 4000000 bytes")));
    }

    #[test]
    fn events() {
        let ms = Duration::from_millis;
        for (text, meant) in [
            ("gap>500ms", Event::GapLongerThan(ms(500))),
            ("run > 2s", Event::RunLongerThan(ms(2000))),
            ("tg<10", Event::GenerationBelow(10.0)),
        ] {
            assert_eq!(event(text), Ok(meant), "{text}");
        }
        for text in ["", "gap", "gap<500ms", "tg>10", "tg<fast", "tg<-1", "tg<nan", "gap>"] {
            assert!(event(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ranges_of_graphs() {
        for (text, first, last) in
            [("10..20", 10, Some(20)), ("10..", 10, None), ("..20", 1, Some(20)), ("..", 1, None)]
        {
            assert_eq!(graphs(text), Ok(Graphs { first, last }), "{text}");
        }
        for (text, word) in [
            ("", "write it like"),
            ("10", "write it like"),
            ("a..b", "write it like"),
            ("-1..3", "write it like"),
            ("20..10", "before"),
            ("0..1", "counted from 1"),
            ("..0", "counted from 1"),
        ] {
            assert!(graphs(text).is_err_and(|why| why.contains(word)), "{text}");
        }
    }
}
