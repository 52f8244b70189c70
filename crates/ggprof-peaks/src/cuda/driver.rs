//! The functions of CUDA's driver library that are needed, with their results as [`Result`]s. The
//! library comes with the driver; CUDA's toolkit is not needed.

use crate::library::Library;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

const LIBRARY: &CStr = c"libcuda.so.1";

pub(super) type Device = c_int;
pub(super) type Address = u64;
type Handle = *mut c_void;
type Status = c_int;

/// `CUDA_ERROR_NO_DEVICE`.
const NO_DEVICE: Status = 100;

/// Declares the functions as a struct of pointers, and how to find all of them.
macro_rules! functions {
    ($($field:ident: $name:literal ($($type:ty),*),)+) => {
        struct Functions {
            $($field: unsafe extern "C" fn($($type),*) -> Status,)+
        }

        impl Functions {
            fn find(library: Library) -> Option<Self> {
                // SAFETY: CUDA's documentation has these signatures for these names; it adds a
                // suffix to the name when one changes.
                unsafe { Some(Self { $($field: library.function($name)?,)+ }) }
            }
        }
    };
}

functions! {
    init: c"cuInit" (c_uint),
    error_text: c"cuGetErrorString" (Status, *mut *const c_char),
    device_count: c"cuDeviceGetCount" (*mut c_int),
    device: c"cuDeviceGet" (*mut Device, c_int),
    name: c"cuDeviceGetName" (*mut c_char, c_int, Device),
    attribute: c"cuDeviceGetAttribute" (*mut c_int, c_int, Device),
    retain: c"cuDevicePrimaryCtxRetain" (*mut Handle, Device),
    release: c"cuDevicePrimaryCtxRelease_v2" (Device),
    make_current: c"cuCtxSetCurrent" (Handle),
    synchronize: c"cuCtxSynchronize" (),
    memory: c"cuMemGetInfo_v2" (*mut usize, *mut usize),
    allocate: c"cuMemAlloc_v2" (*mut Address, usize),
    free: c"cuMemFree_v2" (Address),
    fill: c"cuMemsetD8_v2" (Address, u8, usize),
    allocate_pinned: c"cuMemHostAlloc" (*mut *mut c_void, usize, c_uint),
    free_pinned: c"cuMemFreeHost" (*mut c_void),
    to_device: c"cuMemcpyHtoD_v2" (Address, *const c_void, usize),
    to_host: c"cuMemcpyDtoH_v2" (*mut c_void, Address, usize),
    load: c"cuModuleLoadData" (*mut Handle, *const c_void),
    unload: c"cuModuleUnload" (Handle),
    function: c"cuModuleGetFunction" (*mut Handle, Handle, *const c_char),
    launch: c"cuLaunchKernel" (
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void,
        *mut *mut c_void
    ),
}

/// What is asked of a device, with CUDA's numbers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Attribute {
    Multiprocessors = 16,
    CapabilityMajor = 75,
    CapabilityMinor = 76,
}

pub(super) struct Driver(Functions);

impl Driver {
    /// `None` without a driver or without devices; an error if something does not work.
    pub(super) fn load() -> Option<Result<Self, String>> {
        let driver = Self(Functions::find(Library::open(LIBRARY)?)?);
        // SAFETY: may be called at any time; 0 is the only flag there is.
        let status = unsafe { (driver.0.init)(0) };
        (status != NO_DEVICE).then(|| driver.check(status, "the driver").map(|()| driver))
    }

    fn check(&self, status: Status, what: &str) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        let mut text = null();
        // SAFETY: fills in a text that lives as long as the library, or leaves null.
        unsafe { (self.0.error_text)(status, &mut text) };
        let why = match text.is_null() {
            true => format!("error {status}"),
            // SAFETY: a text of the library's, see above.
            false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
        };
        Err(format!("{what} failed: {why}"))
    }

    pub(super) fn devices(&self) -> Result<Vec<Device>, String> {
        let mut count = 0;
        // SAFETY: here and below, the driver is initialised and fills in a value.
        self.check(unsafe { (self.0.device_count)(&mut count) }, "counting devices")?;
        let device = |at| {
            let mut device = 0;
            // SAFETY: one of as many devices.
            self.check(unsafe { (self.0.device)(&mut device, at) }, "asking for a device")?;
            Ok(device)
        };
        (0..count).map(device).collect()
    }

    pub(super) fn name(&self, device: Device) -> Result<String, String> {
        let mut name = [0u8; 256];
        // SAFETY: writes a text with its end into at most as many bytes.
        let status =
            unsafe { (self.0.name)(name.as_mut_ptr().cast(), name.len() as c_int, device) };
        self.check(status, "asking for a name")?;
        let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        Ok(name.to_string_lossy().into_owned())
    }

    pub(super) fn attribute(&self, device: Device, which: Attribute) -> Result<u32, String> {
        let mut value = 0;
        // SAFETY: a device of the driver's.
        let status = unsafe { (self.0.attribute)(&mut value, which as c_int, device) };
        self.check(status, "asking for an attribute").map(|()| value.max(0) as u32)
    }

    /// Makes the device's context that of this thread, until it is dropped.
    pub(super) fn enter(&self, device: Device) -> Result<Context<'_>, String> {
        let mut context = null_mut();
        // SAFETY: a device of the driver's.
        self.check(unsafe { (self.0.retain)(&mut context, device) }, "making a context")?;
        let entered = Context { driver: self, device };
        // SAFETY: the context just made.
        self.check(unsafe { (self.0.make_current)(context) }, "entering a context")?;
        Ok(entered)
    }
}

