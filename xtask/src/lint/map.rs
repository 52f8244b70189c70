//! Checks that files and folders named in the documents exist, and that a reader can tell which are meant.
//! A name may start at the project's directory, beside the document, beside what was named before it, or
//! anywhere else if no other path ends like it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::source::{Source, line_of};

/// Of all documents but these: one tells of files that are gone, the others are what tests expect.
const NOT_CHECKED: &[&str] = &["CHANGELOG.md", "golden/"];
/// What no clone has.
const NOT_OURS: &[&str] = &["target", "node_modules", ".git"];
/// They have a folder for each processor or device API, with files of the same names.
const FOLDERS_OF_TWINS: &[&str] = &["arch", "attach", "devices"];
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
    let mut complaints = Vec::new();
    let mut before: Option<&str> = None;
    for (at, name) in named(&document.text) {
        match place(name, &document.path, before, paths) {
            Ok(path) => before = Some(path),
            Err(why) => {
                let line = line_of(&document.text, at);
                complaints.push(format!("{}:{line}: {why}", document.path));
            }
        }
    }
    complaints
}

/// The one path that a document means by a name, given the path that it named before.
fn place<'p>(
    name: &str,
    document: &str,
    before: Option<&str>,
    paths: &'p BTreeSet<String>,
) -> Result<&'p str, String> {
    let folder_of = |path: &str| path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
    let near = [Some(folder_of(document)), before.map(str::to_owned), before.map(folder_of)];
    let nearby = near.into_iter().flatten().map(|folder| format!("{folder}/{name}"));
    let known = |path: String| paths.get(path.trim_start_matches('/')).map(String::as_str);
    if let Some(path) = std::iter::once(name.to_owned()).chain(nearby).find_map(known) {
        return Ok(path);
    }
    let end = format!("/{name}");
    let mut ends: Vec<&str> =
        paths.iter().map(String::as_str).filter(|path| path.ends_with(&end)).collect();
    ends.dedup_by(|one, other| are_twins(one, other));
    match ends[..] {
        [path] => Ok(path),
        [] => Err(format!("there is no {name} in the project")),
        [one, other, ..] => Err(format!("{name} may be {one} or {other}: name more of the path")),
    }
}

/// Whether two paths differ in nothing but the processor or device API that they are for.
fn are_twins(one: &str, other: &str) -> bool {
    let (one, other): (Vec<&str>, Vec<&str>) =
        (one.split('/').collect(), other.split('/').collect());
    let different: Vec<usize> =
        (0..one.len().min(other.len())).filter(|&place| one[place] != other[place]).collect();
    let is_of_twins = |place: usize| place > 0 && FOLDERS_OF_TWINS.contains(&one[place - 1]);
    one.len() == other.len() && matches!(different[..], [place] if is_of_twins(place))
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

    #[test]
    fn a_name_that_fits_several_files_is_told() {
        let paths: BTreeSet<String> = [
            "crates/a/src/copies.rs",
            "crates/a/src/experts.rs",
            "crates/b/src/copies.rs",
            "crates/b/src/experts.rs",
            "crates/c/arch/arm/code.rs",
            "crates/c/arch/x86/code.rs",
        ]
        .map(str::to_owned)
        .into();
        let of = |text: &str| {
            let document = Source { path: "x.md".to_owned(), text: text.to_owned() };
            unknown(&document, &paths)
        };
        let found = of("`copies.rs`");
        let told = "x.md:1: copies.rs may be crates/a/src/copies.rs or crates/b/src/copies.rs: name more of \
                    the path";
        assert_eq!(found, [told]);
        assert_eq!(of("`a/src/copies.rs`, `experts.rs` beside it"), [""; 0]);
        assert_eq!(of("`code.rs` of each processor"), [""; 0]);
    }
}
