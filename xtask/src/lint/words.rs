//! Words that may appear only in some files: they show which code depends on one processor or on one
//! device API.

use std::path::Path;

use super::source::{self, Source, line_of};

/// Where attaching to a running program is, which stops threads and sets their registers.
const ATTACH: &str = "crates/ggprof/src/launch/attach/";

/// Words that may stand in the code below a folder only in some of its folders and files. Comments
/// may say what something is good for.
struct Rule {
    below: &'static str,
    words: &'static [&'static str],
    /// `Cuda` is the same word as `CUDA`.
    ignores_case: bool,
    /// What an API's functions begin with, before a capital letter: `vk` of `vkCmdDispatch`.
    functions: &'static [&'static str],
    belong_into: &'static [&'static str],
}

const RULES: &[Rule] = &[
    Rule {
        below: source::AGENT,
        words: &[
            "asm!",
            "naked",
            "std::arch",
            "core::arch",
            "iced_x86",
            "R_X86_64",
            "R_AARCH64",
            "REG_R",
            "user_regs",
            "target_arch",
            ".byte 0x",
            // Instructions as bytes: of two bytes, and jumps.
            "0x0f, 0x",
            "0xff, 0x25",
            "0xe9,",
        ],
        ignores_case: false,
        functions: &[],
        belong_into: &["arch/"],
    },
    Rule {
        below: source::AGENT,
        words: &["cuda", "cupti", "vulkan"],
        ignores_case: true,
        functions: &["cu", "vk"],
        belong_into: &["devices/"],
    },
    Rule {
        below: ATTACH,
        words: &["user_regs", ".rip", ".rsp", "rax", "NT_X86", "NT_ARM", "pstate", "0x0f, 0x"],
        ignores_case: false,
        functions: &[],
        belong_into: &["x86_64/", "aarch64/"],
    },
];

/// A sentence for each word that stands elsewhere.
pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let folders = [source::AGENT, ATTACH].map(|folder| source::below(root, folder));
    let mut findings = Vec::new();
    for sources in folders {
        findings.extend(sources?.iter().flat_map(misplaced));
    }
    Ok(findings)
}

fn misplaced(source: &Source) -> Vec<String> {
    let code = source.code();
    let rules = RULES.iter().filter(|rule| {
        let place = source.path.strip_prefix(rule.below);
        place.is_some_and(|place| !rule.belong_into.iter().any(|folder| place.starts_with(folder)))
    });
    let found = rules.flat_map(|rule| {
        let folded = if rule.ignores_case { code.to_ascii_lowercase() } else { code.clone() };
        let words = rule.words.iter().flat_map(|word| folded.match_indices(word));
        let places = words.chain(rule.functions.iter().flat_map(|start| functions(&code, start)));
        let sentences = places.map(|(at, word)| {
            let place = format!("{}:{}", source.path, line_of(&code, at));
            let folders = rule.belong_into.join(" or ");
            let below = rule.below;
            format!("{place}: {word} belongs into {folders} of {below} (xtask/src/lint/words.rs)")
        });
        sentences.collect::<Vec<_>>()
    });
    found.collect()
}

/// Names of functions with this beginning, as far as their first capital letter, and where they are.
fn functions<'c>(code: &'c str, start: &'c str) -> impl Iterator<Item = (usize, &'c str)> {
    code.match_indices(start).filter_map(move |(at, _)| {
        let is_of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
        let begins = !code[..at].ends_with(is_of_name);
        let end = at + start.len() + 1;
        let name = code.get(at..end).filter(|name| name.ends_with(|c: char| c.is_uppercase()))?;
        begins.then_some((at, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_keeps_its_words_where_they_belong() {
        let findings = check(&crate::shell::root()).expect("its files can be read");
        assert!(findings.is_empty(), "{findings:#?}");
    }

    fn of(path: &str, text: &str) -> Vec<String> {
        misplaced(&Source { path: format!("{}{path}", source::AGENT), text: text.to_owned() })
    }

    #[test]
    fn instructions_outside_their_folder_are_told() {
        let text = "// asm! would do\nfn stop() {\n    unsafe { std::arch::asm!(\"hlt\") };\n}";
        assert_eq!(of("arch/x86_64/layout.rs", text), [""; 0]);
        let found = of("clock.rs", text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found.contains(
                &"crates/ggprof-agent/src/clock.rs:3: asm! belongs into arch/ of crates/ggprof-agent/src/ \
              (xtask/src/lint/words.rs)"
                    .to_owned()
            )
        );
    }

    #[test]
    fn bytes_of_instructions_and_registers_count_too() {
        let text = "const CODE: [u8; 2] = [0x0f, 0x05];\nlet at = registers.rip;";
        assert_eq!(of("patch/inline.rs", text).len(), 1);
        let attach = |path: &str| {
            misplaced(&Source { path: format!("{ATTACH}{path}"), text: text.to_owned() }).len()
        };
        assert_eq!((attach("call.rs"), attach("x86_64/way_back.rs")), (2, 0));
        let choice = "#[cfg(target_arch = \"x86_64\")]\nconst WORDS: usize = 6;";
        assert_eq!((of("ffi/tensor.rs", choice).len(), of("arch/mod.rs", choice).len()), (1, 0));
    }

    #[test]
    fn names_of_devices_in_what_concerns_all_are_told() {
        let text = "/// As of CUDA.\nstruct Split {\n    of: Option<CudaSplit>,\n}";
        assert_eq!(of("devices/cuda/process.rs", text), [""; 0]);
        assert_eq!(
            of("observe/split.rs", text),
            ["crates/ggprof-agent/src/observe/split.rs:3: cuda belongs into devices/ of \
              crates/ggprof-agent/src/ (xtask/src/lint/words.rs)"]
        );
    }

    #[test]
    fn functions_of_a_device_api_are_told_by_their_beginning() {
        let text = "fn f() { find(c\"cuLaunchKernel\"); vkCmdDispatch(); focus(); cut(); }";
        assert_eq!(of("devices/cuda/api.rs", text), [""; 0]);
        let found = of("observe/split.rs", text);
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
