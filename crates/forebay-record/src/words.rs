//! The vocabulary of reports and documentation: each term once, with one plain sentence.
//!
//! `docs/words.md`, the terms at the end of a report's page and the legends of tables are made from it.

/// A term and what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// As a text uses it, and as `docs/words.md` heads it.
    pub term: &'static str,
    /// Other forms that mean the same.
    pub also: &'static [&'static str],
    /// What it means, understandable without the others.
    pub sentence: &'static str,
}

impl Word {
    const fn new(term: &'static str, also: &'static [&'static str], sentence: &'static str) -> Self {
        Self { term, also, sentence }
    }

    /// The term and its other forms.
    pub fn forms(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.term).chain(self.also.iter().copied())
    }

    /// Whether a text has one of the forms as whole words: begun with a capital or not, with or without a plural's "s" or "es".
    /// Names of files are no words.
    pub fn occurs_in(&self, text: &str) -> bool {
        self.forms().any(|form| has(text, form) || capital(form).is_some_and(|form| has(text, &form)))
    }
}

fn capital(form: &str) -> Option<String> {
    let first = form.chars().next().filter(|first| first.is_ascii_lowercase())?;
    Some(first.to_ascii_uppercase().to_string() + &form[1..])
}

fn has(text: &str, form: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || ['-', '_'].contains(&letter);
    // A sign such as "±" needs no space around it.
    let is_sign = !form.contains(is_part);
    text.match_indices(form).any(|(start, _)| {
        let (before, after) = (&text[..start], &text[start + form.len()..]);
        let mut ends = ["", "s", "es"].iter().filter_map(|plural| after.strip_prefix(plural));
        let is_file = |rest: &str| rest.strip_prefix('.').is_some_and(|rest| rest.starts_with(char::is_alphanumeric));
        is_sign || (!before.ends_with(is_part) && ends.any(|rest| !rest.starts_with(is_part) && !is_file(rest)))
    })
}

/// Terms that a table's legend explains too.
impl Word {
    /// Accelerator utilisation.
    pub const AU: Self = Self::new(
        "AU",
        &["accelerator utilisation", "AU, whole epoch"],
        "AU (accelerator utilisation) is compute time over training time, which includes waits and checkpoints but not validation.",
    );

    /// AU without what DLIO leaves out.
    pub const AU_DLIO: Self = Self::new(
        "AU, as DLIO counts",
        &["as DLIO counts"],
        "AU as DLIO counts leaves out checkpoints and the first step of every epoch.",
    );

    /// AU without the first wait.
    pub const AU_STEADY: Self = Self::new(
        "AU, steady state",
        &["steady state"],
        "AU in the steady state leaves out the wait for the first batch: of the run in training, of every epoch in a workload.",
    );

    /// A cache state.
    pub const COLD: Self = Self::new(
        "cold",
        &[],
        "Cold means that at most 5 % of the bytes came from memory in every repeat, by the block layer's count.",
    );

    /// What training pays for its data.
    pub const COST_OF_IO: Self =
        Self::new("cost of I/O", &[], "The cost of I/O is the run time beyond the same steps on a batch in memory.");

    /// When a checkpoint is safe.
    pub const DURABLE: Self =
        Self::new("durable", &[], "A checkpoint is durable on a tier once it would survive a power cut there.");

    /// What the harness itself allows.
    pub const HARNESS_ALONE: Self = Self::new(
        "harness alone",
        &["harness floor"],
        "The harness alone is the same pipeline on null storage, without decoding: the fastest that forebay itself can deliver.",
    );

    /// The change that would help most.
    pub const LEVER: Self = Self::new(
        "lever",
        &[],
        "The lever is the change that would shorten the run most, among those that cost the user least.",
    );

    /// The unit of rates.
    pub const MB: Self = Self::new("MB", &[], "MB is 10^6 bytes.");

    /// How far repeats are apart.
    pub const SPREAD: Self =
        Self::new("spread", &["±"], "± is the spread: half the range of the repeats, relative to their median.");
}

