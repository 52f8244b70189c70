//! The whole terminal for a while: a second screen without a cursor, and keys as they are pressed. It
//! is as before when this is dropped, also by a panic.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use rustix::stdio::stdin;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use std::io::{self, Write};
use std::time::Duration;

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Where nobody knows how large it is.
const USUAL_SIZE: (usize, usize) = (80, 24);

pub(crate) struct Screen {
    before: Termios,
}

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
        let screen = Screen { before };
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
        // Nobody is there to be told.
        let _ = print(LEAVE);
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
