//! NVIDIA's devices, by the library that comes with their driver. It is loaded only where it is;
//! a function or a figure that a device does not have is left out.

use super::{Described, Quantity, Source};
use libc::{RTLD_LOCAL, RTLD_NOW, c_char, c_int, c_uint, c_void};
use std::ffi::CStr;

const LIBRARY: &CStr = c"libnvidia-ml.so.1";
const SUCCESS: c_int = 0;
/// `NVML_CLOCK_SM` and `NVML_CLOCK_MEM`.
const CLOCKS: [c_uint; 2] = [1, 2];
/// As long as NVML's names are at most.
const NAME_BYTES: usize = 96;

/// In the order of the report.
const QUANTITIES: [Quantity; 7] = [
    Quantity::DeviceClock,
    Quantity::DeviceMemoryClock,
    Quantity::DevicePower,
    Quantity::DeviceEnergy,
    Quantity::DeviceMemory,
    Quantity::DeviceUtilisation,
    Quantity::DeviceClockLimit,
];

type Device = *mut c_void;

/// `nvmlMemory_t`; `used` includes what the driver keeps for itself.
#[repr(C)]
#[derive(Default)]
struct Memory {
    _total: u64,
    _free: u64,
    used: u64,
}

/// `nvmlMemory_v2_t`, with what programs use apart.
#[repr(C)]
struct MemoryOfPrograms {
    version: c_uint,
    _total: u64,
    _reserved: u64,
    _free: u64,
    used: u64,
}

impl Default for MemoryOfPrograms {
    fn default() -> MemoryOfPrograms {
        // As NVML marks its structs: their size, and a number.
        let version = size_of::<MemoryOfPrograms>() as c_uint | 2 << 24;
        MemoryOfPrograms { version, _total: 0, _reserved: 0, _free: 0, used: 0 }
    }
}

/// `nvmlUtilization_t`, in percent.
#[repr(C)]
#[derive(Default)]
struct Utilisation {
    device: c_uint,
    _memory: c_uint,
}

type AskClock = unsafe extern "C" fn(Device, c_uint, *mut c_uint) -> c_int;

/// The functions that are asked for figures; each may be missing.
#[derive(Clone, Copy)]
struct Functions {
    clock: Option<AskClock>,
    highest_clock: Option<AskClock>,
    milliwatts: Option<unsafe extern "C" fn(Device, *mut c_uint) -> c_int>,
    millijoules: Option<unsafe extern "C" fn(Device, *mut u64) -> c_int>,
    memory: Option<unsafe extern "C" fn(Device, *mut Memory) -> c_int>,
    /// In drivers since 2021.
    memory_of_programs: Option<unsafe extern "C" fn(Device, *mut MemoryOfPrograms) -> c_int>,
    utilisation: Option<unsafe extern "C" fn(Device, *mut Utilisation) -> c_int>,
}

/// One figure of one device: what reading it costs differs by thousands of times.
struct Figure {
    functions: Functions,
    device: Device,
    sensor: Described,
    /// What it is always; it takes long to ask.
    limit: Option<u64>,
}

impl Figure {
    /// `None` where the device does not have it.
    fn of(functions: Functions, device: Device, sensor: Described) -> Option<Figure> {
        let value = functions.ask(device, sensor.quantity)?;
        let limit = (sensor.quantity == Quantity::DeviceClockLimit).then_some(value);
        Some(Figure { functions, device, sensor, limit })
    }
}

/// All figures of all devices: none where there is no such library, or no device of it.
pub(super) fn load() -> Vec<Box<dyn Source>> {
    let Some(library) = Library::begin() else { return Vec::new() };
    (0..library.devices()).flat_map(|index| library.figures(index)).collect()
}

/// NVML, begun.
struct Library {
    count: unsafe extern "C" fn(*mut c_uint) -> c_int,
    handle: unsafe extern "C" fn(c_uint, *mut Device) -> c_int,
    name: unsafe extern "C" fn(Device, *mut c_char, c_uint) -> c_int,
    functions: Functions,
}

