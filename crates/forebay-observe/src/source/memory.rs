//! `/proc/meminfo`: use of memory.

use crate::sheet::Sheet;
use crate::source::field;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// Used by programs and the kernel: neither free nor page cache nor reclaimable kernel memory, as dstat and htop
    /// count it.
    pub used: Option<u64>,
    pub free: Option<u64>,
    /// Available without swapping, by the kernel's estimate; since Linux 3.14.
    pub available: Option<u64>,
    /// Pages of files and block devices, without shared memory, which has no file.
    pub page_cache: Option<u64>,
    /// Modified in the page cache and not yet under writeback.
    pub dirty: Option<u64>,
    pub writeback: Option<u64>,
}

pub fn parse(text: &str) -> Option<Memory> {
    let bytes = |name| field(text, name).map(|kib| kib * 1024);
    let (total, free) = (bytes("MemTotal")?, bytes("MemFree"));
    let shared = bytes("Shmem").unwrap_or(0);
    let cached = bytes("Buffers").zip(bytes("Cached")).map(|(buffers, cached)| buffers + cached);
    let page_cache = cached.and_then(|cached| cached.checked_sub(shared));
    let reclaimable = bytes("SReclaimable").unwrap_or(0);
    let used = free.zip(page_cache).and_then(|(free, cache)| total.checked_sub(free + cache + reclaimable));
    Some(Memory {
        used,
        free,
        available: bytes("MemAvailable"),
        page_cache,
        dirty: bytes("Dirty"),
        writeback: bytes("Writeback"),
    })
}

pub(crate) fn put(sheet: &mut Sheet, memory: &Memory) {
    let columns = [
        ("used_bytes", memory.used),
        ("free_bytes", memory.free),
        ("available_bytes", memory.available),
        ("page_cache_bytes", memory.page_cache),
        ("dirty_bytes", memory.dirty),
        ("writeback_bytes", memory.writeback),
    ];
    for (name, bytes) in columns {
        sheet.put("memory", name, bytes.map(|bytes| bytes as f64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_free_cache_and_reclaimable_are_the_whole() {
        let text = "MemTotal:       1000 kB\nMemFree:         200 kB\nMemAvailable:    600 kB\nBuffers:          50 kB\n\
            Cached:          400 kB\nSwapCached:        9 kB\nDirty:             8 kB\nWriteback:         7 kB\n\
            WritebackTmp:      6 kB\nShmem:           100 kB\nSReclaimable:     30 kB\n";
        let memory = parse(text).unwrap();
        let kib = |n: u64| Some(n * 1024);
        let expected = Memory {
            used: kib(420),
            free: kib(200),
            available: kib(600),
            page_cache: kib(350),
            dirty: kib(8),
            writeback: kib(7),
        };
        assert_eq!(memory, expected);
    }

    #[test]
    fn an_old_kernel_has_no_estimate_of_what_is_available() {
        let memory = parse("MemTotal: 100 kB\nMemFree: 20 kB\nBuffers: 10 kB\nCached: 30 kB\n").unwrap();
        assert_eq!((memory.available, memory.dirty, memory.used), (None, None, Some(40 * 1024)));
        assert_eq!(parse("nothing\n"), None);
        assert_eq!(parse("MemTotal: 100 kB\n").unwrap(), Memory::default(), "unknown is not zero");
    }
}
