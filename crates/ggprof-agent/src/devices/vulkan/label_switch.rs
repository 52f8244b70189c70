//! ggml's switch for names and labels. `GGML_VK_DEBUG_MARKERS` makes ggml name its pipelines, which
//! is why the agent sets it. Since 2026 it also makes ggml build two labels for each dispatch,
//! which costs the host of a fast GPU a twentieth of its time. ggml reads the switch before each
//! label, so the agent keeps it off while no pipeline waits for its name.
//!
//! The agent finds the switch by its neighbours in memory: before it is the handle of ggml's
//! instance, and after it are the functions that ggml asked the loader for. If these are not found,
//! or somebody else wants the labels, the agent changes nothing.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use ash::vk::Handle;

use super::device::VULKAN_INSTANCES;
use super::ranks;
use super::registration;
use crate::fault::fault_point;
use crate::lock::{Locked, Ranked};
use crate::patch::loaded_object::LoadedObject;

/// Names of objects, labels of queues and of command buffers.
const FUNCTIONS: usize = 6;
/// A C++ `bool` that is true, and what fills it up to the next word.
const ON: usize = 1;

#[derive(Debug, Default)]
pub(crate) struct LabelSwitch {
    state: Ranked<{ ranks::LABELS }, Switch>,
}

#[derive(Debug, Default)]
struct Switch {
    /// In ggml's memory.
    place: Option<&'static AtomicBool>,
    /// Pipelines without a name yet; ggml may compile several at once.
    waiting: usize,
}

impl LabelSwitch {
    /// Pipelines were made, and ggml is about to ask whether to name them.
    pub(crate) fn expect_names(&self, pipelines: usize) {
        let mut state = self.state();
        state.waiting += pipelines;
        fault_point!();
        state.set();
    }

    pub(crate) fn note_name(&self) {
        let mut state = self.state();
        state.waiting = state.waiting.saturating_sub(1);
        state.set();
    }

    fn state(&self) -> Locked<'_, { ranks::LABELS }, Switch> {
        self.state.lock()
    }
}

impl Switch {
    fn set(&self) {
        if let Some(place) = self.place {
            place.store(self.waiting > 0, Ordering::Relaxed);
        }
    }
}

/// A library of ggml's begins to compute: looks in it for the switches of instances.
pub(crate) fn look_in(library: &LoadedObject) {
    if !registration::labels_are_ours() {
        return;
    }
    for instance in VULKAN_INSTANCES.all().into_iter().filter(|instance| instance.watched.is_some())
    {
        let mut state = instance.labels.state();
        if state.place.is_none() {
            let handle = instance.handle.as_raw() as usize;
            state.place = library.writable().find_map(|memory| find(memory, handle));
            // All pipelines that were made so far have their names.
            state.waiting = 0;
            state.set();
        }
    }
}

/// The switch in memory that is mapped and stays so: a handle, the switch, functions.
fn find(memory: Range<usize>, handle: usize) -> Option<&'static AtomicBool> {
    let word = size_of::<usize>();
    // SAFETY: a segment of a loaded library, to be read by anyone; the program may write to
    // it meanwhile, so no more is expected of a word than to be some number.
    let read = |address: usize| unsafe { std::ptr::read_volatile(address as *const usize) };
    let beside = (FUNCTIONS + 2) * word;
    let places = (memory.start.next_multiple_of(word)..memory.end.checked_sub(beside)? + 1)
        .step_by(word)
        .filter(|&place| read(place) == handle && read(place + word) == ON);
    let mut switches = places.filter(|place| {
        let functions: [usize; FUNCTIONS] =
            std::array::from_fn(|number| read(place + (number + 2) * word));
        // All of them are functions of the Vulkan loader.
        let loader = LoadedObject::containing(functions[0]);
        loader.is_some_and(|loader| functions.iter().all(|&one| loader.holds_code(one)))
    });
    let place = switches.next()?;
    // SAFETY: it holds 1, beside what only ggml's switch is beside; writable memory of the
    // library that is called with this instance, so it stays while calls come. ggml reads it
    // byte by byte, at any time.
    switches.next().is_none().then(|| unsafe { &*((place + word) as *const AtomicBool) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    struct Kept {
        before: [usize; 3],
        handle: usize,
        switch: AtomicBool,
        functions: [*const (); FUNCTIONS],
        behind: usize,
    }

    /// As ggml keeps it, for good; functions of one library.
    fn kept() -> &'static Kept {
        let functions = [
            libc::getpid as *const (),
            libc::getppid as *const (),
            libc::getuid as *const (),
            libc::getgid as *const (),
            libc::fork as *const (),
            libc::close as *const (),
        ];
        let switch = AtomicBool::new(true);
        // SAFETY: zero is a value of every field; so are the bytes behind the switch.
        let kept: &mut Kept = Box::leak(unsafe { Box::<Kept>::new_zeroed().assume_init() });
        (kept.before[0], kept.handle, kept.functions) = (0x1234, 0x1234, functions);
        kept.switch.store(switch.into_inner(), Ordering::Relaxed);
        kept
    }

    fn memory(kept: &Kept) -> Range<usize> {
        let start = std::ptr::from_ref(kept) as usize;
        start..start + size_of::<Kept>()
    }

    #[test]
    fn it_stands_between_the_handle_and_the_functions() {
        let kept = kept();
        let found = find(memory(kept), 0x1234).expect("it is there");
        assert!(std::ptr::eq(found, &kept.switch));
        assert!(find(memory(kept), 0x4321).is_none(), "another instance's");
        kept.switch.store(false, Ordering::Relaxed);
        assert!(find(memory(kept), 0x1234).is_none(), "nobody has switched it on");
    }

    #[test]
    fn it_is_on_while_a_pipeline_waits_for_its_name() {
        let kept = kept();
        let switch = LabelSwitch::default();
        switch.state().place = find(memory(kept), 0x1234);
        let is_on = || kept.switch.load(Ordering::Relaxed);
        switch.expect_names(1);
        switch.expect_names(1);
        switch.note_name();
        assert!(is_on(), "another one waits");
        switch.note_name();
        assert!(!is_on());
        switch.note_name();
        assert!(!is_on(), "one that nobody waited for");
        switch.expect_names(1);
        assert!(is_on());
    }
}
