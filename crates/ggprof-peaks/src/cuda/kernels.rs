//! The kernels: text that the driver compiles for the device at hand. The `.ptx` files are written by
//! hand; the first line of each says what it does.

use ggprof_analysis::peaks::Operands;
use std::ffi::CStr;

/// A file of this folder, with the zero at its end that the driver wants.
macro_rules! text {
    ($file:literal) => {
        match CStr::from_bytes_with_nul(
            concat!(include_str!(concat!("kernels/", $file)), "\0").as_bytes(),
        ) {
            Ok(text) => text,
            Err(_) => panic!("no zero within the text"),
        }
    };
}

pub(super) const READ: &CStr = text!("read.ptx");

/// Bytes that a thread of [`READ`] reads in a turn: four times sixteen.
pub(super) const READ_PER_TURN: u64 = 64;

/// A loop of products in registers or shared memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Products {
    pub(super) text: &'static CStr,
    pub(super) by: &'static str,
    pub(super) operands: Operands,
    /// Capabilities (major, minor) of the devices that have the instruction.
    pub(super) from: (u32, u32),
    pub(super) below: (u32, u32),
    /// Operations of a warp in a turn.
    pub(super) ops_per_turn: u64,
    /// In a block, and of these for each multiprocessor.
    pub(super) threads: u32,
    pub(super) blocks: u32,
}

const ANY: (u32, u32) = (u32::MAX, 0);

/// Multiplications and additions of `rows` x `columns` x `depth`, so many times in a turn.
const fn ops(times: u64, rows: u64, columns: u64, depth: u64) -> u64 {
    2 * times * rows * columns * depth
}

pub(super) const PRODUCTS: [Products; 8] = [
    Products {
        text: text!("fma.ptx"),
        by: "fma",
        operands: Operands::F32,
        from: (5, 0),
        below: ANY,
        ops_per_turn: ops(16, 32, 1, 1),
        threads: 256,
        blocks: 8,
    },
    Products {
        text: text!("dp4a.ptx"),
        by: "dp4a",
        operands: Operands::Int8,
        from: (6, 1),
        below: ANY,
        ops_per_turn: ops(16, 32, 1, 4),
        threads: 256,
        blocks: 8,
    },
    warps(text!("mma_f16_sm75.ptx"), Operands::F16, (7, 5), (8, 0), ops(8, 16, 8, 8)),
    warps(text!("mma_int8_sm75.ptx"), Operands::Int8, (7, 5), (8, 0), ops(8, 8, 8, 16)),
    warps(text!("mma_f16_sm80.ptx"), Operands::F16, (8, 0), ANY, ops(8, 16, 8, 16)),
    warps(text!("mma_int8_sm80.ptx"), Operands::Int8, (8, 0), ANY, ops(8, 16, 8, 32)),
    four_warps(text!("wgmma_f16_sm90a.ptx"), Operands::F16, ops(4, 64, 256, 16)),
    four_warps(text!("wgmma_int8_sm90a.ptx"), Operands::Int8, ops(4, 64, 256, 32)),
];

/// Matrices that a warp multiplies.
const fn warps(
    text: &'static CStr,
    operands: Operands,
    from: (u32, u32),
    below: (u32, u32),
    ops_per_turn: u64,
) -> Products {
    Products { text, by: "mma", operands, from, below, ops_per_turn, threads: 256, blocks: 4 }
}

/// Matrices that four warps multiply together; the instruction exists in one generation only.
const fn four_warps(text: &'static CStr, operands: Operands, ops_per_turn: u64) -> Products {
    Products {
        text,
        by: "wgmma",
        operands,
        from: (9, 0),
        below: (9, 1),
        ops_per_turn: ops_per_turn / 4,
        threads: 128,
        blocks: 2,
    }
}
