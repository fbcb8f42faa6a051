//! The parts of DLIO's files that describe a host: its first CPU, and its memory before the run and before every epoch.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

/// Lines of a file in `/proc`, keyed by the text before the colon.
pub(super) type Lines = BTreeMap<String, String>;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Host {
    /// First CPU only, as in DLIO.
    pub(super) cpuinfo: Lines,
    /// Before the run.
    pub(super) meminfo: Lines,
    /// Before each epoch.
    pub(super) meminfo_by_epoch: Vec<Lines>,
}

impl Host {
    /// Empty if the kernel does not report it.
    pub(super) fn processor_name(&self) -> &str {
        self.cpuinfo.get("model name").map_or("", String::as_str)
    }
}

pub(super) struct Watch(Mutex<Host>);

impl Watch {
    pub(super) fn start() -> Self {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let first = cpuinfo.split("\n\n").next().unwrap_or_default();
        Self(Mutex::new(Host { cpuinfo: lines(first), meminfo: meminfo(), meminfo_by_epoch: Vec::new() }))
    }

    pub(super) fn epoch(&self) {
        self.0.lock().expect("no holder of this lock panics").meminfo_by_epoch.push(meminfo());
    }

    pub(super) fn host(&self) -> Host {
        self.0.lock().expect("no holder of this lock panics").clone()
    }
}

fn meminfo() -> Lines {
    lines(&std::fs::read_to_string("/proc/meminfo").unwrap_or_default())
}

fn lines(text: &str) -> Lines {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart_by_their_colon() {
        let found = lines("model name\t: Fast: very\nno colon\nMemTotal:       8 kB\n");
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [("MemTotal".to_owned(), "8 kB".to_owned()), ("model name".to_owned(), "Fast: very".to_owned())]
        );
    }

    #[test]
    fn memory_is_looked_at_once_an_epoch() {
        let watch = Watch::start();
        watch.epoch();
        watch.epoch();
        let host = watch.host();
        assert_eq!(host.meminfo_by_epoch.len(), 2);
        assert!(host.meminfo.contains_key("MemTotal") && host.cpuinfo.contains_key("processor"), "{host:?}");
    }
}
