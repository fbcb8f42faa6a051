//! Whole sets of samples, from files to batches.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use forebay_dataset::{Control, make_records};
use forebay_format::npz::write::{Archive, Method};
use forebay_format::{example::ExampleWriter, npy, tfrecord as records};
use forebay_storage::{Capabilities, Counted, Local, Memory, Mode};
use forebay_workload::{Dataset as Data, Format, Reader as How, Shuffle, Time};

use super::*;

/// The reads in their order: file, sample, bytes.
type Log = Arc<Mutex<Vec<(u32, u32, Traffic)>>>;

fn workload(format: Format, n_files: u64, per_file: u64, how: How) -> Workload {
    let dataset = Data { format, n_files_train: n_files, n_samples_per_file: per_file, ..Data::default() };
    let dataset = Data { record_length_bytes: 100.0, ..dataset };
    Workload { dataset, reader: how, ..Workload::default() }
}

fn open(workload: &Workload, storage: Arc<dyn Storage>, data: &Path, verify: bool) -> Result<(Samples, Log), Error> {
    let access = Access { storage, data: data.to_owned(), verify };
    Ok((Samples::open(workload, Part::Train, access)?, Log::default()))
}

/// All samples of one epoch of `of` accelerators, in the order of each.
fn epoch(samples: &Samples, of: u64, seed: u64) -> Vec<Vec<Vec<u8>>> {
    noted_epoch(samples, &Log::default(), of, seed)
}

fn noted_epoch(samples: &Samples, log: &Log, of: u64, seed: u64) -> Vec<Vec<Vec<u8>>> {
    let n_steps = samples.n_samples() / of / samples.batch;
    (0..of)
        .map(|accelerator| {
            let noted = Arc::clone(log);
            let note = move |file, sample, bytes| noted.lock().unwrap().push((file, sample, bytes));
            let batches = samples.batches((accelerator, of), seed, n_steps, Some(Arc::new(note))).unwrap();
            let mut found = Vec::new();
            for batch in batches {
                let batch = batch.unwrap();
                assert_eq!(batch.len() as u64, samples.batch);
                found.extend(batch.data().chunks(samples.sample_bytes()).map(<[u8]>::to_vec));
            }
            found
        })
        .collect()
}

/// The hundred bytes of sample `sample` of file `file`.
fn content(file: u64, sample: u64) -> Vec<u8> {
    (0..100).map(|i| (file * 41 + sample * 7 + i) as u8).collect()
}

fn expected(n_files: u64, per_file: u64) -> Vec<Vec<u8>> {
    (0..n_files).flat_map(|file| (0..per_file).map(move |sample| content(file, sample))).collect()
}

/// An array `(10, 10, per_file)`.
fn array(file: u64, per_file: u64) -> Vec<u8> {
    let mut out = npy::write::header("|u1", &[10, 10, per_file]);
    let samples: Vec<Vec<u8>> = (0..per_file).map(|sample| content(file, sample)).collect();
    (0..100).for_each(|i| out.extend(samples.iter().map(|sample| sample[i])));
    out
}

fn archive(file: u64, per_file: u64, method: Method) -> Vec<u8> {
    let (mut archive, array) = (Archive::default(), array(file, per_file));
    let mut out = archive.begin("x.npy", array.len() as u64, method);
    match method {
        Method::Stored => {
            archive.stored(&array);
            out.extend(&array);
        }
        Method::Deflated { .. } => archive.deflated(&array, &mut out),
    }
    let patch = archive.end(&mut out);
    out[..patch.bytes.len()].copy_from_slice(&patch.bytes);
    out.extend(archive.finish());
    out
}

/// Records of one length, or of several.
fn frames(file: u64, per_file: u64, even: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for sample in 0..per_file {
        let padding = vec![0; if even { 5 } else { sample as usize * 3 }];
        let writer = ExampleWriter::new().bytes("image", &[&content(file, sample)]).bytes("padding", &[&padding]);
        records::append(&mut out, &writer.finish());
    }
    out
}

