//! How the Vulkan loader finds the layer: by a manifest in a directory that the environment names.
//! The program needs nothing but the preloaded agent, which is also the layer's library.
//!
//! If `ggprof run` has announced the layer, there is nothing to do. Otherwise the agent adds a
//! directory beside the recording to the environment. The directory belongs to this process alone,
//! so nobody else can put a library into its manifest. It is created when Vulkan's loader appears
//! in the process, and removed when the process ends. What the user has set is kept, and ours is
//! appended.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use ggprof_spool::layout::CoveredWhy;
use ggprof_spool::{layer, names};

use super::device::DEVICES;
use crate::config::Environment;
use crate::devices::vulkan::settings::{self, Mode};
use crate::fault::fault_point;
use crate::patch::loaded_object::LoadedObject;
use crate::patch::{exports, got};
use crate::recorder::current;

/// Access for the user only.
const OURS_ALONE: u32 = 0o700;

/// What was made, and by which process.
struct Made {
    manifest: CString,
    directory: CString,
    pid: u32,
}

/// The directory that was named to the loader, where this process has to make it.
#[unsafe(link_section = ".data.asleep")]
static NAMED: OnceLock<PathBuf> = OnceLock::new();
#[unsafe(link_section = ".data.asleep")]
static MADE: OnceLock<Made> = OnceLock::new();
/// Learnt before `main`: later the program's threads may change the environment.
#[unsafe(link_section = ".data.asleep")]
static LABELS_ARE_OURS: AtomicBool = AtomicBool::new(false);

const PATH: &str = "VK_LAYER_PATH";
const ADDITIONAL_PATH: &str = "VK_ADD_LAYER_PATH";
/// The variables that every process looks at.
pub(super) const VARIABLES: &[&str] = &[PATH, ADDITIONAL_PATH, layer::NAME_PIPELINES];

/// Tells the loader where the layer will be. Before `main`, no other code reads the environment.
#[unsafe(link_section = ".text.asleep")]
pub(crate) fn announce(environment: &Environment) {
    // A path of the user's own makes the loader ignore the additional one.
    let path = if environment.get(PATH).is_some() { PATH } else { ADDITIONAL_PATH };
    let named = environment.get(path).unwrap_or_default();
    let is_named_here = !is_announced(environment, named)
        && environment.place_of_recordings().is_some_and(|recordings| {
            !is_in(named, recordings.join(layer::DIRECTORY).as_os_str())
                && name_directory(path, &recordings)
        });
    let labels = environment.get_even_empty(layer::NAME_PIPELINES);
    let are_ours = labels.map_or(is_named_here, |value| value == layer::FOR_US);
    LABELS_ARE_OURS.store(are_ours, Ordering::Relaxed);
}

/// Whether `ggprof run` has announced the layer, as it has for most processes. Then nothing else is looked
/// at.
#[unsafe(link_section = ".text.asleep")]
fn is_announced(environment: &Environment, named: &OsStr) -> bool {
    let spool = environment.get(names::SPOOL).unwrap_or_default().as_bytes();
    let end = spool.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let is_it = |directory: &[u8]| {
        directory.strip_prefix(&spool[..end]) == Some(layer::DIRECTORY.as_bytes())
    };
    end > 0 && named.as_bytes().split(is_colon).any(is_it)
}

/// Chooses a directory for this process alone, and names it to the loader; false if there is none. Its name
/// cannot be guessed: others could make it before this process does. If this process was another program
/// before (`exec`), that one has already named it.
fn name_directory(path: &str, recordings: &Path) -> bool {
    let mut start = recordings.join(layer::DIRECTORY).into_os_string().into_vec();
    start.extend_from_slice(format!("-{}-", std::process::id()).as_bytes());
    let directory = match list(path).as_bytes().split(is_colon).find(|it| it.starts_with(&start)) {
        Some(named) => named.to_vec(),
        None => {
            let Some(random) = random() else { return false };
            start.extend_from_slice(format!("{random:032x}").as_bytes());
            start
        }
    };
    let directory = NAMED.get_or_init(|| PathBuf::from(OsString::from_vec(directory)));
    append(path, directory.as_os_str());
    append("VK_INSTANCE_LAYERS", OsStr::new(layer::NAME));
    set(layer::NAME_PIPELINES, OsStr::new(layer::FOR_US), false);
    true
}

fn list(name: &str) -> OsString {
    std::env::var_os(name).unwrap_or_default()
}

fn is_colon(byte: &u8) -> bool {
    *byte == b':'
}

