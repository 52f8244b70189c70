//! `ggprof attach`: records a program that was started without ggprof, from now on and for a while. The
//! program goes on when the recording has ended.

use super::run::{Plan, deliver_all, variables_of};
use crate::cli::AttachArgs;
use crate::exit::Outcome;
use crate::inherited::was_ignored;
use crate::launch::{self, Ahead, ControlSocket, Processes, Running, Samples, Sensors, Spools};
use crate::{messages, output};
use ggprof_spool::names;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Between looks at whether the user wants it to end.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) fn attach(arguments: &AttachArgs) -> anyhow::Result<Outcome> {
    output::apart(arguments.output.iter().map(|output| &*output.path))?;
    arguments.output.iter().try_for_each(|output| output.check(&[]))?;
    let agent = launch::find_agent()?;
    let process = Running::examine(arguments.pid, &agent)?;
    process.unseen.iter().for_each(|sentence| messages::note(sentence));
    let alive = Alive::watch(arguments.pid).map_err(|error| process.or_ended(error))?;
    let spools = Spools::new()?;
    let samples = Arc::<Mutex<Samples>>::default();
    let ahead = Ahead::of(spools.path());
    let mut settings = variables_of(&arguments.how, &spools);
    // However we end.
    settings.push((names::ENDS_WITH_LAUNCHER, (spools.is_locked() as u8).to_string().into()));
    // Its layer comes too late.
    settings.push((names::VULKAN, "off".into()));
    let attached = launch::attach(&process, &agent, &settings);
    // Nobody else would end what could not begin.
    let attached = attached.inspect_err(|_| stop(&spools))?;
    start(&spools)?;
    // Whoever asks finds a recording that has begun.
    let control = ControlSocket::listen(spools.path(), samples.clone());
    messages::note(&begun(&process, &attached, arguments.duration));
    if let Some(why) = &attached.unchanged {
        messages::warning(&format!(
            "the program's code could not be changed: {why:#}. Its ops are seen in other ways, and \
             nothing of a ggml that is linked into it."
        ));
    }
    let processes = Processes::Running { pid: arguments.pid };
    let read = || Sensors::read_into(samples.clone(), processes);
    let sensors = (!arguments.how.no_sensors).then(read);
    let until = arguments.duration.map(|duration| Instant::now() + duration);
    alive.wait(until);
    stop(&spools);
    drop((control, ahead, sensors));
    if !spools.have_graph_runs() {
        messages::note(&nothing(&process, &attached));
        return Ok(Outcome::Incomplete);
    }
    let plan = Plan::of_outputs(arguments.output.clone(), arguments.how.summary_to);
    Ok(deliver_all(&plan, spools, &samples, None, &mut |_| ()).outcome())
}

fn nothing(process: &Running, attached: &launch::Attached) -> String {
    let what = match attached.unchanged {
        Some(_) => "was not seen to compute",
        None => "computed nothing",
    };
    format!("{} {what} with ggml in this time; there is no recording.", process.name)
}

/// Opens the gate, which the agent keeps shut where code had to be changed: the first graph that is
/// recorded begins after that.
fn start(spools: &Spools) -> std::io::Result<()> {
    launch::RecordedProcess::alive(&spools.files()).iter().try_for_each(|it| it.start().map(|_| ()))
}

fn begun(process: &Running, attached: &launch::Attached, duration: Option<Duration>) -> String {
    let milliseconds = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    let all = attached.all_stood.map(|all| format!(", and all of them for {}", milliseconds(all)));
    let until = match duration {
        Some(duration) => format!("for {:.1} s", duration.as_secs_f64()),
        None => "until Ctrl-C".to_owned(),
    };
    format!(
        "Recording {} (process {}) {until}. One thread stood for {}{}. Memory that the program has by now \
         is not in the recording.",
        process.name,
        process.pid,
        milliseconds(attached.one_stood),
        all.unwrap_or_default()
    )
}

/// From here on the program writes nothing more.
fn stop(spools: &Spools) {
    let recorded = launch::RecordedProcess::alive(&spools.files());
    for recorded in recorded.iter().filter(|recorded| !recorded.has_given_up()) {
        if !matches!(recorded.stop(), Ok(true)) {
            messages::warning(
                "the program is still computing; the end of the recording is missing",
            );
        }
    }
}

/// A process, and whether the user is still interested in it.
struct Alive {
    process: OwnedFd,
    is_over: Arc<AtomicBool>,
}

impl Alive {
    fn watch(pid: u32) -> anyhow::Result<Alive> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let process = pidfd_open(pid.unwrap_or(Pid::INIT), PidfdFlags::empty())?;
        let is_over = Arc::<AtomicBool>::default();
        // The program is not our child: no signal of the terminal reaches it, and it would be recorded for
        // ever. `nohup` wants just that of SIGHUP.
        let heard = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];
        for signal in heard.into_iter().filter(|&signal| !was_ignored(signal)) {
            signal_hook::flag::register(signal, is_over.clone())?;
        }
        Ok(Alive { process, is_over })
    }

    /// Until the process has ended, the time is over, or somebody wants it to end.
    fn wait(&self, until: Option<Instant>) {
        while !self.is_over.load(Ordering::Relaxed) {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let pause = left.map_or(PAUSE, |left| left.min(PAUSE));
            let timeout = Timespec { tv_sec: 0, tv_nsec: pause.subsec_nanos().into() };
            let mut ended = [PollFd::new(&self.process, PollFlags::IN)];
            let found = poll(&mut ended, Some(&timeout));
            if found.is_ok_and(|found| found > 0) || left == Some(Duration::ZERO) {
                return;
            }
        }
    }
}
