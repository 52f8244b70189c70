//! `cargo xtask soak`: a server under load for as long as you like, recorded with a limited size,
//! beside the same server without a recording. The two are loaded alternately with the same
//! requests, so that the load of the machine affects both alike. It prints the result of each phase
//! and a summary at the end. If others use the machine too, processor time per token says more than
//! tokens per second.
//!
//! With `--top` there is one server, recorded, which `ggprof top` watches in every second phase.

use crate::bench::measure::median_and_range;
use crate::shell;
use anyhow::{Context, bail};
use ggprof_e2e::controlled::Session;
use ggprof_e2e::llama_server::{self, LlamaServer};
use ggprof_e2e::model::Model;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CLIENTS: u64 = 8;
const SLOTS: u32 = 4;
/// In each phase.
const REQUESTS: u64 = 40;
/// Reached within minutes, so that most of the time blocks are used again.
const LIMIT: &str = "16MB";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let (compared, arguments) = match arguments {
        [flag, rest @ ..] if flag == "--top" => (Compared::Top, rest),
        rest => (Compared::Recording, rest),
    };
    let minutes: u64 = match arguments {
        [] => 30,
        [flag, minutes] if flag == "--minutes" => minutes.parse().context("--minutes N")?,
        _ => return Err(crate::misused("soak")),
    };
    let place = shell::target().join(format!("soak-{}", std::process::id()));
    let session = Session::new(&place);
    let soak = Soak::start(&session, compared)?;
    let mut pairs = Vec::new();
    println!("{}", compared.names().join(" → "));
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

/// What the two phases of a pair differ in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compared {
    Recording,
    Top,
}

impl Compared {
    fn names(self) -> [&'static str; 2] {
        match self {
            Compared::Recording => ["alone", "recorded"],
            Compared::Top => ["recorded", "watched"],
        }
    }
}

/// The two servers, or the one that is recorded.
struct Soak<'a> {
    session: &'a Session,
    compared: Compared,
    alone: Option<LlamaServer>,
    recorded: LlamaServer,
    recorded_pid: u32,
    requests: AtomicU64,
    failures: AtomicU64,
}

/// Two phases, without and with, and how they stood afterwards.
struct Pair {
    without: Phase,
    with: Phase,
    file: u64,
    /// What `top` used, of one processor.
    top: Option<f64>,
}

/// What a server did in one phase, and its memory afterwards.
struct Phase {
    tokens_per_s: f64,
    cpu_ms_per_token: f64,
    kib: u64,
}

impl<'a> Soak<'a> {
    fn start(session: &'a Session, compared: Compared) -> anyhow::Result<Self> {
        let model = Model::SMALL.file("small")?;
        let command = || llama_server::command(&model, SLOTS).context("sid's llama-server");
        let alone = match compared {
            Compared::Recording => {
                let (plain, port) = command()?;
                Some(LlamaServer::start(plain, port))
            }
            Compared::Top => None,
        };
        let (program, port) = command()?;
        let options = ["--max-size", LIMIT, "-o", "soak.ggprof"];
        let recorded = LlamaServer::start(session.recorded(&options, &program), port);
        let requests = AtomicU64::new(0);
        let failures = AtomicU64::new(0);
        let mut soak =
            Soak { session, compared, alone, recorded, recorded_pid: 0, requests, failures };
        // They have met every kind of request before anything is measured.
        for server in soak.alone.iter().chain([&soak.recorded]) {
            soak.load(server, 0);
        }
        soak.recorded_pid = session.wait_for(1)[0];
        Ok(soak)
    }

    fn pair(&self, number: usize) -> anyhow::Result<Pair> {
        let first = (number as u64 + 1) * REQUESTS;
        let recorded = || self.phase(&self.recorded, self.recorded_pid, first);
        let without = || match &self.alone {
            Some(alone) => self.phase(alone, alone.id(), first),
            None => recorded(),
        };
        let with = || match self.compared {
            Compared::Recording => Ok((recorded()?, None)),
            Compared::Top => {
                let top = Top::start(self.session)?;
                let phase = recorded()?;
                Ok::<_, anyhow::Error>((phase, Some(top.end()?)))
            }
        };
        let (without, (with, top)) = if number.is_multiple_of(2) {
            let without = without()?;
            (without, with()?)
        } else {
            let with = with()?;
            (without()?, with)
        };
        let spools = self.session.spools();
        let file = spools.first().context("there is no recording")?.metadata()?.len();
        Ok(Pair { without, with, file, top })
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
        let top: Vec<f64> = pairs.iter().filter_map(|pair| pair.top).collect();
        if !top.is_empty() {
            let (share, low, high) = median_and_range(top);
            let [share, low, high] = [share, low, high].map(|share| 100.0 * share);
            println!("top: {share:.2}% of a processor ({low:.2} to {high:.2})");
        }
        let mib = |phase: &Phase| phase.kib as f64 / 1024.0;
        let [without, with] = self.compared.names();
        for (what, first, last) in
            [(without, &first.without, &last.without), (with, &first.with, &last.with)]
        {
            println!("memory {what}: {:.1} MiB first, {:.1} MiB last", mib(first), mib(last));
        }
        println!("memory: x {:.3}", last.with.kib as f64 / last.without.kib as f64);
        println!("file: {} bytes first, {} bytes last", first.file, last.file);
        self.alone.into_iter().for_each(LlamaServer::end);
        self.recorded.end();
        shell::run(&mut session.ggprof(&["report", "soak.ggprof", "--top-ops", "5"]))
    }
}

impl Pair {
    fn speed(&self) -> f64 {
        self.with.tokens_per_s / self.without.tokens_per_s
    }

    fn cpu(&self) -> f64 {
        self.with.cpu_ms_per_token / self.without.cpu_ms_per_token
    }

    fn print(&self, since: Duration) {
        let Pair { without, with, file, .. } = self;
        println!(
            "| {:.1} | {:.0} → {:.0} | {:.3} | {:.2} → {:.2} | {:.3} | {} → {} | {:.1} |",
            since.as_secs_f64() / 60.0,
            without.tokens_per_s,
            with.tokens_per_s,
            self.speed(),
            without.cpu_ms_per_token,
            with.cpu_ms_per_token,
            self.cpu(),
            without.kib / 1024,
            with.kib / 1024,
            *file as f64 / 1e6
        );
    }
}

/// `ggprof top`, which looks once a second.
struct Top {
    process: Child,
    begun: Instant,
    used_ms: f64,
}

impl Top {
    /// It has read what was recorded before when this returns.
    fn start(session: &Session) -> anyhow::Result<Top> {
        let mut command = session.ggprof(&["top", "--json"]);
        let mut process = command.stdout(Stdio::piped()).spawn()?;
        let lines = BufReader::new(process.stdout.take().context("its output")?);
        let (said, first) = std::sync::mpsc::channel();
        // Somebody has to read all that it says.
        std::thread::spawn(move || lines.lines().for_each(|_| _ = said.send(())));
        first.recv().context("top says nothing")?;
        let used_ms = cpu_ms(process.id())?;
        Ok(Top { process, begun: Instant::now(), used_ms })
    }

    /// What it used of a processor.
    fn end(mut self) -> anyhow::Result<f64> {
        let used_ms = cpu_ms(self.process.id())? - self.used_ms;
        let passed = self.begun.elapsed();
        self.process.kill()?;
        self.process.wait()?;
        Ok(used_ms / 1e3 / passed.as_secs_f64())
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
