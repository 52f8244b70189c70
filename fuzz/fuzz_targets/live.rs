//! No recording that grows makes who watches it panic: what is new at each look, and what is shown of it.
#![no_main]

use ggprof_analysis::live::Watch;
use ggprof_report::live::{Shown, json_line, open_metrics, screen};
use ggprof_spool::layout::{self, BLOCK_BYTES, BLOCK_HEAD_BYTES, DEFINITIONS_LANE, header};
use ggprof_trace::formats::spool::Live;
use libfuzzer_sys::fuzz_target;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::LazyLock;

/// Records of a block: few, so that short inputs fill several.
const RECORDS: usize = 1024;
/// The rest of an input comes to light in so many looks.
const LOOKS: usize = 3;

/// Without a name, so that nothing is left of it.
static GROWING: LazyLock<File> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("ggprof-fuzz-live-{}", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
    std::fs::remove_file(path).expect("it was just made");
    file.expect("a temporary file")
});

fuzz_target!(|data: &[u8]| {
    let file = &*GROWING;
    file.set_len(0).expect("a temporary file");
    let contents: Vec<&[u8]> = data.chunks(RECORDS).collect();
    put(file, 0, &head(data, contents.len() as u64));
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let Ok(mut live) = Live::open(Path::new(&path)) else { return };
    let mut watch = Watch::default();
    let each = contents.len().div_ceil(LOOKS).max(1);
    let indexed: Vec<(usize, &&[u8])> = contents.iter().enumerate().collect();
    for (look, new) in indexed.chunks(each).enumerate() {
        for (index, content) in new {
            let at = layout::HEADER_BYTES + index * BLOCK_BYTES;
            // A block is there as a whole before anything is in it.
            file.set_len((at + BLOCK_BYTES) as u64).expect("room");
            put(file, at as u64, &block(*index as u32, content));
        }
        let now_ns = u64::from(data[0]) << (8 * look);
        let Ok(news) = live.look(now_ns) else { return };
        let frame = watch.take(live.descriptions(), news, now_ns);
        for line in screen(&frame, &Shown::default(), (80, 24)) {
            assert!(!line.contains(|c: char| c.is_control() && c != '\u{1b}'), "{line:?}");
        }
        json_line(&frame);
        open_metrics(watch.counters(), &[]);
    }
});

fn put(file: &File, at: u64, bytes: &[u8]) {
    file.write_all_at(bytes, at).expect("a temporary file takes everything");
}

fn head(data: &[u8], blocks: u64) -> Vec<u8> {
    let mut page = vec![0; layout::HEADER_BYTES];
    let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
    put(header::MAGIC, &layout::MAGIC);
    put(header::VERSION, &layout::VERSION.to_le_bytes());
    put(header::HEADER_BYTES, &(layout::HEADER_BYTES as u32).to_le_bytes());
    put(header::BLOCK_BYTES, &(BLOCK_BYTES as u32).to_le_bytes());
    put(header::RESERVED_BLOCKS, &blocks.to_le_bytes());
    put(header::CLOCK, &[data.first().copied().unwrap_or(0) & 1]);
    put(header::START_TICKS, data.get(8..32).unwrap_or_default());
    page
}

/// Descriptions and events in turns.
fn block(index: u32, content: &[u8]) -> Vec<u8> {
    let lane = if index.is_multiple_of(2) { DEFINITIONS_LANE } else { 1 };
    let check = layout::block_check(lane, index, index);
    let words = [layout::BLOCK_MAGIC, lane, index, index, check];
    let mut block: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    block.resize(BLOCK_HEAD_BYTES, 0);
    block.extend(content);
    block
}
