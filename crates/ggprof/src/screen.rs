//! The whole terminal for a while: a second screen without a cursor, and keys as they are pressed. It
//! is as before when this is dropped, and before a panic says its words, which may end the process at
//! once.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use rustix::stdio::stdin;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Where nobody knows how large it is.
const USUAL_SIZE: (usize, usize) = (80, 24);

/// The terminal as it was, while it is another's.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// There is one at a time.
pub(crate) struct Screen(());

/// What was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    None,
    Char(u8),
    /// The terminal is gone.
    Closed,
}

impl Screen {
    pub(crate) fn open() -> io::Result<Screen> {
        let before = tcgetattr(stdin())?;
        let mut now = before.clone();
        now.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        // Stopped, it would leave the terminal as it is.
        now.special_codes[SpecialCodeIndex::VSUSP] = 0;
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        let screen = Screen(());
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            usual(panic);
        }));
        tcsetattr(stdin(), OptionalActions::Now, &now)?;
        print(ENTER)?;
        Ok(screen)
    }

    /// Columns and lines.
    pub(crate) fn size(&self) -> (usize, usize) {
        let size = terminal_size::terminal_size();
        let known = size.map(|(width, height)| (usize::from(width.0), usize::from(height.0)));
        known.filter(|(width, height)| *width > 0 && *height > 0).unwrap_or(USUAL_SIZE)
    }

    /// Shows these lines, which fit, and nothing else.
    pub(crate) fn draw(&self, lines: &[String]) -> io::Result<()> {
        let mut text = String::from("\x1b[H");
        text.push_str(&lines.join("\x1b[K\r\n"));
        text.push_str("\x1b[K\x1b[J");
        print(&text)
    }

    /// Waits so long for a key. A signal ends the wait.
    pub(crate) fn key(&self, patience: Duration) -> io::Result<Key> {
        let keyboard = stdin();
        let mut wanted = [PollFd::new(&keyboard, PollFlags::IN)];
        let patience = Timespec::try_from(patience).map_err(|_| io::ErrorKind::InvalidInput)?;
        match poll(&mut wanted, Some(&patience)) {
            Ok(0) | Err(Errno::INTR) => return Ok(Key::None),
            result => result?,
        };
        let mut pressed = [0];
        match read(keyboard, &mut pressed) {
            Ok(0) | Err(Errno::IO) => Ok(Key::Closed),
            Ok(_) => Ok(Key::Char(pressed[0])),
            Err(Errno::INTR) => Ok(Key::None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// The terminal as it was before; nothing where it is that already.
fn restore() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(before) = before {
        // Nobody is there to be told.
        let _ = print(LEAVE);
        let _ = tcsetattr(stdin(), OptionalActions::Now, &before);
    }
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const PANICS: &str = "GGPROF_TEST_PANICS";
    const WORDS: &str = "words that must be seen";

    /// In a terminal of its own, this test again: there it panics.
    #[test]
    fn a_panic_is_told_on_the_screen_that_was_there_before() {
        if std::env::var_os(PANICS).is_some() {
            let _screen = Screen::open().unwrap();
            panic!("{WORDS}");
        }
        let test = std::env::current_exe().unwrap();
        let name = "screen::tests::a_panic_is_told_on_the_screen_that_was_there_before";
        let commands = format!("stty -a; {} --exact {name} --nocapture; stty -a", test.display());
        let mut terminal = Command::new("script");
        terminal.args(["-qec", &commands, "/dev/null"]).env(PANICS, "1");
        let output = terminal.output().expect("script is in bsdutils");
        let shown = String::from_utf8_lossy(&output.stdout);
        let place = |text: &str| shown.find(text).unwrap_or_else(|| panic!("{text:?}: {shown}"));
        assert!(place(ENTER) < place(LEAVE) && place(LEAVE) < place(WORDS), "{shown}");
        let modes: Vec<&str> = shown.lines().filter(|line| line.contains("icanon")).collect();
        assert!(modes.len() == 2 && modes[0] == modes[1], "{modes:?}");
    }
}
