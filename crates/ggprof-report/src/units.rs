//! Numbers as people read them: three significant digits and a unit.

/// `870 ns`, `12.3 µs`, `1.24 ms`, `2.05 s`.
pub fn duration(ns: f64) -> String {
    scaled(ns, 1e3, &["ns", "µs", "ms", "s"])
}

/// `512 B`, `1.5 KB`, `84 MB`: powers of ten, as in GB/s.
pub fn bytes(bytes: f64) -> String {
    scaled(bytes, 1e3, &["B", "KB", "MB", "GB", "TB", "PB"])
}

/// From bytes per nanosecond: `3.1 GB/s`.
pub fn bandwidth(gigabytes_per_second: f64) -> String {
    scaled(gigabytes_per_second * 1e9, 1e3, &["B/s", "KB/s", "MB/s", "GB/s", "TB/s", "PB/s"])
}

/// From operations per nanosecond: `410 GFLOP/s`.
pub fn compute(gigaflops: f64) -> String {
    let units = ["FLOP/s", "KFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"];
    scaled(gigaflops * 1e9, 1e3, &units)
}

/// The same of whole numbers: `1.98 POP/s`.
pub fn integer_compute(gigaops: f64) -> String {
    scaled(gigaops * 1e9, 1e3, &["OP/s", "KOP/s", "MOP/s", "GOP/s", "TOP/s", "POP/s"])
}

/// From nanoseconds: `4.28 ns/B`, `310 ps/B`.
pub fn time_per_byte(ns_per_byte: f64) -> String {
    scaled(ns_per_byte * 1e3, 1e3, &["ps/B", "ns/B", "µs/B", "ms/B", "s/B"])
}

/// `41,600 t/s`, `4.12 t/s`.
pub fn token_rate(tokens_per_second: f64) -> String {
    if tokens_per_second >= 1000.0 {
        format!("{} t/s", count(tokens_per_second.round() as u128))
    } else {
        format!("{} t/s", significant(tokens_per_second))
    }
}

/// `14:03:27.250`, where the reader is.
pub fn clock(unix_ns: u64) -> String {
    local(unix_ns, "%H:%M:%S%.3f")
}

/// `2026-11-15 14:03:27.250`.
pub fn moment(unix_ns: u64) -> String {
    local(unix_ns, "%Y-%m-%d %H:%M:%S%.3f")
}

/// Whether two moments are on one day, where the reader is.
pub fn is_same_day(one_unix_ns: u64, other_unix_ns: u64) -> bool {
    local(one_unix_ns, "%Y-%m-%d") == local(other_unix_ns, "%Y-%m-%d")
}

/// `2026-11-15 14:03:27`.
pub fn date(unix_ns: u64) -> String {
    local(unix_ns, "%Y-%m-%d %H:%M:%S")
}

fn local(unix_ns: u64, format: &str) -> String {
    let moment = jiff::Timestamp::from_nanosecond(unix_ns.into());
    let zone = jiff::tz::TimeZone::system();
    moment.map_or_else(|_| String::new(), |it| it.to_zoned(zone).strftime(format).to_string())
}

/// `1.98 GHz`.
pub fn frequency(hertz: f64) -> String {
    scaled(hertz, 1e3, &["Hz", "kHz", "MHz", "GHz"])
}

/// `312 W`.
pub fn power(watts: f64) -> String {
    scaled(watts * 1e3, 1e3, &["mW", "W", "kW"])
}

/// `45.2 J`, `310 mJ`.
pub fn energy(joules: f64) -> String {
    scaled(joules * 1e6, 1e3, &["µJ", "mJ", "J", "kJ", "MJ"])
}

/// `12.5%` of a fraction.
pub fn share(fraction: f64) -> String {
    format!("{:.1}%", fraction * 100.0)
}

/// `+12.3 µs`, `-2%`; nothing has no sign.
pub fn signed(number: f64, text: impl Fn(f64) -> String) -> String {
    let text = text(number);
    let is_nothing = !text.contains(|c: char| ('1'..='9').contains(&c));
    match (is_nothing, number > 0.0) {
        (true, _) => text.trim_start_matches('-').to_owned(),
        (false, true) => format!("+{text}"),
        (false, false) => text,
    }
}

