//! NVIDIA's management library, loaded at run time and not needed to build.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct GpuReading {
    /// Share of the library's last sampling period (a sixth of a second to a second) in which a kernel ran.
    pub(crate) util_percent: Option<f64>,
    pub(crate) memory_bytes: Option<f64>,
    pub(crate) power_w: Option<f64>,
    /// Over the 20 ms that the call takes. The library reports KB/s, taken to be 1000 bytes/s.
    pub(crate) pcie_rx_bytes_per_s: Option<f64>,
    pub(crate) pcie_tx_bytes_per_s: Option<f64>,
}

type Device = *mut c_void;

/// `nvmlUtilization_t`.
#[repr(C)]
#[derive(Default)]
struct Utilization {
    gpu: c_uint,
    memory: c_uint,
}

/// `nvmlMemory_t`.
#[repr(C)]
#[derive(Default)]
struct Memory {
    total: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

/// `nvmlMemory_v2_t`, which separates memory reserved by the driver from used memory, as nvidia-smi does.
#[repr(C)]
#[derive(Default)]
struct MemoryV2 {
    version: c_uint,
    total: c_ulonglong,
    reserved: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

/// The version required by nvml.h: the structure's size and its number.
const MEMORY_V2: c_uint = std::mem::size_of::<MemoryV2>() as c_uint | 2 << 24;

const PCIE_TX: c_uint = 0;
const PCIE_RX: c_uint = 1;

/// The library, loaded and initialised, and its devices.
pub(crate) struct Nvml {
    utilization: unsafe extern "C" fn(Device, *mut Utilization) -> c_int,
    memory: unsafe extern "C" fn(Device, *mut Memory) -> c_int,
    /// Absent in drivers before 510; `nvmlMemory_t` then counts memory reserved by the driver as used.
    memory_v2: Option<unsafe extern "C" fn(Device, *mut MemoryV2) -> c_int>,
    power: unsafe extern "C" fn(Device, *mut c_uint) -> c_int,
    pcie: unsafe extern "C" fn(Device, c_uint, *mut c_uint) -> c_int,
    shutdown: unsafe extern "C" fn() -> c_int,
    devices: Vec<Device>,
}

// SAFETY: the library may be used from any thread, and its handles are not bound to one.
unsafe impl Send for Nvml {}

impl Nvml {
    /// Loads the library and finds the devices; the error says why there are none.
    pub(crate) fn load() -> Result<Self, String> {
        let library = open(c"libnvidia-ml.so.1")?;
        // SAFETY: the types are those of nvml.h for these names.
        let mut nvml = unsafe {
            let init: unsafe extern "C" fn() -> c_int = symbol(library, c"nvmlInit_v2")?;
            let nvml = Self {
                utilization: symbol(library, c"nvmlDeviceGetUtilizationRates")?,
                memory: symbol(library, c"nvmlDeviceGetMemoryInfo")?,
                memory_v2: symbol(library, c"nvmlDeviceGetMemoryInfo_v2").ok(),
                power: symbol(library, c"nvmlDeviceGetPowerUsage")?,
                pcie: symbol(library, c"nvmlDeviceGetPcieThroughput")?,
                shutdown: symbol(library, c"nvmlShutdown")?,
                devices: Vec::new(),
            };
            check("nvmlInit_v2", init())?;
            nvml
        };
        // From here on, dropping the value shuts the library down.
        nvml.devices = devices(library)?;
        if nvml.devices.is_empty() { Err("NVML found no GPU".to_owned()) } else { Ok(nvml) }
    }

    /// Reads every device. Takes some 45 ms per device: the library measures PCIe for 20 ms in each direction.
    pub(crate) fn read(&self) -> Vec<GpuReading> {
        self.devices.iter().map(|device| self.read_device(*device)).collect()
    }

    fn read_device(&self, device: Device) -> GpuReading {
        let (mut utilization, mut power_mw) = (Utilization::default(), 0);
        // SAFETY: the handle came from the library, which is still initialised; the output pointers are valid.
        let known =
            unsafe { [(self.utilization)(device, &raw mut utilization), (self.power)(device, &raw mut power_mw)] }
                .map(|code| code == 0);
        GpuReading {
            util_percent: known[0].then_some(f64::from(utilization.gpu)),
            memory_bytes: self.memory_used(device),
            power_w: known[1].then_some(f64::from(power_mw) / 1e3),
            pcie_rx_bytes_per_s: self.pcie(device, PCIE_RX),
            pcie_tx_bytes_per_s: self.pcie(device, PCIE_TX),
        }
    }

    fn memory_used(&self, device: Device) -> Option<f64> {
        let mut v2 = MemoryV2 { version: MEMORY_V2, ..MemoryV2::default() };
        let mut v1 = Memory::default();
        // SAFETY: as above.
        unsafe {
            if self.memory_v2.is_some_and(|ask| ask(device, &raw mut v2) == 0) {
                return Some(v2.used as f64);
            }
            ((self.memory)(device, &raw mut v1) == 0).then_some(v1.used as f64)
        }
    }

    fn pcie(&self, device: Device, direction: c_uint) -> Option<f64> {
        let mut kb_per_s = 0;
        // SAFETY: as above.
        let code = unsafe { (self.pcie)(device, direction, &raw mut kb_per_s) };
        (code == 0).then_some(f64::from(kb_per_s) * 1e3)
    }
}

impl Drop for Nvml {
    fn drop(&mut self) {
        // SAFETY: the library was initialised once, and no handle is used after this.
        unsafe { (self.shutdown)() };
    }
}

fn devices(library: *mut c_void) -> Result<Vec<Device>, String> {
    let mut n_devices = 0;
    // SAFETY: the types are those of nvml.h, and the output pointers are valid.
    unsafe {
        let count: unsafe extern "C" fn(*mut c_uint) -> c_int = symbol(library, c"nvmlDeviceGetCount_v2")?;
        let handle: unsafe extern "C" fn(c_uint, *mut Device) -> c_int =
            symbol(library, c"nvmlDeviceGetHandleByIndex_v2")?;
        check("nvmlDeviceGetCount_v2", count(&raw mut n_devices))?;
        let mut devices = Vec::new();
        for index in 0..n_devices {
            let mut device = std::ptr::null_mut();
            check("nvmlDeviceGetHandleByIndex_v2", handle(index, &raw mut device))?;
            devices.push(device);
        }
        Ok(devices)
    }
}

/// Opens a library, which then stays loaded until the program ends.
fn open(name: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: the name ends in zero; the library's initialisers are trusted, as by every program that uses it.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
    if library.is_null() { Err(format!("cannot load {}", name.to_string_lossy())) } else { Ok(library) }
}

/// Looks up a function of a library.
///
/// # Safety
/// `F` must be a function pointer of the symbol's type.
unsafe fn symbol<F>(library: *mut c_void, name: &CStr) -> Result<F, String> {
    // SAFETY: the library is open and the name ends in zero.
    let found = unsafe { libc::dlsym(library, name.as_ptr().cast::<c_char>()) };
    if found.is_null() {
        return Err(format!("NVML has no {}", name.to_string_lossy()));
    }
    // SAFETY: a function pointer is as wide as a pointer, and the caller guarantees its type.
    Ok(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&found) })
}

fn check(what: &str, code: c_int) -> Result<(), String> {
    if code == 0 { Ok(()) } else { Err(format!("{what} failed with code {code}")) }
}
