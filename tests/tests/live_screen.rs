//! `ggprof top` on a terminal: what its keys do, and that the terminal is as before however it ends.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ggprof_e2e::built;
use ggprof_e2e::controlled::{Running, Session, endless};

const ENTERED: &str = "\x1b[?1049h";
const LEFT: &str = "\x1b[?25h\x1b[?1049l";

/// `top` in a terminal of its own.
struct OnScreen<'s> {
    session: &'s Session,
    name: String,
    terminal: Child,
    keyboard: ChildStdin,
    shown: Arc<Mutex<Vec<u8>>>,
    reading: JoinHandle<()>,
}

impl<'s> OnScreen<'s> {
    /// It has drawn something when this returns.
    fn start(session: &'s Session, name: &str) -> OnScreen<'s> {
        // There may be other sessions.
        let pid = session.wait_for(1)[0];
        let commands = format!(
            "stty -a > before-{name}; sh -c 'echo $$ > pid-{name}; exec {ggprof} top {pid}'; \
             code=$?; stty -a > after-{name}; echo $code > code-{name}",
            ggprof = built::ggprof().display(),
        );
        let mut terminal = Command::new("script");
        // The shell would end with its terminal or by the terminal's keys, as some shells do and others do
        // not, and not say how `top` ended.
        let commands = format!("trap : HUP INT QUIT; {commands}");
        terminal.args(["-qec", &commands, "/dev/null"]).env("SHELL", "/bin/sh");
        terminal.current_dir(session.file(""));
        for (name, value) in session.ggprof(&[]).get_envs() {
            terminal.env(name, value.unwrap_or_default());
        }
        terminal.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut terminal = terminal.spawn().expect("script is in bsdutils");
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut screen, kept) = (terminal.stdout.take().unwrap(), Arc::clone(&shown));
        let reading = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                kept.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        let keyboard = terminal.stdin.take().unwrap();
        let this = OnScreen { session, name: name.to_owned(), terminal, keyboard, shown, reading };
        let started = Instant::now();
        this.wait_until(|shown| shown.contains("graph runs"));
        println!("the first look of top came after {:.0?}", started.elapsed());
        this
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    fn wait_until(&self, is_so: impl Fn(&str) -> bool) {
        let started = Instant::now();
        while !is_so(&self.shown()) {
            let shown = self.shown();
            assert!(started.elapsed() < Duration::from_secs(60), "{}: {shown:?}", self.name);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until this is shown, after the key was pressed.
    fn press(&mut self, key: &str, expected: &str) {
        let before = self.shown().len();
        self.keyboard.write_all(key.as_bytes()).unwrap();
        self.wait_until(|shown| shown[before.min(shown.len())..].contains(expected));
    }

    /// What a command of the terminal has written to a file of this name.
    fn written(&self, what: &str) -> String {
        let file = self.session.file(&format!("{what}-{}", self.name));
        let started = Instant::now();
        loop {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            if text.ends_with('\n') {
                return text.trim_end().to_owned();
            }
            assert!(started.elapsed() < Duration::from_secs(60), "no {}", file.display());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for its end, by whatever was done; its exit code.
    fn ended(mut self) -> String {
        let code = self.written("code");
        let (before, after) = (self.written("before"), self.written("after"));
        assert_eq!(before, after, "{}", self.name);
        self.terminal.wait().unwrap();
        self.reading.join().unwrap();
        let shown = String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned();
        let left = shown.rfind(LEFT).expect("it left the second screen");
        assert!(shown.find(ENTERED).is_some_and(|entered| entered < left), "{shown:?}");
        code
    }
}

fn send(signal: &str, pid: &str) {
    let sent = Command::new("kill").args([signal, pid]).status().unwrap();
    assert!(sent.success(), "{signal} to {pid}");
}

fn recorded(session: &Session) -> Option<Running> {
    let program = endless()?;
    let running = Running::start(&mut session.recorded(&["-o", "p.ggprof"], &program));
    session.wait_for(1);
    Some(running)
}

#[test]
fn keys_do_what_the_last_line_says() {
    let (_directory, session) = Session::in_new_place();
    let Some(running) = recorded(&session) else { return };
    let mut top = OnScreen::start(&session, "keys");
    assert!(top.shown().contains("q quit   s sort   f freeze   p phase   w write a snapshot"));
    for (key, expected) in [
        ("s", "ops of all steps by calls"),
        ("s", "ops of all steps by GB/s"),
        ("s", "ops of all steps by time"),
        ("p", "ops of prompts by time"),
        ("f", "frozen"),
        ("f", "recording"),
        ("w", "written to snapshot-1.ggprof"),
        ("w", "written to snapshot-2.ggprof"),
    ] {
        top.press(key, expected);
    }
    top.press("q", LEFT);
    assert_eq!(top.ended(), "0");
    let report = session.ggprof(&["report", "snapshot-2.ggprof"]).output().unwrap();
    assert_eq!(report.status.code(), Some(0), "{report:?}");
    running.end();
}

#[test]
fn the_terminal_is_as_before_however_top_ends() {
    let (_directory, session) = Session::in_new_place();
    let Some(running) = recorded(&session) else { return };
    std::thread::scope(|scope| {
        for signal in ["INT", "TERM", "HUP", "QUIT"] {
            let session = &session;
            scope.spawn(move || {
                let top = OnScreen::start(session, signal);
                send(&format!("-{signal}"), &top.written("pid"));
                assert_eq!(top.ended(), "0", "{signal}");
            });
        }
    });
    // As the key of a terminal does it.
    let mut top = OnScreen::start(&session, "key");
    top.press("\x03", LEFT);
    assert_eq!(top.ended(), "0");
    let pid = session.wait_for(1)[0].to_string();
    let top = OnScreen::start(&session, "killed");
    send("-KILL", &pid);
    top.wait_until(|shown| shown.contains("has ended."));
    assert_eq!(top.ended(), "0");
    running.end();
}

#[test]
fn top_ends_with_its_terminal() {
    let (_directory, session) = Session::in_new_place();
    let Some(running) = recorded(&session) else { return };
    let mut top = OnScreen::start(&session, "closed");
    top.terminal.kill().unwrap();
    top.terminal.wait().unwrap();
    assert_eq!(top.written("code"), "0");
    running.end();
}
