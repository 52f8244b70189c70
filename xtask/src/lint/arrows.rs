//! Who may depend on whom: the agent's modules by what they import, crates by what their manifests
//! name. The two tables define the order; ARCHITECTURE.md refers to them.

use std::fs;
use std::path::Path;

use super::imports::{depth, imports, is_of_name};
use super::source::{self, Source, line_of};

/// The agent's modules from the outside in. Each imports only from rows below its own.
const MODULES: &[&[&str]] = &[
    &["lib"],
    &["attach", "control", "process_end"],
    &["lifecycle"],
    &["delivery", "forking"],
    &["devices"],
    &["hooks"],
    &["observe"],
    &["recorder"],
    &["ffi"],
    &["config", "thread_keys", "unwinder"],
    &["patch"],
    &["clock", "memory"],
    &["spawn"],
    &["arch", "c_library", "digest", "fault", "lock", "quiet_log", "set_once", "signals"],
];

/// Each crate of the project with those of the others that it may depend on.
const CRATES: &[(&str, &[&str])] = &[
    ("ggprof-ggml", &[]),
    ("ggprof-spool", &[]),
    ("ggprof-agents", &[]),
    ("ggprof-agent", &["ggprof-ggml", "ggprof-spool"]),
    ("ggprof-trace", &["ggprof-ggml", "ggprof-spool"]),
    ("ggprof-analysis", &["ggprof-ggml", "ggprof-trace"]),
    ("ggprof-ops", &["ggprof-ggml"]),
    ("ggprof-peaks", &["ggprof-analysis", "ggprof-spool"]),
    ("ggprof-report", &["ggprof-analysis", "ggprof-trace"]),
    (
        "ggprof",
        &[
            "ggprof-agents",
            "ggprof-analysis",
            "ggprof-ggml",
            "ggprof-ops",
            "ggprof-peaks",
            "ggprof-report",
            "ggprof-spool",
            "ggprof-trace",
        ],
    ),
    ("ggml-profiler", &["ggprof-agent", "ggprof-analysis", "ggprof-report", "ggprof-trace"]),
    ("ggprof-workload", &["ggprof-ggml"]),
    ("ggprof-e2e", &["ggprof-ggml", "ggprof-spool"]),
    ("xtask", &["ggprof-e2e", "ggprof-spool"]),
];

const TABLES: &str = "xtask/src/lint/arrows.rs";

/// A sentence for each arrow that goes against the tables.
pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut findings: Vec<String> = source::agent(root)?.iter().flat_map(of_module).collect();
    let mut folders = vec!["tests".to_owned(), "xtask".to_owned()];
    for entry in fs::read_dir(root.join("crates"))? {
        folders.push(format!("crates/{}", entry?.file_name().to_string_lossy()));
    }
    for folder in folders {
        findings.extend(of_crate(&Source::read(root, &format!("{folder}/Cargo.toml"))?));
    }
    Ok(findings)
}

fn row_of(module: &str) -> Option<usize> {
    MODULES.iter().position(|row| row.contains(&module))
}

fn of_module(source: &Source) -> Vec<String> {
    let own = source.in_agent().split(['/', '.']).next().unwrap_or_default();
    let code = source.code();
    let imports = imports(&code, depth(source.in_agent()), |name| row_of(name).is_some());
    let imports = imports.into_iter().filter(|(_, module)| *module != own);
    let complain = |(at, module): (usize, &str)| {
        let place = format!("{}:{}", source.path, line_of(&code, at));
        match (row_of(own), row_of(module)) {
            (Some(from), Some(to)) if from < to => None,
            (Some(from), Some(to)) if from == to => Some(format!(
                "{place}: {own} imports {module}, which stands beside it in {TABLES}: neither may \
                 know of the other"
            )),
            (Some(_), Some(_)) => Some(format!(
                "{place}: {own} imports {module}, but the arrow goes the other way: {module} → \
                 {own} ({TABLES})"
            )),
            (None, _) => Some(format!("{place}: {own} has no place in the order of {TABLES}")),
            (_, None) => Some(format!("{place}: {module} has no place in the order of {TABLES}")),
        }
    };
    let hidden = hidden_imports(&code, depth(source.in_agent())).into_iter().map(|(at, form)| {
        let place = format!("{}:{}", source.path, line_of(&code, at));
        format!("{place}: `{form}` hides which modules are imported: name them from `crate::` on")
    });
    imports.filter_map(complain).chain(hidden).collect()
}

