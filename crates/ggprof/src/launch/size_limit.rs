//! How a limited size (`--max-size`) is shared: the agent fills most of the file, and the readings of
//! sensors, which come behind it, get the rest. So what is delivered keeps the limit, however long the
//! program ran.

use ggprof_spool::layout::{BLOCK_BYTES, HEADER_BYTES};

/// One part of so many is for readings: at the smallest limit enough for two minutes of ten a second from
/// six sensors, and for as long as it takes if they are thinned out.
const PARTS: u64 = 16;

/// What the agent is told of this limit.
pub(crate) fn for_agent(limit: u64) -> u64 {
    limit - limit / PARTS
}

/// How many bytes may come behind a recording of at most so many blocks, as its header has it: 0 is no
/// limit.
pub(super) fn for_readings(most_blocks: u64) -> Option<u64> {
    let blocks = most_blocks.saturating_mul(BLOCK_BYTES as u64);
    (most_blocks != 0).then_some(blocks.saturating_add(HEADER_BYTES as u64) / (PARTS - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_together_keep_the_limit() {
        for limit in [4 << 20, 5_000_000, 200_000_000, (1 << 30) + 12_345] {
            let agent = for_agent(limit);
            let most_blocks = (agent - HEADER_BYTES as u64) / BLOCK_BYTES as u64;
            let file = HEADER_BYTES as u64 + most_blocks * BLOCK_BYTES as u64;
            let readings = for_readings(most_blocks).unwrap();
            assert!(file + readings <= limit, "{limit}: {file} + {readings}");
            assert!(readings > limit / 20, "{limit}: {readings}");
        }
        assert_eq!(for_readings(0), None);
    }
}
