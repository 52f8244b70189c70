//! Running a program that might never end.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// What it printed and how it ended; `None` if it had to be ended. It prints little.
pub fn output_within(limit: Duration, command: &mut Command) -> Option<Output> {
    let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("the program starts");
    let started = Instant::now();
    while child.try_wait().expect("it is our child").is_none() {
        if started.elapsed() > limit {
            child.kill().expect("it still runs");
            child.wait().expect("it was just killed");
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Some(child.wait_with_output().expect("it has ended"))
}