fn stored(workload: &Workload, make: impl Fn(u64) -> Vec<u8>) -> Arc<Memory> {
    let memory = Memory::default();
    for file in 0..workload.dataset.n_files_train {
        memory.insert(Path::new("data").join(workload.dataset.path_of(Part::Train, file)), make(file));
    }
    Arc::new(memory)
}

#[test]
fn of_samples_that_are_made_together_the_one_that_fails_is_named() {
    let workload = workload(Format::Npz, 6, 2, How { batch_size: 6, read_threads: 1, ..How::default() });
    let memory = stored(&workload, |file| archive(file, 2, Method::Stored));
    let broken = Path::new("data").join(workload.dataset.path_of(Part::Train, 4));
    memory.insert(&broken, archive(4, 2, Method::Stored)[..150].to_vec());
    let (samples, _) = open(&workload, memory, Path::new("data"), true).unwrap();
    let mut batches = samples.batches((0, 1), 0, 2, None).unwrap();
    assert!(batches.next().unwrap().is_ok());
    let error = batches.next().unwrap().unwrap_err().to_string();
    assert_eq!(error, format!("sample 0 to 1 of {}", broken.display()));
}

/// Every way of reading gives the files' samples in their order.
fn check(mut workload: Workload, make: impl Fn(u64) -> Vec<u8>) {
    let (n_files, per_file) = (workload.dataset.n_files_train, workload.dataset.n_samples_per_file);
    let memory = stored(&workload, make);
    for (batch_size, read_threads, transfer_size) in [(1, 0, None), (2, 1, Some(64)), (6, 3, Some(7)), (12, 2, None)] {
        workload.reader = How { batch_size, read_threads, transfer_size, ..workload.reader };
        let (samples, log) = open(&workload, memory.clone(), Path::new("data"), true).unwrap();
        assert_eq!((samples.n_samples(), samples.sample_bytes()), (n_files * per_file, 100));
        for of in [1, 2] {
            log.lock().unwrap().clear();
            assert_eq!(
                noted_epoch(&samples, &log, of, 1).concat(),
                expected(n_files, per_file),
                "{batch_size} by {read_threads}"
            );
            let seen: BTreeSet<(u32, u32)> =
                log.lock().unwrap().iter().map(|(file, sample, _)| (*file, *sample)).collect();
            assert_eq!(seen.len() as u64, n_files * per_file);
            assert_eq!(log.lock().unwrap().len() as u64, n_files * per_file);
        }
    }
}

#[test]
fn arrays_are_read_whole_and_in_pieces() {
    for (n_files, per_file) in [(24, 1), (4, 6)] {
        let how = How::default();
        check(workload(Format::Npy, n_files, per_file, how.clone()), |file| array(file, per_file));
        check(workload(Format::Npz, n_files, per_file, how.clone()), |file| archive(file, per_file, Method::Stored));
        let deflated = Method::Deflated { level: 4 };
        check(workload(Format::Npz, n_files, per_file, how), |file| archive(file, per_file, deflated));
    }
}

#[test]
fn records_are_found_whether_or_not_they_are_of_one_length() {
    for (n_files, per_file) in [(24, 1), (4, 6)] {
        for even in [true, false] {
            check(workload(Format::Tfrecord, n_files, per_file, How::default()), |file| frames(file, per_file, even));
        }
    }
}

#[test]
fn tables_are_read_row_by_row() {
    let table = |file: u64| {
        let mut text = Vec::new();
        for sample in 0..6 {
            let row: Vec<String> = content(file, sample).iter().map(u8::to_string).collect();
            text.extend(format!("{}\n", row.join(",")).bytes());
        }
        text
    };
    check(workload(Format::Csv, 4, 6, How::default()), table);
}

