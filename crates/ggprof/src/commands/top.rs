//! `ggprof top`: what a recorded program does, once a second, on a screen or as lines of JSON.

use super::ctl;
use crate::cli::TopArgs;
use crate::exit::Outcome;
use crate::launch::{Listed, Watched};
use crate::screen::{Key, Screen};
use crate::{messages, output};
use anyhow::Context;
use ggprof_analysis::live::{Frame, Reading};
use ggprof_report::live::{Shown, json_line, screen};
use ggprof_report::stopped_sentence;
use ggprof_spool::names;
use std::ffi::OsString;
use std::io::{IsTerminal, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// How long a signal or a changed size of the window may go unnoticed.
const PATIENCE: Duration = Duration::from_millis(200);

pub(crate) fn top(arguments: &TopArgs) -> anyhow::Result<Outcome> {
    let process = ctl::find("top", arguments.pid)?;
    let mut name = Vec::new();
    process.ask("file")?.read_to_end(&mut name)?;
    let file = PathBuf::from(OsString::from_vec(name));
    let watched = Watched::open(&file)
        .with_context(|| format!("the recording {} cannot be read from here", file.display()))?;
    let left = arguments.count.unwrap_or(u64::MAX);
    let looks = Looks { watched, process: &process, left, answers: true };
    let has_terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    match arguments.json || !has_terminal {
        true => lines(looks),
        false => on_screen(looks),
    }
}

struct Looks<'p> {
    watched: Watched,
    process: &'p Listed,
    left: u64,
    /// Whether its launcher said something when it was asked last.
    answers: bool,
}

impl Looks<'_> {
    /// The next look; `None` after the last one that was asked for.
    fn next(&mut self) -> anyhow::Result<Option<Frame>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let mut frame = self.watched.look().context("the recording cannot be read any more")?;
        let readings = self.readings();
        self.answers = readings.is_ok();
        frame.readings = readings.unwrap_or_default();
        Ok(Some(frame))
    }

    /// Why there is nothing more to see, if that is so: a sentence about it. A program that was killed
    /// cannot say that it ends.
    fn over(&self, frame: &Frame) -> Option<String> {
        let program = format!("{} (process {})", self.process.program, self.process.pid);
        let is_alive = self.watched.is_program_alive();
        match frame.standing.stopped {
            _ if frame.standing.has_ended || is_alive == Some(false) => {
                Some(format!("{program} has ended."))
            }
            Some(why) => Some(format!("{program}: {}", stopped_sentence(why))),
            // Where the program cannot be seen, its launcher stands for it.
            None if is_alive.is_none() && !self.answers => {
                Some(format!("{program} is not recorded any more."))
            }
            None => None,
        }
    }

    /// Its launcher reads the sensors; a launcher that has ended is no reason to end.
    fn readings(&self) -> anyhow::Result<Vec<Reading>> {
        Ok(serde_json::from_reader(self.process.ask("sensors")?)?)
    }
}

fn lines(mut looks: Looks<'_>) -> anyhow::Result<Outcome> {
    let mut due = Instant::now();
    while let Some(frame) = looks.next()? {
        let line = json_line(&frame) + "\n";
        output::to_stdout(|out| out.write_all(line.as_bytes()))?;
        let over = looks.over(&frame);
        over.iter().for_each(|sentence| messages::note(sentence));
        if looks.left == 0 || over.is_some() {
            break;
        }
        due += BETWEEN_LOOKS;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(Outcome::Done)
}

fn on_screen(mut looks: Looks<'_>) -> anyhow::Result<Outcome> {
    let process = looks.process;
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGHUP,
        signal_hook::consts::SIGQUIT,
    ] {
        signal_hook::flag::register(signal, Arc::clone(&is_over))?;
    }
    let terminal = Screen::open()?;
    let mut view = View { shown: Shown::default(), frame: None, said: String::new(), written: 0 };
    let mut due = Instant::now();
    while !is_over.load(Ordering::Relaxed) {
        if Instant::now() >= due {
            due = Instant::now() + BETWEEN_LOOKS;
            let Some(frame) = looks.next()? else { break };
            let over = looks.over(&frame);
            if !view.shown.is_frozen || view.frame.is_none() {
                view.frame = Some(frame);
            }
            view.draw(&terminal)?;
            if let Some(sentence) = over {
                drop(terminal);
                messages::note(&sentence);
                return Ok(Outcome::Done);
            }
        }
        let patience = due.saturating_duration_since(Instant::now()).min(PATIENCE);
        match terminal.key(patience)? {
            Key::None => continue,
            Key::Closed | Key::Char(b'q' | b'Q') => break,
            Key::Char(key) => view.obey(key, process),
        }
        view.draw(&terminal)?;
    }
    Ok(Outcome::Done)
}

struct View {
    shown: Shown,
    frame: Option<Frame>,
    /// The answer to the last key.
    said: String,
    written: u32,
}

impl View {
    fn obey(&mut self, key: u8, process: &Listed) {
        match key {
            b's' => self.shown.sort = self.shown.sort.next(),
            b'f' => self.shown.is_frozen = !self.shown.is_frozen,
            b'p' => self.shown.next_kind(),
            b'w' => {
                self.said = match self.write(process) {
                    Ok(file) => format!("written to {file}"),
                    Err(error) => format!("no snapshot: {error:#}"),
                }
            }
            _ => {}
        }
    }

    /// To a file that is not there yet.
    fn write(&mut self, process: &Listed) -> anyhow::Result<String> {
        let name = |number: u32| format!("snapshot-{number}{}", names::RECORDING_ENDING);
        self.written += 1;
        while PathBuf::from(name(self.written)).exists() {
            self.written += 1;
        }
        let file = name(self.written);
        let pieces = process.ask("snapshot")?;
        let (_removal, copy) = ctl::received(pieces)?;
        output::to_file(file.as_ref(), |out| {
            std::io::copy(&mut std::fs::File::open(copy.path())?, out).map(|_| ())
        })?;
        Ok(file)
    }

    fn draw(&self, terminal: &Screen) -> anyhow::Result<()> {
        let Some(frame) = &self.frame else { return Ok(()) };
        let (width, height) = terminal.size();
        let mut lines = screen(frame, &self.shown, (width, height.saturating_sub(1)));
        lines.push(ggprof_report::render::printable(&self.said).chars().take(width).collect());
        Ok(terminal.draw(&lines)?)
    }
}
