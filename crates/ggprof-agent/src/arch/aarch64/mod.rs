//! aarch64 with the procedure call standard of Arm (AAPCS64).
//!
//! What it says and these files rely on:
//!
//! * Arguments are in `x0` to `x7` and `v0` to `v7`, then on the stack. A struct of more than 16 bytes
//!   is passed by its address, and given back where `x8` points to.
//! * `x30` is where a call returns to; it is not signed before the function's own `paciasp`.
//! * `x16` and `x17` may change between any call and its function: linkers put veneers there. So no
//!   compiler keeps anything in them across a call, even of a function that it can see. `x18` belongs
//!   to the platform and is left alone.
//! * Pages of code may be guarded (BTI): there, `br x16` and `br x17` may arrive at the beginning of a
//!   function only (`bti c` or `paciasp`), and direct branches anywhere. This library has no guarded
//!   pages, because Rust's own code has no landing pads, so its entries need none.

pub(crate) mod arguments;
pub(crate) mod barrier;
pub(crate) mod direct_calls;
pub(crate) mod entry_code;
pub(crate) mod hidden_names;
pub(crate) mod instructions;
pub(crate) mod layout;
pub(crate) mod node_question;
pub(crate) mod registers;
pub(crate) mod stand_ins;
pub(crate) mod steps;
pub(crate) mod thread_memory;
