//! The catalogue as it lies in a directory: a line of JSON for each file. A line that cannot be read
//! costs one recording's reading, not the others'.

use super::entry::CatalogueEntry;
use serde::{Deserialize, Serialize};

/// Grows when lines mean something else, or when what is worked out of recordings changes: they are read
/// again then.
const VERSION: u32 = 1;

/// A file below the directory, and what was found in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownFile {
    /// From the directory on.
    pub file: String,
    pub bytes: u64,
    pub modified_unix_ns: u64,
    pub found: Found,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    Recording(Box<CatalogueEntry>),
    /// Why there is nothing to keep of it, as a sentence.
    Unreadable(String),
}

/// What the bytes of a catalogue say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Kept {
    pub known: Vec<KnownFile>,
    /// Lines that say nothing.
    pub damaged: usize,
    /// It is of another version, or no catalogue at all.
    pub is_foreign: bool,
}

#[derive(Serialize, Deserialize)]
struct Head {
    ggprof_catalogue: u32,
}

/// Never fails: what is not known will be read again.
pub fn read(bytes: &[u8]) -> Kept {
    let mut lines = bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let Some(head) = lines.next() else { return Kept::default() };
    let head = serde_json::from_slice::<Head>(head);
    if !head.is_ok_and(|head| head.ggprof_catalogue == VERSION) {
        return Kept { is_foreign: true, ..Kept::default() };
    }
    let mut kept = Kept::default();
    for line in lines {
        match serde_json::from_slice(line) {
            Ok(known) => kept.known.push(known),
            Err(_) => kept.damaged += 1,
        }
    }
    kept
}

/// The bytes to keep.
pub fn lines<'k>(known: impl IntoIterator<Item = &'k KnownFile>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut put = |line: Result<Vec<u8>, serde_json::Error>| {
        // Texts and numbers always have a JSON; a speed that is not finite becomes null, and is read
        // again.
        if let Ok(line) = line {
            out.extend(line);
            out.push(b'\n');
        }
    };
    put(serde_json::to_vec(&Head { ggprof_catalogue: VERSION }));
    known.into_iter().for_each(|known| put(serde_json::to_vec(known)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PhaseKind;
    use crate::catalogue::{Dimension, Question, Speed, series};

    fn known() -> Vec<KnownFile> {
        let speed = Speed {
            label: "tg8".to_owned(),
            kind: PhaseKind::WarmUp,
            is_guess: false,
            repetitions: 3,
            tokens: 24,
            tokens_per_s: 12.5,
            deviation: Some(0.1),
        };
        let entry =
            CatalogueEntry { threads: Some(4), speeds: vec![speed], ..CatalogueEntry::default() };
        let found = [Found::Recording(Box::new(entry)), Found::Unreadable("a\nb".to_owned())];
        let known = |(at, found): (u64, Found)| KnownFile {
            file: format!("{at}/ä.ggprof"),
            bytes: at,
            modified_unix_ns: u64::MAX - at,
            found,
        };
        (0..).zip(found).map(known).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = lines(&known());
        assert_eq!(read(&bytes), Kept { known: known(), ..Kept::default() });
        assert_eq!(bytes.iter().filter(|&&byte| byte == b'\n').count(), 3);
        assert_eq!(read(b""), Kept::default());
    }

    /// Each byte becomes each of some others: whatever is still read is written and read the same, and
    /// can be asked about.
    #[test]
    fn no_damage_makes_it_fail() {
        let whole = lines(&known());
        for at in 0..whole.len() {
            for byte in [0, b'\n', b'"', b'9', b'-', b'e', b'{', 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = byte;
                let kept = read(&bytes);
                assert_eq!(read(&lines(&kept.known)).known, kept.known);
                for known in &kept.known {
                    let Found::Recording(entry) = &known.found else { continue };
                    let question = Question { by: Dimension::ALL.to_vec(), ..Question::default() };
                    series(&[(&known.file, entry)], &question);
                }
            }
        }
    }

    #[test]
    fn damage_costs_its_line_only() {
        let mut bytes = lines(&known());
        let second = bytes.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        bytes[second + 3] = 0xff;
        let kept = read(&bytes);
        assert_eq!((kept.known, kept.damaged, kept.is_foreign), (known()[1..].to_vec(), 1, false));
        for foreign in [&b"{\"ggprof_catalogue\":999}\n"[..], b"\x7fELF", b"[]"] {
            assert!(read(foreign).is_foreign);
        }
    }
}
