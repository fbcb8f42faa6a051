//! All sources that are read at a tick, and the row computed from two readings.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::devices::Devices;
use crate::files::ProcFile;
use crate::gpu::GpuWatch;
use crate::ledger::{self, TreeReading, Units};
use crate::nvml::GpuReading;
use crate::sheet::Sheet;
use crate::source::cpu::{self, Cpu};
use crate::source::disk::{self, Disk};
use crate::source::memory::{self, Memory};
use crate::source::network::{self, Interface};
use crate::source::paging::{self, Paging};
use crate::source::pressure::{self, Pressure};
use crate::tree::Tree;

/// The resources of the kernel's pressure files, with their subjects.
const PRESSURES: [(&str, &str); 3] = [("io", "psi.io"), ("cpu", "psi.cpu"), ("memory", "psi.memory")];

/// A tree that the sampler reads; the code that waits for its processes reports to it which have ended.
pub(crate) type SharedTree = Arc<Mutex<Tree>>;

#[derive(Debug, Clone, Default)]
pub(crate) struct Reading {
    cpu: Option<Cpu>,
    memory: Option<Memory>,
    paging: Option<Paging>,
    pressures: [Option<Pressure>; 3],
    disks: Vec<Disk>,
    interfaces: Vec<Interface>,
    tree: Option<TreeReading>,
    gpus: Vec<GpuReading>,
}

/// The kernel's files, held open.
pub(crate) struct Machine {
    stat: ProcFile,
    meminfo: ProcFile,
    vmstat: ProcFile,
    diskstats: ProcFile,
    net: ProcFile,
    pressures: [ProcFile; 3],
    devices: Devices,
    tree: Option<SharedTree>,
    gpu: Option<GpuWatch>,
    units: Units,
}

impl Machine {
    /// Takes the two kernel file systems, usually `/proc` and `/sys`.
    pub(crate) fn open(proc: &Path, sys: &Path, tree: Option<SharedTree>, gpu: Option<GpuWatch>) -> Self {
        let file = |name: &str| ProcFile::open(proc.join(name));
        Self {
            stat: file("stat"),
            meminfo: file("meminfo"),
            vmstat: file("vmstat"),
            diskstats: file("diskstats"),
            net: file("net/dev"),
            pressures: PRESSURES.map(|(name, _)| file(&format!("pressure/{name}"))),
            devices: Devices::new(&sys.join("block")),
            tree,
            gpu,
            units: Units::here(),
        }
    }

    pub(crate) fn gpu(&self) -> Option<&GpuWatch> {
        self.gpu.as_ref()
    }

    /// The files that cannot be read, and why.
    pub(crate) fn troubles(&mut self) -> Vec<String> {
        let files = [&mut self.stat, &mut self.meminfo, &mut self.vmstat, &mut self.diskstats, &mut self.net];
        files.into_iter().chain(&mut self.pressures).filter_map(ProcFile::trouble).collect()
    }

    pub(crate) fn read(&mut self) -> Reading {
        let pressures = self.pressures.each_mut().map(|file| pressure::parse(file.read()?));
        Reading {
            cpu: self.stat.read().and_then(cpu::parse),
            memory: self.meminfo.read().and_then(memory::parse),
            paging: self.vmstat.read().and_then(paging::parse),
            pressures,
            disks: self.diskstats.read().map(disk::parse).unwrap_or_default(),
            interfaces: self.net.read().and_then(network::parse).unwrap_or_default(),
            tree: self.tree.as_ref().map(|tree| tree.lock().unwrap_or_else(PoisonError::into_inner).look()),
            gpus: self.gpu.as_ref().map(GpuWatch::latest).unwrap_or_default(),
        }
    }

    /// Adds the row for the time between two readings.
    pub(crate) fn put(&mut self, sheet: &mut Sheet, before: &Reading, after: &Reading, span_s: f64) {
        sheet.begin();
        if let Some((before, after)) = before.cpu.as_ref().zip(after.cpu.as_ref()) {
            cpu::put(sheet, before, after);
        }
        if let Some(memory) = &after.memory {
            memory::put(sheet, memory);
        }
        if let Some((before, after)) = before.paging.as_ref().zip(after.paging.as_ref()) {
            paging::put(sheet, before, after, span_s, self.units.page_bytes);
        }
        for ((_, subject), (before, after)) in PRESSURES.iter().zip(before.pressures.iter().zip(&after.pressures)) {
            if let Some((before, after)) = before.as_ref().zip(after.as_ref()) {
                pressure::put(sheet, subject, before, after, span_s);
            }
        }
        self.put_devices(sheet, before, after, span_s);
        if let Some((before, after)) = before.tree.as_ref().zip(after.tree.as_ref()) {
            ledger::put(sheet, before, after, span_s, self.units);
        }
        if let Some(gpu) = &self.gpu {
            gpu.put(sheet, &after.gpus);
        }
    }

    fn put_devices(&mut self, sheet: &mut Sheet, before: &Reading, after: &Reading, span_s: f64) {
        for device in &after.disks {
            let earlier = before.disks.iter().find(|earlier| earlier.name == device.name);
            if let Some(subject) = self.devices.disk(device, &after.disks) {
                disk::put(sheet, subject, earlier, device, span_s);
            }
        }
        for interface in &after.interfaces {
            let earlier = before.interfaces.iter().find(|earlier| earlier.name == interface.name);
            if let Some((subject, earlier)) = self.devices.interface(interface).zip(earlier) {
                network::put(sheet, subject, earlier, interface, span_s);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_a_proc_has_no_columns_and_says_why() {
        let mut machine = Machine::open(Path::new("nowhere"), Path::new("nowhere"), None, None);
        let reading = machine.read();
        let mut sheet = Sheet::default();
        machine.put(&mut sheet, &reading, &reading, 1.0);
        assert!(sheet.names().is_empty(), "{:?}", sheet.names());
        assert_eq!(machine.troubles().len(), 8);
    }

    #[test]
    fn a_device_that_comes_late_has_a_column_from_then_on() {
        let proc = tempfile::tempdir().unwrap();
        let disks = |reads: u32| {
            let text = format!("8 0 sda 1 0 0 0 0 0 0 0 0 0 0\n7 0 loop0 {reads} 0 16 0 0 0 0 0 0 0 0\n");
            std::fs::write(proc.path().join("diskstats"), text).unwrap();
        };
        disks(0);
        let mut machine = Machine::open(proc.path(), Path::new("nowhere"), None, None);
        let mut sheet = Sheet::default();
        let first = machine.read();
        machine.put(&mut sheet, &first, &first, 1.0);
        let n_columns = sheet.names().len();
        assert!(sheet.names().iter().all(|name| name.starts_with("disk.sda.")), "{:?}", sheet.names());
        disks(6);
        let second = machine.read();
        machine.put(&mut sheet, &first, &second, 2.0);
        assert_eq!(sheet.names()[n_columns], "disk.loop0.reads_per_s");
        assert_eq!(sheet.values()[n_columns], Some(3.0));
    }
}
