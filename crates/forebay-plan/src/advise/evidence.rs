//! The limit, with the facts it rests on.

use forebay_record::{Lever, Limit, Rates, Taken};
use forebay_units::{count, group_digits};

use super::{Advice, MORE_IN_FLIGHT, MOSTLY, Model, WORTH, best_flags};

impl Model<'_> {
    pub(super) fn accelerator(&self) -> Limit {
        let evidence = format!(
            "after the first batch it waited {} of the time",
            percent((self.run.wait_s - self.run.first_wait_s) / (self.run.wall_s - self.run.first_wait_s))
        );
        Limit { name: "accelerator".to_owned(), evidence: vec![evidence], rates: Some(self.rates()) }
    }

    /// What was measured does not follow from the parts: other programs, or a few slow samples.
    pub(super) fn unexplained(&self) -> Advice {
        let fit = format!(
            "the run took {:.2} s; its reads, decoding and steps explain {:.2} s",
            self.run.wall_s, self.fitted_s
        );
        let (name, why, advice) = if let Some(disturbed) = self.run.disturbed {
            let name = if matches!(disturbed.taken, Taken::Processors | Taken::Steal) { "cores" } else { "unknown" };
            (name, disturbed.cause(), "run it while no other program uses the machine")
        } else if self.run.order_s > MOSTLY * self.run.wait_s {
            let why = format!("{:.2} s were spent waiting for slow samples, since order is kept", self.run.order_s);
            ("order", why, "find the slow samples, or prepare more batches ahead")
        } else {
            let why = "no single cause explains the difference".to_owned();
            ("unknown", why, "the run is too noisy, or its parts do not explain it")
        };
        let lever = match name {
            "order" => self
                .plain("order", &format!("{advice}: {}", (self.spelling.prefetch)(2 * self.run.flags.prefetch.max(1)))),
            _ => self.plain(if name == "cores" { "cores" } else { "unknown" }, advice),
        };
        Advice {
            limit: Limit { name: name.to_owned(), evidence: vec![why, fit], rates: Some(self.rates()) },
            lever: Lever { is_bound: true, ..lever },
        }
    }

    /// What the model says holds the run up most.
    pub(super) fn limit(&self) -> Limit {
        let now = self.run.flags;
        let gain = |wall_s: f64| self.run.wall_s - wall_s;
        let threads =
            self.more_threads().filter(|change| self.is_proven(change)).map_or(0.0, |change| gain(change.wall_s));
        let prefetch =
            self.deeper_prefetch().filter(|change| self.is_proven(change)).map_or(0.0, |change| gain(change.wall_s));
        let best = best_flags(self.case, now);
        let by_flags = gain(self.predict(self.case, best));
        let avoidable = self.run.wall_s - self.ideal_s;
        let name = if by_flags >= MOSTLY * avoidable && threads.max(prefetch) > 0.0 {
            match threads >= prefetch {
                true if self.lacks_requests() && !self.is_on_gpu() => "latency",
                // Threads that mostly run lack company, not cores.
                true if self.case.delay_s > self.case.cpu_s => "cores",
                true => "threads",
                false => "prefetch",
            }
        } else {
            let storage = self.case.storage.as_ref().map_or(0.0, |_| gain(self.predict(&self.without_storage(), best)));
            let decode = gain(self.predict(&self.without_decoding(), best));
            let cores = if self.waits_for_cores() { gain(self.predict(&self.undelayed(), best)) } else { 0.0 };
            let served_by = if self.is_on_gpu() { "gpu" } else { "storage" };
            let all = [("decode", decode), (served_by, storage), ("cores", cores)];
            let most = all.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
            most.filter(|(_, most)| *most > WORTH * self.run.wall_s).map_or("unknown", |(name, _)| name)
        };
        Limit { name: name.to_owned(), evidence: self.evidence(), rates: Some(self.rates()) }
    }

    fn rates(&self) -> Rates {
        let (case, threads) = (self.case, self.run.flags.threads as f64);
        let finite = |rate: f64| Some(rate).filter(|rate| rate.is_finite());
        let storage = case.storage.as_ref();
        Rates {
            consumes_per_s: finite(case.steps as f64 * case.batch as f64 / self.ideal_s),
            storage_per_s: storage.map(|curve| curve.rate(threads)),
            storage_most_per_s: storage.map(|curve| curve.rate(curve.known_to())),
            cores_per_s: finite(case.cores_per_s()),
            cores: case.cores,
        }
    }

    fn evidence(&self) -> Vec<String> {
        let (threads, rates) = (self.run.flags.threads, self.rates());
        let rate = |per_s: f64| group_digits(per_s.round() as u64);
        let mut facts = Vec::new();
        match (&self.case.storage, rates.storage_per_s, rates.storage_most_per_s) {
            (Some(curve), Some(now), Some(most)) => {
                let more = match curve.known_to() as usize {
                    n if n > threads && most > now * (1.0 + MORE_IN_FLIGHT) => format!(", {} with {n}", rate(most)),
                    n if n > threads => format!(", no more with {n}"),
                    _ => String::new(),
                };
                let now = rate(now);
                if self.is_on_gpu() {
                    let threads = count(threads as u64, "thread");
                    facts.push(format!("the GPU decodes {now} samples/s with {threads}{more}"));
                } else {
                    facts.push(format!(
                        "the storage delivers {now} samples/s with {} in flight{more}",
                        count(threads as u64, "request")
                    ));
                }
            }
            _ => facts.push("the samples came from memory".to_owned()),
        }
        if let Some(process) = rates.cores_per_s {
            let all = if rates.cores > 1.0 { format!("{:.0} cores", rates.cores) } else { "the core".to_owned() };
            facts.push(format!("{all} can process {} samples/s", rate(process)));
        }
        if self.waits_for_cores() {
            let delay_ms = 1e3 * self.case.delay_s;
            facts
                .push(format!("for each sample, a thread waited {delay_ms:.1} ms for a core that other programs used"));
        }
        if let Some(consumes) = rates.consumes_per_s {
            facts.push(format!("the accelerator consumes {} samples/s", rate(consumes)));
        }
        facts
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
