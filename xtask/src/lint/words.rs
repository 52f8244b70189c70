//! Words that may appear only in some files of the agent: they show which code depends on one
//! processor or on one device API.

use std::path::Path;

use super::source::{self, Source, line_of};

/// Words, and the folders and files of the agent's sources outside of which they may not stand in
/// code. Comments may say what something is good for.
struct Rule {
    words: &'static [&'static str],
    /// `Cuda` is the same word as `CUDA`.
    ignores_case: bool,
    belong_into: &'static [&'static str],
}

const RULES: &[Rule] = &[
    Rule {
        words: &["asm!", "naked", "std::arch", "core::arch", "iced_x86", "R_X86_64"],
        ignores_case: false,
        belong_into: &["arch/"],
    },
    Rule {
        words: &["cuda", "cupti", "vulkan"],
        ignores_case: true,
        // All locks are in one list, including those of device APIs.
        belong_into: &["devices/", "lock.rs"],
    },
];

/// A sentence for each word that stands elsewhere.
pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    Ok(source::agent(root)?.iter().flat_map(misplaced).collect())
}

fn misplaced(source: &Source) -> Vec<String> {
    let code = source.code();
    let rules = RULES.iter().filter(|rule| {
        !rule.belong_into.iter().any(|folder| source.in_agent().starts_with(folder))
    });
    let found = rules.flat_map(|rule| {
        let code = if rule.ignores_case { code.to_ascii_lowercase() } else { code.clone() };
        let places = rule.words.iter().flat_map(|word| code.match_indices(word));
        let sentences = places.map(|(at, word)| {
            let place = format!("{}:{}", source.path, line_of(&code, at));
            let folders = rule.belong_into.join(" or ");
            format!("{place}: {word} belongs into {folders} of the agent (xtask/src/lint/words.rs)")
        });
        sentences.collect::<Vec<_>>()
    });
    found.collect()
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
                &"crates/ggprof-agent/src/clock.rs:3: asm! belongs into arch/ of the agent \
              (xtask/src/lint/words.rs)"
                    .to_owned()
            )
        );
    }

    #[test]
    fn names_of_devices_in_what_concerns_all_are_told() {
        let text = "/// As of CUDA.\nstruct Split {\n    of: Option<CudaSplit>,\n}";
        assert_eq!(of("devices/cuda/process.rs", text), [""; 0]);
        assert_eq!(
            of("observe/split.rs", text),
            [
                "crates/ggprof-agent/src/observe/split.rs:3: cuda belongs into devices/ or lock.rs of \
              the agent (xtask/src/lint/words.rs)"
            ]
        );
    }
}
