//! A recording file around records: its header and the heads of its blocks are made here, so that the fuzzer
//! spends its time on records; `any_input` takes files as they are.

use ggprof_spool::layout::{self, BLOCK_HEAD_BYTES, header};

/// Small blocks, so that short inputs fill several.
const BLOCK: usize = 1024;

pub fn around(data: &[u8]) -> Vec<u8> {
    let mut file = vec![0; layout::HEADER_BYTES];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(header::MAGIC, &layout::MAGIC);
    put(header::VERSION, &layout::VERSION.to_le_bytes());
    put(header::HEADER_BYTES, &(layout::HEADER_BYTES as u32).to_le_bytes());
    put(header::BLOCK_BYTES, &(BLOCK as u32).to_le_bytes());
    // The first bytes choose the clock and what changes while recording.
    let (head, records) = data.split_at(data.len().min(80));
    put(header::CLOCK, &[head.first().copied().unwrap_or(0) & 1]);
    put(header::START_TICKS, head.get(8..32).unwrap_or_default());
    put(header::END_TICKS, head.get(32..48).unwrap_or_default());
    // Whether blocks were used again, so that runs may be torn.
    put(header::REUSED_BLOCKS, &[head.first().copied().unwrap_or(0) >> 1 & 1]);
    for (index, content) in records.chunks(BLOCK - BLOCK_HEAD_BYTES).enumerate() {
        let (lane, sequence, index) = (1, index as u32, index as u32);
        let check = layout::block_check(lane, sequence, index);
        let mut block = Vec::with_capacity(BLOCK);
        for word in [layout::BLOCK_MAGIC, lane, sequence, index, check] {
            block.extend(word.to_le_bytes());
        }
        block.resize(BLOCK_HEAD_BYTES, 0);
        block.extend(content);
        block.resize(BLOCK, 0);
        file.extend(block);
    }
    file
}