impl Library {
    fn begin() -> Option<Library> {
        // SAFETY: loads the driver's own library, which is never closed again.
        let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), RTLD_NOW | RTLD_LOCAL) };
        if library.is_null() {
            return None;
        }
        // SAFETY: NVML's documentation has these signatures for functions of these names, in all
        // its versions; what is not there becomes `None`.
        let (begin, found) = unsafe {
            let begin: unsafe extern "C" fn() -> c_int = function(library, c"nvmlInit_v2")?;
            let found = Library {
                count: function(library, c"nvmlDeviceGetCount_v2")?,
                handle: function(library, c"nvmlDeviceGetHandleByIndex_v2")?,
                name: function(library, c"nvmlDeviceGetName")?,
                functions: Functions {
                    clock: function(library, c"nvmlDeviceGetClockInfo"),
                    highest_clock: function(library, c"nvmlDeviceGetMaxClockInfo"),
                    milliwatts: function(library, c"nvmlDeviceGetPowerUsage"),
                    millijoules: function(library, c"nvmlDeviceGetTotalEnergyConsumption"),
                    memory: function(library, c"nvmlDeviceGetMemoryInfo"),
                    memory_of_programs: function(library, c"nvmlDeviceGetMemoryInfo_v2"),
                    utilisation: function(library, c"nvmlDeviceGetUtilizationRates"),
                },
            };
            (begin, found)
        };
        // SAFETY: NVML may be begun at any time, by any thread.
        (unsafe { begin() } == SUCCESS).then_some(found)
    }

    fn devices(&self) -> c_uint {
        let mut devices = 0;
        // SAFETY: NVML was begun; it fills in the number.
        let status = unsafe { (self.count)(&mut devices) };
        if status == SUCCESS { devices } else { 0 }
    }

    /// Those that the device has.
    fn figures(&self, index: c_uint) -> Vec<Box<dyn Source>> {
        let mut device = std::ptr::null_mut();
        // SAFETY: NVML was begun, and has as many devices.
        if unsafe { (self.handle)(index, &mut device) } != SUCCESS {
            return Vec::new();
        }
        let name = self.name_of(device);
        let figure = |quantity| {
            let name = name.clone();
            let sensor = Described { quantity, device: index, name, is_forbidden: false };
            let figure = Figure::of(self.functions, device, sensor)?;
            Some(Box::new(figure) as Box<dyn Source>)
        };
        QUANTITIES.into_iter().filter_map(figure).collect()
    }

    fn name_of(&self, device: Device) -> String {
        let mut name = [0_u8; NAME_BYTES];
        // SAFETY: a device that NVML gave, and as many bytes as are said.
        unsafe { (self.name)(device, name.as_mut_ptr().cast(), NAME_BYTES as c_uint) };
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(NAME_BYTES);
        String::from_utf8_lossy(&name[..end]).into_owned()
    }
}

impl Functions {
    /// In the units of the recording; `None` where the device does not say.
    fn ask(&self, device: Device, quantity: Quantity) -> Option<u64> {
        match quantity {
            Quantity::DeviceClock => hertz(self.clock?, device, CLOCKS[0]),
            Quantity::DeviceMemoryClock => hertz(self.clock?, device, CLOCKS[1]),
            Quantity::DeviceClockLimit => hertz(self.highest_clock?, device, CLOCKS[0]),
            Quantity::DevicePower => {
                // SAFETY: here and below a device that NVML gave, which lives as long as NVML, and
                // a value that the function fills in.
                let power = answer(|power| unsafe { Some(self.milliwatts?(device, power)) })?;
                Some(u64::from(power) * 1000)
            }
            Quantity::DeviceEnergy => {
                // SAFETY: as above.
                let energy = answer(|energy| unsafe { Some(self.millijoules?(device, energy)) })?;
                Some(energy.saturating_mul(1000))
            }
            Quantity::DeviceMemory => {
                // SAFETY: as above.
                let memory =
                    answer(|memory| unsafe { Some(self.memory_of_programs?(device, memory)) });
                memory.map(|memory| memory.used).or_else(|| {
                    // SAFETY: as above.
                    let memory = answer(|memory| unsafe { Some(self.memory?(device, memory)) })?;
                    Some(memory.used)
                })
            }
            Quantity::DeviceUtilisation => {
                // SAFETY: as above.
                let used = answer(|used| unsafe { Some(self.utilisation?(device, used)) })?;
                Some(used.device.into())
            }
            _ => None,
        }
    }
}

fn hertz(ask: AskClock, device: Device, clock: c_uint) -> Option<u64> {
    // SAFETY: as in `Functions::ask`.
    let megahertz = answer(|value| unsafe { Some(ask(device, clock, value)) })?;
    Some(u64::from(megahertz) * 1_000_000)
}

/// What a function has filled in, if it says so.
fn answer<T: Default>(ask: impl FnOnce(*mut T) -> Option<c_int>) -> Option<T> {
    let mut value = T::default();
    (ask(&mut value)? == SUCCESS).then_some(value)
}

/// # Safety
/// The library's function of this name has the signature `F`, a pointer to a function.
unsafe fn function<F: Copy>(library: *mut c_void, name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    // SAFETY: the library is open, and the name a C string.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    // SAFETY: by this function's contract, and it is not null.
    (!address.is_null()).then(|| unsafe { std::mem::transmute_copy(&address) })
}

impl Source for Figure {
    fn sensors(&self) -> Vec<Described> {
        vec![self.sensor.clone()]
    }

    fn read(&mut self) -> Vec<Option<u64>> {
        vec![self.limit.or_else(|| self.functions.ask(self.device, self.sensor.quantity))]
    }
}