#[test]
fn indexed_samples_are_read_by_their_index() {
    let workload = workload(Format::IndexedBinary, 4, 6, How { batch_size: 2, ..How::default() });
    // The samples are stored in reverse order, so only the index locates them.
    let memory = stored(&workload, |file| (0..6).rev().flat_map(|sample| content(file, sample)).collect());
    for file in 0..4 {
        let path = workload.dataset.path_of(Part::Train, file);
        let numbers = |of: fn(u64) -> u64| (0..6).flat_map(|sample| of(sample).to_le_bytes()).collect::<Vec<u8>>();
        memory.insert(format!("data/{path}.off.idx"), numbers(|sample| (5 - sample) * 100));
        memory.insert(format!("data/{path}.sz.idx"), numbers(|_| 100));
    }
    let (samples, _) = open(&workload, memory, Path::new("data"), true).unwrap();
    assert_eq!(epoch(&samples, 2, 1).concat(), expected(4, 6));
}

#[test]
fn damage_is_named_with_its_file_unless_nothing_is_verified() {
    for format in [Format::Npz, Format::Tfrecord] {
        let workload = workload(format, 3, 1, How::default());
        let memory = stored(&workload, |file| {
            let mut bytes =
                if format == Format::Npz { archive(file, 1, Method::Stored) } else { frames(file, 1, true) };
            let at = bytes.windows(5).position(|window| *window == content(file, 0)[50..55]).unwrap();
            bytes[at] ^= u8::from(file == 1);
            bytes
        });
        let outcome = |verify| {
            let (samples, _) = open(&workload, memory.clone(), Path::new("data"), verify).unwrap();
            samples.batches((0, 1), 1, 3, None).unwrap().map(|batch| batch.map(drop)).collect::<Result<Vec<()>, _>>()
        };
        assert_eq!(outcome(false).unwrap().len(), 3);
        let Err(forebay_pipeline::Error::Sample(failed)) = outcome(true) else { panic!("{format:?}: it is damaged") };
        assert!(failed.name.ends_with(&workload.dataset.path_of(Part::Train, 1)), "{}", failed.name);
        assert!(failed.reason().contains("checksum"), "{}", failed.reason());
    }
}

#[test]
fn a_missing_file_is_named_with_what_makes_it_and_of_more_files_the_first_are_taken() {
    let few = workload(Format::Npy, 10, 1, How::default());
    let memory = stored(&few, |file| array(file, 1));
    let gone = format!("data/{}", few.dataset.path_of(Part::Train, 7));
    memory.remove(Path::new(&gone)).unwrap();
    let text = |workload: &Workload| open(workload, memory.clone(), Path::new("data"), true).err().unwrap().to_string();
    assert_eq!(text(&few), format!("{gone}, one of 10 files, is missing; make them with `forebay workload make`"));
    let more = workload(Format::Npy, 30, 1, How::default());
    assert!(text(&more).contains("contains 9 .npy files; the workload needs 30"), "{}", text(&more));
    let first = workload(Format::Npy, 5, 1, How::default());
    let (samples, _) = open(&first, memory.clone(), Path::new("data"), true).unwrap();
    assert_eq!(epoch(&samples, 1, 1).concat(), expected(5, 1));
}

#[test]
fn what_is_made_is_read_in_every_format() {
    let formats = [Format::Tfrecord, Format::Csv, Format::Npz, Format::Npy, Format::Jpeg, Format::Png];
    for format in formats.into_iter().chain([Format::IndexedBinary, Format::MmapIndexedBinary, Format::Synthetic]) {
        let per_file = if matches!(format, Format::Jpeg | Format::Png) { 1 } else { 3 };
        let mut workload = workload(format, 4, per_file, How { batch_size: per_file, ..How::default() });
        workload.dataset.record_length_bytes = 10_000.0;
        let dir = tempfile::tempdir().unwrap();
        make_records(&workload, dir.path(), 0, 1, &Control::default()).unwrap();
        let counted = Arc::new(Counted::new(Local::new(Mode::Buffered)));
        let (samples, log) = open(&workload, counted, dir.path(), true).unwrap();
        let found = noted_epoch(&samples, &log, 2, 1);
        assert_eq!(found.concat().len() as u64, 4 * per_file, "{format:?}");
        let distinct: BTreeSet<&Vec<u8>> = found.iter().flatten().collect();
        let n_distinct = if format == Format::Synthetic { 1 } else { found.concat().len() };
        assert_eq!(distinct.len(), n_distinct, "{format:?}: no two samples are alike");
        let moved: u64 = log.lock().unwrap().iter().map(|(_, _, bytes)| bytes.moved).sum();
        let least = if format == Format::Synthetic { 0 } else { 10_000 };
        assert!(moved >= least, "{format:?}: {moved} bytes");
    }
}

