//! The public functions of one copy of ggml, looked up by name. Each is optional: a missing
//! function means one capability less, not a failure.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::graph::GraphHead;
use crate::patch::inline;
use crate::patch::loaded_object::LoadedObject;
use crate::patch::scope::Scope;
use crate::patch::symbols::{self, Function};

pub(crate) type Pointer = *mut c_void;

/// ggml's own `GGML_STATUS_FAILED`, which our functions return where the real one cannot be found.
pub(crate) const GGML_STATUS_FAILED: c_int = -1;

/// `struct ggml_init_params`, the same in all versions that have backends.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct InitParams {
    bytes: usize,
    buffer: Pointer,
    no_alloc: bool,
    /// Zeros for fields that a fork may have added.
    more: [usize; 8],
}

impl InitParams {
    /// A context in memory of ours.
    pub(crate) fn new(bytes: usize, buffer: Pointer) -> InitParams {
        InitParams { bytes, buffer, no_alloc: false, more: [0; 8] }
    }

    /// A context for tensors that have no data yet.
    pub(crate) fn without_data(bytes: usize) -> InitParams {
        InitParams { bytes, buffer: std::ptr::null_mut(), no_alloc: true, more: [0; 8] }
    }
}

macro_rules! functions {
    ($(#[$doc:meta])* $group:ident {
        $($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        #[allow(clippy::type_complexity)]
        pub(crate) struct $group {
            $(pub(crate) $name: Option<unsafe extern "C-unwind" fn($($argument),*) $(-> $result)?>,)*
        }

        impl $group {
            /// Looks every function up.
            pub(crate) fn of(symbols: &Symbols) -> $group {
                // SAFETY: a symbol of this name in a ggml library has this signature in all
                // versions that have backends (ggml's headers); a null address becomes `None`.
                unsafe { $group {
                    $($name: std::mem::transmute::<usize, Option<_>>(
                        symbols.find(const { as_c_str(concat!(stringify!($name), "\0")) })),)*
                } }
            }
        }
    };
}

pub(crate) const fn as_c_str(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("names end in one zero byte"),
    }
}

functions! {
    /// What is asked of the program's own objects.
    Api {
        ggml_op_name: fn(c_int) -> *const c_char;
        ggml_op_desc: fn(Pointer) -> *const c_char;
        ggml_type_name: fn(c_int) -> *const c_char;
        ggml_blck_size: fn(c_int) -> i64;
        ggml_type_size: fn(c_int) -> usize;
        ggml_nbytes: fn(Pointer) -> usize;
        ggml_version: fn() -> *const c_char;
        ggml_commit: fn() -> *const c_char;
        ggml_backend_name: fn(Pointer) -> *const c_char;
        ggml_backend_is_cpu: fn(Pointer) -> bool;
        ggml_backend_sched_get_n_backends: fn(Pointer) -> c_int;
        ggml_backend_sched_get_backend: fn(Pointer, c_int) -> Pointer;
        ggml_backend_supports_op: fn(Pointer, Pointer) -> bool;
        ggml_backend_offload_op: fn(Pointer, Pointer) -> bool;
        ggml_backend_get_device: fn(Pointer) -> Pointer;
        ggml_backend_dev_name: fn(Pointer) -> *const c_char;
        ggml_backend_dev_description: fn(Pointer) -> *const c_char;
        ggml_backend_dev_type: fn(Pointer) -> c_int;
        ggml_backend_dev_backend_reg: fn(Pointer) -> Pointer;
        ggml_backend_reg_name: fn(Pointer) -> *const c_char;
        ggml_backend_dev_buffer_type: fn(Pointer) -> Pointer;
        ggml_backend_buft_is_host: fn(Pointer) -> bool;
        ggml_backend_buft_name: fn(Pointer) -> *const c_char;
        ggml_backend_buft_get_device: fn(Pointer) -> Pointer;
        ggml_backend_buffer_get_type: fn(Pointer) -> Pointer;
        ggml_backend_buffer_is_host: fn(Pointer) -> bool;
        ggml_backend_buffer_get_base: fn(Pointer) -> Pointer;
        ggml_backend_buffer_get_size: fn(Pointer) -> usize;
        ggml_backend_buffer_get_usage: fn(Pointer) -> c_int;
    }
}

functions! {
    /// What makes graphs of one node (`one_node`).
    OneNodeFunctions {
        ggml_graph_view: fn(Pointer, c_int, c_int) -> GraphHead;
        ggml_init: fn(InitParams) -> Pointer;
        ggml_new_graph_custom: fn(Pointer, usize, bool) -> Pointer;
        ggml_graph_clear: fn(Pointer);
        ggml_graph_add_node: fn(Pointer, Pointer);
        ggml_free: fn(Pointer);
    }
}

functions! {
    /// What makes or takes objects of ours. Called in children only (`probe`).
    Makers {
        ggml_init: fn(InitParams) -> Pointer;
        ggml_new_tensor: fn(Pointer, c_int, c_int, *const i64) -> Pointer;
        ggml_new_tensor_1d: fn(Pointer, c_int, i64) -> Pointer;
        ggml_new_tensor_2d: fn(Pointer, c_int, i64, i64) -> Pointer;
        ggml_new_tensor_3d: fn(Pointer, c_int, i64, i64, i64) -> Pointer;
        ggml_new_tensor_4d: fn(Pointer, c_int, i64, i64, i64, i64) -> Pointer;
        ggml_set_name: fn(Pointer, *const c_char) -> Pointer;
        ggml_format_name: fn(Pointer, *const c_char) -> Pointer;
        ggml_op_name: fn(c_int) -> *const c_char;
        ggml_add: fn(Pointer, Pointer, Pointer) -> Pointer;
        ggml_sub: fn(Pointer, Pointer, Pointer) -> Pointer;
        ggml_mul: fn(Pointer, Pointer, Pointer) -> Pointer;
        ggml_div: fn(Pointer, Pointer, Pointer) -> Pointer;
        ggml_mul_mat: fn(Pointer, Pointer, Pointer) -> Pointer;
        ggml_sqr: fn(Pointer, Pointer) -> Pointer;
        ggml_sqrt: fn(Pointer, Pointer) -> Pointer;
        ggml_cont: fn(Pointer, Pointer) -> Pointer;
        ggml_rms_norm: fn(Pointer, Pointer, f32) -> Pointer;
        ggml_norm: fn(Pointer, Pointer, f32) -> Pointer;
        ggml_scale: fn(Pointer, Pointer, f32) -> Pointer;
        ggml_view_1d: fn(Pointer, Pointer, i64, usize) -> Pointer;
        ggml_view_2d: fn(Pointer, Pointer, i64, i64, usize, usize) -> Pointer;
        ggml_transpose: fn(Pointer, Pointer) -> Pointer;
        ggml_set_input: fn(Pointer);
        ggml_set_output: fn(Pointer);
        ggml_new_graph: fn(Pointer) -> Pointer;
        ggml_new_graph_custom: fn(Pointer, usize, bool) -> Pointer;
        ggml_build_forward_expand: fn(Pointer, Pointer);
        ggml_backend_free: fn(Pointer);
        ggml_backend_synchronize: fn(Pointer);
        ggml_backend_graph_compute: fn(Pointer, Pointer) -> c_int;
        ggml_backend_graph_compute_async: fn(Pointer, Pointer) -> c_int;
        ggml_backend_tensor_copy_async: fn(Pointer, Pointer, Pointer, Pointer);
        ggml_backend_cpu_buffer_from_ptr: fn(Pointer, usize) -> Pointer;
        ggml_backend_tensor_alloc: fn(Pointer, Pointer, Pointer);
    }
}

/// The functions of one ggml, by name: from the symbol table of an object that hides them, or else those
/// that the object and its dependencies export.
pub(crate) struct Symbols {
    scope: Scope,
    hidden: Vec<Function>,
}

impl Symbols {
    pub(crate) fn of(object: &LoadedObject) -> Option<Symbols> {
        let scope = Scope::of(&object.name)?;
        let shows = object.holds(scope.find(c"ggml_init"));
        let is_ggmls = |name: &[u8]| name.starts_with(b"ggml_");
        let hidden = if shows { Vec::new() } else { symbols::functions(object, is_ggmls) };
        Some(Symbols { scope, hidden })
    }

    /// Where the function can be called, past a hook of ours; 0 when it is not there. Not inlined: there are
    /// as many calls of it as functions.
    #[inline(never)]
    pub(crate) fn find(&self, name: &CStr) -> usize {
        inline::way_past(self.address_of(name))
    }

    fn address_of(&self, name: &CStr) -> usize {
        if self.hidden.is_empty() {
            return self.scope.find(name);
        }
        // Under these names the scope would find our own.
        let own = self.hidden.iter().find(|function| function.name == name.to_bytes());
        own.map_or(0, |function| function.address)
    }
}

/// Text from ggml, empty for null. ggml's names live as long as its library.
pub(crate) fn text<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return b"";
    }
    // SAFETY: ggml's name functions return C strings from static tables or from
    // the object asked, which the caller keeps alive while using the result.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}

/// What `ggml_version` and the like return, or nothing.
pub(crate) fn optional_text(
    function: Option<unsafe extern "C-unwind" fn() -> *const c_char>,
) -> &'static [u8] {
    // SAFETY: a function without arguments that returns a static C string.
    function.map_or(b"", |function| text(unsafe { function() }))
}