/// Ways to write an import that would hide it from this check: a second name for the crate's root,
/// everything of it at once, files of other modules.
const HIDING: &[&str] = &[
    "crate as ",
    "super as ",
    "self as ",
    "{super::",
    ", super::",
    "extern crate",
    "ggprof_agent::",
    "#[path",
    "include!",
    "crate::*",
    "crate::{*",
];

/// Where the code has one of them.
fn hidden_imports(code: &str, depth: usize) -> Vec<(usize, &str)> {
    let forms = HIDING.iter().flat_map(|form| code.match_indices(form));
    forms.chain(globs_of_the_root(code, depth)).collect()
}

/// Each `super::*` that leads to the root. A module inside of a file is one further away from it;
/// there it is how tests import what they test.
fn globs_of_the_root(code: &str, depth: usize) -> Vec<(usize, &str)> {
    let is_of_path = |letter: char| is_of_name(letter) || letter == ':';
    let globs = code.match_indices("super::*").filter_map(|(at, _)| {
        let start = code[..at].rfind(|letter| !is_of_path(letter)).map_or(0, |before| before + 1);
        let way = &code[start..at + "super::*".len()];
        let ups = way.matches("super::").count();
        (ups >= depth + usize::from(is_in_inner_module(code, at))).then_some((at, way))
    });
    globs.collect()
}

/// By the last line before it that begins an item of the file; formatted code indents what is inside.
fn is_in_inner_module(code: &str, at: usize) -> bool {
    let begins = |line: &&str| line.starts_with(|letter: char| letter.is_alphabetic());
    let item = code[..at].lines().rfind(begins).unwrap_or_default();
    item.split(' ').any(|word| word == "mod") && !item.ends_with(';')
}

fn of_crate(manifest: &Source) -> Vec<String> {
    let (mut section, mut own) = ("", "");
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(manifest.text.lines()) {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        }
        let key = line.split(['=', '.', ' ']).next().unwrap_or_default();
        if section == "package" && key == "name" {
            own = line.split('"').nth(1).unwrap_or_default();
        }
        let allowed = CRATES.iter().find(|(name, _)| *name == own).map(|(_, allowed)| *allowed);
        for key in depended_on(section, line, key) {
            // Tests of a crate may ask it for more than others get.
            let is_ours = key != own && CRATES.iter().any(|(name, _)| *name == key);
            if is_ours && !allowed.unwrap_or(&[]).contains(&key) {
                let place = format!("{}:{number}", manifest.path);
                findings.push(format!(
                    "{place}: {own} depends on {key}, an arrow that is not in {TABLES}"
                ));
            }
        }
    }
    if CRATES.iter().all(|(name, _)| *name != own) {
        findings.push(format!("{}:1: {own} has no place in {TABLES}", manifest.path));
    }
    findings
}

