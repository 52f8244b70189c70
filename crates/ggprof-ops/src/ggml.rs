//! ggml's public C functions, looked up by name.

use crate::library::Library;
use std::ffi::{c_char, c_int, c_void};

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
            pub(crate) base: Library,
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Ggml {
            /// All functions, or a sentence that names the one that is missing.
            pub(crate) fn of(base: Library) -> Result<Ggml, String> {
                Ok(Ggml {
                    base,
                    $($name: {
                        const NAME: &str = concat!(stringify!($name), "\0");
                        let name = std::ffi::CStr::from_bytes_with_nul(NAME.as_bytes());
                        let name = name.map_err(|error| error.to_string())?;
                        // SAFETY: ggml's function of this name has this signature.
                        let function = unsafe { base.function(name) };
                        function.ok_or_else(|| format!(
                            "this ggml has no {}, so it is older than ops can be run with",
                            stringify!($name)
                        ))?
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
    ggml_new_tensor_4d: fn(Pointer, c_int, i64, i64, i64, i64) -> Pointer;
    ggml_view_4d: fn(Pointer, Pointer, i64, i64, i64, i64, usize, usize, usize, usize) -> Pointer;
    ggml_add: fn(Pointer, Pointer, Pointer) -> Pointer;
    ggml_mul: fn(Pointer, Pointer, Pointer) -> Pointer;
    ggml_rms_norm: fn(Pointer, Pointer, f32) -> Pointer;
    ggml_op_name: fn(c_int) -> *const c_char;
    ggml_type_name: fn(c_int) -> *const c_char;
    ggml_type_size: fn(c_int) -> usize;
    ggml_blck_size: fn(c_int) -> i64;
    ggml_nbytes: fn(Pointer) -> usize;
    ggml_quantize_chunk: fn(c_int, *const f32, Pointer, i64, i64, i64, *const f32) -> usize;
    ggml_new_graph_custom: fn(Pointer, usize, bool) -> Pointer;
    ggml_build_forward_expand: fn(Pointer, Pointer);
    ggml_backend_reg_dev_count: fn(Pointer) -> usize;
    ggml_backend_reg_dev_get: fn(Pointer, usize) -> Pointer;
    ggml_backend_reg_get_proc_address: fn(Pointer, *const c_char) -> Pointer;
    ggml_backend_dev_name: fn(Pointer) -> *const c_char;
    ggml_backend_dev_init: fn(Pointer, *const c_char) -> Pointer;
    ggml_backend_dev_memory: fn(Pointer, *mut usize, *mut usize);
    ggml_backend_dev_type: fn(Pointer) -> c_int;
    ggml_backend_dev_supports_op: fn(Pointer, Pointer) -> bool;
    ggml_backend_dev_buffer_type: fn(Pointer) -> Pointer;
    ggml_backend_buft_name: fn(Pointer) -> *const c_char;
    ggml_backend_buft_alloc_buffer: fn(Pointer, usize) -> Pointer;
    ggml_backend_buft_get_alignment: fn(Pointer) -> usize;
    ggml_backend_buft_get_alloc_size: fn(Pointer, Pointer) -> usize;
    ggml_backend_buffer_get_base: fn(Pointer) -> Pointer;
    ggml_backend_buffer_set_usage: fn(Pointer, c_int);
    ggml_backend_buffer_free: fn(Pointer);
    ggml_backend_tensor_alloc: fn(Pointer, Pointer, Pointer);
    ggml_backend_view_init: fn(Pointer);
    ggml_backend_tensor_set: fn(Pointer, *const c_void, usize, usize);
    ggml_backend_graph_compute: fn(Pointer, Pointer) -> c_int;
}
