//! Hooks for a process into which the agent was not preloaded. libggml-profiler is linked like any
//! library. If ggml comes before it in the order of symbols, calls do not reach the agent. Then the
//! slots that lead to ggml's functions are changed, in everything that is loaded.

use super::{entry, opened, unloading};
use crate::fault::fault_point;
use crate::ffi::which_ggml;
use crate::patch::{exports, got, scope};

/// The same for `ggprof attach`, where the loader never finds the agent's symbols. So the slots that lead to
/// the loader's functions are changed as well: the agent must learn what is opened and closed.
pub(crate) fn lead_all_calls_here() {
    lead_calls_here();
    for (object, _held) in scope::all_held() {
        if object.is_of_the_system() || object.holds(lead_calls_here as *const () as usize) {
            continue;
        }
        got::for_each(&object, |slot| {
            let ours = opened::stand_ins()
                .into_iter()
                .chain([unloading::stand_in()])
                .find(|(name, _)| *name == slot.name);
            if let Some((_, ours)) = ours
                && exports::behind_us(slot.name) == Some(slot.leads_to(&object))
            {
                fault_point!();
                slot.replace(&object, ours);
            }
        });
    }
}

/// Changes every slot that leads to an entry point of ggml, so that it leads to ours. A slot that leads
/// to another profiler stays: the other profiler passes its calls on by itself.
pub(crate) fn lead_calls_here() {
    for (object, _held) in scope::all_held() {
        if object.holds(lead_calls_here as *const () as usize) {
            continue;
        }
        got::for_each(&object, |slot| {
            let entry = entry::all().find(|entry| entry.symbol == slot.name);
            if let Some(entry) = entry
                && which_ggml::is_own(slot.name, slot.leads_to(&object))
            {
                fault_point!();
                slot.replace(&object, entry.called as *const () as usize);
            }
        });
    }
}
