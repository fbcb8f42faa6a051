//! `/proc/stat`: CPU time by use.

use crate::sheet::Sheet;
use crate::source::{growth, ratio};

/// CPU time of all cores together since boot, in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cpu {
    /// Programs, including those of lower priority and guests.
    pub user: u64,
    /// The kernel, including hard and soft interrupts.
    pub system: u64,
    pub idle: u64,
    /// Idle while waiting for I/O; since Linux 2.6.
    pub iowait: Option<u64>,
    /// Taken by the host of this virtual machine; since Linux 2.6.11.
    pub steal: Option<u64>,
    pub n_cores: u64,
}

pub fn parse(text: &str) -> Option<Cpu> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = line.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    let at = |index: usize| fields.get(index).copied();
    let is_core =
        |line: &&str| line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    Some(Cpu {
        user: at(0)? + at(1)?,
        system: at(2)? + at(5).unwrap_or(0) + at(6).unwrap_or(0),
        idle: at(3)?,
        iowait: at(4),
        steal: at(7),
        n_cores: text.lines().filter(is_core).count() as u64,
    })
}

impl Cpu {
    fn busy(&self) -> u64 {
        self.user + self.system + self.steal.unwrap_or(0)
    }

    fn all(&self) -> u64 {
        self.busy() + self.idle + self.iowait.unwrap_or(0)
    }
}

/// Shares of the time of all cores, and the number of busy cores.
pub(crate) fn put(sheet: &mut Sheet, before: &Cpu, after: &Cpu) {
    let all = growth(before.all(), after.all());
    let share = |before: u64, after: u64| ratio(growth(before, after).map(|ticks| 100.0 * ticks), all);
    let share_if_known = |before: Option<u64>, after: Option<u64>| share(before?, after?);
    sheet.put("cpu", "user_percent", share(before.user, after.user));
    sheet.put("cpu", "system_percent", share(before.system, after.system));
    sheet.put("cpu", "iowait_percent", share_if_known(before.iowait, after.iowait));
    sheet.put("cpu", "steal_percent", share_if_known(before.steal, after.steal));
    sheet.put("cpu", "idle_percent", share(before.idle, after.idle));
    let busy = share(before.busy(), after.busy());
    sheet.put("cpu", "busy_cores", busy.map(|percent| percent / 100.0 * after.n_cores as f64));
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: &str = "cpu  100 10 30 800 40 5 6 7 50 2\ncpu0 50 5 15 400 20 2 3 3 0 0\ncpu1 50 5 15 400 20 3 3 4 0 0\n\
        intr 1 2 3\nctxt 99\nbtime 1\ncpufreq 3\n";

    #[test]
    fn every_column_goes_where_it_belongs() {
        let cpu = parse(NEW).unwrap();
        let expected = Cpu { user: 110, system: 41, idle: 800, iowait: Some(40), steal: Some(7), n_cores: 2 };
        assert_eq!(cpu, expected);
        assert_eq!(cpu.all(), 998, "guest time is part of user time");
    }

    #[test]
    fn an_old_kernel_knows_neither_iowait_nor_steal() {
        let cpu = parse("cpu  1 2 3 4\ncpu0 1 2 3 4\n").unwrap();
        assert_eq!(cpu, Cpu { user: 3, system: 3, idle: 4, iowait: None, steal: None, n_cores: 1 });
    }

    #[test]
    fn what_is_not_such_a_text_is_none() {
        assert_eq!(parse(""), None);
        assert_eq!(parse("cpu0 1 2 3 4\n"), None);
        assert_eq!(parse("cpu  1 2 3\n"), None);
    }

    #[test]
    fn shares_are_of_all_processors_and_add_up() {
        let before = parse(NEW).unwrap();
        let after = Cpu { user: 160, system: 61, idle: 870, iowait: Some(90), steal: Some(17), ..before };
        let mut sheet = Sheet::default();
        put(&mut sheet, &before, &after);
        let expected = [Some(25.0), Some(10.0), Some(25.0), Some(5.0), Some(35.0), Some(0.8)];
        assert_eq!(sheet.values(), expected);
    }

    #[test]
    fn no_time_has_no_shares_and_a_clock_that_goes_back_has_none() {
        let cpu = parse(NEW).unwrap();
        let mut sheet = Sheet::default();
        put(&mut sheet, &cpu, &cpu);
        assert_eq!(sheet.values(), [None; 6]);
        sheet.begin();
        // The kernel documents that iowait may go backwards.
        put(&mut sheet, &cpu, &Cpu { user: 160, iowait: Some(30), ..cpu });
        assert_eq!(sheet.values()[2], None);
        assert_eq!(sheet.values()[0], Some(125.0));
    }
}
