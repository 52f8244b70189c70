//! A device of a backend's library, ready to compute.

use crate::ggml::{Ggml, Pointer};
use crate::layout::Layout;
use crate::library::{Library, text};
use crate::numbers::{Name, number_of};
use crate::trial::Trial;
use std::ffi::{CStr, c_char, c_int};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) ggml: Ggml,
    pub(crate) layout: Layout,
    pub(crate) device: Pointer,
    pub(crate) backend: Pointer,
    /// Its own memory.
    pub(crate) memory: Pointer,
    registry: Pointer,
}

/// Functions that lead to a backend: one for libraries that are opened, others for those that
/// programs are linked with.
const REGISTRIES: [&CStr; 8] = [
    c"ggml_backend_init",
    c"ggml_backend_cpu_reg",
    c"ggml_backend_cuda_reg",
    c"ggml_backend_vk_reg",
    c"ggml_backend_blas_reg",
    c"ggml_backend_sycl_reg",
    c"ggml_backend_opencl_reg",
    c"ggml_backend_cann_reg",
];

const CPU: c_int = 0;

impl Device {
    pub(crate) fn open(trial: &Trial) -> Result<Device, String> {
        let base = &trial.libraries.base;
        let ggml =
            Ggml::of(Library::open(base).map_err(|why| format!("{}: {why}", base.display()))?)?;
        let number = |op: &str| {
            number_of(ggml.ggml_op_name, op).ok_or_else(|| format!("this ggml has no op {op}"))
        };
        let layout = Layout::find(&ggml, number("ADD")?, number("MUL")?)?;
        let registry = registry_of(&trial.libraries.backends)?;
        let device = device_of(&ggml, registry, &trial.device)?;
        // SAFETY: a device of this ggml.
        let (backend, memory) = unsafe {
            let backend = (ggml.ggml_backend_dev_init)(device, std::ptr::null());
            (backend, (ggml.ggml_backend_dev_buffer_type)(device))
        };
        if backend.is_null() {
            return Err(format!("{} could not be set up", trial.device));
        }
        let device = Device { ggml, layout, device, backend, memory, registry };
        device.set_threads(trial.threads);
        Ok(device)
    }

