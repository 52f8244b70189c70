//! `cargo xtask soak`: a server under load for as long as you like, recorded with a limited size,
//! beside the same server without a recording. The two are loaded alternately with the same
//! requests, so that the load of the machine affects both alike. It prints the result of each phase
//! and a summary at the end. If others use the machine too, processor time per token says more than
//! tokens per second.

use crate::bench::measure::median_and_range;
use crate::shell;
use anyhow::{Context, bail};
use ggprof_e2e::controlled::Session;
use ggprof_e2e::llama_server::{self, LlamaServer};
use ggprof_e2e::model::Model;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CLIENTS: u64 = 8;
const SLOTS: u32 = 4;
/// In each phase.
const REQUESTS: u64 = 40;
/// Reached within minutes, so that most of the time blocks are used again.
const LIMIT: &str = "16MB";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let minutes: u64 = match arguments {
        [] => 30,
        [flag, minutes] if flag == "--minutes" => minutes.parse().context("--minutes N")?,
        _ => bail!("cargo xtask soak [--minutes N]"),
    };
    let place = shell::target().join(format!("soak-{}", std::process::id()));
    let session = Session::new(&place);
    let soak = Soak::start(&session)?;
    let mut pairs = Vec::new();
    println!("alone → recorded");
    println!("| minutes | tokens/s | ratio | CPU ms per token | ratio | memory, MiB | file, MB |");
    println!("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60 * minutes) {
        let pair = soak.pair(pairs.len())?;
        pair.print(begun.elapsed());
        pairs.push(pair);
    }
    soak.summarize(&session, &pairs)
}

/// The two servers.
struct Soak<'a> {
    session: &'a Session,
    alone: LlamaServer,
    recorded: LlamaServer,
    recorded_pid: u32,
    requests: AtomicU64,
    failures: AtomicU64,
}

/// Two phases, one of each server, and how they stood afterwards.
struct Pair {
    alone: Phase,
    recorded: Phase,
    file: u64,
}

/// What a server did in one phase, and its memory afterwards.
struct Phase {
    tokens_per_s: f64,
    cpu_ms_per_token: f64,
    kib: u64,
}

impl<'a> Soak<'a> {
    fn start(session: &'a Session) -> anyhow::Result<Self> {
        let model = Model::SMALL.file("small")?;
        let command = || llama_server::command(&model, SLOTS).context("sid's llama-server");
        let (plain, port) = command()?;
        let alone = LlamaServer::start(plain, port);
        let (program, port) = command()?;
        let options = ["--max-size", LIMIT, "-o", "soak.ggprof"];
        let recorded = LlamaServer::start(session.recorded(&options, &program), port);
        let requests = AtomicU64::new(0);
        let mut soak =
            Soak { session, alone, recorded, recorded_pid: 0, requests, failures: 0.into() };
        // Both have met every kind of request before anything is measured.
        soak.load(&soak.alone, 0);
        soak.load(&soak.recorded, 0);
        soak.recorded_pid = session.wait_for(1)[0];
        Ok(soak)
    }

    fn pair(&self, number: usize) -> anyhow::Result<Pair> {
        let first = (number as u64 + 1) * REQUESTS;
        let alone = || self.phase(&self.alone, self.alone.id(), first);
        let recorded = || self.phase(&self.recorded, self.recorded_pid, first);
        let (alone, recorded) = if number.is_multiple_of(2) {
            let alone = alone()?;
            (alone, recorded()?)
        } else {
            let recorded = recorded()?;
            (alone()?, recorded)
        };
        let spools = self.session.spools();
        let file = spools.first().context("there is no recording")?.metadata()?.len();
        Ok(Pair { alone, recorded, file })
    }

    fn phase(&self, server: &LlamaServer, pid: u32, first: u64) -> anyhow::Result<Phase> {
        let (begun, used) = (Instant::now(), cpu_ms(pid)?);
        let tokens = self.load(server, first) as f64;
        let used = cpu_ms(pid)? - used;
        Ok(Phase {
            tokens_per_s: tokens / begun.elapsed().as_secs_f64(),
            cpu_ms_per_token: used / tokens,
            kib: resident_kib(pid)?,
        })
    }

