//! The changes that can be predicted, and those of them that help.

use forebay_record::{Change as NewValue, Level};

use super::{Alternative, Change, Effort, KNEE, MOST_PREFETCH, Model, threads};
use crate::case::{Case, Flags, Server};

impl Model<'_> {
    /// Those that help, the first choice first.
    pub(super) fn levers(&self) -> Vec<Change> {
        let flags = [self.more_threads(), self.deeper_prefetch()].into_iter().flatten();
        let others = self.alternatives.iter().map(|alternative| self.with(alternative));
        let mut changes: Vec<Change> = flags.chain(others).chain(self.hardware()).collect();
        changes.retain(|change| self.is_proven(change));
        changes.sort_by(|a, b| a.effort.cmp(&b.effort).then(a.wall_s.total_cmp(&b.wall_s)));
        changes
    }

    pub(super) fn more_threads(&self) -> Option<Change> {
        let flags = |threads| Flags { threads, ..self.run.flags };
        let timed: Vec<(usize, f64)> = threads(self.case, self.run.flags.threads)
            .into_iter()
            .map(|n| (n, self.predict(self.case, flags(n))))
            .collect();
        let least = timed.iter().map(|(_, wall_s)| *wall_s).fold(f64::INFINITY, f64::min);
        let (n, wall_s) = timed.into_iter().find(|(_, wall_s)| *wall_s <= least * (1.0 + KNEE))?;
        let why = match n > self.run.flags.threads {
            false => "fewer threads compete for the cores",
            true if self.is_on_gpu() => "more images on the GPU at a time",
            true if self.lacks_requests() => "more requests in flight",
            true if n as f64 > self.case.cores && self.waits_for_cores() => {
                "a larger share of the cores, which other programs also use"
            }
            true if n as f64 > self.case.cores => "more requests in flight",
            true => "use more cores",
        };
        let advice = format!("{}: {why}", (self.spelling.threads)(n));
        (n != self.run.flags.threads).then_some(Change {
            name: "threads",
            advice,
            effort: Effort::Flag,
            setting: number("threads", n),
            wall_s,
            is_bound: false,
        })
    }

    pub(super) fn deeper_prefetch(&self) -> Option<Change> {
        let now = self.run.flags.prefetch;
        let deeper = [1, 2, 4, 8, MOST_PREFETCH].into_iter().filter(|n| *n > now);
        let flags = |prefetch| Flags { prefetch, ..self.run.flags };
        let timed: Vec<(usize, f64)> = deeper.map(|n| (n, self.predict(self.case, flags(n)))).collect();
        let least = timed.iter().map(|(_, wall_s)| *wall_s).fold(f64::INFINITY, f64::min);
        let (n, wall_s) = timed.into_iter().find(|(_, wall_s)| *wall_s <= least * (1.0 + KNEE))?;
        let why = match now {
            0 => "make the next batch while this one is computed",
            _ => "a longer queue absorbs slow steps and samples",
        };
        Some(Change {
            name: "prefetch",
            advice: format!("{}: {why}", (self.spelling.prefetch)(n)),
            effort: Effort::Flag,
            setting: number("prefetch", n),
            wall_s,
            is_bound: false,
        })
    }

    fn with(&self, alternative: &Alternative) -> Change {
        let Alternative { name, advice, effort, setting, storage, served_by, cpu_s, delays_step_s, is_bound } =
            alternative.clone();
        let step_s = (0..self.case.step_s.len().max(1)).map(|step| self.case.step_s(step) + delays_step_s).collect();
        let case = Case { storage, served_by, step_s, ..self.case.with_cpu_s(cpu_s) };
        let wall_s = self.predict(&case, self.run.flags);
        Change { name, advice, effort, setting: Some(setting), wall_s, is_bound }
    }

    fn hardware(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        if self.case.storage.is_some() {
            let (name, advice) = match self.case.served_by {
                Server::Storage => ("storage", "faster storage"),
                Server::Gpu => ("gpu", "a faster GPU"),
            };
            changes.push(Change {
                name,
                advice: advice.to_owned(),
                effort: Effort::Hardware,
                setting: None,
                wall_s: self.predict(&self.without_storage(), self.run.flags),
                is_bound: true,
            });
        }
        if self.waits_for_cores() {
            changes.push(Change {
                name: "cores",
                advice: "end the other programs on these cores".to_owned(),
                effort: Effort::Hardware,
                setting: None,
                wall_s: self.predict(&self.undelayed(), self.run.flags),
                is_bound: true,
            });
        }
        changes.push(Change {
            name: "decode",
            advice: "more or faster cores, or smaller images".to_owned(),
            effort: Effort::Hardware,
            setting: None,
            wall_s: self.predict(&self.without_decoding(), self.run.flags),
            is_bound: true,
        });
        changes
    }

    /// Whether threads wait for a GPU that decodes.
    pub(super) fn is_on_gpu(&self) -> bool {
        self.case.storage.is_some() && self.case.served_by == Server::Gpu
    }

    pub(super) fn without_storage(&self) -> Case {
        Case { storage: None, ..self.case.clone() }
    }

    pub(super) fn undelayed(&self) -> Case {
        Case { delay_s: 0.0, ..self.case.clone() }
    }

    pub(super) fn without_decoding(&self) -> Case {
        let left = 1.0 - self.run.decode_share.clamp(0.0, 1.0);
        Case { cpu_s: self.case.cpu_s * left, ..self.case.clone() }
    }
}

fn number(setting: &str, n: usize) -> Option<NewValue> {
    Some(NewValue { setting: setting.to_owned(), value: Level::Integer(n as i64) })
}