/// A device that this thread can use. What it makes borrows it, so it outlives all of that.
pub(super) struct Context<'d> {
    driver: &'d Driver,
    device: Device,
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        // SAFETY: was retained once; afterwards no context is current.
        unsafe {
            (self.driver.0.make_current)(null_mut());
            (self.driver.0.release)(self.device);
        }
    }
}

impl Context<'_> {
    pub(super) fn free_bytes(&self) -> Result<usize, String> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: a context is current, here and below, as long as there is a `Context`.
        let status = unsafe { (self.driver.0.memory)(&mut free, &mut total) };
        self.driver.check(status, "asking for free memory").map(|()| free)
    }

    pub(super) fn synchronize(&self) -> Result<(), String> {
        // SAFETY: see above.
        self.driver.check(unsafe { (self.driver.0.synchronize)() }, "waiting for the device")
    }

    /// Memory of the device, filled with zeros.
    pub(super) fn allocate(&self, bytes: usize) -> Result<DeviceMemory<'_>, String> {
        let mut address = 0;
        // SAFETY: see above.
        let status = unsafe { (self.driver.0.allocate)(&mut address, bytes) };
        self.driver.check(status, "allocating memory")?;
        let memory = DeviceMemory { context: self, address, bytes };
        // SAFETY: as many bytes were just allocated.
        let status = unsafe { (self.driver.0.fill)(address, 0, bytes) };
        self.driver.check(status, "filling memory").map(|()| memory)
    }

    pub(super) fn allocate_pinned(&self, bytes: usize) -> Result<PinnedMemory<'_>, String> {
        let mut at = null_mut();
        // SAFETY: see above.
        let status = unsafe { (self.driver.0.allocate_pinned)(&mut at, bytes, 0) };
        self.driver.check(status, "pinning memory")?;
        // SAFETY: as many bytes were just allocated.
        unsafe { at.cast::<u8>().write_bytes(0, bytes) };
        Ok(PinnedMemory { context: self, at, bytes })
    }

    pub(super) fn to_device(&self, to: &DeviceMemory<'_>, from: &[u8]) -> Result<(), String> {
        let bytes = from.len().min(to.bytes);
        // SAFETY: both have as many bytes, and the copy is over when the call returns.
        let status = unsafe { (self.driver.0.to_device)(to.address, from.as_ptr().cast(), bytes) };
        self.driver.check(status, "copying to the device")
    }

    pub(super) fn to_host(&self, to: &mut [u8], from: &DeviceMemory<'_>) -> Result<(), String> {
        let bytes = to.len().min(from.bytes);
        // SAFETY: both have as many bytes, and the copy is over when the call returns.
        let status =
            unsafe { (self.driver.0.to_host)(to.as_mut_ptr().cast(), from.address, bytes) };
        self.driver.check(status, "copying to the host")
    }

    /// Compiles a kernel called `run` from text.
    pub(super) fn compile(&self, ptx: &CStr) -> Result<Kernel<'_>, String> {
        let (mut module, mut function) = (null_mut(), null_mut());
        // SAFETY: a text that ends with a zero.
        let status = unsafe { (self.driver.0.load)(&mut module, ptx.as_ptr().cast()) };
        self.driver.check(status, "compiling a kernel")?;
        let mut kernel = Kernel { context: self, module, function };
        // SAFETY: the module just made.
        let status = unsafe { (self.driver.0.function)(&mut function, module, c"run".as_ptr()) };
        kernel.function = function;
        self.driver.check(status, "finding a kernel").map(|()| kernel)
    }
}

pub(super) struct DeviceMemory<'c> {
    context: &'c Context<'c>,
    pub(super) address: Address,
    pub(super) bytes: usize,
}

impl Drop for DeviceMemory<'_> {
    fn drop(&mut self) {
        // SAFETY: allocated in this context, freed once; the call waits for work that uses it.
        unsafe { (self.context.driver.0.free)(self.address) };
    }
}

/// Memory of the host that the device reaches.
pub(super) struct PinnedMemory<'c> {
    context: &'c Context<'c>,
    at: *mut c_void,
    bytes: usize,
}

impl PinnedMemory<'_> {
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: as many bytes, written once, that nothing else refers to.
        unsafe { std::slice::from_raw_parts_mut(self.at.cast(), self.bytes) }
    }
}

impl Drop for PinnedMemory<'_> {
    fn drop(&mut self) {
        // SAFETY: allocated in this context, freed once; no copy is under way, see `to_device`.
        unsafe { (self.context.driver.0.free_pinned)(self.at) };
    }
}

pub(super) struct Kernel<'c> {
    context: &'c Context<'c>,
    module: Handle,
    function: Handle,
}

impl Kernel<'_> {
    /// Starts it with the two numbers that all kernels here take; the first is an address.
    ///
    /// # Safety
    ///
    /// What the kernel reads and writes at the address, for this number of threads, is allocated.
    pub(super) unsafe fn launch(
        &self,
        (blocks, threads): (u32, u32),
        mut address: Address,
        mut number: u64,
    ) -> Result<(), String> {
        let mut arguments = [(&raw mut address).cast::<c_void>(), (&raw mut number).cast()];
        // SAFETY: the driver copies the arguments before it returns; memory as the caller says.
        let status = unsafe {
            (self.context.driver.0.launch)(
                self.function,
                blocks,
                1,
                1,
                threads,
                1,
                1,
                0,
                null_mut(),
                arguments.as_mut_ptr(),
                null_mut(),
            )
        };
        self.context.driver.check(status, "starting a kernel")
    }
}

impl Drop for Kernel<'_> {
    fn drop(&mut self) {
        // SAFETY: loaded in this context, unloaded once; the call waits for running kernels.
        unsafe { (self.context.driver.0.unload)(self.module) };
    }
}
