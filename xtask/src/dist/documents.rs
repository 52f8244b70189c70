//! The documents of a package: those that people look for, what these link to, and the examples that they
//! name. Each lies where it does in the repository, so that links lead to it.

use anyhow::Context;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

const FIRST: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];
const EXAMPLES: &str = "examples";

/// By their names, in a directory that has the repository's files.
pub(super) fn gather(root: &Path) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let mut wanted: Vec<PathBuf> = FIRST.map(PathBuf::from).into();
    for example in fs::read_dir(root.join(EXAMPLES)).context("there are no examples")? {
        wanted.push(Path::new(EXAMPLES).join(example?.file_name()));
    }
    let mut found = BTreeMap::new();
    while let Some(name) = wanted.pop() {
        if found.contains_key(&name) {
            continue;
        }
        let bytes = fs::read(root.join(&name))
            .with_context(|| format!("cannot read {}, which documents link to", name.display()))?;
        if name.extension().is_some_and(|it| it == "md") {
            wanted.extend(links(&name, &String::from_utf8_lossy(&bytes)));
        }
        found.insert(name, bytes);
    }
    Ok(found
        .into_iter()
        .map(|(name, bytes)| (name.to_string_lossy().into_owned(), bytes))
        .collect())
}

/// The files that a document links to: `[words](path#place)`.
fn links(document: &Path, text: &str) -> Vec<PathBuf> {
    let directory = document.parent().unwrap_or(Path::new(""));
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    let is_file = |target: &&str| {
        !target.is_empty() && !target.contains("://") && !target.contains(char::is_whitespace)
    };
    targets.filter(is_file).map(|target| plain(&directory.join(target))).collect()
}

/// Without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found() {
        let text = "[a](b.md), ![c](images/d.png) and [e](../f.md#g); [h](https://x/y), [i](#j)";
        let found = links(Path::new("docs/k.md"), text);
        assert_eq!(found, ["docs/b.md", "docs/images/d.png", "f.md"].map(PathBuf::from));
    }

    #[test]
    fn what_the_documents_link_to_is_in_the_package() {
        let documents = gather(&crate::shell::root()).unwrap();
        let names: Vec<&str> = documents.iter().map(|(name, _)| name.as_str()).collect();
        for name in ["README.md", "docs/explain.md", "docs/images/viewer.png", "ARCHITECTURE.md"] {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
        assert!(names.iter().any(|name| name.starts_with("examples/")), "{names:?}");
    }
}
