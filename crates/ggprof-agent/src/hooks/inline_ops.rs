//! Hooks at function entries inside a CPU backend's library whose calls pass no
//! slot: linked with `-Bsymbolic`, with hidden functions, or into the program.

use std::sync::atomic::{AtomicUsize, Ordering};

use ggprof_spool::layout::CoveredHow;

use super::cpu_ops;
use super::library::{BARRIER, EXTRA, FORWARD_PREFIX, Hooked, Hooks, UNSEEN};
use crate::patch::direct_calls;
use crate::patch::inline::{Hook, InlineHooks, Wanted};
use crate::patch::loaded_object::LoadedObject;
use crate::patch::symbols::{self, Function};

/// What the names of functions that compute several nodes at once have in common.
/// They are the ones that no announcement comes before; every function would do,
/// but each changed entry is a risk.
const FUSED: &[u8] = b"fused";

/// Hooks the library. It must not have computed anything yet: adoption comes
/// before the first graph of a library that is reached through a backend.
pub(super) fn hook(
    hooks: &mut Hooks,
    object: &LoadedObject,
    number: usize,
) -> Result<(Hooked, InlineHooks), &'static str> {
    let functions = symbols::functions(object, is_wanted);
    let extra = named(&functions, EXTRA.to_bytes());
    let extra = extra.ok_or(UNSEEN)?;
    if !direct_calls::reach(object, extra.address) {
        return Err("the library's compiler left no call that announces an op");
    }
    let mut inline = InlineHooks::new(object)?;
    let hook = Hook::Function(cpu_ops::extra_hook(number));
    prepare(&mut inline, extra, hook, &cpu_ops::EXTRA[number])?;
    let barrier = named(&functions, BARRIER.to_bytes());
    let barrier = barrier.filter(|barrier| direct_calls::reach(object, barrier.address));
    let barrier = barrier.is_some_and(|barrier| {
        let hook = Hook::KeepsRegisters(cpu_ops::barrier_hook_at_entry(number));
        prepare(&mut inline, barrier, hook, &cpu_ops::BARRIER[number]).is_ok()
    });
    hooks.free_forwards_of(number);
    let mut forward = 0;
    for fused in functions.iter().filter(|function| is_fused(&function.name)) {
        let Some(place) = hooks.take_forward(number) else { break };
        let hook = Hook::Function(cpu_ops::forward_hook(place));
        let prepared = prepare(&mut inline, fused, hook, &cpu_ops::FORWARD[place]);
        forward += u32::from(prepared.is_ok());
    }
    // SAFETY: the hooks are those of functions with these names; that no thread is
    // inside the functions is the contract of this one.
    unsafe { inline.install() }?;
    let how = CoveredHow::InlineHook;
    Ok((Hooked { how, ops: true, barrier, forward, reason: "" }, inline))
}

fn is_wanted(name: &[u8]) -> bool {
    name == EXTRA.to_bytes() || name == BARRIER.to_bytes() || is_fused(name)
}

fn is_fused(name: &[u8]) -> bool {
    let rest = name.strip_prefix(FORWARD_PREFIX).unwrap_or_default();
    rest.windows(FUSED.len()).any(|part| part == FUSED)
}

fn named<'f>(functions: &'f [Function], name: &[u8]) -> Option<&'f Function> {
    functions.iter().find(|function| function.name == name)
}

/// Keeps the way to the real function, which the hook calls.
fn prepare(
    inline: &mut InlineHooks,
    function: &Function,
    hook: Hook,
    real: &AtomicUsize,
) -> Result<(), &'static str> {
    real.store(inline.prepare(&Wanted { function, hook })?, Ordering::Release);
    Ok(())
}
