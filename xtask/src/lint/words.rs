//! Words that may appear only in some files: they show which code depends on one processor, one C
//! library or one device API.

use std::path::Path;

use super::source::{self, Source, line_of};

/// Where attaching to a running program is, which stops threads and sets their registers.
const ATTACH: &str = "crates/ggprof/src/launch/attach/";

/// Words that may stand in the code below a folder only in some of its folders and files. Comments
/// may say what something is good for.
struct Rule {
    below: &'static str,
    /// In any case: `Cuda` is the same word as `CUDA`.
    words: &'static [&'static str],
    beginnings: &'static [Beginning],
    /// Whether instructions that are written as bytes are told.
    bytes: bool,
    belong_into: &'static [&'static str],
}

/// What names begin with, and what the next letter is: `vk` and a capital one of `vkCmdDispatch`.
type Beginning = (&'static str, fn(char) -> bool);

const RULES: &[Rule] = &[
    Rule {
        below: "crates/",
        words: &["asm!", "std::arch", "core::arch", "arch::asm", "_feature_detected!"],
        beginnings: &[],
        bytes: false,
        belong_into: &[
            "ggprof-agent/src/arch/",
            "ggprof/src/launch/attach/x86_64/",
            "ggprof/src/launch/attach/aarch64/",
            // Loops that measure what a processor can do.
            "ggprof-peaks/src/cpu/",
        ],
    },
    Rule {
        below: source::AGENT,
        words: &[
            "naked",
            "iced_x86",
            "R_X86_64",
            "R_AARCH64",
            "user_regs",
            "target_arch",
            ".byte 0x",
        ],
        beginnings: &[("REG_R", char::is_alphanumeric)],
        bytes: true,
        belong_into: &["arch/"],
    },
    Rule {
        below: source::AGENT,
        words: &["cuda", "cupti", "cublas", "nvml", "nvidia", "vulkan", "opencl", "sycl"],
        beginnings: &[
            ("cu", char::is_uppercase),
            ("hip", char::is_uppercase),
            ("CU", char::is_lowercase),
            ("CU_", char::is_uppercase),
            ("vk", char::is_uppercase),
            ("Vk", char::is_uppercase),
            ("VK_", char::is_uppercase),
        ],
        bytes: false,
        belong_into: &["devices/"],
    },
    Rule {
        below: source::AGENT,
        words: &["target_env"],
        beginnings: &[],
        bytes: false,
        // The last one says which rooms there are.
        belong_into: &["c_library.rs", "lib.rs"],
    },
    Rule {
        below: ATTACH,
        words: &["user_regs", ".rip", ".rsp", "rax", "NT_X86", "NT_ARM", "pstate"],
        beginnings: &[],
        bytes: true,
        belong_into: &["x86_64/", "aarch64/"],
    },
];

/// A sentence for each word that stands elsewhere.
pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    Ok(source::below(root, "crates/")?.iter().flat_map(misplaced).collect())
}

fn misplaced(source: &Source) -> Vec<String> {
    let code = source.code();
    let rules = RULES.iter().filter(|rule| {
        let place = source.path.strip_prefix(rule.below);
        place.is_some_and(|place| !rule.belong_into.iter().any(|folder| place.starts_with(folder)))
    });
    rules.flat_map(|rule| misplaced_by(rule, source, &code)).collect()
}

fn misplaced_by(rule: &Rule, source: &Source, code: &str) -> Vec<String> {
    let folded = code.to_ascii_lowercase();
    let words = rule.words.iter().flat_map(|word| {
        let sought = word.to_ascii_lowercase();
        let places = folded.match_indices(&sought).map(|(at, _)| (at, *word));
        places.collect::<Vec<_>>()
    });
    let names = rule.beginnings.iter().flat_map(|(start, next)| begun(code, start, *next));
    let bytes = if rule.bytes { instructions(&folded) } else { Vec::new() };
    let sentences = words.chain(names).chain(bytes).map(|(at, word)| {
        let place = format!("{}:{}", source.path, line_of(code, at));
        let folders = rule.belong_into.join(" or ");
        let below = rule.below;
        format!("{place}: {word} belongs into {folders} of {below} (xtask/src/lint/words.rs)")
    });
    sentences.collect()
}

/// Names with this beginning, as far as the letter after it, and where they are.
fn begun<'c>(code: &'c str, start: &str, next: fn(char) -> bool) -> Vec<(usize, &'c str)> {
    let places = code.match_indices(start).filter_map(|(at, _)| {
        let is_of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
        let begins = !code[..at].ends_with(is_of_name);
        let name = code.get(at..at + start.len() + 1).filter(|name| name.ends_with(next))?;
        begins.then_some((at, name))
    });
    places.collect()
}