/// `32`, `0.5`, `1,024`; `0.0039` of what happens once in many tokens.
pub fn times(number: f64) -> String {
    match number {
        n if n >= 999.5 || n.fract() == 0.0 => count(n.round().max(0.0) as u128),
        n if n > 0.0 && n < 0.01 => {
            let text = format!("{n:.*}", 1 + (-n.log10().floor()) as usize);
            text.trim_end_matches('0').to_owned()
        }
        n => significant(n),
    }
}

/// `69,228`.
pub fn count(number: u128) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The number in the largest unit that leaves it at least 1.
fn scaled(mut number: f64, step: f64, units: &[&str]) -> String {
    let mut unit = 0;
    // 999.5 would be rounded to four digits.
    while number.abs() >= step - 0.5 && unit + 1 < units.len() {
        number /= step;
        unit += 1;
    }
    format!("{} {}", significant(number), units[unit])
}

/// Three significant digits, without trailing zeros after the point.
fn significant(number: f64) -> String {
    let decimals = match number.abs() {
        n if n >= 99.95 => 0,
        n if n >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{number:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect_file;

    /// The page has words of its own for numbers (`viewer/data/units.js`); a test of it reads this table.
    #[test]
    fn the_page_says_the_same() {
        type Words = fn(f64) -> String;
        let units: [(&str, Words); 8] = [
            ("duration", duration),
            ("bytes", bytes),
            ("bandwidth", bandwidth),
            ("compute", compute),
            ("tokenRate", token_rate),
            ("frequency", frequency),
            ("power", power),
            ("percent", share),
        ];
        // The second half of them lies between two roundings, or nearly.
        let numbers = [
            0.0, 0.000_4, 0.3, 1.0, 7.0, 42.0, 870.4, 1_000.0, 12_345.0, 41_600.4, 1.24e6,
            84_017e3, 2.05e9, 7.2e12, 0.001_225, 0.005, 0.125, 0.375, 1.005, 9.994, 9.996, 12.25,
            12.35, 12.75, 99.94, 99.96, 999.4, 999.5, 999.6, 12_250.0, 12_350.0, 999_500.0,
        ];
        let mut table = String::new();
        for (unit, words) in units {
            for number in numbers {
                table += &format!("{unit}\t{number}\t{}\n", words(number));
            }
        }
        expect_file!["../../../viewer/test/units.tsv"].assert_eq(&table);
    }

    #[test]
    fn signs_and_fractions() {
        for (ns, expected) in [(12_300.0, "+12.3 µs"), (-5.0, "-5 ns"), (-0.001, "0 ns")] {
            assert_eq!(signed(ns, duration), expected);
        }
        assert_eq!(signed(-0.0204, share), "-2.0%");
        assert_eq!([times(32.0), times(0.5), times(1024.2)], ["32", "0.5", "1,024"]);
        assert_eq!([times(0.0), times(2.0 / 512.0), times(1e-6)], ["0", "0.0039", "0.000001"]);
    }

    #[test]
    fn three_digits_and_a_unit() {
        for (ns, expected) in [
            (0.0, "0 ns"),
            (7.0, "7 ns"),
            (870.4, "870 ns"),
            (999.6, "1 µs"),
            (12_345.0, "12.3 µs"),
            (1_240_000.0, "1.24 ms"),
            (99_960_000.0, "100 ms"),
            (2_050_000_000.0, "2.05 s"),
            (7_200e9, "7200 s"),
        ] {
            assert_eq!(duration(ns), expected);
        }
        assert_eq!(bandwidth(3.1), "3.1 GB/s");
        assert_eq!(bandwidth(2490.0), "2.49 TB/s");
        assert_eq!(bandwidth(0.0004), "400 KB/s");
        assert_eq!(compute(410.2), "410 GFLOP/s");
        assert_eq!(time_per_byte(0.0017), "1.7 ps/B");
        assert_eq!(time_per_byte(4.281), "4.28 ns/B");
        assert_eq!(bytes(84_017_000.0), "84 MB");
        assert_eq!(token_rate(41_600.4), "41,600 t/s");
        assert_eq!(token_rate(4.123), "4.12 t/s");
        assert_eq!(share(0.12345), "12.3%");
        assert_eq!(frequency(1.98e9), "1.98 GHz");
        assert_eq!(power(312.4), "312 W");
        assert_eq!(energy(0.0312), "31.2 mJ");
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(69_228), "69,228");
        assert_eq!(count(1_000_000), "1,000,000");
    }
}
