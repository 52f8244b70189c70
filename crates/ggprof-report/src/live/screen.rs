//! A look as lines for a terminal.

use super::{dropped_key, ops_of};
use crate::render::printable;
use crate::units;
use ggprof_analysis::live::{BackendNow, Frame, Idle, OpNow};
use ggprof_analysis::step::StepKind;
use ggprof_trace::Quantity;

/// How the user wants it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shown {
    pub sort: Sort,
    /// Ops of all steps, or of one kind.
    pub kind: Option<StepKind>,
    pub is_frozen: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    #[default]
    Time,
    Calls,
    Bytes,
}

impl Sort {
    pub fn next(self) -> Self {
        match self {
            Sort::Time => Sort::Calls,
            Sort::Calls => Sort::Bytes,
            Sort::Bytes => Sort::Time,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Sort::Time => "time",
            Sort::Calls => "calls",
            Sort::Bytes => "GB/s",
        }
    }

    fn order(self, op: &OpNow) -> f64 {
        match self {
            Sort::Time => op.total_ns as f64,
            Sort::Calls => op.count as f64,
            Sort::Bytes => op.gigabytes_per_second().unwrap_or(0.0),
        }
    }
}

impl Shown {
    /// All steps, prompts, generation, mixed ones, and again.
    pub fn next_kind(&mut self) {
        self.kind = match self.kind {
            None => Some(StepKind::Prompt),
            Some(StepKind::Prompt) => Some(StepKind::Generation),
            Some(StepKind::Generation) => Some(StepKind::Mixed),
            Some(_) => None,
        };
    }

    fn kind_word(&self) -> &'static str {
        match self.kind {
            None => "all steps",
            Some(StepKind::Prompt) => "prompts",
            Some(StepKind::Generation) => "generation",
            Some(_) => "mixed steps",
        }
    }
}

/// At most so many lines, none wider than so many characters; nothing in them is obeyed by a terminal.
pub fn screen(frame: &Frame, shown: &Shown, (width, height): (usize, usize)) -> Vec<String> {
    let mut lines = vec![head(frame, shown.is_frozen), String::new()];
    lines.extend(tokens(frame));
    lines.push(format!(
        "graph runs   {:>8.0} /s   longest {}   copies {:.1} MB/s",
        frame.runs as f64 * 1e9 / frame.interval_ns as f64,
        time(frame.longest_run.map_or(0, |run| run.ns)),
        frame.copied_bytes as f64 * 1e3 / frame.interval_ns as f64,
    ));
    lines.push(String::new());
    lines.extend(frame.backends.iter().flat_map(|it| backend(it, width)));
    lines.extend(sensors(frame));
    lines.push(String::new());
    let ops = format!("ops of {} by {}", shown.kind_word(), shown.sort.word());
    lines.push(format!("{ops:<28} {:<10} {:>8} {:>7} {:>8}", "on", "calls", "share", "GB/s"));
    let footer = "q quit   s sort   f freeze   p phase   w write a snapshot".to_owned();
    let mut ops = ops_of(frame, shown.kind);
    let sum_ns: u64 = ops.iter().map(|op| op.total_ns).sum();
    ops.sort_by(|a, b| shown.sort.order(b).total_cmp(&shown.sort.order(a)));
    // Where there is no room for all of it, losses and keys stay.
    let mut last = losses(frame);
    last.extend([String::new(), footer]);
    last.truncate(height);
    let room = height - last.len();
    lines.extend(ops.iter().take(room.saturating_sub(lines.len())).map(|it| op(it, sum_ns)));
    lines.truncate(room);
    lines.extend(last);
    lines.iter().map(|line| printable(line).chars().take(width).collect()).collect()
}

fn head(frame: &Frame, is_frozen: bool) -> String {
    let standing = &frame.standing;
    let state = match standing.is_recording {
        true if is_frozen => "frozen",
        true => "recording",
        false => "not recording",
    };
    let (program, pid, runs) = (&standing.program, standing.pid, standing.graph_runs);
    let over = match frame.interval_ns {
        0..=1_500_000_000 => String::new(),
        long => format!("   over {}", time(long)),
    };
    format!("{program} (process {pid})   {state}   {runs} graph runs{over}")
}

