//! Names of backends that compute on another machine.

/// The server that a backend leaves its work to, as the program was told it: `127.0.0.1:50052` of
/// `RPC0[127.0.0.1:50052]`. The number in front is that of the server's device; before 2025 there was
/// none. `None` for backends that compute here.
pub fn endpoint(backend_name: &str) -> Option<&str> {
    let rest = backend_name.strip_prefix("RPC")?;
    let rest = rest.trim_start_matches(|it: char| it.is_ascii_digit());
    let endpoint = rest.strip_prefix('[')?.strip_suffix(']')?;
    (!endpoint.is_empty()).then_some(endpoint)
}

#[cfg(test)]
mod tests {
    use super::endpoint;

    #[test]
    fn endpoints_of_remote_backends() {
        assert_eq!(endpoint("RPC0[127.0.0.1:57001]"), Some("127.0.0.1:57001"));
        assert_eq!(endpoint("RPC[worker.local:50052]"), Some("worker.local:50052"));
        for name in ["CPU", "RPC0", "RPC0[]", "RPCs[a:1]", "CUDA0", ""] {
            assert_eq!(endpoint(name), None, "{name}");
        }
    }
}
