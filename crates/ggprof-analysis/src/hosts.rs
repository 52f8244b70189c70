//! Names of hosts, which stay out of what is shared. Only the backends of ggml's RPC have them in their
//! names: `RPC[192.168.0.7:50052]`. And the devices that computed, without such names.

use ggprof_ggml::endpoint;
use ggprof_trace::Trace;

/// Names that tell a host, and what stands for each; by default there are none.
#[derive(Debug, Default)]
pub struct Hosts {
    names: Vec<(String, String)>,
}

impl Hosts {
    pub fn of(trace: &Trace) -> Self {
        let mut names: Vec<(String, String)> = Vec::new();
        let backends = trace.backends.iter().flat_map(|it| [&it.name, &it.device, &it.description]);
        let memory = trace.memory_kinds.iter().flat_map(|it| [&it.type_name, &it.device]);
        for name in backends.chain(memory).filter(|name| tells_host(name)) {
            if names.iter().all(|(known, _)| known != name) {
                names.push((name.clone(), format!("RPC {}", names.len())));
            }
        }
        // A name may be part of another.
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        Self { names }
    }

    /// A whole name, or what stands for it.
    pub fn hidden<'a>(&'a self, name: &'a str) -> &'a str {
        self.names.iter().find(|(known, _)| known == name).map_or(name, |(_, instead)| instead)
    }

    /// A text without names of hosts.
    pub fn without(&self, text: String) -> String {
        self.names.iter().fold(text, |text, (name, instead)| text.replace(name, instead))
    }
}

/// What the devices that computed are called by their makers, where that is known.
pub fn devices(trace: &Trace, hosts: &Hosts) -> Vec<String> {
    let mut computed = vec![false; trace.backends.len()];
    for event in trace.events.iter().filter(|event| event.is_op()) {
        computed[usize::from(event.backend.0)] = true;
    }
    let mut names: Vec<String> = Vec::new();
    for (backend, _) in trace.backends.iter().zip(&computed).filter(|(_, computed)| **computed) {
        let name = match backend.description.as_str() {
            "" => backend.device_label(),
            description => description,
        };
        let name = hosts.without(name.to_owned());
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// A backend's name with its server, or an address alone, which is what newer versions call the device.
fn tells_host(name: &str) -> bool {
    let port = name.rsplit_once(':').map(|(_, port)| port.trim_end_matches(']'));
    let has_port = port.is_some_and(|port| {
        !port.is_empty() && port.len() <= 5 && port.bytes().all(|digit| digit.is_ascii_digit())
    });
    endpoint(name).is_some() || (has_port && !name.contains(' '))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    #[test]
    fn addresses_are_names_of_hosts_and_devices_are_not() {
        for name in
            ["RPC[192.168.0.7:50052]", "RPC0[gpu-box]", "gpu-box.example:50052", "[::1]:50052"]
        {
            assert!(tells_host(name), "{name}");
        }
        for name in ["CUDA0", "RPC0", "NVIDIA H200", "Intel(R) Xeon(R) @ 2.80GHz", "a b:1", ""] {
            assert!(!tells_host(name), "{name}");
        }
    }

    /// Not by process: both of these have the same one.
    #[test]
    fn devices_without_a_description_are_named_as_ggml_does() {
        let text = "backend 0 CUDA0 gpu\nop CUDA0 ADD 0..1 a";
        let mut trace = text_fixture::parse(text);
        trace.backends[0].called = "llama-server 7 CUDA0".to_owned();
        assert_eq!(devices(&trace, &Hosts::default()), ["CUDA0"]);
    }

    #[test]
    fn they_are_replaced_everywhere() {
        let mut trace = text_fixture::parse("backend 0 X gpu\nop X ADD 0..1 a");
        trace.backends[0].name = "RPC[box:50052]".to_owned();
        trace.backends[0].device = "RPC0".to_owned();
        trace.backends[0].description = "box:50052".to_owned();
        let hosts = Hosts::of(&trace);
        assert_eq!(hosts.hidden("RPC[box:50052]"), "RPC 0");
        assert_eq!(hosts.hidden("RPC0"), "RPC0");
        let text = "from RPC[box:50052] to box:50052".to_owned();
        assert_eq!(hosts.without(text), "from RPC 0 to RPC 1");
    }
}