fn tokens(frame: &Frame) -> Vec<String> {
    if !frame.knows_tokens {
        let why = match frame.standing.has_positions {
            true => "libllama's calls cannot be seen in this program",
            false => "no call of libllama was seen",
        };
        return vec![format!("tokens       not known: {why}")];
    }
    let batch = frame.batch_tokens.map_or("-".to_owned(), |tokens| format!("{tokens:.1} tokens"));
    let depth = frame.depth.map_or("-".to_owned(), |depth| depth.to_string());
    let under_way = frame.under_way.filter(|(_, ns)| *ns >= 1_000_000_000);
    let under_way = under_way
        .map(|(tokens, ns)| format!("   {tokens} tokens under way for {}", time(ns)))
        .unwrap_or_default();
    vec![
        format!("prompt       {:>8.1} tokens/s{under_way}", frame.prompt_speed),
        format!("generation   {:>8.1} tokens/s", frame.generation_speed),
        format!("requests     {:>8}   batch {batch}   depth {depth}", frame.requests),
        format!("first token  {}, from its first batch on", percentiles(frame.first_token_ns)),
        format!("next token   {}", percentiles(frame.between_tokens_ns)),
    ]
}

fn percentiles(values: Option<(u64, u64)>) -> String {
    match values {
        None => "none in the last minute".to_owned(),
        Some((p50, p95)) => format!("p50 {}   p95 {}   (last minute)", time(p50), time(p95)),
    }
}

/// Below the backend's bar: what idle time was.
fn backend(backend: &BackendNow, width: usize) -> Vec<String> {
    let Idle { elsewhere, between_ops, outside } = backend.idle;
    let causes = [
        (elsewhere, "another backend"),
        (between_ops, "between ops"),
        (outside, "the program itself"),
    ];
    let causes: Vec<String> = causes
        .iter()
        .filter(|(share, _)| *share >= 0.01 && backend.busy.is_some())
        .map(|(share, what)| format!("{:.0} % {what}", share * 100.0))
        .collect();
    let idle = (!causes.is_empty()).then(|| format!("{:<12} {}", "  idle", causes.join(", ")));
    [bar(backend, width)].into_iter().chain(idle).collect()
}

/// Clock, power and memory of each device.
fn sensors(frame: &Frame) -> Vec<String> {
    let mut devices: Vec<(String, Vec<String>)> = Vec::new();
    for reading in &frame.readings {
        let value = reading.value as f64;
        let (device, text) = match reading.quantity {
            Quantity::DeviceClock => (Some(reading.device), units::frequency(value)),
            Quantity::DevicePower => (Some(reading.device), units::power(value / 1e6)),
            Quantity::DeviceMemory => {
                (Some(reading.device), format!("{} in use", units::bytes(value)))
            }
            Quantity::ProcessorClock => (None, units::frequency(value)),
            _ => continue,
        };
        let name = device.map_or("processors".to_owned(), |number| format!("GPU {number}"));
        match devices.iter_mut().find(|(known, _)| *known == name) {
            Some((_, texts)) => texts.push(text),
            None => devices.push((name, vec![text])),
        }
    }
    devices.iter().map(|(name, texts)| format!("{name:<12} {}", texts.join("   "))).collect()
}

fn bar(backend: &BackendNow, width: usize) -> String {
    /// The name, and shares of all of the time.
    const BESIDE: usize =
        "CUDA0         ".len() + "  busy 100 %   copying 100 %   idle 100 %".len();
    let length = width.saturating_sub(BESIDE).min(40);
    let cells = |share: f64| (share * length as f64).round() as usize;
    let busy = backend.busy.unwrap_or(0.0);
    let (computing, occupied) = (cells(busy), cells(busy + backend.copying).min(length));
    let bar: String = (0..length)
        .map(|at| {
            if at < computing {
                '#'
            } else if at < occupied {
                '='
            } else {
                '.'
            }
        })
        .collect();
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let copying = percent(backend.copying);
    match backend.busy {
        None => format!("{:<12} computing or idle is not known   copying {copying}", backend.name),
        Some(busy) => {
            let idle = percent((1.0 - busy - backend.copying).max(0.0));
            let busy = percent(busy);
            format!("{:<12} {bar}  busy {busy}   copying {copying}   idle {idle}", backend.name)
        }
    }
}

