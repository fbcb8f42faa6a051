//! Whether the processes of other ranks on this host are still there.
//!
//! What starts ranks ends the others when one is killed, unless it is told not to, as `srun` is by default. A process that waits
//! looks itself then, at those that it can see: of its own host, and not hidden in a container of their own.

use std::fs;

/// What tells a process from a later one with its number.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Process {
    pid: u32,
    started: u64,
}

/// The processes of the other ranks of this host.
#[derive(Debug, Default)]
pub(super) struct Peers(Vec<(u64, Process)>);

/// How a process introduces itself to the others.
pub(super) fn introduction(host: &str) -> String {
    let pid = std::process::id();
    format!("{pid} {} {host}", started(pid).unwrap_or(0))
}

/// The hosts of introductions by rank, and which of them are peers of `me`.
pub(super) fn introduced(texts: &[String], me: u64) -> (Vec<String>, Peers) {
    let parse = |text: &String| {
        let mut words = text.splitn(3, ' ');
        let pid = words.next()?.parse().ok()?;
        let started = words.next()?.parse().ok()?;
        Some((Process { pid, started }, words.next()?.to_owned()))
    };
    let all: Vec<Option<(Process, String)>> = texts.iter().map(parse).collect();
    let hosts: Vec<String> =
        all.iter().map(|known| known.as_ref().map_or(String::new(), |(_, host)| host.clone())).collect();
    let here = usize::try_from(me).ok().and_then(|me| hosts.get(me));
    let others = (0..).zip(&all).filter_map(|(rank, known)| known.clone().map(|known| (rank, known)));
    let peers = others.filter(|(rank, (process, host))| *rank != me && Some(host) == here && process.is_there());
    let peers = Peers(peers.map(|(rank, (process, _))| (rank, process)).collect());
    (hosts, peers)
}

impl Peers {
    /// The first that is gone.
    pub(super) fn gone(&self) -> Option<u64> {
        self.0.iter().find(|(_, process)| !process.is_there()).map(|(rank, _)| *rank)
    }
}

impl Process {
    fn is_there(&self) -> bool {
        started(self.pid) == Some(self.started)
    }
}

/// When a process was started, in ticks since the machine was; `None` of one that is not there, or has ended.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Its name, in brackets, may hold anything.
    let mut words = stat.rsplit_once(") ")?.1.split(' ');
    let state = words.next()?;
    if matches!(state, "Z" | "X" | "x") { None } else { words.nth(18)?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_missed_once_it_has_ended_and_those_elsewhere_are_not_watched() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let of_child = format!("{} {} a", child.id(), started(child.id()).unwrap());
        let texts = [introduction("a"), of_child, "1 2 b".to_owned(), "4194304 7 a".to_owned()];
        let (hosts, peers) = introduced(&texts, 0);
        assert_eq!(hosts, ["a", "a", "b", "a"]);
        assert_eq!(
            peers.0.iter().map(|(rank, _)| *rank).collect::<Vec<_>>(),
            [1],
            "one that cannot be seen is not watched"
        );
        assert_eq!(peers.gone(), None);
        child.kill().unwrap();
        // Not waited for yet: a process that has ended, but is still listed.
        while started(child.id()).is_some() {
            std::thread::yield_now();
        }
        assert_eq!(peers.gone(), Some(1));
        child.wait().unwrap();
        assert_eq!(peers.gone(), Some(1));
    }
}
