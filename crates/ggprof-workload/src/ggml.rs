//! ggml's public C functions, opened at run time.
//!
//! By default symbols are looked up as the dynamic linker would for a program
//! that was linked with ggml, so that a preloaded library stands in front. With
//! `--local` the libraries are opened as plugins and asked directly.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub(crate) type Pointer = *mut c_void;

#[repr(C)]
pub(crate) struct InitParams {
    pub(crate) bytes: usize,
    pub(crate) buffer: Pointer,
    pub(crate) no_alloc: bool,
}

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// One opened ggml.
        #[derive(Debug)]
        pub(crate) struct Ggml {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Ggml {
            fn look_up(handles: &[Pointer], local: bool) -> Result<Ggml, String> {
                Ok(Ggml {
                    $($name: {
                        let address = find(handles, local, concat!(stringify!($name), "\0"))?;
                        // SAFETY: ggml's function of this name has this signature.
                        unsafe {
                            std::mem::transmute::<Pointer, unsafe extern "C" fn($($argument),*) $(-> $result)?>(address)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    ggml_init: fn(InitParams) -> Pointer;
    ggml_free: fn(Pointer);
    ggml_tensor_overhead: fn() -> usize;
    ggml_graph_overhead_custom: fn(usize, bool) -> usize;
    ggml_new_tensor_1d: fn(Pointer, c_int, i64) -> Pointer;
    ggml_new_tensor_2d: fn(Pointer, c_int, i64, i64) -> Pointer;
    ggml_new_tensor_3d: fn(Pointer, c_int, i64, i64, i64) -> Pointer;
    ggml_set_name: fn(Pointer, *const c_char) -> Pointer;
    ggml_set_input: fn(Pointer);
    ggml_set_output: fn(Pointer);
    ggml_nbytes: fn(Pointer) -> usize;
    ggml_add: fn(Pointer, Pointer, Pointer) -> Pointer;
    ggml_mul: fn(Pointer, Pointer, Pointer) -> Pointer;
    ggml_mul_mat: fn(Pointer, Pointer, Pointer) -> Pointer;
    ggml_mul_mat_id: fn(Pointer, Pointer, Pointer, Pointer) -> Pointer;
    ggml_rms_norm: fn(Pointer, Pointer, f32) -> Pointer;
    ggml_silu: fn(Pointer, Pointer) -> Pointer;
    ggml_soft_max: fn(Pointer, Pointer) -> Pointer;
    ggml_diag_mask_zero: fn(Pointer, Pointer, c_int) -> Pointer;
    ggml_scale: fn(Pointer, Pointer, f32) -> Pointer;
    ggml_rope: fn(Pointer, Pointer, Pointer, c_int, c_int) -> Pointer;
    ggml_cont: fn(Pointer, Pointer) -> Pointer;
    ggml_permute: fn(Pointer, Pointer, c_int, c_int, c_int, c_int) -> Pointer;
    ggml_reshape_2d: fn(Pointer, Pointer, i64, i64) -> Pointer;
    ggml_reshape_3d: fn(Pointer, Pointer, i64, i64, i64) -> Pointer;
    ggml_view_2d: fn(Pointer, Pointer, i64, i64, usize, usize) -> Pointer;
    ggml_op_desc: fn(Pointer) -> *const c_char;
    ggml_new_graph_custom: fn(Pointer, usize, bool) -> Pointer;
    ggml_build_forward_expand: fn(Pointer, Pointer);
    ggml_graph_n_nodes: fn(Pointer) -> c_int;
    ggml_graph_node: fn(Pointer, c_int) -> Pointer;
    ggml_backend_dev_count: fn() -> usize;
    ggml_backend_dev_get: fn(usize) -> Pointer;
    ggml_backend_dev_type: fn(Pointer) -> c_int;
    ggml_backend_dev_name: fn(Pointer) -> *const c_char;
    ggml_backend_dev_init: fn(Pointer, *const c_char) -> Pointer;
    ggml_backend_dev_backend_reg: fn(Pointer) -> Pointer;
    ggml_backend_reg_get_proc_address: fn(Pointer, *const c_char) -> Pointer;
    ggml_backend_free: fn(Pointer);
    ggml_backend_alloc_ctx_tensors: fn(Pointer, Pointer) -> Pointer;
    ggml_backend_buffer_set_usage: fn(Pointer, c_int);
    ggml_backend_tensor_set: fn(Pointer, Pointer, usize, usize);
    ggml_backend_tensor_get: fn(Pointer, Pointer, usize, usize);
    ggml_backend_tensor_set_async: fn(Pointer, Pointer, Pointer, usize, usize);
    ggml_backend_synchronize: fn(Pointer);
    ggml_backend_sched_new: fn(*const Pointer, Pointer, c_int, usize, bool, bool) -> Pointer;
    ggml_backend_sched_free: fn(Pointer);
    ggml_backend_sched_reset: fn(Pointer);
    ggml_backend_sched_alloc_graph: fn(Pointer, Pointer) -> bool;
    ggml_backend_sched_graph_compute: fn(Pointer, Pointer) -> c_int;
}

impl Ggml {
    pub(crate) fn open(paths: &[PathBuf], local: bool) -> Result<Ggml, String> {
        let (libraries, directory) = match paths {
            [directory] if directory.is_dir() => (libraries_in(directory)?, Some(directory)),
            files => (files.to_vec(), None),
        };
        let visibility = if local { libc::RTLD_LOCAL } else { libc::RTLD_GLOBAL };
        let handles = libraries
            .iter()
            .map(|library| open(library, visibility))
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(directory) = directory {
            load_backends(&handles, local, directory);
        }
        Ggml::look_up(&handles, local)
    }

    /// What the program says it is, e.g. `MUL_MAT`.
    pub(crate) fn op_of(&self, tensor: Pointer) -> &str {
        // SAFETY: a tensor this program made; the text is static.
        let text = unsafe { CStr::from_ptr((self.ggml_op_desc)(tensor)) };
        text.to_str().unwrap_or_default()
    }
}

/// libggml-base first, then libggml: backends are found by the latter.
fn libraries_in(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let entries =
        std::fs::read_dir(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let mut libraries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    libraries.retain(|path| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let is_base = name.starts_with("libggml-base") && name.ends_with(".so");
        let is_main =
            name == "libggml.so" || (name.starts_with("libggml.") && name.ends_with(".so"));
        is_base || is_main
    });
    libraries.sort();
    if libraries.is_empty() {
        return Err(format!("{}: no libggml here", directory.display()));
    }
    Ok(libraries)
}

fn open(library: &Path, visibility: c_int) -> Result<Pointer, String> {
    let path = CString::new(library.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
    // SAFETY: loads a library the user named; its constructors run.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | visibility) };
    if handle.is_null() {
        // SAFETY: set by the failed call above.
        let reason = unsafe { CStr::from_ptr(libc::dlerror()) };
        return Err(reason.to_string_lossy().into_owned());
    }
    Ok(handle)
}

/// Builds with backends as plugins need telling where they are; others have
/// them linked in.
fn load_backends(handles: &[Pointer], local: bool, directory: &Path) {
    let path = CString::new(directory.as_os_str().as_bytes()).unwrap_or_default();
    if let Ok(load) = find(handles, local, "ggml_backend_load_all_from_path\0") {
        // SAFETY: ggml's function of this name takes a C string.
        let load: unsafe extern "C" fn(*const c_char) = unsafe { std::mem::transmute(load) };
        // SAFETY: as above; it loads libraries from the user's directory.
        unsafe { load(path.as_ptr()) };
    }
}

fn find(handles: &[Pointer], local: bool, name: &str) -> Result<Pointer, String> {
    let name = CStr::from_bytes_with_nul(name.as_bytes()).map_err(|e| e.to_string())?;
    let scopes: &[Pointer] = if local { handles } else { &[libc::RTLD_DEFAULT] };
    for &scope in scopes {
        // SAFETY: an open handle or the default scope, and a C string.
        let address = unsafe { libc::dlsym(scope, name.as_ptr()) };
        if !address.is_null() {
            return Ok(address);
        }
    }
    Err(format!("no {} in these libraries", name.to_string_lossy()))
}
