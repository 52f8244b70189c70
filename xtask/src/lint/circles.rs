//! In each crate, modules of the first level that import each other in a circle. The agent has a stricter
//! order (`arrows.rs`). Tests may import what they like.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use super::imports::{depth, imports, is_of_name};
use super::source::{self, Source, line_of};

/// Who imports whom, with the first place where it does.
type Imports<'c> = BTreeMap<&'c str, BTreeMap<&'c str, String>>;

/// A sentence for each import that leads back to where it stands.
pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut folders = vec!["tests/src/".to_owned(), "xtask/src/".to_owned()];
    for entry in std::fs::read_dir(root.join("crates"))? {
        folders.push(format!("crates/{}/src/", entry?.file_name().to_string_lossy()));
    }
    folders.retain(|folder| folder != source::AGENT);
    let mut findings = Vec::new();
    for folder in folders {
        findings.extend(of_crate(&folder, &source::below(root, &folder)?));
    }
    Ok(findings)
}

fn of_crate(folder: &str, sources: &[Source]) -> Vec<String> {
    let within = |source: &Source| source.path[folder.len()..].to_owned();
    let files: Vec<(String, &Source, String)> = sources
        .iter()
        .filter(|source| !is_test(&within(source)))
        .map(|source| (within(source), source, without_tests(source.code())))
        .collect();
    let modules: BTreeSet<&str> = files.iter().filter_map(|(path, ..)| module_of(path)).collect();
    let shown: BTreeMap<&str, &str> = files
        .iter()
        .filter(|(path, ..)| module_of(path).is_none())
        .flat_map(|(_, _, code)| re_exports(code, &modules))
        .collect();
    let mut all = Imports::new();
    for (path, source, code) in &files {
        let Some(own) = module_of(path) else { continue };
        for (at, name) in imports(code, depth(path), |name| modules.contains(name)) {
            let module = modules.get(name).or_else(|| shown.get(name));
            if let Some(&module) = module.filter(|&&module| module != own) {
                let place = || format!("{}:{}", source.path, line_of(code, at));
                all.entry(own).or_default().entry(module).or_insert_with(place);
            }
        }
    }
    circles(&all)
}

fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs") || path.split('/').any(|folder| folder == "tests")
}

/// They stand at a file's end.
fn without_tests(mut code: String) -> String {
    let end = code.find("#[cfg(test)]\nmod tests {").unwrap_or(code.len());
    code.truncate(end);
    code
}

/// The module of the first level that a file belongs to; none of the crate's root.
fn module_of(path: &str) -> Option<&str> {
    let module = path.split(['/', '.']).next().unwrap_or_default();
    (!matches!(path, "lib.rs" | "main.rs")).then_some(module)
}

/// What the root shows under its own name, each with the module that it is of.
fn re_exports<'c>(code: &'c str, modules: &BTreeSet<&'c str>) -> Vec<(&'c str, &'c str)> {
    let mut found = Vec::new();
    for (at, start) in code.match_indices("use ") {
        let Some(statement) = code[at + start.len()..].split(';').next() else { continue };
        let mut names = statement.split(|letter| !is_of_name(letter)).filter(|it| !it.is_empty());
        if let Some(module) = names.next().and_then(|name| modules.get(name)) {
            found.extend(names.map(|name| (name, *module)));
        }
    }
    found
}

fn circles(all: &Imports<'_>) -> Vec<String> {
    let mut findings = Vec::new();
    for (&own, imports) in all {
        for (&module, place) in imports {
            if let Some(way) = way(all, module, own) {
                findings.push(format!(
                    "{place}: {own} imports {module}, which leads back to it: {}",
                    way.join(" → ")
                ));
            }
        }
    }
    findings
}

/// The shortest way by imports.
fn way<'c>(all: &Imports<'c>, from: &'c str, to: &'c str) -> Option<Vec<&'c str>> {
    let mut ways = VecDeque::from([vec![from]]);
    let mut seen = BTreeSet::from([from]);
    while let Some(way) = ways.pop_front() {
        let last = *way.last()?;
        if last == to {
            return Some(way);
        }
        for &next in all.get(last).into_iter().flat_map(BTreeMap::keys) {
            if seen.insert(next) {
                ways.push_back([&way[..], &[next]].concat());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_has_no_circle() {
        let findings = check(&crate::shell::root()).expect("its files can be read");
        assert!(findings.is_empty(), "{findings:#?}");
    }

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let source = |(path, text): &(&str, &str)| Source {
            path: format!("a/src/{path}"),
            text: (*text).to_owned(),
        };
        of_crate("a/src/", &files.iter().map(source).collect::<Vec<_>>())
    }

    #[test]
    fn modules_that_lead_back_to_themselves_are_told() {
        let files = [
            ("lib.rs", "mod cook;\nmod meal;\nmod shop;\npub use shop::{Bread, price};"),
            ("cook.rs", "use crate::meal::Plate;"),
            ("meal/mod.rs", "mod soup;"),
            ("meal/soup.rs", "// crate::cook is no import.\nuse crate::{Bread, meal};"),
            ("shop.rs", "fn a() {\n    super::cook::b();\n}"),
        ];
        assert_eq!(
            found(&files),
            [
                "a/src/cook.rs:1: cook imports meal, which leads back to it: meal → shop → cook",
                "a/src/meal/soup.rs:2: meal imports shop, which leads back to it: shop → cook → meal",
                "a/src/shop.rs:2: shop imports cook, which leads back to it: cook → meal → shop",
            ]
        );
    }

    #[test]
    fn tests_may_import_what_they_test_with() {
        let test =
            "use crate::shop::Bread;\n#[cfg(test)]\nmod tests {\n    use crate::cook::stew;\n}";
        let files = [("meal.rs", test), ("cook.rs", "use crate::meal;"), ("shop.rs", "")];
        assert_eq!(found(&files), [""; 0]);
        let files = [("meal/tests.rs", "use crate::cook;"), ("cook.rs", "use crate::meal;")];
        assert_eq!(found(&files), [""; 0]);
    }
}