#[test]
fn batches_take_the_memory_of_the_prefetch_and_untouched_headroom() {
    for (prefetch_size, read_threads, n_batches) in [(2, 1, 2), (1, 1, 1), (0, 1, 1), (2, 0, 1)] {
        let how = How { batch_size: 4, prefetch_size, read_threads, ..How::default() };
        let mut workload = workload(Format::Synthetic, 64, 1, how);
        workload.dataset.record_length_bytes = 65_536.0;
        let (samples, _) = open(&workload, Arc::new(Memory::default()), Path::new("data"), true).unwrap();
        let batches = samples.batches((0, 1), 1, 16, None).unwrap();
        assert_eq!(batches.memory().n_bytes(), (n_batches + 1) * 4 * 65_536, "prefetch {prefetch_size}");
    }
}

#[test]
fn what_direct_reads_move_beyond_what_was_asked_for_is_counted_apart() {
    let dir = tempfile::tempdir().unwrap();
    let mut workload = workload(Format::Tfrecord, 2, 4, How { batch_size: 4, ..How::default() });
    workload.dataset.record_length_bytes = 10_000.0;
    make_records(&workload, dir.path(), 0, 1, &Control::default()).unwrap();
    let first = dir.path().join(workload.dataset.path_of(Part::Train, 0));
    if !Capabilities::probe(&first).allows(Mode::Direct) {
        return forebay_testing::not_run(forebay_testing::Reason::NoDirectIo, "in the temporary folder");
    }
    let traffic = |mode| {
        let (samples, log) = open(&workload, Arc::new(Local::new(mode)), dir.path(), true).unwrap();
        noted_epoch(&samples, &log, 1, 1);
        log.lock().unwrap().iter().fold(Traffic::default(), |sum, (_, _, bytes)| Traffic {
            asked: sum.asked + bytes.asked,
            moved: sum.moved + bytes.moved,
        })
    };
    let (buffered, direct) = (traffic(Mode::Buffered), traffic(Mode::Direct));
    assert!(buffered.asked >= 8 * 10_000 && buffered.moved == buffered.asked, "{buffered:?}");
    assert_eq!(direct.asked, buffered.asked);
    assert!(direct.moved > direct.asked && direct.moved.is_multiple_of(4096), "{direct:?}");
}

#[test]
fn records_are_read_in_pieces_of_the_transfer_size_at_most() {
    let n_reads = |transfer_size| {
        let workload = workload(Format::Tfrecord, 2, 1, How { transfer_size, ..How::default() });
        let counted = Arc::new(Counted::new(Arc::into_inner(stored(&workload, |file| frames(file, 1, true))).unwrap()));
        let (samples, _) = open(&workload, Arc::clone(&counted) as Arc<dyn Storage>, Path::new("data"), true).unwrap();
        assert_eq!(epoch(&samples, 1, 1).concat(), expected(2, 1));
        (counted.counters().read.n(), counted.counters().read.bytes())
    };
    let (whole, bytes) = n_reads(None);
    assert_eq!((whole, n_reads(Some(bytes))), (2, (2, bytes)));
    assert_eq!(n_reads(Some(10)), (2 * (bytes / 2).div_ceil(10), bytes));
}

