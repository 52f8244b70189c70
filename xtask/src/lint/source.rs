//! Files of the project as the checks read them.

use std::fs;
use std::path::Path;

use anyhow::Context;

/// Where the agent's modules are.
pub(super) const AGENT: &str = "crates/ggprof-agent/src/";

/// A file, by its path from the project's directory.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: String,
    pub(super) text: String,
}

impl Source {
    pub(super) fn read(root: &Path, path: &str) -> anyhow::Result<Source> {
        let text = fs::read_to_string(root.join(path)).with_context(|| path.to_owned())?;
        Ok(Source { path: path.to_owned(), text })
    }

    /// The path within the agent's sources.
    pub(super) fn in_agent(&self) -> &str {
        self.path.strip_prefix(AGENT).unwrap_or(&self.path)
    }

    /// The text without comments, line by line as it was.
    pub(super) fn code(&self) -> String {
        let lines = self.text.lines().map(without_comment);
        lines.flat_map(|line| [line, "\n"]).collect()
    }
}

/// All of the agent's modules.
pub(super) fn agent(root: &Path) -> anyhow::Result<Vec<Source>> {
    below(root, AGENT)
}

/// All Rust files in a folder and those in it.
pub(super) fn below(root: &Path, folder: &str) -> anyhow::Result<Vec<Source>> {
    let mut sources = Vec::new();
    let mut folders = vec![folder.trim_end_matches('/').to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).with_context(|| folder.clone())? {
            let entry = entry?;
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if path.ends_with(".rs") {
                sources.push(Source::read(root, &path)?);
            }
        }
    }
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(sources)
}

/// Counted from 1.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Up to two slashes that are not in a text. (A text of several lines with slashes in it is taken
/// for code or comment as it comes; there is none that would matter.)
fn without_comment(line: &str) -> &str {
    let bytes = line.as_bytes();
    let (mut in_text, mut at) = (false, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if in_text => at += 1,
            b'"' => in_text = !in_text,
            b'/' if !in_text && bytes.get(at + 1) == Some(&b'/') => return &line[..at],
            _ => {}
        }
        at += 1;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_cut_and_texts_are_not() {
        let text = "let a = \"//\\\"//\"; // b\n//! c\nd".to_owned();
        let source = Source { path: "a.rs".to_owned(), text };
        assert_eq!(source.code(), "let a = \"//\\\"//\"; \n\nd\n");
    }
}
