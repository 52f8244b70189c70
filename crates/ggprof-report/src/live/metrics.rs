//! Counters as OpenMetrics text. Times of tokens have OpenTelemetry's names for generative AI, as
//! Prometheus spells them. Labels are few, and come from ggml and not from what users wrote.

use super::{dropped_key, quantity};
use ggprof_analysis::live::{Counters, Histogram, OfBackend, Reading};
use std::collections::BTreeMap;
use std::fmt::Write;

pub fn open_metrics(counters: &Counters, readings: &[Reading]) -> String {
    let mut out = String::new();
    histogram(
        &mut out,
        "gen_ai_server_time_to_first_token_seconds",
        "Time from the first batch of a prompt to its first token; waiting in a queue before is not seen.",
        &counters.first_token,
    );
    histogram(
        &mut out,
        "gen_ai_server_time_per_output_token_seconds",
        "Time from one token of a sequence to the next.",
        &counters.between_tokens,
    );
    let tokens = [("prompt", counters.prompt_tokens), ("generation", counters.generated_tokens)];
    let tokens = tokens.map(|(kind, count)| (label("kind", kind), count as f64));
    counter(&mut out, "ggprof_tokens_total", "Tokens that were computed.", &tokens);
    let runs = [(String::new(), counters.graph_runs as f64)];
    counter(&mut out, "ggprof_graph_runs_total", "Graph runs that were recorded.", &runs);
    let by_backend = |value: fn(&OfBackend) -> f64| -> Vec<(String, f64)> {
        let backends = counters.backends.iter();
        backends.map(|(name, of_it)| (label("backend", name), value(of_it))).collect()
    };
    let busy = by_backend(|it| it.busy_ns as f64 / 1e9);
    counter(&mut out, "ggprof_busy_seconds_total", "Time that a backend computed.", &busy);
    let copying = by_backend(|it| it.copying_ns as f64 / 1e9);
    let help = "Time that a backend copied and did not compute.";
    counter(&mut out, "ggprof_copying_seconds_total", help, &copying);
    let copied = by_backend(|it| it.copied_bytes as f64);
    counter(&mut out, "ggprof_copied_bytes_total", "Bytes copied to a backend.", &copied);
    let lost = counters.dropped.iter();
    let lost: Vec<_> =
        lost.map(|(what, count)| (label("what", dropped_key(*what)), *count as f64)).collect();
    counter(&mut out, "ggprof_lost_total", "What the recorder could not take.", &lost);
    let missed = [(String::new(), counters.missed_blocks as f64)];
    let help = "Blocks of the recording that were used again before they were looked at.";
    counter(&mut out, "ggprof_missed_blocks_total", help, &missed);
    sensors(&mut out, readings);
    out.push_str("# EOF\n");
    out
}

/// Energies and times are counters, the others are as they are now.
fn sensors(out: &mut String, readings: &[Reading]) {
    let mut families: BTreeMap<(&str, &str), Vec<(String, f64)>> = BTreeMap::new();
    for reading in readings {
        let (name, unit, scale) = quantity(reading.quantity);
        let sample = (label("device", &reading.device.to_string()), reading.value as f64 / scale);
        families.entry((name, unit)).or_default().push(sample);
    }
    for ((name, unit), samples) in families {
        let name = format!("ggprof_{name}_{unit}");
        let help = "What a sensor of the machine says, whoever uses the device.";
        if ["joules", "seconds"].contains(&unit) {
            counter(out, &format!("{name}_total"), help, &samples);
            continue;
        }
        head(out, &name, help, "gauge");
        for (labels, value) in samples {
            let _ = writeln!(out, "{name}{labels} {value}");
        }
    }
}

/// In OpenMetrics a counter is called like its sample, without `_total`.
fn counter(out: &mut String, name: &str, help: &str, samples: &[(String, f64)]) {
    if samples.is_empty() {
        return;
    }
    head(out, name.trim_end_matches("_total"), help, "counter");
    for (labels, value) in samples {
        let _ = writeln!(out, "{name}{labels} {value}");
    }
}

fn histogram<const N: usize>(out: &mut String, name: &str, help: &str, values: &Histogram<N>) {
    head(out, name, help, "histogram");
    let mut below = 0;
    for (bound, count) in values.bounds.iter().zip(values.counts) {
        below += count;
        let _ = writeln!(out, "{name}_bucket{{le=\"{bound:?}\"}} {below}");
    }
    let Histogram { count, sum_ns, .. } = values;
    let _ = writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {count}");
    let _ = writeln!(out, "{name}_sum {}", *sum_ns as f64 / 1e9);
    let _ = writeln!(out, "{name}_count {count}");
}

fn head(out: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// The value in quotes, with what would end it escaped; names come from the program.
fn label(name: &str, value: &str) -> String {
    let mut quoted = String::new();
    for c in value.chars() {
        match c {
            '\\' | '"' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push('?'),
            c => quoted.push(c),
        }
    }
    format!("{{{name}=\"{quoted}\"}}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::Quantity;

    #[test]
    fn names_of_backends_stay_in_their_quotes() {
        assert_eq!(label("backend", "C\"U\\DA\n0"), r#"{backend="C\"U\\DA?0"}"#);
    }

    #[test]
    fn buckets_hold_all_below_them() {
        let mut counters = Counters::default();
        counters.between_tokens.counts[0] = 2;
        counters.between_tokens.counts[2] = 1;
        counters.between_tokens.count = 4;
        counters.between_tokens.sum_ns = 3_500_000_000;
        counters.missed_blocks = 7;
        let text = open_metrics(&counters, &[]);
        assert!(text.contains("\nggprof_missed_blocks_total 7\n"), "{text}");
        let name = "gen_ai_server_time_per_output_token_seconds";
        for line in [
            "_bucket{le=\"0.01\"} 2",
            "_bucket{le=\"0.025\"} 2",
            "_bucket{le=\"0.05\"} 3",
            "_bucket{le=\"+Inf\"} 4",
            "_sum 3.5",
            "_count 4",
        ] {
            assert!(text.contains(&format!("\n{name}{line}\n")), "{line}: {text}");
        }
        assert!(text.ends_with("\n# EOF\n"));
    }

    #[test]
    fn energy_is_counted_and_power_is_not() {
        let reading = |quantity, value| Reading { quantity, device: 1, name: "x".into(), value };
        let readings = [
            reading(Quantity::DevicePower, 412_500_000),
            reading(Quantity::DeviceEnergy, 7_000_000),
        ];
        let text = open_metrics(&Counters::default(), &readings);
        for line in [
            "# TYPE ggprof_device_power_watts gauge",
            "ggprof_device_power_watts{device=\"1\"} 412.5",
            "# TYPE ggprof_device_energy_joules counter",
            "ggprof_device_energy_joules_total{device=\"1\"} 7",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }
}
