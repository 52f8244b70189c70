//! Hooks for a process into which the agent was not preloaded. libggml-profiler is linked like any
//! library. If ggml comes before it in the order of symbols, calls do not reach the agent. Then the
//! slots that lead to ggml's functions are changed, in everything that is loaded.

use super::entry;
use crate::ffi::which_ggml;
use crate::patch::{got, loaded_object};

/// Leads every call of ggml's entry points to us. What leads to another profiler is left
/// as it is: that one passes calls on by itself.
pub(crate) fn lead_calls_here() {
    for object in loaded_object::all() {
        if object.holds(lead_calls_here as *const () as usize) {
            continue;
        }
        got::for_each(&object, |slot| {
            let entry = entry::all().find(|entry| entry.symbol == slot.name);
            if let Some(entry) = entry
                && which_ggml::is_own(slot.name, slot.leads_to(&object))
            {
                slot.replace(&object, entry.called as *const () as usize);
            }
        });
    }
}
