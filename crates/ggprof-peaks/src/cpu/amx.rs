//! Intel's matrix registers (AMX): eight tiles of 16 rows with 64 bytes each. A program has to ask the
//! kernel before it uses them.

use super::compute::Kernel;
use ggprof_analysis::peaks::Operands;
use std::arch::asm;

/// `ARCH_REQ_XCOMP_PERM`, and the number of the tiles' state.
const ASK_FOR_STATE: libc::c_long = 0x1023;
const TILE_DATA: libc::c_long = 18;

/// Sums in a turn, and what each of them is: 16 x 16 dot products of 64 bytes.
const SUMS: u64 = 4;
const PRODUCTS: u64 = 16 * 16 * 64;

/// How tiles are laid out, as the instruction that sets it up reads it.
#[repr(C, align(64))]
struct TileShapes {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    bytes_per_row: [u16; 16],
    rows: [u8; 16],
}

/// `None` where the processor has no such registers, or the kernel does not allow their use.
pub(super) fn int8_products() -> Option<Kernel> {
    // Leaf 7, EDX: tiles in bit 24, their products of bytes in bit 25.
    let features = super::x86_64::features(0).edx;
    let has_tiles = features & (1 << 24) != 0 && features & (1 << 25) != 0;
    (has_tiles && is_allowed()).then_some(Kernel {
        operands: Operands::Int8,
        by: "AMX",
        ops_per_turn: 2 * SUMS * PRODUCTS,
        run: tiles,
    })
}

/// Asks for the process, which its later threads inherit.
fn is_allowed() -> bool {
    // SAFETY: only adds a right; a kernel that does not know the request refuses it.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ASK_FOR_STATE, TILE_DATA) == 0 }
}

fn tiles(turns: u64) {
    let mut shapes = TileShapes {
        palette: 1,
        start_row: 0,
        reserved: [0; 14],
        bytes_per_row: [0; 16],
        rows: [0; 16],
    };
    shapes.bytes_per_row[..8].fill(64);
    shapes.rows[..8].fill(16);
    // SAFETY: chosen only where the processor has tiles and the kernel allows them; it reads the
    // shapes, and touches the tiles, which nothing else uses.
    unsafe {
        asm!(
            "ldtilecfg [{shapes}]",
            ".irp tile, 0, 1, 2, 3, 4, 5, 6, 7",
            "tilezero tmm\\tile",
            ".endr",
            "2:",
            "tdpbssd tmm0, tmm4, tmm6",
            "tdpbssd tmm1, tmm4, tmm7",
            "tdpbssd tmm2, tmm5, tmm6",
            "tdpbssd tmm3, tmm5, tmm7",
            "dec {turns}",
            "jnz 2b",
            "tilerelease",
            shapes = in(reg) &raw const shapes,
            turns = inout(reg) turns.max(1) => _,
            options(readonly, nostack),
        );
    }
}
