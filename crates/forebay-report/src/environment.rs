//! Where and how a run was made: what one needs to repeat it, and to know before comparing it.

use std::path::Path;

use forebay_record::{DatasetNote, Levels, Scale, Step, StudyCell};
use forebay_units::{PathText, count, group_digits, shell_word, unescape};

use crate::data::{Data, Value};
use crate::failures;
use crate::level;
use crate::number::{bytes, distinct, listed, seconds};
use crate::run::Run;
use crate::table::Align::Left;

const MAX_NOTES: usize = 60;

/// The subfolder for generated data on tiers that are folders.
const ON_TIER: &str = "forebay-data";

/// The facts of a run, unknown ones left out.
pub(crate) fn facts(run: &Run<'_>) -> Vec<(&'static str, String)> {
    let (head, environment) = (run.head(), run.environment());
    let cores = if environment.n_cores > 0 { format!("{} cores", environment.n_cores) } else { String::new() };
    let machine = [environment.cpu.clone().unwrap_or_default(), cores].into_iter().filter(|part| !part.is_empty());
    let mut facts = vec![
        ("run", run.name.to_owned()),
        ("started", environment.started_at.clone()),
        ("processor", machine.collect::<Vec<_>>().join(", ")),
        ("memory", environment.memory_bytes.map(bytes).unwrap_or_default()),
        ("kernel", environment.kernel.clone().unwrap_or_default()),
        ("file system", environment.data_file_system.clone().unwrap_or_default()),
        ("data", dataset(run).unwrap_or_default()),
        ("settings", settings(run).unwrap_or_default()),
        ("generated data in", generated(run)),
        ("privileges", if environment.root { "root" } else { "user" }.to_owned()),
        ("forebay", environment.version.clone()),
    ];
    if run.is_study() {
        let scale = match head.scale {
            // Of a study of one's own, nothing was published.
            scale if run.spec().source.is_none() => scale.name(),
            Scale::Quick => "quick: as published, with fewer bytes",
            Scale::Standard => "standard: as published, with less data and every figure repeated",
            Scale::Full => "full: as published",
        };
        facts.push(("scale", scale.to_owned()));
        facts.push(("seed", head.spec.seed.to_string()));
        let state = if run.study.is_complete() { "complete" } else { "incomplete" };
        facts.push(("cells", format!("{}: {state}", progress(run))));
        let took: f64 = run.study.cells.iter().map(|cell| cell.elapsed_s).filter(|s| s.is_finite()).sum();
        facts.push(("total time of cells", seconds(took)));
    }
    facts.retain(|(_, fact)| !fact.is_empty());
    facts
}

/// How far a study came: "29 of 36 done, 1 failed, 2 left out". What was left out is not done, what failed is.
pub(crate) fn progress(run: &Run<'_>) -> String {
    let n = |is: fn(&StudyCell) -> bool| run.study.cells.iter().filter(|cell| is(cell)).count() as u64;
    let (failed, left_out) = (n(|cell| cell.error.is_some()), n(|cell| cell.left_out.is_some()));
    let done = run.study.cells.len() as u64 - left_out;
    let mut said = format!("{} of {} done", group_digits(done), group_digits(run.head().n_cells));
    for (n, word) in [(failed, "failed"), (left_out, "left out")].into_iter().filter(|(n, _)| *n > 0) {
        said.push_str(&format!(", {} {word}", group_digits(n)));
    }
    said
}

/// The folders with the data that a study's cells read: a tier that is a folder holds its own.
fn generated(run: &Run<'_>) -> String {
    let Some(shared) = run.head().data.as_deref() else { return String::new() };
    let spec = run.spec();
    let reads = |cell: &&StudyCell| {
        let experiment = spec.experiments.iter().find(|of| of.name == cell.experiment);
        experiment.is_some_and(|of| of.dataset.is_some() || of.run == Step::Workload)
    };
    let folder = |cell: &StudyCell| {
        let name = cell.level("tier").map(ToString::to_string);
        let tier = spec.tiers.iter().find(|tier| name.as_ref() == Some(&tier.name));
        match tier.and_then(|tier| tier.path.as_ref()) {
            Some(path) => path.join(ON_TIER).escaped().into_owned(),
            None => place_of(shared),
        }
    };
    listed(&distinct(run.study.cells.iter().filter(reads).map(folder)))
}

/// Where a run's data was made: a path of its own, or one that goes where the run's folder goes.
fn place_of(data: &str) -> String {
    if Path::new(data).is_relative() { format!("{data} in the run's folder") } else { data.to_owned() }
}

pub(crate) fn path(run: &Run<'_>) -> Option<String> {
    run.record.dataset().map(|note| note.path.clone()).filter(|path| !path.is_empty())
}

