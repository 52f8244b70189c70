//! One recording per format version is kept for ever and must stay readable.
//! `GGPROF_BLESS=1` rewrites what is expected of it, and makes a missing file.

mod small_spool;

use std::fmt::Write as _;
use std::path::PathBuf;

use ggprof_spool::Spool;
use ggprof_spool::layout;

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn as_text(bytes: &[u8]) -> String {
    let spool = Spool::open(bytes).expect("a recording");
    let mut text = format!("{:?}\n", spool.header());
    for record in spool.records() {
        writeln!(text, "{record:?}").expect("strings can be written to");
    }
    text
}

#[test]
fn recordings_of_every_version_are_read_as_ever() {
    let bless = std::env::var_os("GGPROF_BLESS").is_some();
    for version in 1..=layout::VERSION {
        let file = golden(&format!("version-{version}.spool"));
        if bless && version == layout::VERSION && !file.exists() {
            std::fs::write(&file, shortened(&small_spool::bytes())).expect("it can be written");
        }
        let bytes = std::fs::read(&file).expect("a golden file per version");
        let expected = golden(&format!("version-{version}.txt"));
        let text = as_text(&bytes);
        if bless {
            std::fs::write(&expected, &text).expect("it can be written");
        }
        assert_eq!(text, std::fs::read_to_string(&expected).expect("what to expect"));
    }
}

/// The zeros behind the last record are not worth keeping.
fn shortened(bytes: &[u8]) -> &[u8] {
    let used = bytes.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
    &bytes[..used.next_multiple_of(32).min(bytes.len())]
}

#[test]
fn what_is_written_is_read_back() {
    let bytes = small_spool::bytes();
    let spool = Spool::open(&bytes).expect("a recording");
    let records: Vec<_> = spool.records().collect();
    assert_eq!(records.len(), 37);
    assert!(records.iter().all(Result::is_ok), "{records:?}");
    let header = spool.header();
    assert_eq!((header.pid, header.command.as_str()), (4711, "llama-bench"));
    assert_eq!((header.losses[1], header.end_ticks), (3, 9_000));
}
