//! Hooks at the entries of functions, for calls that do not use slots: a jump replaces the first
//! instructions, which then run at another address.
//!
//! A page of code is never writable and executable at once. The changed page is prepared separately
//! and replaces the old one in one step of the kernel, so that a thread sees either the old page or
//! the new one. This does not help a thread that is between the very instructions that are
//! overwritten, so a library is hooked before it computes its first graph.

use std::ops::Range;
use std::ptr;

use ggprof_spool::attaching::Change;

use super::loaded_object::LoadedObject;
use super::near_page::NearPage;
use super::symbols::Function;
use super::{direct_calls, page_bytes, standing};
use crate::arch::{self, EntryCode, JUMP, WAY_IN, jump_anywhere, jump_telling_way_past};
use crate::fault::fault_point;
use crate::lock::{HeldAtFork, Ranked, rank};

/// The hooks of one library. Once they are in, dropped only when the library is gone: its
/// functions lead to these pages.
#[derive(Debug)]
pub(crate) struct InlineHooks {
    object: LoadedObject,
    page: NearPage,
    jumps: Vec<Jump>,
    /// Whether they are installed only when every thread stands.
    waits: bool,
}

/// What a function's entry is overwritten with, and what was there.
#[derive(Debug)]
struct Jump {
    function: usize,
    /// Where the function continues after the jump.
    real: usize,
    at: usize,
    bytes: [u8; JUMP],
    before: [u8; JUMP],
}

/// A function to hook.
#[derive(Debug)]
pub(crate) struct FunctionToHook<'a> {
    pub(crate) function: &'a Function,
    pub(crate) stand_in: StandIn,
}

/// What is called in a function's place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StandIn {
    /// An ordinary function, which is told the address behind the hook.
    Function(usize),
    /// One that leaves every register as the real function does.
    KeepsRegisters(usize),
}

impl InlineHooks {
    pub(crate) fn new(object: &LoadedObject) -> Result<InlineHooks, &'static str> {
        if standing::may_be_running(object) {
            return Err("it was loaded before ggprof began, and threads may be in it");
        }
        let page = NearPage::near(object).ok_or("there is no room near the library's code")?;
        Ok(InlineHooks { object: object.clone(), page, jumps: Vec::new(), waits: false })
    }

    /// Prepares a hook. Returns where the real function can be called once the
    /// hooks are installed.
    pub(crate) fn prepare(&mut self, wanted: &FunctionToHook<'_>) -> Result<usize, &'static str> {
        let address = wanted.function.address;
        let entry = EntryCode::read(wanted.function.code(), address)?;
        let bytes = entry.jump_to(self.page.next())?;
        let full = "too many functions to hook";
        let real = self.page.next() + WAY_IN;
        let way_in = match wanted.stand_in {
            // Callers that a compiler sees may keep values in registers that the function leaves alone.
            StandIn::Function(_)
                if !direct_calls::lead_to_unknown(&self.object, wanted.function) =>
            {
                return Err("its callers may rely on registers that a hook would change");
            }
            StandIn::Function(function) => jump_telling_way_past(real, function),
            StandIn::KeepsRegisters(function) => jump_anywhere(function),
        };
        self.page.push(&way_in, WAY_IN).then_some(()).ok_or(full)?;
        let code = entry.moved_to(real)?;
        self.page.push(&code, code.len()).then_some(()).ok_or(full)?;
        let before = entry.overwritten();
        self.jumps.push(Jump { function: address, real, at: entry.at, bytes, before });
        Ok(real)
    }

    /// Puts all prepared hooks in, or none. In a program that ggprof attaches to, they are in as soon as
    /// every thread stands (`standing`).
    ///
    /// # Safety
    /// No thread is executing the first instructions of the functions, and each stand-in can be
    /// called in its function's place.
    pub(crate) unsafe fn install(&mut self) -> Result<(), &'static str> {
        let overwritten: Vec<_> = self.jumps.iter().map(|jump| jump.at..jump.at + JUMP).collect();
        if direct_calls::jump_into(&self.object, &overwritten) {
            return Err("other code of it jumps to behind the start of a function");
        }
        if !self.page.seal() {
            return Err("the system does not allow new code");
        }
        if standing::is_collecting() && !self.jumps.iter().all(|jump| unguard(jump.at)) {
            return Err("the system does not allow changed code");
        }
        // Noted before a call can arrive. Until the jumps are written, calling the address behind
        // the hook does the same as calling the function.
        WAYS_PAST.lock().extend(self.jumps.iter().map(|jump| (jump.function, jump.real)));
        if standing::is_collecting() {
            let changes =
                self.jumps.iter().map(|it| Change::new(it.at as u64, &it.before, &it.bytes));
            self.waits = true;
            standing::add(changes.flatten());
            return Ok(());
        }
        for (placed, jump) in self.jumps.iter().enumerate() {
            fault_point!();
            // SAFETY: the caller's contract; the jump leads to the sealed page.
            if let Err(reason) = unsafe { overwrite(jump.at, &jump.bytes) } {
                // SAFETY: as above.
                let undone = self.jumps[..placed]
                    .iter()
                    .all(|jump| unsafe { overwrite(jump.at, &jump.before) }.is_ok());
                if !undone {
                    // Some functions still jump to the page, which leads back to them.
                    self.page.keep();
                }
                return Err(reason);
            }
        }
        Ok(())
    }

    /// The changes of code will not be made. Whether these hooks still wait for them: then they are to be
    /// dropped.
    pub(crate) fn give_up_waiting(&mut self) -> bool {
        let is_as_before = |jump: &Jump| {
            let object = LoadedObject::containing(jump.at);
            object.is_some_and(|object| object.holds_code(jump.at))
                // SAFETY: code of a loaded object, which is readable.
                && unsafe { *(jump.at as *const [u8; JUMP]) } == jump.before
        };
        let gives_up = self.waits && self.jumps.iter().all(is_as_before);
        if gives_up {
            // The agent itself may be calling a function past its hook.
            self.page.keep();
        }
        gives_up
    }

    /// Whether the library still jumps to us, or will when every thread stands: one closed and opened
    /// again at the same place has fresh code.
    pub(crate) fn are_in(&self, object: &LoadedObject) -> bool {
        self.jumps.iter().any(|jump| {
            // SAFETY: code of a loaded object, which is readable.
            let now = || unsafe { *(jump.at as *const [u8; JUMP]) };
            let is_in = |now: [u8; JUMP]| now == jump.bytes || (self.waits && now == jump.before);
            object.holds_code(jump.at) && is_in(now())
        })
    }
}

