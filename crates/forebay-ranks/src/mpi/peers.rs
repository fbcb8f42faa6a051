//! Whether the processes of other ranks on this host are alive, and their states.
//!
//! If a rank is killed, launchers end the others, unless they are configured otherwise, as `srun` is by default. A
//! waiting process then checks by itself, as far as it can see: on its own host, outside other containers.

use std::fs;
use std::path::Path;

use super::super::Condition;

/// The start time distinguishes a process from a later one with the same pid.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Process {
    pid: u32,
    started: u64,
}

#[derive(Debug, Default)]
pub(super) struct Peers(Vec<(u64, Process)>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) pid: Option<u32>,
    pub(super) host: String,
}

/// Sent to all ranks at the start.
pub(super) fn introduction(host: &str) -> String {
    let pid = std::process::id();
    format!("{pid} {} {host}", started(pid).unwrap_or(0))
}

/// The location of each rank, and the peers of `me` among them.
pub(super) fn introduced(texts: &[String], me: u64) -> (Vec<Place>, Peers) {
    let parse = |text: &String| {
        let mut words = text.splitn(3, ' ');
        let pid = words.next()?.parse().ok()?;
        let started = words.next()?.parse().ok()?;
        Some((Process { pid, started }, words.next()?.to_owned()))
    };
    let all: Vec<Option<(Process, String)>> = texts.iter().map(parse).collect();
    let place = |known: &(Process, String)| Place { pid: Some(known.0.pid), host: known.1.clone() };
    let places: Vec<Place> = all.iter().map(|known| known.as_ref().map(place).unwrap_or_default()).collect();
    let here = usize::try_from(me).ok().and_then(|me| places.get(me)).map(|place| &place.host);
    let others = (0..).zip(&all).filter_map(|(rank, known)| known.clone().map(|known| (rank, known)));
    let peers = others.filter(|(rank, (process, host))| *rank != me && Some(host) == here && process.is_there());
    let peers = Peers(peers.map(|(rank, (process, _))| (rank, process)).collect());
    (places, peers)
}

impl Peers {
    /// The first rank that is gone.
    pub(super) fn gone(&self) -> Option<u64> {
        self.0.iter().find(|(_, process)| !process.is_there()).map(|(rank, _)| *rank)
    }

    /// `None` for a rank of another host, and for a rank that is gone.
    pub(super) fn condition(&self, rank: u64) -> Option<Condition> {
        let (_, process) = self.0.iter().find(|(known, _)| *known == rank).filter(|(_, process)| process.is_there())?;
        let tasks = fs::read_dir(format!("/proc/{}/task", process.pid)).ok()?.flatten();
        let states: Vec<String> = tasks.filter_map(|task| state(&read_lossy(&task.path().join("stat"))?)).collect();
        condition_of(&states)
    }
}

/// Derived from the states of its threads.
fn condition_of(states: &[String]) -> Option<Condition> {
    let conditions = [
        ("T", Condition::Stopped),
        ("t", Condition::Traced),
        ("D", Condition::Storage),
        ("R", Condition::Running),
        ("S", Condition::Sleeping),
    ];
    conditions
        .into_iter()
        .find(|(letter, _)| states.iter().any(|state| state == letter))
        .map(|(_, condition)| condition)
}

impl Process {
    fn is_there(&self) -> bool {
        started(self.pid) == Some(self.started)
    }
}

/// In ticks since boot; `None` if the process does not exist or has ended.
fn started(pid: u32) -> Option<u64> {
    let stat = read_lossy(Path::new(&format!("/proc/{pid}/stat")))?;
    if matches!(state(&stat)?.as_str(), "Z" | "X" | "x") { None } else { words(&stat)?.nth(19)?.parse().ok() }
}

/// These files contain the process's name, which may be any bytes.
fn read_lossy(path: &Path) -> Option<String> {
    fs::read(path).ok().map(|text| String::from_utf8_lossy(&text).into_owned())
}

fn state(stat: &str) -> Option<String> {
    words(stat)?.next().map(str::to_owned)
}

/// The name is in brackets and may contain anything.
fn words(stat: &str) -> Option<std::str::Split<'_, char>> {
    Some(stat.rsplit_once(") ")?.1.split(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_missed_once_it_has_ended_and_those_elsewhere_are_not_watched() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let of_child = format!("{} {} a", child.id(), started(child.id()).unwrap());
        let texts = [introduction("a"), of_child, "1 2 b".to_owned(), "4194304 7 a".to_owned()];
        let (places, peers) = introduced(&texts, 0);
        let hosts: Vec<&str> = places.iter().map(|place| place.host.as_str()).collect();
        assert_eq!((hosts, places[1].pid), (vec!["a", "a", "b", "a"], Some(child.id())));
        assert_eq!(
            peers.0.iter().map(|(rank, _)| *rank).collect::<Vec<_>>(),
            [1],
            "an invisible process is not observed"
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
    #[test]
    fn a_peer_that_is_stopped_is_told_from_one_that_sleeps() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let texts = [introduction("a"), format!("{} {} a", child.id(), started(child.id()).unwrap())];
        let (_, peers) = introduced(&texts, 0);
        let becomes = |condition| {
            let began = std::time::Instant::now();
            while peers.condition(1) != condition {
                assert!(began.elapsed().as_secs() < 30, "{:?} for {condition:?}", peers.condition(1));
                std::thread::yield_now();
            }
        };
        let send = |signal| {
            let pid = libc::pid_t::try_from(child.id()).unwrap();
            // SAFETY: a signal to a child that has not been waited for, so no other process has its number.
            assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
        };
        becomes(Some(Condition::Sleeping));
        send(libc::SIGSTOP);
        becomes(Some(Condition::Stopped));
        send(libc::SIGCONT);
        becomes(Some(Condition::Sleeping));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((peers.condition(1), peers.condition(7)), (None, None));
    }

    #[test]
    fn one_thread_that_waits_for_storage_tells_more_than_those_that_sleep_or_run() {
        let of = |states: &str| condition_of(&states.chars().map(String::from).collect::<Vec<_>>());
        assert_eq!(of("SRDS"), Some(Condition::Storage));
        assert_eq!(of("SRS"), Some(Condition::Running));
        assert_eq!(of("tt"), Some(Condition::Traced));
        assert_eq!(of("I"), None);
    }
}
