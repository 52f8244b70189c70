//! Checks that files and folders named in the documents exist. A name may start at the project's
//! directory or further down: the end of the path is enough.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::source::{Source, line_of};

/// Of all documents but these: one tells of files that are gone, the others are what tests expect.
const NOT_CHECKED: &[&str] = &["CHANGELOG.md", "golden/"];
/// What no clone has.
const NOT_OURS: &[&str] = &["target", "node_modules", ".git"];
const ENDINGS: &[&str] =
    &["/", ".rs", ".md", ".toml", ".mjs", ".sh", ".py", ".c", ".h", ".js", ".html"];

/// A sentence for each that is not.
pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut paths = BTreeSet::new();
    collect(root, "", &mut paths)?;
    let mut findings = Vec::new();
    let is_checked = |path: &&String| {
        path.ends_with(".md") && !NOT_CHECKED.iter().any(|other| path.contains(other))
    };
    for document in paths.iter().filter(is_checked) {
        findings.extend(unknown(&Source::read(root, document)?, &paths));
    }
    Ok(findings)
}

fn collect(root: &Path, folder: &str, paths: &mut BTreeSet<String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{folder}/{name}");
        if !NOT_OURS.contains(&name.as_str()) {
            if entry.file_type()?.is_dir() {
                collect(root, path.trim_start_matches('/'), paths)?;
            }
            paths.insert(path.trim_start_matches('/').to_owned());
        }
    }
    Ok(())
}

fn unknown(document: &Source, paths: &BTreeSet<String>) -> Vec<String> {
    let is_there = |name: &str| {
        let end = format!("/{name}");
        paths.iter().any(|path| path == name || path.ends_with(&end))
    };
    let named = named(&document.text).into_iter().filter(|(_, name)| !is_there(name));
    let complain = |(at, name): (usize, &str)| {
        let line = line_of(&document.text, at);
        format!("{}:{line}: there is no {name} in the project", document.path)
    };
    named.map(complain).collect()
}

/// What stands between two backticks and is the path of a file or folder of ours.
fn named(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut rest = 0;
    for (number, part) in text.split('`').enumerate() {
        let is_path = |part: &str| {
            let letters = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
            let is_ending = ENDINGS.contains(&part);
            part.chars().all(letters) && part.len() > 2 && !is_ending
        };
        let is_named = ENDINGS.iter().any(|ending| part.ends_with(ending));
        let is_made = NOT_OURS.iter().any(|folder| part.starts_with(folder));
        if number % 2 == 1 && is_path(part) && is_named && !is_made && !part.starts_with('/') {
            found.push((rest, part.trim_end_matches('/')));
        }
        rest += part.len() + 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_name_what_is_there() {
        let findings = check(&crate::shell::root()).expect("its files can be read");
        assert!(findings.is_empty(), "{findings:#?}");
    }

    #[test]
    fn what_is_not_there_is_told() {
        let paths = ["crates/a/src/b.rs", "crates/a/src", "c.md"].map(str::to_owned).into();
        let text = "`src/b.rs`, `a/src/`, `c.md` and `target/d/`, `1.0`, `e f.rs`,\nbut `g.rs`";
        let document = Source { path: "x.md".to_owned(), text: text.to_owned() };
        assert_eq!(unknown(&document, &paths), ["x.md:2: there is no g.rs in the project"]);
    }
}