    /// What a backend offers beside ggml's own functions.
    fn offered(&self, name: &CStr) -> Option<Pointer> {
        // SAFETY: a live registry, and a C string.
        let found =
            unsafe { (self.ggml.ggml_backend_reg_get_proc_address)(self.registry, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    }

    fn set_threads(&self, threads: Option<u32>) {
        let found = self.offered(c"ggml_backend_set_n_threads");
        let (Some(set), Some(threads)) = (found, threads) else { return };
        // SAFETY: ggml's function of this name has this signature.
        let set: unsafe extern "C" fn(Pointer, c_int) = unsafe { std::mem::transmute(set) };
        // SAFETY: a live backend of this registry.
        unsafe { set(self.backend, threads as c_int) };
        self.keep_threads(threads);
    }

    /// Gives the processor threads that stay, as llama.cpp does; without, each call makes its own.
    fn keep_threads(&self, threads: u32) {
        /// Larger than ggml's struct, which is returned and taken by its address.
        #[repr(C)]
        struct Parameters([u64; 512]);
        type Make = unsafe extern "C" fn(*mut Parameters) -> Pointer;
        type Attach = unsafe extern "C" fn(Pointer, Pointer);
        // SAFETY: ggml's function of this name has this signature.
        let defaults: Option<unsafe extern "C" fn(c_int) -> Parameters> =
            unsafe { self.ggml.base.function(c"ggml_threadpool_params_default") };
        let make = self.offered(c"ggml_threadpool_new");
        let attach = self.offered(c"ggml_backend_cpu_set_threadpool");
        let (Some(defaults), Some(make), Some(attach)) = (defaults, make, attach) else { return };
        // SAFETY: ggml's functions of these names have these signatures; a live backend.
        unsafe {
            let make = std::mem::transmute::<Pointer, Make>(make);
            let attach = std::mem::transmute::<Pointer, Attach>(attach);
            let pool = make(&mut defaults(threads as c_int));
            if !pool.is_null() {
                attach(self.backend, pool);
            }
        }
    }

    pub(crate) fn is_processor(&self) -> bool {
        // SAFETY: a live device.
        (unsafe { (self.ggml.ggml_backend_dev_type)(self.device) }) == CPU
    }

    /// Memory that rearranges weights, of those kinds.
    pub(crate) fn special_memory(&self, kinds: &[String]) -> Vec<(String, Pointer)> {
        let Some(list) = self.offered(c"ggml_backend_dev_get_extra_bufts") else {
            return Vec::new();
        };
        // SAFETY: ggml's function of this name has this signature.
        let list: unsafe extern "C" fn(Pointer) -> *const Pointer =
            unsafe { std::mem::transmute(list) };
        let mut found = Vec::new();
        // SAFETY: a live device; a list that ends with null, or none.
        unsafe {
            let mut at = list(self.device);
            while !at.is_null() && !(*at).is_null() {
                let name = text((self.ggml.ggml_backend_buft_name)(*at)).unwrap_or_default();
                if kinds.contains(&name) {
                    found.push((name, *at));
                }
                at = at.add(1);
            }
        }
        found
    }

    /// Bytes of its memory that nobody uses.
    pub(crate) fn free_bytes(&self) -> u64 {
        let (mut free, mut total) = (0, 0);
        // SAFETY: a live device, and two numbers to fill.
        unsafe { (self.ggml.ggml_backend_dev_memory)(self.device, &mut free, &mut total) };
        // Of the host's memory, ggml counts what files are cached in as used, or as free.
        let available = available_bytes().filter(|_| self.is_processor());
        available.unwrap_or(free as u64)
    }

    /// The same of the host, if the device has memory of its own.
    pub(crate) fn free_beside(&self) -> Option<u64> {
        (!self.is_processor()).then(|| available_bytes().unwrap_or(u64::MAX))
    }

    /// Version and commit, as the ggml names itself.
    pub(crate) fn version(&self) -> [String; 2] {
        let tell = |name: &CStr| {
            // SAFETY: ggml's functions of these names take nothing and return a C string.
            let function: Option<unsafe extern "C" fn() -> *const c_char> =
                unsafe { self.ggml.base.function(name) };
            // SAFETY: as above.
            function.and_then(|tell| unsafe { text(tell()) })
        };
        [c"ggml_version", c"ggml_commit"].map(|name| tell(name).unwrap_or_default())
    }

    pub(crate) fn op_number(&self, op: &str) -> Result<i32, String> {
        let found = number_of(self.ggml.ggml_op_name, op);
        found.ok_or_else(|| format!("this ggml has no op {op}"))
    }

    /// The number of a function of `UNARY` or `GLU`.
    pub(crate) fn function_number(&self, op: &str, function: &str) -> Result<i32, String> {
        let of = if op == "GLU" { c"ggml_glu_op_name" } else { c"ggml_unary_op_name" };
        // SAFETY: ggml's functions of these names have this signature.
        let name: Option<Name> = unsafe { self.ggml.base.function(of) };
        let found = name.and_then(|name| number_of(name, function));
        found.ok_or_else(|| format!("this ggml has no {function} of {op}"))
    }
}

/// The registry of the variant that fits this machine best, as ggml itself chooses.
fn registry_of(variants: &[PathBuf]) -> Result<Pointer, String> {
    let named = |path: &Path, why: &str| format!("{}: {why}", path.display());
    let mut best: Option<(c_int, &PathBuf, Library)> = None;
    let mut problem = "there is no library of this backend".to_owned();
    for path in variants {
        match Library::open(path) {
            Ok(library) => {
                let score = score_of(library);
                if score > 0 && best.as_ref().is_none_or(|(other, ..)| score > *other) {
                    best = Some((score, path, library));
                }
            }
            Err(why) => problem = named(path, &why),
        }
    }
    let (_, path, library) = best.ok_or(problem)?;
    // SAFETY: ggml's functions of these names take nothing and return the registry.
    let find =
        |name: &&CStr| unsafe { library.function::<unsafe extern "C" fn() -> Pointer>(name) };
    let init = REGISTRIES.iter().find_map(find);
    let init = init.ok_or_else(|| named(path, "it is no backend of ggml"))?;
    // SAFETY: as above.
    let registry = unsafe { init() };
    match registry.is_null() {
        true => Err(named(path, "the backend does not work on this machine")),
        false => Ok(registry),
    }
}

/// 0 for a processor that lacks something.
fn score_of(library: Library) -> c_int {
    // SAFETY: ggml's function of this name takes nothing and returns a number.
    let score: Option<unsafe extern "C" fn() -> c_int> =
        unsafe { library.function(c"ggml_backend_score") };
    // SAFETY: as above.
    score.map_or(1, |score| unsafe { score() })
}

/// What Linux says that a program can have without others losing theirs.
fn available_bytes() -> Option<u64> {
    let facts = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = facts.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// The device of a name; a processor may be the only one, whatever it is called.
fn device_of(ggml: &Ggml, registry: Pointer, wanted: &str) -> Result<Pointer, String> {
    // SAFETY: a live registry.
    let count = unsafe { (ggml.ggml_backend_reg_dev_count)(registry) };
    // SAFETY: numbers below the count; a device's name is a C string that stays.
    let devices = (0..count).map(|at| unsafe {
        let device = (ggml.ggml_backend_reg_dev_get)(registry, at);
        (text((ggml.ggml_backend_dev_name)(device)).unwrap_or_default(), device)
    });
    let devices: Vec<(String, Pointer)> = devices.collect();
    match devices.iter().find(|(name, _)| name == wanted) {
        Some((_, device)) => Ok(*device),
        None => {
            let names: Vec<&str> = devices.iter().map(|(name, _)| name.as_str()).collect();
            Err(format!("there is no device {wanted} here, but these: {}", names.join(", ")))
        }
    }
}

/// ggml prints what it loads; only errors are of interest here.
pub(crate) fn silence(base: &Path) {
    extern "C" fn quiet(level: c_int, message: *const c_char, _: Pointer) {
        const ERROR: c_int = 4;
        if level == ERROR {
            // SAFETY: ggml hands over a C string.
            eprint!("{}", unsafe { text(message) }.unwrap_or_default());
        }
    }
    type Callback = extern "C" fn(c_int, *const c_char, Pointer);
    let Ok(library) = Library::open(base) else { return };
    // SAFETY: ggml's function of this name has this signature.
    let set: Option<unsafe extern "C" fn(Callback, Pointer)> =
        unsafe { library.function(c"ggml_log_set") };
    if let Some(set) = set {
        // SAFETY: as above; the callback stays.
        unsafe { set(quiet, std::ptr::null_mut()) };
    }
}
