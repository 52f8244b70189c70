//! Finding libcupti. It comes with CUDA's toolkit or with Python packages, not with the driver, and
//! is rarely where the linker looks. The best guess is the directory of the CUDA runtime that the
//! program itself uses.

use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::settings::CudaConfig;
use crate::ffi::api::Pointer;
use crate::lock;
use crate::patch::loaded_object;

/// Where the toolkit and Python's packages put it, seen from the folder of the
/// runtime library or of the toolkit.
const BESIDE: [&str; 6] = [
    "",
    "lib64",
    "extras/CUPTI/lib64",
    "../extras/CUPTI/lib64",
    "../../extras/CUPTI/lib64",
    "../../cuda_cupti/lib",
];
/// The same, seen from a folder of Python's packages.
const IN_PYTHON: [&str; 2] = ["nvidia/cu13/lib", "nvidia/cuda_cupti/lib"];
const NEWEST_FIRST: [u32; 2] = [13, 12];

/// A library that is open, and stays so: CUPTI's threads may be in it.
#[derive(Debug)]
pub(crate) struct Opened {
    handle: Pointer,
    pub(crate) path: Box<Path>,
}

impl Opened {
    pub(super) fn find(&self, symbol: &CStr) -> usize {
        lock::before_asking_the_loader();
        // SAFETY: the handle is open, the name a C string.
        unsafe { libc::dlsym(self.handle, symbol.as_ptr()) as usize }
    }
}

/// Opens the CUPTI to use; `Err` is a sentence for the user.
pub(crate) fn open(config: &CudaConfig) -> Result<Opened, String> {
    if let Some(named) = &config.cupti {
        return open_file(named).ok_or_else(|| {
            format!("GGPROF_CUPTI names {}, which cannot be loaded", named.display())
        });
    }
    let loaded = loaded_object::names();
    let candidates = candidates(config, &loaded);
    candidates.iter().find_map(|file| open_file(file)).ok_or_else(|| {
        "CUPTI, NVIDIA's tracing library, was not found; install it (the CUDA toolkit, or \
         `pip install nvidia-cuda-cupti` for CUDA 13, `nvidia-cuda-cupti-cu12` for CUDA 12) \
         and, if it is not found then, set GGPROF_CUPTI to the file libcupti.so"
            .to_owned()
    })
}

/// Files to try, best first. A name without a folder asks the linker.
fn candidates(config: &CudaConfig, loaded: &[CString]) -> Vec<PathBuf> {
    let paths = || loaded.iter().map(|name| Path::new(OsStr::from_bytes(name.to_bytes())));
    let named = |path: &Path, prefix: &str| {
        path.file_name().is_some_and(|name| name.as_bytes().starts_with(prefix.as_bytes()))
    };
    let mut files: Vec<PathBuf> =
        paths().filter(|path| named(path, "libcupti.so")).map(Path::to_owned).collect();
    let runtime = paths().find(|path| named(path, "libcudart"));
    let majors = majors(runtime);
    let mut folders: Vec<PathBuf> = Vec::new();
    let beside = |folder: &Path, into: &mut Vec<PathBuf>| {
        into.extend(BESIDE.iter().map(|way| folder.join(way)));
    };
    if let Some(folder) = runtime.and_then(Path::parent) {
        beside(folder, &mut folders);
        if let Ok(real) = std::fs::canonicalize(folder) {
            beside(&real, &mut folders);
        }
    }
    config.homes.iter().for_each(|home| beside(home, &mut folders));
    numbered_folders("/usr/local", "cuda").iter().for_each(|home| beside(home, &mut folders));
    for packages in python_packages(config, &loaded_python(paths())) {
        folders.extend(IN_PYTHON.iter().map(|way| packages.join(way)));
    }
    for major in majors {
        let name = format!("libcupti.so.{major}");
        files.extend(folders.iter().map(|folder| folder.join(&name)));
        files.push(PathBuf::from(name));
    }
    files
}

/// The runtime's own major version first, then the others.
fn majors(runtime: Option<&Path>) -> Vec<u32> {
    let name = runtime.and_then(Path::file_name).unwrap_or_default().as_bytes();
    let own = NEWEST_FIRST.into_iter().filter(|major| {
        let mark = format!(".so.{major}");
        name.windows(mark.len()).any(|part| part == mark.as_bytes())
    });
    let own: Vec<u32> = own.collect();
    let others = NEWEST_FIRST.into_iter().filter(|major| !own.contains(major));
    own.iter().copied().chain(others).collect()
}

/// `/usr/local/cuda-13.0`, `/usr/local/cuda` and so on, the last one of the alphabet first.
fn numbered_folders(parent: &str, prefix: &str) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().as_bytes().starts_with(prefix.as_bytes()) {
            let folder = entry.path();
            let place = folders.partition_point(|other| *other > folder);
            folders.insert(place, folder);
        }
    }
    folders
}

/// Folders of Python packages that something in this process was loaded from.
fn loaded_python<'a>(paths: impl Iterator<Item = &'a Path>) -> Vec<PathBuf> {
    let is_packages =
        |path: &&Path| path.ends_with("site-packages") || path.ends_with("dist-packages");
    let mut found: Vec<PathBuf> = Vec::new();
    for path in paths {
        if let Some(packages) = path.ancestors().find(is_packages)
            && !found.iter().any(|known| known == packages)
        {
            found.push(packages.to_owned());
        }
    }
    found
}

fn python_packages(config: &CudaConfig, loaded: &[PathBuf]) -> Vec<PathBuf> {
    let mut all = loaded.to_vec();
    for prefix in &config.python_prefixes {
        for python in numbered_folders(&prefix.join("lib").to_string_lossy(), "python3") {
            all.push(python.join("site-packages"));
            all.push(python.join("dist-packages"));
        }
    }
    all
}

fn open_file(path: &Path) -> Option<Opened> {
    let name = CString::new(path.as_os_str().as_bytes()).ok()?;
    if path.is_absolute() && !path.exists() {
        return None;
    }
    lock::before_asking_the_loader();
    // SAFETY: a C string. Loading runs the library's constructors: it is NVIDIA's
    // tracing library, by its name and place, or what the user named.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    (!handle.is_null()).then(|| Opened { handle, path: path.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> CudaConfig {
        CudaConfig { homes: vec!["/opt/cuda".into()], ..CudaConfig::default() }
    }

    #[test]
    fn the_runtime_in_use_decides_version_and_place() {
        let loaded = [c"/srv/venv/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12".into()];
        let files = candidates(&config(), &loaded);
        let beside = "/srv/venv/site-packages/nvidia/cuda_runtime/lib/libcupti.so.12";
        assert_eq!(files[0], Path::new(beside));
        let packages = Path::new("/srv/venv/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12");
        assert!(files.iter().any(|file| file == packages), "{files:?}");
        assert!(files.iter().any(|file| file == Path::new("/opt/cuda/lib64/libcupti.so.12")));
    }

    #[test]
    fn one_already_loaded_comes_first_and_the_linker_last() {
        let loaded = [c"/x/libcudart.so.13".into(), c"/y/libcupti.so.13.0.85".into()];
        let files = candidates(&config(), &loaded);
        assert_eq!(files[0], Path::new("/y/libcupti.so.13.0.85"));
        assert_eq!(files.last().map(PathBuf::as_path), Some(Path::new("libcupti.so.12")));
    }
}