impl Drop for InlineHooks {
    fn drop(&mut self) {
        if self.waits {
            standing::forget(self.jumps.iter().map(|jump| jump.at));
        }
        // After a panic in the agent, some jumps may stay.
        if std::thread::panicking() {
            return;
        }
        let is_ours = |(_, real): &(usize, usize)| self.jumps.iter().any(|jump| jump.real == *real);
        WAYS_PAST.lock().retain(|hooked| !is_ours(hooked));
    }
}

/// Every hooked function of the process, with the address that continues behind its hook. When the
/// agent itself calls such a function, it must not arrive at its own hook.
static WAYS_PAST: Ranked<{ rank::ENTRY_HOOKS }, Vec<(usize, usize)>> = Ranked::new(Vec::new());

/// For holding it during a fork.
pub(crate) fn fork_lock() -> &'static dyn HeldAtFork {
    &WAYS_PAST
}

/// Where a call of the function continues: past its hook, if it has one.
pub(crate) fn way_past(function: usize) -> usize {
    let Some(hooked) = WAYS_PAST.lock_unless_abandoned() else { return function };
    let known = hooked.iter().find(|(hooked, _)| *hooked == function);
    known.map_or(function, |(_, past)| *past)
}

/// The function whose hook this address is behind; any other address is returned as it is.
pub(crate) fn function_behind(address: usize) -> usize {
    let Some(hooked) = WAYS_PAST.lock_unless_abandoned() else { return address };
    let known = hooked.iter().find(|(_, past)| *past == address);
    known.map_or(address, |(function, _)| *function)
}

/// # Safety
/// `at` is in loaded code, and no thread is executing the bytes there.
unsafe fn overwrite(at: usize, bytes: &[u8]) -> Result<(), &'static str> {
    let pages = pages_of(at..at + bytes.len());
    let (anywhere, access) = (ptr::null_mut(), libc::PROT_READ | libc::PROT_WRITE);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a fresh mapping, which replaces nothing.
    let copy = unsafe { libc::mmap(anywhere, pages.len(), access, flags, -1, 0) };
    if copy == libc::MAP_FAILED {
        return Err("there is no memory for a page of code");
    }
    // SAFETY: the copy is ours and as long as the loaded pages, which are readable.
    unsafe {
        ptr::copy_nonoverlapping(pages.start as *const u8, copy.cast(), pages.len());
        let place = copy.cast::<u8>().add(at - pages.start);
        ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len());
    }
    // SAFETY: our own mapping takes the place of pages with the same content but
    // for the bytes that the caller wants changed.
    let moved = unsafe {
        libc::mprotect(copy, pages.len(), libc::PROT_READ | libc::PROT_EXEC) == 0
            && libc::mremap(
                copy,
                pages.len(),
                pages.len(),
                libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED,
                pages.start as *mut libc::c_void,
            ) != libc::MAP_FAILED
    };
    if !moved {
        // SAFETY: still our own mapping.
        unsafe { libc::munmap(copy, pages.len()) };
        return Err("the system does not allow changed code");
    }
    // SAFETY: where it was read from before, and can be read again.
    unsafe { arch::publish_code(at..at + bytes.len()) };
    Ok(())
}

/// A page that asks for landing pads (BTI of aarch64) would not let a call arrive at a jump. What
/// [`overwrite`] puts in does not ask; what is written from outside stays in the page that is there.
fn unguard(at: usize) -> bool {
    let pages = pages_of(at..at + JUMP);
    // SAFETY: pages of loaded code, which stay readable and executable.
    unsafe {
        let access = libc::PROT_READ | libc::PROT_EXEC;
        libc::mprotect(pages.start as *mut libc::c_void, pages.len(), access) == 0
    }
}

fn pages_of(range: Range<usize>) -> Range<usize> {
    let page = page_bytes();
    range.start & !(page - 1)..range.end.next_multiple_of(page)
}
