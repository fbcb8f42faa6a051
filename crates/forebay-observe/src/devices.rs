//! Choosing the block devices and interfaces that get columns: whole disks, and devices that have ever been used.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::source::disk::Disk;
use crate::source::network::Interface;

/// Kinds of devices that every kernel has many of, mostly unused.
const OFTEN_UNUSED: [&str; 5] = ["loop", "ram", "zram", "sr", "fd"];

/// The chosen devices with their subjects; a device once chosen stays.
#[derive(Debug)]
pub(crate) struct Devices {
    /// The kernel's list of whole disks, without partitions.
    block: PathBuf,
    has_block: bool,
    is_whole: HashMap<String, bool>,
    disks: HashMap<String, String>,
    interfaces: HashMap<String, String>,
}

impl Devices {
    /// Takes the kernel's folder of whole disks, usually `/sys/block`.
    pub(crate) fn new(block: &Path) -> Self {
        Self {
            block: block.to_owned(),
            has_block: block.is_dir(),
            is_whole: HashMap::new(),
            disks: HashMap::new(),
            interfaces: HashMap::new(),
        }
    }

    /// The subject of a device's columns, "disk.vda"; `None` if it has no columns.
    pub(crate) fn disk(&mut self, disk: &Disk, all: &[Disk]) -> Option<&str> {
        if !self.disks.contains_key(&disk.name) {
            let rarely_used = OFTEN_UNUSED.iter().any(|kind| is_numbered(&disk.name, kind));
            if (rarely_used && !disk.was_used()) || !self.is_whole(&disk.name, all) {
                return None;
            }
            self.disks.insert(disk.name.clone(), format!("disk.{}", disk.name));
        }
        self.disks.get(&disk.name).map(String::as_str)
    }

    /// The subject of an interface's columns, "net.eth0"; `None` if it has never moved a byte.
    pub(crate) fn interface(&mut self, interface: &Interface) -> Option<&str> {
        if !self.interfaces.contains_key(&interface.name) {
            if interface.rx_bytes + interface.tx_bytes == 0 {
                return None;
            }
            self.interfaces.insert(interface.name.clone(), format!("net.{}", interface.name));
        }
        self.interfaces.get(&interface.name).map(String::as_str)
    }

    fn is_whole(&mut self, name: &str, all: &[Disk]) -> bool {
        if let Some(known) = self.is_whole.get(name) {
            return *known;
        }
        // The kernel replaces the slash of "cciss/c0d0" by "!" there.
        let listed = || self.block.join(name.replace('/', "!")).exists();
        let whole = if self.has_block { listed() } else { !all.iter().any(|disk| is_partition(name, &disk.name)) };
        self.is_whole.insert(name.to_owned(), whole);
        whole
    }
}

/// Whether a name consists of `kind` and a number, such as "loop7".
fn is_numbered(name: &str, kind: &str) -> bool {
    name.strip_prefix(kind).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether `name` is a partition of `disk`, as the kernel names them: sda1, nvme0n1p2.
fn is_partition(name: &str, disk: &str) -> bool {
    let with_p = disk.ends_with(|c: char| c.is_ascii_digit());
    is_numbered(name, &if with_p { format!("{disk}p") } else { disk.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::disk::parse;

    const TEXT: &str = "7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n7 1 loop1 5 0 0 0 0 0 0 0 0 0 0\n8 0 sda 1 0 0 0 0 0 0 0 0 0 0\n\
        8 1 sda1 1 0 0 0 0 0 0 0 0 0 0\n8 16 sdb 0 0 0 0 0 0 0 0 0 0 0\n259 0 nvme0n1 1 0 0 0 0 0 0 0 0 0 0\n\
        259 1 nvme0n1p2 1 0 0 0 0 0 0 0 0 0 0\n259 2 nvme0n10 1 0 0 0 0 0 0 0 0 0 0\n253 1 dm-1 1 0 0 0 0 0 0 0 0 0 0\n\
        253 9 dm-10 1 0 0 0 0 0 0 0 0 0 0\n104 0 cciss/c0d0 1 0 0 0 0 0 0 0 0 0 0\n\
        104 1 cciss/c0d0p1 1 0 0 0 0 0 0 0 0 0 0\n254 0 zram0 0 0 0 0 0 0 0 0 0 0 0\n";
    const SHOWN: [&str; 8] = ["loop1", "sda", "sdb", "nvme0n1", "nvme0n10", "dm-1", "dm-10", "cciss/c0d0"];

    fn shown(devices: &mut Devices, text: &str) -> Vec<String> {
        let all = parse(text);
        let subjects =
            all.iter().filter_map(|disk| devices.disk(disk, &all).map(|name| name["disk.".len()..].to_owned()));
        subjects.collect()
    }

    #[test]
    fn whole_disks_are_shown_and_partitions_and_unused_loops_are_not() {
        let mut devices = Devices::new(Path::new("nowhere"));
        assert_eq!(shown(&mut devices, TEXT), SHOWN, "by name only");
        let block = tempfile::tempdir().unwrap();
        for name in SHOWN.iter().chain(&["loop0", "zram0"]) {
            std::fs::create_dir(block.path().join(name.replace('/', "!"))).unwrap();
        }
        assert_eq!(shown(&mut Devices::new(block.path()), TEXT), SHOWN, "by the kernel's list");
    }

    #[test]
    fn a_loop_device_appears_with_its_first_request_and_stays() {
        let mut devices = Devices::new(Path::new("nowhere"));
        let text = |reads: u32| format!("7 0 loop0 {reads} 0 0 0 0 0 0 0 0 0 0\n");
        assert!(shown(&mut devices, &text(0)).is_empty());
        assert_eq!(shown(&mut devices, &text(1)), ["loop0"]);
        assert_eq!(shown(&mut devices, &text(0)), ["loop0"]);
    }

    #[test]
    fn an_interface_without_traffic_is_not_shown() {
        let mut devices = Devices::new(Path::new("nowhere"));
        let interface = |rx_bytes| Interface { name: "eth0".to_owned(), rx_bytes, tx_bytes: 0 };
        assert_eq!(devices.interface(&interface(0)), None);
        assert_eq!(devices.interface(&interface(1)), Some("net.eth0"));
    }
}
