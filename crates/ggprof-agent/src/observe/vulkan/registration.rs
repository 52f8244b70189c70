//! How the Vulkan loader comes to know the layer: a manifest in a directory that the
//! environment names. The program needs nothing but the preloaded agent, which is the
//! layer's library as well.
//!
//! The directory lies beside the recording and is this process's own: made by it, so that
//! nobody else's library can stand in the manifest, and taken away when it ends. What the
//! program's user has set is kept, and ours appended.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::device::DEVICES;
use crate::config::Vulkan;
use crate::lifecycle;
use crate::patch::got;
use crate::patch::loaded_object::LoadedObject;

pub(crate) const LAYER: &str = "VK_LAYER_GGPROF_timestamps";
const DIRECTORY: &str = "vulkan-layer";
/// Access for the user, and for nobody else.
const OURS_ALONE: u32 = 0o700;
/// Others may have taken the name, where anyone can write.
const MOST_ATTEMPTS: u32 = 10;
const MANIFEST: &str = "ggprof.json";

/// Makes ggml name its pipelines, whatever its value; ours shows that nobody else wants it.
const NAME_PIPELINES: &CStr = c"GGML_VK_DEBUG_MARKERS";
const FOR_US: &CStr = c"ggprof";

/// What was made, and by which process.
struct Made {
    manifest: CString,
    directory: CString,
    pid: u32,
}

static MADE: OnceLock<Made> = OnceLock::new();
/// Learnt with the announcement: later the program's threads may change the environment.
static LABELS_ARE_OURS: AtomicBool = AtomicBool::new(false);

/// Announces the layer to the loader. Before `main`: nobody reads the environment yet.
pub(crate) fn announce(recordings: &Path) {
    let Ok(directory) = provide(recordings) else { return };
    // A path of the user's own makes the loader ignore the additional one.
    let path = if std::env::var_os("VK_LAYER_PATH").is_some_and(|path| !path.is_empty()) {
        c"VK_LAYER_PATH"
    } else {
        c"VK_ADD_LAYER_PATH"
    };
    append(path, directory.as_os_str());
    append(c"VK_INSTANCE_LAYERS", OsStr::new(LAYER));
    // SAFETY: both are C strings; the program's threads do not run yet.
    unsafe { libc::setenv(NAME_PIPELINES.as_ptr(), FOR_US.as_ptr(), 0) };
    let value = std::env::var_os(OsStr::from_bytes(NAME_PIPELINES.to_bytes()));
    let ours = value.is_some_and(|value| value.as_bytes() == FOR_US.to_bytes());
    LABELS_ARE_OURS.store(ours, Ordering::Relaxed);
}

/// Whether ggml labels its work for us alone. Then nobody reads the labels, and the driver is
/// spared them: they cost a fast GPU a tenth of its tokens.
pub(crate) fn labels_are_ours() -> bool {
    LABELS_ARE_OURS.load(Ordering::Relaxed)
}

/// Why the kernels of a backend's library are not seen, if it works with Vulkan and they
/// are not: its device was opened before the backend came to us.
pub(crate) fn why_unseen(library: &LoadedObject) -> Option<&'static str> {
    let mut works_with_vulkan = false;
    got::for_each(library, |slot| works_with_vulkan |= slot.name.to_bytes().starts_with(b"vk"));
    if !works_with_vulkan {
        return None;
    }
    if lifecycle::vulkan() == Vulkan::Off {
        return Some("timing Vulkan devices is off");
    }
    DEVICES.is_empty().then_some("the Vulkan loader did not load the agent's layer")
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

/// The manifest in a directory of ours, which is returned.
fn provide(recordings: &Path) -> io::Result<PathBuf> {
    let library =
        LoadedObject::containing(provide as *const () as usize).ok_or(io::ErrorKind::NotFound)?;
    let library = Path::new(OsStr::from_bytes(library.name.to_bytes())).canonicalize()?;
    let directory = own_directory(recordings)?;
    let manifest = directory.join(MANIFEST);
    let made = Made {
        manifest: CString::new(manifest.as_os_str().as_bytes())?,
        directory: CString::new(directory.as_os_str().as_bytes())?,
        pid: std::process::id(),
    };
    let _ = MADE.set(made);
    let mut open = OpenOptions::new();
    open.write(true).create(true).truncate(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let mut file = open.open(manifest)?;
    file.write_all(text(&library.to_string_lossy()).as_bytes())?;
    Ok(directory)
}

/// A directory that only the user can write to. There is one already where this process was
/// another program before.
fn own_directory(recordings: &Path) -> io::Result<PathBuf> {
    for attempt in 0..MOST_ATTEMPTS {
        let directory = recordings.join(format!("{DIRECTORY}-{}-{attempt}", std::process::id()));
        match DirBuilder::new().mode(OURS_ALONE).create(&directory) {
            Ok(()) => return Ok(directory),
            Err(problem) if problem.kind() != io::ErrorKind::AlreadyExists => return Err(problem),
            Err(_) if is_ours_alone(&directory) => return Ok(directory),
            Err(_) => {}
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

pub(super) fn is_ours_alone(directory: &Path) -> bool {
    // SAFETY: a system call without arguments.
    let user = unsafe { libc::geteuid() };
    directory.symlink_metadata().is_ok_and(|it| {
        it.is_dir() && it.uid() == user && it.permissions().mode() & 0o777 == OURS_ALONE
    })
}

fn text(library: &str) -> String {
    let library = library.replace('\\', "\\\\").replace('"', "\\\"");
    let version = env!("CARGO_PKG_VERSION");
    format!(
        r#"{{
  "file_format_version": "1.1.0",
  "layer": {{
    "name": "{LAYER}",
    "type": "GLOBAL",
    "library_path": "{library}",
    "api_version": "1.3.0",
    "implementation_version": "1",
    "description": "ggprof {version}: device times of ggml",
    "functions": {{ "vkNegotiateLoaderLayerInterfaceVersion": "ggprof_vulkan_negotiate" }}
  }}
}}
"#
    )
}

/// Adds to a list of the environment, once.
fn append(name: &CStr, part: &OsStr) {
    let now = std::env::var_os(OsStr::from_bytes(name.to_bytes())).unwrap_or_default();
    if let Some(list) = appended(&now, part)
        && let Ok(list) = CString::new(list.as_bytes())
    {
        // SAFETY: both are C strings; the program's threads do not run yet.
        unsafe { libc::setenv(name.as_ptr(), list.as_ptr(), 1) };
    }
}

/// `None` where the list has it already.
fn appended(list: &OsStr, part: &OsStr) -> Option<OsString> {
    if list.as_bytes().split(|&byte| byte == b':').any(|own| own == part.as_bytes()) {
        return None;
    }
    let mut list = list.to_owned();
    if !list.is_empty() {
        list.push(":");
    }
    list.push(part);
    Some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_appended_to_once() {
        let list = |text: &str, part: &str| appended(text.as_ref(), part.as_ref());
        assert_eq!(list("", "a"), Some("a".into()));
        assert_eq!(list("x:y", "a"), Some("x:y:a".into()));
        assert_eq!(list("x:a:y", "a"), None);
        assert_eq!(list("ab", "a"), Some("ab:a".into()));
    }

    #[test]
    fn a_path_cannot_end_the_text_it_stands_in() {
        assert!(text("/a\"b\\c").contains(r#""library_path": "/a\"b\\c""#));
    }
}