fn op(op: &OpNow, sum_ns: u64) -> String {
    let share = op.total_ns as f64 * 100.0 / sum_ns.max(1) as f64;
    let rate = op.gigabytes_per_second().map_or("-".to_owned(), |rate| format!("{rate:.1}"));
    format!("{:<28} {:<10} {:>8} {share:>5.1} % {rate:>8}", op.name, op.backend, op.count)
}

fn losses(frame: &Frame) -> Vec<String> {
    let standing = &frame.standing;
    let mut losses: Vec<String> = standing
        .dropped
        .iter()
        .map(|(what, count)| format!("{count} {}", dropped_key(*what).replace('_', " ")))
        .collect();
    if standing.missed_blocks > 0 {
        losses.push(format!("{} blocks before they were looked at", standing.missed_blocks));
    }
    let line = (!losses.is_empty()).then(|| format!("lost: {}", losses.join(", ")));
    line.into_iter().collect()
}

fn time(ns: u64) -> String {
    units::duration(ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_analysis::live::Watch;
    use ggprof_trace::Trace;

    const USUAL: (usize, usize) = (80, 24);

    fn frame() -> Frame {
        let mut frame = Watch::default().take(&Trace::default(), Default::default(), 1_000_000_000);
        frame.knows_tokens = true;
        frame.standing.program = "llama-server".to_owned();
        frame.standing.graph_runs = 12_345_678;
        frame.standing.is_recording = true;
        frame.depth = Some(131_072);
        frame.batch_tokens = Some(2048.0);
        frame.first_token_ns = Some((123_400_000, 12_340_000_000));
        frame.between_tokens_ns = frame.first_token_ns;
        let idle = Idle { elsewhere: 0.111, between_ops: 0.222, outside: 0.333 };
        let (name, busy) = ("CUDA0".to_owned(), Some(0.222));
        frame.backends = vec![BackendNow { name, busy, copying: 0.112, idle }];
        frame
    }

    #[test]
    fn losses_and_keys_are_shown_on_few_lines() {
        let mut frame = frame();
        frame.standing.missed_blocks = 7;
        frame.backends = vec![frame.backends[0].clone(); 12];
        for height in [3, 5, 24] {
            let lines = screen(&frame, &Shown::default(), (80, height));
            assert_eq!(lines.len(), height);
            let [.., lost, _, keys] = &lines[..] else { panic!("{lines:#?}") };
            assert!(lost.starts_with("lost: 7 blocks"), "{height}: {lines:#?}");
            assert!(keys.starts_with("q quit"), "{height}: {lines:#?}");
        }
        assert!(screen(&frame, &Shown::default(), (80, 1))[0].starts_with("lost: "));
        assert!(screen(&frame, &Shown::default(), (0, 0)).is_empty());
    }

    #[test]
    fn everything_fits_a_usual_terminal() {
        let mut shown = Shown { sort: Sort::Calls, ..Default::default() };
        for kind in ["all steps", "prompts", "generation", "mixed steps"] {
            let wide = screen(&frame(), &shown, (usize::MAX, usize::MAX));
            assert!(wide.iter().any(|line| line.contains(&format!("ops of {kind} by calls"))));
            let cut: Vec<&String> =
                wide.iter().filter(|line| line.chars().count() > USUAL.0).collect();
            // Only the bar is longer where there is room.
            let [bar] = &cut[..] else { panic!("{cut:#?}") };
            assert!(bar.starts_with("CUDA0"), "{bar}");
            shown.next_kind();
        }
        let usual = screen(&frame(), &shown, USUAL);
        assert!(usual.len() <= USUAL.1);
        for words in [
            "busy 22 %   copying 11 %   idle 67 %",
            "11 % another backend, 22 % between ops, 33 % the program itself",
        ] {
            assert!(usual.iter().any(|line| line.ends_with(words)), "{words}: {usual:#?}");
        }
    }
}
