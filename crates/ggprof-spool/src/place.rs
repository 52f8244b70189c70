//! Names of files that several processes of one program write: `%p` stands for the process.

const PROCESS: &[u8] = b"%p";

/// Whether each process gets a name of its own.
pub fn names_the_process(path: &[u8]) -> bool {
    path.windows(PROCESS.len()).any(|part| part == PROCESS)
}

/// The name for one process.
pub fn of_process(path: &[u8], pid: u32) -> Vec<u8> {
    let pid = pid.to_string();
    let mut whole = Vec::with_capacity(path.len() + pid.len());
    let mut rest = path;
    while let Some(at) = rest.windows(PROCESS.len()).position(|part| part == PROCESS) {
        whole.extend_from_slice(&rest[..at]);
        whole.extend_from_slice(pid.as_bytes());
        rest = &rest[at + PROCESS.len()..];
    }
    whole.extend_from_slice(rest);
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mark_becomes_the_number() {
        for (path, named) in
            [("/tmp/%p/a-%p.spool", "/tmp/42/a-42.spool"), ("%%pp", "%42p"), ("%", "%"), ("", "")]
        {
            assert_eq!(of_process(path.as_bytes(), 42), named.as_bytes(), "{path}");
            assert_eq!(names_the_process(path.as_bytes()), path != named, "{path}");
        }
    }
}
