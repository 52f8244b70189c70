//! Running the system's tools, and what to do when one of them cannot help.

use std::process::Command;

/// What the tool printed, or its complaint.
pub fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name} cannot be started: {error}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{name} failed: {}", complaint.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What was fetched. `None`, with a sentence, where it cannot be had, unless
/// `GGPROF_REQUIRE_GGML=1` forbids that.
pub fn fetched<T>(what: &str, result: Result<T, String>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(problem) => {
            let required = std::env::var("GGPROF_REQUIRE_GGML").is_ok_and(|value| value == "1");
            assert!(!required, "{what} cannot be had: {problem}");
            eprintln!("not tested: {what} cannot be had: {problem}");
            None
        }
    }
}