pub(crate) fn dataset(run: &Run<'_>) -> Option<String> {
    match run.record.dataset() {
        Some(note) if *note == DatasetNote::default() => None,
        Some(note) if note.n_samples == 0 => Some(note.path.clone()),
        Some(note) => {
            let path = if note.path.is_empty() { String::new() } else { format!("{}: ", note.path) };
            let packing = if note.packing.is_empty() { String::new() } else { format!(" ({})", note.packing) };
            let (samples, files) = (count(note.n_samples, "sample"), count(note.n_files, "file"));
            Some(format!("{path}{samples} in {files}{packing}"))
        }
        None => of_study(run),
    }
}

/// What all cells of a single record have in common beside what names them; of the only cell, all that tells it from others.
fn settings(run: &Run<'_>) -> Option<String> {
    let all: Vec<Levels> = run.measured().flatten().map(|cell| cell.levels()).collect();
    let mut levels = all.first()?.clone();
    let is_named =
        |factor: &String| all.len() > 1 && run.study.cells.iter().all(|cell| cell.factors.contains_key(factor));
    levels.retain(|factor, level| !is_named(factor) && all.iter().all(|of| of.get(factor) == Some(level)));
    (!run.is_study() && !levels.is_empty()).then(|| level::each(&levels).join("; "))
}

fn of_study(run: &Run<'_>) -> Option<String> {
    let sets = run.spec().datasets.iter().map(|set| {
        let n = set.count.as_ref().map(|n| count(*n.at(run.head().scale), "image"));
        let from = set.make.clone().map(|profile| format!("generated like {profile}, seed {}", set.seed));
        let path = set.path.as_ref().map(|path| path.escaped().into_owned());
        let said: Vec<String> = [n, from, path].into_iter().flatten().collect();
        format!("{}: {}", set.name, said.join(", "))
    });
    let sets: Vec<String> = sets.collect();
    (!sets.is_empty()).then(|| sets.join("; "))
}

pub(crate) fn tiers(run: &Run<'_>) -> Data {
    let mut data = Data::new(&[("name", "tier", Left), ("kind", "served by", Left), ("description", "profile", Left)]);
    for tier in &run.head().tiers {
        data.row(vec![
            Value::text(tier.name.clone()),
            Value::text(tier.kind.describe()),
            Value::text(tier.description.clone()),
        ]);
    }
    data
}

/// The command line to run it again, quoted for a shell. Its words are escaped in the record; one of a former version that
/// reads as no escape is taken as it is.
pub(crate) fn command(run: &Run<'_>) -> String {
    let mut words = run.head().command_line.iter();
    // The program may have been started by any path; its name is what a reader types.
    let program = words.next().map(|path| path.rsplit('/').next().unwrap_or(path).to_owned());
    let words = program.into_iter().chain(words.cloned());
    words.map(|word| typed(&word)).collect::<Vec<_>>().join(" ")
}

fn typed(word: &str) -> String {
    shell_word(unescape(word).unwrap_or_else(|_| word.into()))
}

/// What a reader must know: the run's own notes, those of its cells, and interruptions.
pub(crate) fn notes(run: &Run<'_>) -> Vec<String> {
    let mut notes = run.head().notes.clone();
    for resumed in &run.study.resumed {
        notes.push(format!(
            "Resumed on {} after an interruption, with {} done.",
            resumed.environment.started_at,
            count(resumed.n_done, "cell")
        ));
    }
    notes.extend(of_cells(run));
    notes.extend(failures::named(run));
    let more = notes.len().saturating_sub(MAX_NOTES);
    notes.truncate(MAX_NOTES);
    notes.extend((more > 0).then(|| format!("{}; the record has all.", count(more as u64, "more note"))));
    notes
}

/// What cells note, each once however many note it.
fn of_cells(run: &Run<'_>) -> Vec<String> {
    let mut found: Vec<(&str, &str, u64)> = Vec::new();
    for cell in &run.study.cells {
        for note in &cell.notes {
            match found.iter_mut().find(|(known, ..)| known == note) {
                Some((_, _, n)) => *n += 1,
                None => found.push((note, &cell.id, 1)),
            }
        }
    }
    let said = found.into_iter().map(|(note, first, n)| match n {
        1 => format!("{first}: {note}"),
        _ => format!("{}, first in {first}: {note}", count(n, "cell")),
    });
    said.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_word_is_written_as_a_shell_reads_it() {
        let cases = [
            ("--threads=1,2", "--threads=1,2"),
            ("my photos", "'my photos'"),
            (r"ph\xffotos", r"$'ph\xffotos'"),
            (r"a\\b", r"'a\b'"),
            (r"C:\old", r"'C:\old'"),
        ];
        cases.into_iter().for_each(|(word, shown)| assert_eq!(typed(word), shown));
    }

    #[test]
    fn data_that_goes_with_its_run_is_not_shown_as_a_path_of_its_own() {
        assert_eq!(place_of("data"), "data in the run's folder");
        assert_eq!(place_of("/mnt/data"), "/mnt/data");
    }
}
