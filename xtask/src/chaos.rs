//! `cargo xtask chaos`: real programs under random hazards, alone and recorded, for as long as you
//! like. It prints every violation with the command that repeats it, and a table at the end.

use crate::system;
use anyhow::{Context, bail};
use ggprof_e2e::chaos::{Campaign, Choice, Finding};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const MINUTES: f64 = 60.0;

/// What was asked for.
struct Wish {
    time: Duration,
    first_seed: u64,
    only: Option<String>,
}

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let wish = Wish::from(arguments)?;
    system::install_for_bindings()?;
    let mut campaign = Campaign::new();
    let begun = Instant::now();
    println!("from seed {} on", wish.first_seed);
    let seeds = (wish.first_seed..).map(Choice::of);
    for choice in seeds.filter(|choice| wish.only.iter().all(|name| choice.has(name))) {
        let finding = campaign.run(&choice);
        tell(&campaign, &choice, &finding, begun.elapsed());
        if begun.elapsed() >= wish.time {
            break;
        }
    }
    println!("\n{}", campaign.tally);
    match campaign.tally.violations() {
        0 => Ok(()),
        count => bail!("{count} violations"),
    }
}

impl Wish {
    /// A seed without minutes is one run: that of a violation, once more.
    fn from(arguments: &[String]) -> anyhow::Result<Wish> {
        let (mut minutes, mut seed, mut only) = (None, None, None);
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| crate::misused("chaos"))?;
            match word.as_str() {
                "--minutes" => minutes = Some(value.parse::<f64>().context("--minutes N")?),
                "--seed" => seed = Some(value.parse().context("--seed S")?),
                "--only" => only = Some(value.clone()),
                _ => return Err(crate::misused("chaos")),
            }
        }
        let minutes = minutes.unwrap_or(if seed.is_some() { 0.0 } else { MINUTES });
        let time = Duration::try_from_secs_f64(60.0 * minutes).context("--minutes N")?;
        Ok(Wish { time, first_seed: seed.unwrap_or_else(any_seed), only })
    }
}

/// Another one each second.
fn any_seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() * 10_000)
}

fn tell(campaign: &Campaign, choice: &Choice, finding: &Finding, since: Duration) {
    let minutes = since.as_secs_f64() / 60.0;
    let (runs, place) = (campaign.tally.runs(), campaign.place(choice));
    match finding {
        Finding::Fine => println!("{minutes:.1} min, run {runs}: {choice}"),
        Finding::Ruined => println!("{minutes:.1} min, run {runs}, ruined without us: {choice}"),
        Finding::Impossible(why) => println!("not possible: {why}: {choice}"),
        Finding::Unsteady(how) => {
            println!("unsteady without us, too: {choice}\n    {}", how.join("\n    "));
        }
        Finding::Violated(how) => {
            println!("VIOLATION: {choice}\n    {}", how.join("\n    "));
            println!("    see {}", place.display());
            println!("    repeat it with: cargo xtask chaos --seed {}", choice.seed);
        }
    }
}