#[test]
fn a_shuffle_is_another_order_of_the_same_samples_in_every_epoch() {
    let how = How { sample_shuffle: Shuffle::Seed, batch_size: 3, ..How::default() };
    let workload = workload(Format::Tfrecord, 8, 6, how);
    let memory = stored(&workload, |file| frames(file, 6, true));
    let (samples, log) = open(&workload, memory, Path::new("data"), true).unwrap();
    let mut orders = BTreeMap::new();
    for seed in [1, 2] {
        let found = noted_epoch(&samples, &log, 2, seed);
        let all: BTreeSet<Vec<u8>> = found.concat().into_iter().collect();
        assert_eq!(all, expected(8, 6).into_iter().collect());
        let read: Vec<(u32, u32)> = log.lock().unwrap().drain(..).map(|(file, sample, _)| (file, sample)).collect();
        assert_eq!(read.iter().collect::<BTreeSet<_>>().len(), 48);
        orders.insert(seed, found.concat());
    }
    assert_ne!(orders[&1], orders[&2]);
    assert_eq!(noted_epoch(&samples, &log, 2, 1).concat(), orders[&1]);
}

#[test]
fn samples_that_are_kept_are_read_once() {
    let workload = workload(Format::Npz, 6, 1, How { in_memory: true, ..How::default() });
    let memory = stored(&workload, |file| archive(file, 1, Method::Stored));
    let (samples, log) = open(&workload, memory, Path::new("data"), true).unwrap();
    for seed in 1..4 {
        assert_eq!(noted_epoch(&samples, &log, 1, seed).concat(), expected(6, 1));
        let bytes: Vec<u64> = log.lock().unwrap().drain(..).map(|(_, _, bytes)| bytes.moved).collect();
        assert_eq!(bytes.len(), 6, "epoch {seed}");
        assert!(bytes.iter().all(|bytes| (*bytes > 0) == (seed == 1)), "epoch {seed}: {bytes:?}");
    }
}

#[test]
fn the_tensor_that_is_handed_on_is_resized_or_transformed_as_the_workload_says() {
    let mut workload = workload(Format::Npy, 2, 1, How::default());
    let memory = stored(&workload, |file| array(file, 1));
    workload.dataset.record_length_bytes_resize = 130;
    let (samples, _) = open(&workload, memory.clone(), Path::new("data"), true).unwrap();
    assert_eq!(epoch(&samples, 1, 1)[0][1], [content(1, 0), vec![0; 30]].concat());
    workload.reader.transformed_dims = vec![4, 5];
    let (samples, _) = open(&workload, memory, Path::new("data"), true).unwrap();
    assert_eq!(epoch(&samples, 1, 1)[0][1], content(1, 0)[..20]);
}

#[test]
fn preparing_takes_its_time_and_threads_that_compute_share_it() {
    let time = Time::Normal { mean: 0.01, stdev: 0.0 };
    let how = How { preprocess_time: time, batch_size: 6, ..How::default() };
    let seconds = |computation_threads| {
        let workload = workload(Format::Npy, 6, 1, How { computation_threads, ..how.clone() });
        let memory = stored(&workload, |file| array(file, 1));
        let (samples, _) = open(&workload, memory, Path::new("data"), true).unwrap();
        let mut batches = samples.batches((0, 1), 1, 1, None).unwrap();
        batches.next().unwrap().unwrap();
        batches.stats().worker_time.ns(forebay_pipeline::Activity::Preprocessing) as f64 / 1e9
    };
    assert!(seconds(1) >= 0.06);
    assert!(seconds(4) >= 0.06);
}

#[test]
fn more_steps_than_there_are_samples_are_refused() {
    let workload = workload(Format::Synthetic, 4, 5, How { batch_size: 3, ..How::default() });
    let (samples, _) = open(&workload, Arc::new(Memory::default()), Path::new("data"), true).unwrap();
    assert!(samples.batches((1, 2), 1, 3, None).is_ok());
    let Err(error) = samples.batches((1, 2), 1, 4, None) else { panic!("twelve of ten") };
    assert_eq!(error.to_string(), "4 steps need 12 samples, but each of 2 accelerators has 10");
}