/// All terms, in alphabetical order.
pub const WORDS: &[Word] = &[
    Word::new(
        "accelerator",
        &["emulated accelerator"],
        "An accelerator is the device that trains: a GPU, the CPU, or an emulated one that only takes the time of a step.",
    ),
    Word::AU,
    Word::AU_DLIO,
    Word::AU_STEADY,
    Word::new("barrier", &[], "At a barrier, the accelerators of a run wait until all have finished their step."),
    Word::new(
        "baseline",
        &[],
        "A baseline is what others are compared with: in training, steps on a batch in memory; in a study, the first \
         level of every factor.",
    ),
    Word::new("batch", &[], "A batch is the group of samples that one step trains on."),
    Word::new(
        "burst buffer",
        &[],
        "A burst buffer is a fast tier that takes checkpoints first and passes them on to a slower tier in the background.",
    ),
    Word::new(
        "ceiling",
        &[],
        "A ceiling is the rate that the storage reaches without the pipeline, measured or taken from a tier's profile.",
    ),
    Word::new("cell", &[], "A cell is one measured combination of settings, such as 4 threads on tier hdd."),
    Word::new("checkpoint", &[], "A checkpoint is the saved state of a training run, from which it can resume."),
    Word::new(
        "checkpoint mode",
        &["async", "burst"],
        "The checkpoint mode says when training continues: once the checkpoint is durable (direct), durable in the burst buffer (burst), \
         or copied in memory (async).",
    ),
    Word::COLD,
    Word::COST_OF_IO,
    Word::new(
        "CPU seconds per 1,000 images",
        &["CPU s per 1,000 images"],
        "CPU seconds per 1,000 images is the user and system time of the whole process, divided by the thousands of images delivered.",
    ),
    Word::new("decode", &["decoding", "decoded"], "To decode a sample is to turn its bytes into pixels."),
    Word::new(
        "direct I/O",
        &["direct", "O_DIRECT"],
        "Direct I/O (O_DIRECT) bypasses the page cache; with a direct checkpoint, training continues only once it is durable.",
    ),
    Word::new(
        "disturbed",
        &[],
        "A repeat is disturbed if other programs took more than a small share of the cores or the disk meanwhile.",
    ),
    Word::new("DLIO", &[], "DLIO is the I/O benchmark for deep learning on which MLPerf Storage is based."),
    Word::new(
        "drain",
        &["draining", "drained"],
        "To drain a checkpoint is to copy it in the background from the burst buffer to the last tier.",
    ),
    Word::DURABLE,
    Word::new(
        "engine",
        &["sync", "uring"],
        "The engine is how a probe makes requests: sync (page cache), direct (O_DIRECT) or uring (io_uring with O_DIRECT).",
    ),
    Word::new("epoch", &[], "An epoch is one pass over the dataset."),
    Word::new("experiment", &[], "An experiment is one part of a study: what to run, with which factors and settings."),
    Word::new("factor", &[], "A factor is a setting that an experiment varies, such as the number of threads."),
    Word::HARNESS_ALONE,
    Word::new(
        "kernel tier",
        &["throttled by the kernel"],
        "A kernel tier is an emulated device: a loop device that the kernel throttles for every program.",
    ),
    Word::new("latency", &[], "A latency is the time from a request to its answer."),
    Word::new("level", &[], "A level is one value of a factor, such as 4 for the number of threads."),
    Word::LEVER,
    Word::new(
        "limit",
        &["limited by"],
        "The limit is what keeps a run from being faster: the accelerator, the storage, too few requests in flight, decoding, too few \
         threads or too little prefetch.",
    ),
    Word::MB,
    Word::new("MiB", &[], "MiB is 2^20 bytes (1,048,576)."),
    Word::new(
        "noise",
        &[],
        "A difference is noise if repeats of the same cell differ as much, or if its 95 % confidence interval includes 1×.",
    ),
    Word::new("null storage", &[], "Null storage delivers bytes without reading any, to measure forebay itself."),
    Word::new(
        "overlap",
        &["overlapped"],
        "Overlap is the fraction of the pipeline's work that is done while the accelerator does not wait.",
    ),
    Word::new(
        "page cache",
        &["from memory"],
        "The page cache is memory in which the kernel keeps file data; what is read from it does not come from the device.",
    ),
    Word::new(
        "percentile",
        &["p50", "p90", "p99", "p99.9"],
        "A percentile such as p99 is the time within which that percentage of the requests was answered.",
    ),
    Word::new("pipeline", &[], "The pipeline lists, shuffles, reads and decodes samples and groups them into batches."),
    Word::new("prefetch", &[], "Prefetch is the number of batches prepared ahead of the accelerator."),
    Word::new("probe", &[], "A probe measures storage without a pipeline."),
    Word::new("profile", &[], "A profile holds the rates and latencies of the device that a tier emulates."),
    Word::new(
        "queue depth",
        &["depth", "requests in flight"],
        "The queue depth is the number of requests in flight: sent to the storage and not yet answered.",
    ),
    Word::new("rank", &[], "A rank is one process of a distributed run, numbered from 0."),
    Word::new(
        "record",
        &[],
        "A record is the file of a run's results: the raw measurements, the settings and the machine.",
    ),
    Word::new("repeat", &[], "A repeat is one measurement of a cell; tables show the median of the repeats."),
    Word::new("sample", &[], "A sample is one training example, such as an image with its label."),
    Word::new(
        "scale",
        &["quick scale", "standard scale", "full scale"],
        "A study has three scales: quick, with little data, standard, with repeats within an hour, and full, as published.",
    ),
    Word::new(
        "shaped tier",
        &["shaped in this process", "shaped in process"],
        "A shaped tier is an emulated device: forebay delays its own reads and writes to match the device's profile.",
    ),
    Word::new("shard", &[], "A shard is a file that packs many samples, such as a TFRecord file or a tar archive."),
    Word::new("speed-up", &[], "A speed-up is a rate over the rate at the first level, such as over 1 thread."),
    Word::SPREAD,
    Word::new(
        "stall",
        &["stalled"],
        "A stall is time in which training makes no progress because it waits for data or for a checkpoint.",
    ),
    Word::new("step", &[], "A step trains on one batch: forward pass, backward pass and update."),
    Word::new("study", &[], "A study is a file of experiments whose cells run one after another into one report."),
    Word::new(
        "synthetic batch",
        &["synthetic"],
        "A synthetic batch is made once in memory, so training reads nothing.",
    ),
    Word::new("tier", &[], "A tier is a place for data or checkpoints: a real device or an emulated one."),
    Word::new(
        "wait",
        &["waited", "waiting"],
        "The wait is the time in which the accelerator, or the consumer of an ingest, is idle because it has no batch.",
    ),
    Word::new("wall clock", &[], "Wall clock is elapsed time, as opposed to CPU time."),
    Word::new("warm", &[], "Warm means that at most 5 % of the bytes came from the device."),
    Word::new("warm-up", &[], "A warm-up is a run before the measured repeats; its result is not used."),
    Word::new("worker", &[], "A worker is a thread of the pipeline that reads and decodes samples."),
    Word::new(
        "workload",
        &[],
        "A workload describes a training job in a file: its data, batches, step times and checkpoints.",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn terms_are_in_alphabetical_order() {
        let keys: Vec<String> = WORDS.iter().map(|word| word.term.to_lowercase().replace(',', "")).collect();
        assert!(keys.is_sorted(), "{keys:?}");
    }

    #[test]
    fn no_two_words_share_a_form() {
        let forms: Vec<String> = WORDS.iter().flat_map(Word::forms).map(str::to_lowercase).collect();
        assert_eq!(forms.iter().collect::<BTreeSet<_>>().len(), forms.len(), "{forms:?}");
    }

    #[test]
    fn every_word_has_one_short_sentence() {
        for Word { term, sentence, .. } in WORDS {
            assert!(sentence.chars().count() <= 200, "{term}: {}", sentence.chars().count());
            assert!(sentence.ends_with('.') && !sentence.contains(". "), "{term}: {sentence}");
            assert!(sentence.starts_with(|first: char| first.is_uppercase() || first == '±'), "{term}: {sentence}");
        }
    }

    #[test]
    fn every_sentence_names_what_it_explains() {
        for word in WORDS {
            let is_said =
                word.occurs_in(word.sentence) || word.term.split(", ").all(|part| word.sentence.contains(part));
            assert!(is_said, "{}: {}", word.term, word.sentence);
        }
    }

    #[test]
    fn a_word_occurs_whole_capital_or_plural() {
        let warm = Word::new("warm", &[], "Warm is not cold.");
        assert!(["warm", "Warm.", "a warm rate", "(warm)"].iter().all(|text| warm.occurs_in(text)));
        assert!(["warm-up", "swarm", "warmer", "luke_warm", "WARM"].iter().all(|text| !warm.occurs_in(text)));
        assert!(!warm.occurs_in("run/warm.jsonl") && warm.occurs_in("run/warm.jsonl is warm."), "a file's name");
        let batch = Word::new("batch", &["mini-batch"], "A batch.");
        assert!(batch.occurs_in("two batches") && batch.occurs_in("a mini-batch"));
        assert!(Word::MB.occurs_in("95.7 MB/s") && !Word::MB.occurs_in("95.7 mb"), "units keep their case");
        assert!(Word::SPREAD.occurs_in("95.7 ± 1 %") && Word::SPREAD.occurs_in("±10 %"));
    }
}
