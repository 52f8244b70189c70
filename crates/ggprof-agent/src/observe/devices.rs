//! What ggml says about a backend's device.

pub(super) use ggprof_spool::layout::{
    DEVICE_ACCELERATOR as ACCELERATOR, DEVICE_CPU as CPU, DEVICE_UNKNOWN as UNKNOWN,
};

use super::instance::Instance;
use crate::ffi::api::{Pointer, text};
use crate::patch::loaded_object::LoadedObject;
use crate::patch::scope::Scope;

pub(super) fn device_of(instance: &Instance, backend: Pointer) -> Pointer {
    // SAFETY: a live backend of this instance.
    let ask = |get: unsafe extern "C-unwind" fn(Pointer) -> Pointer| unsafe { get(backend) };
    instance.api.ggml_backend_get_device.map_or(std::ptr::null_mut(), ask)
}

/// The type of a backend's device. ggml put the integrated GPU in front of the
/// accelerator at some point, so a 2 is told by whether its memory is the host's.
/// Before there were accelerators, a 2 was the processor; before there were devices,
/// ggml knew only whether a backend is the processor's.
pub(super) fn device_type(instance: &Instance, backend: Pointer, device: Pointer) -> u8 {
    let Some(get_type) = instance.api.ggml_backend_dev_type.filter(|_| !device.is_null()) else {
        return if is_cpu(instance, backend) { CPU } else { UNKNOWN };
    };
    // SAFETY: a live device of this instance; devices are never freed.
    match unsafe { get_type(device) } {
        2 if is_cpu(instance, backend) => CPU,
        2 if uses_host(instance, device) => ACCELERATOR,
        raw => u8::try_from(raw).unwrap_or(UNKNOWN),
    }
}

/// Whether ggml's base library, where it has the processor's backend in it, knows the
/// backend as that.
fn is_cpu(instance: &Instance, backend: Pointer) -> bool {
    // SAFETY: a live backend of this instance.
    instance.api.ggml_backend_is_cpu.is_some_and(|is_cpu| unsafe { is_cpu(backend) })
}

/// Whether the device works in the host's memory.
pub(super) fn uses_host(instance: &Instance, device: Pointer) -> bool {
    let api = &instance.api;
    let (Some(buffer_type), Some(is_host)) =
        (api.ggml_backend_dev_buffer_type, api.ggml_backend_buft_is_host)
    else {
        return false;
    };
    // SAFETY: a live device of this instance, not null as it has a type; devices
    // are never freed.
    unsafe { is_host(buffer_type(device)) }
}

/// Whether the device is of another machine, which ggml's RPC reaches for the program.
pub(super) fn is_remote(instance: &Instance, device: Pointer) -> bool {
    let api = &instance.api;
    let (Some(registry), Some(name)) =
        (api.ggml_backend_dev_backend_reg, api.ggml_backend_reg_name)
    else {
        return false;
    };
    if device.is_null() {
        return false;
    }
    // SAFETY: a live device of this instance, and its registry; neither is ever freed.
    let registry = unsafe { registry(device) };
    // SAFETY: as above.
    !registry.is_null() && text(unsafe { name(registry) }) == b"RPC"
}

/// The library behind the one that calls a BLAS, with the directory it is in: distributions give all of
/// them the same name, under which a link leads to the one that was chosen.
pub(super) fn blas_behind(library: &LoadedObject) -> Option<String> {
    let function = Scope::of(&library.name)?.find(c"cblas_sgemm");
    let path = LoadedObject::containing(function)?.file()?;
    let path = path.canonicalize().unwrap_or(path);
    let parts = path.iter().rev().take(2).map(|part| part.to_string_lossy());
    let [file, directory] = parts.collect::<Vec<_>>().try_into().ok()?;
    Some(format!("{directory}/{file}"))
}
