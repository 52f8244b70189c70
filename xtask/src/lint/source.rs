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
        let (mut code, mut rest) = (String::new(), self.text.as_str());
        while !rest.is_empty() {
            let piece = Piece::first_of(rest, code.chars().next_back());
            let (text, after) = rest.split_at(piece.len);
            match piece.is_comment {
                true => code.extend(text.matches('\n')),
                false => code.push_str(text),
            }
            rest = after;
        }
        code
    }
}

/// A comment, a text, a character, or one byte of other code.
struct Piece {
    len: usize,
    is_comment: bool,
}

impl Piece {
    fn first_of(rest: &str, before: Option<char>) -> Piece {
        let code = |len| Piece { len, is_comment: false };
        let is_in_name = before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
        if rest.starts_with("//") {
            Piece { len: rest.find('\n').unwrap_or(rest.len()), is_comment: true }
        } else if rest.starts_with("/*") {
            Piece { len: block_comment(rest), is_comment: true }
        } else if let Some(len) = raw_text(rest).filter(|_| !is_in_name) {
            code(len)
        } else if rest.starts_with('"') {
            code(text(rest))
        } else if rest.starts_with('\'') {
            code(character(rest))
        } else {
            code(rest.chars().next().map_or(0, char::len_utf8))
        }
    }
}

/// With the comments that are in it.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match rest.as_bytes()[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// From its `r` on.
fn raw_text(rest: &str) -> Option<usize> {
    let hashes = rest.strip_prefix('r')?;
    let text = hashes.trim_start_matches('#');
    let end = format!("\"{}", &hashes[..hashes.len() - text.len()]);
    let inner = text.strip_prefix('"')?;
    let start = rest.len() - inner.len();
    Some(inner.find(&end).map_or(rest.len(), |at| start + at + end.len()))
}

fn text(rest: &str) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest.as_bytes()[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// A character, or the mark alone if it begins a lifetime.
fn character(rest: &str) -> usize {
    let mut letters = rest.char_indices().skip(1);
    match letters.next() {
        // What follows the backslash may be a mark itself.
        Some((_, '\\')) => {
            letters.nth(1).and_then(|(at, _)| rest[at..].find('\'').map(|end| at + end + 1))
        }
        _ => letters.next().filter(|(_, letter)| *letter == '\'').map(|(at, _)| at + 1),
    }
    .unwrap_or(1)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        Source { path: "a.rs".to_owned(), text: text.to_owned() }.code()
    }

    #[test]
    fn comments_are_cut_and_texts_are_not() {
        let text = "let a = \"//\\\"//\"; // b\n//! c\nd\n";
        assert_eq!(code(text), "let a = \"//\\\"//\"; \n\nd\n");
        assert_eq!(code("a /* b /* c\n */ d */ e"), "a \n e");
    }

    #[test]
    fn a_mark_that_begins_no_text_hides_nothing() {
        for text in [
            "f('\"'); g(\"//\"); h();",
            "f('\\\''); g(\"//\"); h();",
            "f::<'a, 'b>(\"//\"); h();",
            "f(b'\"', '\\u{22}', \"a\nb // c\"); h();",
            "f(r#\"\" // \"#, r\"\\\"); h();",
        ] {
            assert_eq!(code(text), text);
            assert_eq!(code(&format!("{text} // \"\n")), format!("{text} \n"));
        }
    }
}
