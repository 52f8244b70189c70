//! A program that has ggml linked into itself calls ggml's functions directly: the
//! dynamic linker binds nothing, and no call would ever arrive at `entry`. If the
//! program kept its symbols, the entry points are hooked where they are, before
//! `main`.

use std::ffi::CStr;
use std::sync::OnceLock;

use super::entry::{ENTRIES, Entry};
use crate::patch::inline::{InlineHooks, Wanted};
use crate::patch::loaded_object::LoadedObject;
use crate::patch::symbols::{self, Function};
use crate::quiet_log;

/// What every program that computes with ggml calls, one way or another; a quick
/// look for their names keeps all other programs from paying more.
const SIGNS: [&CStr; 2] = [c"ggml_backend_sched_new", c"ggml_backend_graph_compute"];

#[derive(Debug)]
struct Program {
    base: usize,
    /// Where each hooked function was, and the way past its hook.
    functions: Vec<(&'static CStr, usize, usize)>,
    _hooks: InlineHooks,
}

static PROGRAM: OnceLock<Program> = OnceLock::new();

/// Hooks the program's own ggml, if it has one. Runs before the program's first
/// instruction, so no thread is inside what is changed.
pub(crate) fn hook_program() {
    let Some(program) = LoadedObject::program() else { return };
    if !symbols::may_define(&program, &SIGNS) {
        return;
    }
    let functions = symbols::functions(&program, |name| entry_named(name).is_some());
    if functions.is_empty() {
        return;
    }
    match hook(&program, &functions) {
        Ok(hooked) => _ = PROGRAM.set(hooked),
        Err(reason) => quiet_log::say(&[
            b"this program has ggml linked into it, which cannot be recorded: ",
            reason.as_bytes(),
        ]),
    }
}

fn hook(program: &LoadedObject, found: &[Function]) -> Result<Program, &'static str> {
    let mut hooks = InlineHooks::new(program)?;
    let mut functions = Vec::new();
    let mut refused = "";
    for function in found {
        let Some(entry) = entry_named(&function.name) else { continue };
        match hooks.prepare(&Wanted { function, hook: entry.shim as *const () as usize }) {
            Ok(past) => {
                entry.real.set_linked_in(past);
                functions.push((entry.symbol, function.address, past));
            }
            Err(reason) => refused = reason,
        }
    }
    if functions.is_empty() {
        return Err(refused);
    }
    // SAFETY: each shim stands for the function of its name, whose way past the
    // hook is stored; the contract of `hook_program` says that none is running.
    unsafe { hooks.install() }?;
    Ok(Program { base: program.base, functions, _hooks: hooks })
}

fn entry_named(name: &[u8]) -> Option<&'static Entry> {
    ENTRIES.iter().copied().find(|entry| entry.symbol.to_bytes() == name)
}

/// The function that a way past a hook leads to; any other address is itself.
pub(crate) fn function_behind(address: usize) -> usize {
    let functions = PROGRAM.get().map_or(&[][..], |program| &program.functions);
    let behind = functions.iter().find(|(_, _, past)| *past == address);
    behind.map_or(address, |(_, function, _)| *function)
}

/// Whether calls of a function inside the object arrive at us.
pub(crate) fn is_hooked(object: &LoadedObject, symbol: &CStr) -> bool {
    PROGRAM.get().is_some_and(|program| {
        program.base == object.base && program.functions.iter().any(|(name, ..)| *name == symbol)
    })
}