/// Bytes that look like those of instructions, and where they are: hexadecimal ones in a list, as the
/// argument of `push` or of the type `u8`, and escaped ones in a text of bytes. (Written as decimal
/// numbers or as words they cannot be told from anything else.)
fn instructions(folded: &str) -> Vec<(usize, &str)> {
    let numbers = folded.match_indices("0x").filter_map(|(at, _)| {
        let digits = &folded[at + 2..];
        let after = digits.trim_start_matches(|digit: char| digit.is_ascii_hexdigit());
        let number = &folded[at..folded.len() - after.len()];
        let before = folded[..at].trim_end();
        let after = after.trim_start_matches('_').trim_start_matches("u8").trim_start();
        let is_in_list = before.ends_with(['[', ',']) && after.starts_with([',', ']', ';']);
        let is_alone = ["push(", "u8 =", "[u8] ="].iter().any(|start| before.ends_with(start));
        (number.len() <= "0xff".len() && (is_in_list || is_alone)).then_some((at, number))
    });
    let texts = folded.match_indices("b\"").filter_map(|(at, _)| {
        let text = folded[at + 2..].split('"').next().unwrap_or_default();
        // ELF files begin like this.
        let is_magic = text.starts_with("\\x7felf");
        (text.contains("\\x") && !is_magic).then_some((at, text))
    });
    numbers.chain(texts).collect()
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
        let place =
            "crates/ggprof-agent/src/clock.rs:3: asm! belongs into ggprof-agent/src/arch/ or ";
        assert!(found.iter().any(|sentence| sentence.starts_with(place)), "{found:?}");
    }

    #[test]
    fn instructions_in_other_crates_are_told_too() {
        let told = |path: &str, text: &str| {
            misplaced(&Source { path: format!("crates/{path}"), text: text.to_owned() }).len()
        };
        let text = "fn stop() {\n    unsafe { asm!(\"hlt\") };\n}";
        assert_eq!(told("ggprof/src/launch/program.rs", text), 1);
        assert_eq!(told("ggprof-trace/src/model/event.rs", text), 1);
        assert_eq!(told("ggprof-peaks/src/device.rs", text), 1);
        assert_eq!(told("ggprof-peaks/src/cpu/amx.rs", text), 0);
        assert_eq!(told("ggprof/src/launch/attach/aarch64/mod.rs", text), 0);
        assert_eq!(told("ggprof-report/src/lib.rs", "use std::arch::x86_64::*;"), 1);
        assert_eq!(told("ggprof-report/src/lib.rs", "use std::{arch::asm, fs};"), 1);
    }

    #[test]
    fn instructions_as_bytes_are_told_however_they_are_written() {
        for code in [
            "const CODE: [u8; 5] = [0xE9, 0, 0, 0, 0];",
            "let code = [0x0F, 0x05];",
            "b.push(0xe9);",
            "let code = b\"\\x0f\\x05\";",
            "let code = vec![0xcc];",
            "let code = [0xeb, 5];",
            "let code = [0x48, 0x89, 0xe5];",
            "let code = [0x90; 5];",
            "let code = [\n    0x0f_u8,\n    5,\n];",
            "const STOP: u8 = 0xcc;",
        ] {
            assert!(!of("clock.rs", code).is_empty(), "{code}");
            assert_eq!(of("arch/x86_64/clock.rs", code), [""; 0]);
        }
        for other in
            ["b\"\\x7fELF\\x02\"", "kind & 0xf == 2", "[0x6fff_fef5]", "number(&head, 0x28)"]
        {
            assert_eq!(of("clock.rs", other), [""; 0], "{other}");
        }
    }

    #[test]
    fn bytes_of_instructions_and_registers_count_too() {
        let text = "const CODE: [u8; 2] = [0x0f, 0x05];\nlet at = registers.rip;";
        assert_eq!(of("patch/inline.rs", text).len(), 2);
        let attach = |path: &str| {
            misplaced(&Source { path: format!("{ATTACH}{path}"), text: text.to_owned() }).len()
        };
        assert_eq!((attach("call.rs"), attach("x86_64/way_back.rs")), (3, 0));
        let choice = "#[cfg(target_arch = \"x86_64\")]\nconst WORDS: usize = 6;";
        assert_eq!((of("ffi/tensor.rs", choice).len(), of("arch/mod.rs", choice).len()), (1, 0));
    }

    #[test]
    fn a_choice_of_the_c_library_elsewhere_is_told() {
        let text = "#[cfg(target_env = \"musl\")]\nconst VERSIONS: bool = false;";
        assert_eq!((of("hooks/opened.rs", text).len(), of("c_library.rs", text).len()), (1, 0));
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
    #[test]
    fn types_and_constants_of_a_device_api_are_told_too() {
        for word in
            ["VkDevice", "VK_SUCCESS", "CUdeviceptr", "CU_EVENT_DEFAULT", "nvmlInit", "NVIDIA"]
        {
            let text = format!("fn f() {{ let _ = {word}; }}");
            assert_eq!(of("observe/split.rs", &text).len(), 1, "{word}");
            assert_eq!(of("devices/cuda/api.rs", &text), [""; 0]);
        }
    }
}