/// The crate that a line of a manifest names as a dependency, by any of the ways to write it: as a
/// key, as a section of its own, or behind another name.
fn depended_on<'a>(section: &'a str, line: &'a str, key: &'a str) -> Vec<&'a str> {
    let (_, of_section) = section.rsplit_once("dependencies").unwrap_or(("", "none"));
    if of_section == "none" {
        return Vec::new();
    }
    let renamed = line.split_once("package = \"").and_then(|(_, rest)| rest.split('"').next());
    let named = match line.starts_with('[') {
        true => of_section.trim_start_matches('.'),
        false => key,
    };
    renamed.into_iter().chain([named]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_keeps_to_its_order() {
        let findings = check(&crate::shell::root()).expect("its files can be read");
        assert!(findings.is_empty(), "{findings:#?}");
    }

    fn module(path: &str, text: &str) -> Vec<String> {
        of_module(&Source { path: format!("{}{path}", source::AGENT), text: text.to_owned() })
    }

    fn manifest(name: &str, rest: &str) -> Vec<String> {
        let text = format!("[package]\nname = \"{name}\"\n\n{rest}\n");
        of_crate(&Source { path: "a/Cargo.toml".to_owned(), text })
    }

    #[test]
    fn an_import_against_the_order_is_told_with_its_place() {
        let text =
            "//! use crate::hooks;\n\nuse crate::lock;\nuse crate::observe::graph::KnownNodes;";
        assert_eq!(
            module("recorder/lane.rs", text),
            [
                "crates/ggprof-agent/src/recorder/lane.rs:4: recorder imports observe, but the arrow \
              goes the other way: observe → recorder (xtask/src/lint/arrows.rs)"
            ]
        );
    }

    #[test]
    fn paths_in_lists_and_in_code_count_too() {
        let list = "use crate::{\n    clock,\n    hooks::{late, library},\n    lifecycle,\n};";
        let found = module("observe/run.rs", list);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("observe/run.rs:3: observe imports hooks"), "{found:?}");
        assert!(found[1].contains("observe/run.rs:4: observe imports lifecycle"), "{found:?}");
        let code = "fn a() {\n    $crate::fault::step();\n    crate::patch::got::bind();\n}";
        let found = module("clock.rs", code);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("clock.rs:3: clock imports patch"), "{found:?}");
    }

    #[test]
    fn the_way_over_the_parents_counts_too() {
        let found = module("recorder/lane.rs", "use super::super::observe::graph;");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("lane.rs:1: recorder imports observe"), "{found:?}");
        assert_eq!(module("recorder/mod.rs", "use super::{clock, hooks::late};").len(), 1);
        assert_eq!(module("devices/cuda/work.rs", "use super::super::super::lifecycle;").len(), 1);
        assert_eq!(module("devices/cuda/work.rs", "use super::super::hooks;"), [""; 0]);
        assert_eq!(module("observe/run.rs", "use super::devices;\nuse super::*;"), [""; 0]);
    }

    #[test]
    fn ways_to_hide_an_import_are_told() {
        for text in [
            "use crate as root;\nuse root::observe::run;",
            "use super::{self as root};\nuse root::observe::run;",
            "use super::{super::observe};",
            "use super::{clock, super::observe};",
            "use super::super as root;",
            "use crate::*;\nfn a() {\n    observe::x();\n}",
            "use crate::{*};",
            "extern crate self as agent;\nuse agent::observe;",
            "use ::ggprof_agent::observe;",
            "#[path = \"../observe/run.rs\"]\nmod run;",
            "use super::super::*;",
            "fn a() {\n    use super::super::*;\n    observe::x();\n}",
            "#[cfg(test)]\nmod tests {\n    use super::super::super::*;\n}",
            "fn a() {\n    b('\"');\n    let _ = (\"//\", crate::observe::x());\n}",
        ] {
            assert!(!module("recorder/lane.rs", text).is_empty(), "{text}");
        }
        assert_eq!(module("lock.rs", "use super::*;").len(), 1);
        let test = "#[cfg(test)]\nmod tests {\n    use super::*;\n}";
        assert_eq!(module("lock.rs", test), [""; 0]);
        assert_eq!(module("recorder/mod.rs", test), [""; 0]);
    }

    #[test]
    fn neighbours_and_strangers() {
        let found = module("delivery.rs", "use crate::forking;");
        assert!(found[0].contains("stands beside it"), "{found:?}");
        let found = module("hooks/late.rs", "use crate::utils::all;");
        assert!(found[0].contains("utils has no place"), "{found:?}");
        assert_eq!(module("hooks/late.rs", "use crate::hooks::entry;"), [""; 0]);
    }

    #[test]
    fn a_manifest_that_turns_an_arrow_is_told() {
        let right = "[dependencies]\nggprof-trace.workspace = true\nlibc = \"0.2\"";
        assert_eq!(manifest("ggprof-analysis", right), [""; 0]);
        let wrong = "[dev-dependencies]\nggprof-report = { path = \"../ggprof-report\" }";
        assert_eq!(
            manifest("ggprof-trace", wrong),
            ["a/Cargo.toml:5: ggprof-trace depends on ggprof-report, an arrow that is not in \
              xtask/src/lint/arrows.rs"]
        );
        for wrong in [
            "[dependencies.ggprof-report]\nworkspace = true",
            "[target.'cfg(unix)'.dependencies.ggprof-report]\nworkspace = true",
            "[dependencies]\nwords = { package = \"ggprof-report\", path = \"..\" }",
            "[dependencies.words]\npackage = \"ggprof-report\"",
        ] {
            assert_eq!(manifest("ggprof-trace", wrong).len(), 1, "{wrong}");
        }
        assert!(manifest("ggprof-new", "")[0].contains("has no place"));
    }
}
