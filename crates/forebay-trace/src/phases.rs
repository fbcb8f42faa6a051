//! What a program said that it does: time, waits and steps by phase.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use forebay_record::TracePhase;
use forebay_units::PathText;

/// Further names are summed under the last one: a program that makes up names must not fill the memory.
const MAX_PHASES: usize = 64;

/// The phases of a process. Before the first, it is in none.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Phases {
    sums: Vec<Sums>,
    /// The phase it is in, and since when.
    current: Option<(usize, u64)>,
    /// The end of the last event that was seen of the process.
    last_ns: u64,
}

#[derive(Debug, Default, Clone, PartialEq)]
struct Sums {
    name: Vec<u8>,
    ns: u64,
    wait_ns: u64,
    steps: u64,
}

impl Phases {
    pub(crate) fn seen(&mut self, at_ns: u64) {
        self.last_ns = self.last_ns.max(at_ns);
    }

    pub(crate) fn begin(&mut self, name: Vec<u8>, at_ns: u64) {
        if let Some((place, since)) = self.current {
            self.sums[place].ns += at_ns.saturating_sub(since);
        }
        let known = self.sums.iter().position(|sums| sums.name == name);
        let place = match known {
            Some(place) => place,
            None if self.sums.len() == MAX_PHASES => MAX_PHASES - 1,
            None => {
                self.sums.push(Sums { name, ..Sums::default() });
                self.sums.len() - 1
            }
        };
        self.current = Some((place, at_ns));
    }

    pub(crate) fn waited(&mut self, ns: u64) {
        if let Some((place, _)) = self.current {
            self.sums[place].wait_ns += ns;
        }
    }

    pub(crate) fn stepped(&mut self) {
        if let Some((place, _)) = self.current {
            self.sums[place].steps += 1;
        }
    }

    /// Adds its phases to those of other processes; the current one lasts until the last event.
    pub(crate) fn add_to(&self, all: &mut Vec<TracePhase>) {
        for (place, sums) in self.sums.iter().enumerate() {
            let open = self.current.filter(|(current, _)| *current == place);
            let ns = sums.ns + open.map_or(0, |(_, since)| self.last_ns.saturating_sub(since));
            let name = Path::new(OsStr::from_bytes(&sums.name)).escaped().into_owned();
            let at = all.iter().position(|phase| phase.name == name).unwrap_or_else(|| {
                all.push(TracePhase { name, ..TracePhase::default() });
                all.len() - 1
            });
            all[at].seconds += ns as f64 / 1e9;
            all[at].wait_s += sums.wait_ns as f64 / 1e9;
            all[at].steps += sums.steps;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn time_waits_and_steps_belong_to_the_phase_they_are_in() {
        let mut phases = Phases::default();
        phases.waited(SECOND);
        phases.stepped();
        phases.begin(b"train".to_vec(), 2 * SECOND);
        phases.waited(SECOND);
        phases.stepped();
        phases.begin(b"validate".to_vec(), 5 * SECOND);
        phases.begin(b"train".to_vec(), 6 * SECOND);
        phases.stepped();
        phases.seen(8 * SECOND);
        let mut all = Vec::new();
        phases.add_to(&mut all);
        phases.add_to(&mut all);
        let phase = |name: &str, seconds, wait_s, steps| TracePhase { name: name.to_owned(), seconds, wait_s, steps };
        assert_eq!(all, [phase("train", 10.0, 2.0, 4), phase("validate", 2.0, 0.0, 0)], "of two processes");
    }

    #[test]
    fn names_without_end_are_summed() {
        let mut phases = Phases::default();
        (0..1000).for_each(|i: u64| phases.begin(format!("epoch {i}").into_bytes(), i * SECOND));
        let mut all = Vec::new();
        phases.add_to(&mut all);
        assert_eq!((all.len(), all.iter().map(|phase| phase.seconds).sum::<f64>()), (MAX_PHASES, 999.0));
    }
}
