//! What bindings call the options of llama.cpp that advice names.

use ggprof_trace::Trace;

/// A binding of llama.cpp, by the folder that its libraries are in.
struct Binding {
    folder: &'static str,
    name: &'static str,
    /// An option of llama.cpp's own programs, and what it is called here.
    options: &'static [(&'static str, &'static str)],
}

const BINDINGS: [Binding; 2] = [
    Binding {
        folder: "node-llama-cpp",
        name: "node-llama-cpp",
        options: &[
            ("-t", "threads"),
            ("-ub", "batchSize"),
            ("-ngl", "gpuLayers"),
            ("-fa", "flashAttention"),
            ("-ctk", "experimentalKvCacheKeyType"),
            ("-ctv", "experimentalKvCacheValueType"),
            ("-np", "sequences"),
            ("--no-mmap", "useMmap"),
            ("--swa-full", "swaFullCache"),
        ],
    },
    Binding {
        folder: "llama_cpp",
        name: "llama-cpp-python",
        options: &[
            ("-t", "n_threads"),
            ("-tb", "n_threads_batch"),
            ("-ub", "n_ubatch"),
            ("-b", "n_batch"),
            ("-ngl", "n_gpu_layers"),
            ("-fa", "flash_attn"),
            ("-ctk", "type_k"),
            ("-ctv", "type_v"),
            ("-sm", "split_mode"),
            ("-ts", "tensor_split"),
            ("-nkvo", "offload_kqv"),
            ("--no-op-offload", "op_offload"),
            ("--no-mmap", "use_mmap"),
            ("--swa-full", "swa_full"),
        ],
    },
];

/// `-t is threads in node-llama-cpp`: of the options in some advice, if the program uses a binding that has
/// names of its own.
pub(super) fn names_in(trace: &Trace, advice: &str) -> Option<String> {
    let binding = BINDINGS.iter().find(|binding| uses(trace, binding))?;
    let is_named = |option: &str| words(advice).any(|word| word == option);
    let known = binding.options.iter().filter(|(option, _)| is_named(option));
    let names: Vec<String> = known.map(|(option, name)| format!("{option} is {name}")).collect();
    (!names.is_empty()).then(|| format!("{} in {}", names.join(", "), binding.name))
}

fn uses(trace: &Trace, binding: &Binding) -> bool {
    let copies = trace.provenance.iter().flat_map(|provenance| &provenance.ggml);
    let mut folders = copies.flat_map(|ggml| ggml.path.split('/'));
    folders.any(|folder| folder == binding.folder || folder == format!("@{}", binding.folder))
}

fn words(advice: &str) -> impl Iterator<Item = &str> {
    advice.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::{Ggml, Provenance};

    fn of(path: &str) -> Trace {
        let ggml = vec![Ggml { path: path.to_owned(), ..Ggml::default() }];
        let provenance = Some(Provenance { ggml, ..Provenance::default() });
        Trace { provenance, ..Trace::default() }
    }

    #[test]
    fn names_of_the_binding_that_is_used() {
        let advice = "-t 2 (and -tb 2)";
        let node = of("/home/a/node_modules/@node-llama-cpp/linux-x64/bins/x/libggml-base.so");
        assert_eq!(names_in(&node, advice).as_deref(), Some("-t is threads in node-llama-cpp"));
        let python = of("/usr/lib/python3/site-packages/llama_cpp/lib/libggml-base.so");
        assert_eq!(
            names_in(&python, advice).as_deref(),
            Some("-t is n_threads, -tb is n_threads_batch in llama-cpp-python")
        );
        assert_eq!(names_in(&python, "cheaper sampling"), None);
        assert_eq!(names_in(&of("/usr/lib/libggml-base.so.0"), advice), None);
        assert_eq!(names_in(&Trace::default(), advice), None);
    }
}
