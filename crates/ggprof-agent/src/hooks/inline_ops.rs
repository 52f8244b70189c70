//! Hooks at function entries inside a CPU backend's library whose calls do not use slots: it was
//! linked with `-Bsymbolic`, with hidden functions, or into the program.

use std::sync::atomic::{AtomicUsize, Ordering};

use ggprof_spool::layout::{CoveredHow, CoveredWhy, Why};

use super::barrier;
use super::cpu_ops;
use super::library::{BARRIER, EXTRA, FORWARD_PREFIX, Hooks};
use crate::fault::fault_point;
use crate::observe::backend_hooks::HookedOps;
use crate::patch::direct_calls;
use crate::patch::inline::{FunctionToHook, InlineHooks, StandIn};
use crate::patch::loaded_object::LoadedObject;
use crate::patch::symbols::{self, Function};

/// What the names of functions that compute several nodes at once have in common.
/// No announcement comes before these. Hooking every function would work too, but each changed
/// entry is a risk.
const FUSED_IN_NAME: &[u8] = b"fused";
/// Computes a node of any op. Where it is called directly it is ggml's own and not exported; a
/// name with a suffix is a clone by the compiler, whose arguments may be others.
const ANY_OP: &[u8] = b"ggml_compute_forward";

/// Hooks the library. It must not have computed anything yet: adoption comes
/// before the first graph of a library that is reached through a backend.
pub(super) fn hook(
    hooks: &mut Hooks,
    object: &LoadedObject,
    number: usize,
) -> Result<(HookedOps, InlineHooks), Why<'static>> {
    let functions = symbols::functions(object, is_wanted);
    let mut inline = InlineHooks::new(object).map_err(refused)?;
    hooks.free_forwards_of(number);
    announce(hooks, &mut inline, object, number, &functions)?;
    let barrier = named(&functions, BARRIER.to_bytes());
    let barrier = barrier.filter(|barrier| direct_calls::reach(object, barrier.address));
    let barrier = barrier.is_some_and(|barrier| {
        let stand_in = StandIn::KeepsRegisters(barrier::stand_in(number));
        prepare(&mut inline, barrier, stand_in, &barrier::BARRIER[number]).is_ok()
    });
    let mut forward = 0;
    for fused in functions.iter().filter(|function| is_fused(&function.name)) {
        let Some(place) = hooks.take_forward(number) else { break };
        let stand_in = StandIn::Function(cpu_ops::forward_stand_in(place));
        let prepared = prepare(&mut inline, fused, stand_in, &cpu_ops::FORWARD[place]);
        forward += u32::from(prepared.is_ok());
    }
    fault_point!();
    // SAFETY: the hooks are those of functions with these names; that no thread is
    // inside the functions is the contract of this one.
    unsafe { inline.install() }.map_err(refused)?;
    fault_point!();
    let how = CoveredHow::InlineHook;
    Ok((HookedOps { how, ops: true, barrier, forward, reason: Why::UNTOLD }, inline))
}

/// Hooks what is called first for every op: the announcing function, or, in versions and forks
/// without, the one that computes any op.
fn announce(
    hooks: &mut Hooks,
    inline: &mut InlineHooks,
    object: &LoadedObject,
    number: usize,
    functions: &[Function],
) -> Result<(), Why<'static>> {
    let called = |name| {
        let function = named(functions, name);
        function.map(|function| (function, direct_calls::reach(object, function.address)))
    };
    match (called(EXTRA.to_bytes()), called(ANY_OP)) {
        (Some((extra, true)), _) => {
            let stand_in = StandIn::Function(cpu_ops::extra_stand_in(number));
            prepare(inline, extra, stand_in, &cpu_ops::EXTRA[number])
        }
        (_, Some((any_op, true))) => {
            let place =
                hooks.take_forward(number).ok_or(refused("too many functions are hooked"))?;
            let stand_in = StandIn::Function(cpu_ops::forward_stand_in(place));
            prepare(inline, any_op, stand_in, &cpu_ops::FORWARD[place])
        }
        (None, None) => Err(Why::plain(CoveredWhy::NotAnnounced)),
        _ => Err(Why::plain(CoveredWhy::CallsInlined)),
    }
}

fn refused(detail: &'static str) -> Why<'static> {
    Why { code: CoveredWhy::EntryRefused, detail }
}

fn is_wanted(name: &[u8]) -> bool {
    [EXTRA.to_bytes(), BARRIER.to_bytes(), ANY_OP].contains(&name) || is_fused(name)
}

fn is_fused(name: &[u8]) -> bool {
    let rest = name.strip_prefix(FORWARD_PREFIX).unwrap_or_default();
    rest.windows(FUSED_IN_NAME.len()).any(|part| part == FUSED_IN_NAME)
}

fn named<'f>(functions: &'f [Function], name: &[u8]) -> Option<&'f Function> {
    functions.iter().find(|function| function.name == name)
}

/// Keeps the address of the real function, which the stand-in calls.
fn prepare(
    inline: &mut InlineHooks,
    function: &Function,
    stand_in: StandIn,
    real: &AtomicUsize,
) -> Result<(), Why<'static>> {
    let way = inline.prepare(&FunctionToHook { function, stand_in }).map_err(refused)?;
    real.store(way, Ordering::Release);
    Ok(())
}