    /// The clients share the requests from this one on; the tokens of all of them.
    fn load(&self, server: &LlamaServer, first: u64) -> u64 {
        let (next, tokens) = (AtomicU64::new(first), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= first + REQUESTS {
                            return;
                        }
                        tokens.fetch_add(self.ask(server, number), Ordering::Relaxed);
                    }
                });
            }
        });
        tokens.into_inner()
    }

    /// One request, of another length than the one before: the tokens of prompt and answer.
    fn ask(&self, server: &LlamaServer, number: u64) -> u64 {
        let (prompt, tokens) = (5 + number * 37 % 150, 8 + (number * 11 % 24) as u32);
        self.requests.fetch_add(1, Ordering::Relaxed);
        match server.complete(&"x".repeat(prompt as usize), tokens) {
            Ok(answer) if answer.tokens == tokens => prompt + u64::from(tokens),
            problem => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                eprintln!("request {number}: {problem:?}");
                0
            }
        }
    }

    fn summarize(self, session: &Session, pairs: &[Pair]) -> anyhow::Result<()> {
        let [first, .., last] = pairs else { bail!("too short: nothing to compare") };
        println!(
            "\nrequests {}, failed {}",
            self.requests.into_inner(),
            self.failures.into_inner()
        );
        for (what, ratio) in
            [("tokens/s", Pair::speed as fn(&Pair) -> f64), ("CPU time per token", Pair::cpu)]
        {
            let (ratio, low, high) = median_and_range(pairs.iter().map(ratio).collect());
            println!("{what}: x {ratio:.3} (median; middle half {low:.3} to {high:.3})");
        }
        let mib = |phase: &Phase| phase.kib as f64 / 1024.0;
        for (what, first, last) in
            [("alone", &first.alone, &last.alone), ("recorded", &first.recorded, &last.recorded)]
        {
            println!("memory {what}: {:.1} MiB first, {:.1} MiB last", mib(first), mib(last));
        }
        println!("memory: x {:.3}", last.recorded.kib as f64 / last.alone.kib as f64);
        println!("file: {} bytes first, {} bytes last", first.file, last.file);
        self.alone.end();
        self.recorded.end();
        shell::run(&mut session.ggprof(&["report", "soak.ggprof", "--top-ops", "5"]))
    }
}

impl Pair {
    fn speed(&self) -> f64 {
        self.recorded.tokens_per_s / self.alone.tokens_per_s
    }

    fn cpu(&self) -> f64 {
        self.recorded.cpu_ms_per_token / self.alone.cpu_ms_per_token
    }

    fn print(&self, since: Duration) {
        let Pair { alone, recorded, file } = self;
        println!(
            "| {:.1} | {:.0} → {:.0} | {:.3} | {:.2} → {:.2} | {:.3} | {} → {} | {:.1} |",
            since.as_secs_f64() / 60.0,
            alone.tokens_per_s,
            recorded.tokens_per_s,
            self.speed(),
            alone.cpu_ms_per_token,
            recorded.cpu_ms_per_token,
            self.cpu(),
            alone.kib / 1024,
            recorded.kib / 1024,
            *file as f64 / 1e6
        );
    }
}

/// Processor time that a process has used, of all its threads.
fn cpu_ms(pid: u32) -> anyhow::Result<f64> {
    /// Of Linux, whatever the kernel's own rate is.
    const MS_PER_TICK: f64 = 10.0;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields = stat.rsplit_once(") ").context("no such process")?.1.split(' ');
    let ticks = fields.skip(11).take(2).map(|field| field.parse::<f64>());
    Ok(ticks.sum::<Result<f64, _>>()? * MS_PER_TICK)
}

fn resident_kib(pid: u32) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