fn is_in(list: &OsStr, part: &OsStr) -> bool {
    list.as_bytes().split(is_colon).any(|own| own == part.as_bytes())
}

fn random() -> Option<u128> {
    let mut bytes = [0_u8; 16];
    // SAFETY: sixteen bytes of ours. (glibc has a function for it only since 2.25.)
    let read = unsafe { libc::syscall(libc::SYS_getrandom, bytes.as_mut_ptr(), bytes.len(), 0) };
    (read == 16).then_some(u128::from_ne_bytes(bytes))
}

/// Makes what was announced, if Vulkan's loader is here: it looks when an instance is made.
pub(crate) fn provide_if_needed() {
    if let Some(directory) = NAMED.get()
        && MADE.get().is_none()
        && exports::first(c"vkGetInstanceProcAddr").is_some()
    {
        // Without it, coverage says that the layer was not loaded.
        let _ = provide(directory);
    }
}

/// Whether ggml labels its work only because of the agent. Then nobody reads the labels, and they
/// are not passed on: they cost a fast GPU a tenth of its tokens.
pub(crate) fn labels_are_ours() -> bool {
    LABELS_ARE_OURS.load(Ordering::Relaxed)
}

/// Why the kernels of a backend's library are not seen, if it works with Vulkan and they are not.
/// Its device was opened before the agent saw the backend.
pub(crate) fn why_unseen(library: &LoadedObject) -> Option<CoveredWhy> {
    let mut works_with_vulkan = false;
    got::for_each(library, |slot| works_with_vulkan |= slot.name.to_bytes().starts_with(b"vk"));
    if !works_with_vulkan {
        return None;
    }
    if current::is_attached() {
        return Some(CoveredWhy::AttachedTooLate);
    }
    if settings::mode() == Mode::Off {
        return Some(CoveredWhy::VulkanOff);
    }
    DEVICES.is_empty().then_some(CoveredWhy::LayerNotLoaded)
}

pub(crate) fn has_made_something() -> bool {
    MADE.get().is_some()
}

/// Takes the manifest away, if this process made it. May run in a signal handler, and in
/// a child that borrows its parent's memory: system calls only.
pub(crate) fn withdraw() {
    if let Some(made) = MADE.get().filter(|made| made.pid == std::process::id()) {
        // SAFETY: both are C strings that stay.
        unsafe {
            libc::unlink(made.manifest.as_ptr());
            libc::rmdir(made.directory.as_ptr());
        }
    }
}

fn provide(directory: &Path) -> io::Result<()> {
    let library =
        LoadedObject::containing(provide as *const () as usize).ok_or(io::ErrorKind::NotFound)?;
    let library = Path::new(OsStr::from_bytes(library.name.to_bytes())).canonicalize()?;
    let manifest = directory.join(layer::MANIFEST);
    let made = Made {
        manifest: CString::new(manifest.as_os_str().as_bytes())?,
        directory: CString::new(directory.as_os_str().as_bytes())?,
        pid: std::process::id(),
    };
    match DirBuilder::new().mode(OURS_ALONE).create(directory) {
        // It exists already if this process was another program before.
        Err(problem) if problem.kind() == io::ErrorKind::AlreadyExists => {
            is_ours_alone(directory).then_some(()).ok_or(problem)?;
        }
        made => made?,
    }
    // At once: what is not noted is left behind at the end.
    let _ = MADE.set(made);
    fault_point!();
    let mut open = OpenOptions::new();
    open.write(true).create(true).truncate(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    open.open(manifest)?.write_all(layer::manifest(&library.to_string_lossy()).as_bytes())
}

pub(super) fn is_ours_alone(directory: &Path) -> bool {
    // SAFETY: a system call without arguments.
    let user = unsafe { libc::geteuid() };
    directory.symlink_metadata().is_ok_and(|it| {
        it.is_dir() && it.uid() == user && it.permissions().mode() & 0o777 == OURS_ALONE
    })
}

/// Adds to a list of the environment, once.
fn append(name: &str, part: &OsStr) {
    if let Some(list) = layer::appended(list(name).as_bytes(), part.as_bytes()) {
        set(name, &OsString::from_vec(list), true);
    }
}

fn set(name: &str, value: &OsStr, over_another: bool) {
    let (Ok(name), Ok(value)) = (CString::new(name), CString::new(value.as_bytes())) else {
        return;
    };
    // SAFETY: both are C strings; the program's threads do not run yet.
    unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), over_another.into()) };
}
