//! Making data as a whole: the same bytes whoever makes them, and nothing half made under its name.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_storage::Error as StorageError;
use forebay_workload::{Compression, Dataset, Format, Workload};
use tempfile::tempdir;

use super::*;
use crate::Error;

/// Small files of every format; big enough ones to go past the page cache where the length is given.
fn dataset(format: Format, record_length_bytes: f64) -> Dataset {
    Dataset { format, record_length_bytes, n_files_train: 5, n_files_eval: 2, ..Dataset::default() }
}

fn make(dataset: &Dataset, dir: &Path) -> Result<MadeRecords> {
    let workload = Workload { dataset: dataset.clone(), ..Workload::default() };
    make_records(&workload, dir, 0, 1, &Control::default())
}

/// Every file below a folder, by its path in it.
fn tree(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap()) {
        if entry.file_type().unwrap().is_dir() {
            let below = tree(&entry.path());
            found.extend(below.into_iter().map(|(path, bytes)| (Path::new(&entry.file_name()).join(path), bytes)));
        } else {
            found.insert(entry.file_name().into(), fs::read(entry.path()).unwrap());
        }
    }
    found
}

/// What `dataset` is, made anew by one thread.
fn reference(dataset: &Dataset) -> BTreeMap<PathBuf, Vec<u8>> {
    let dir = tempdir().unwrap();
    make(dataset, dir.path()).unwrap();
    tree(dir.path())
}

#[test]
fn threads_ranks_and_cuts_make_the_same_bytes() {
    for format in [Format::Npy, Format::Npz, Format::Tfrecord, Format::IndexedBinary, Format::Jpeg] {
        let dataset = Dataset { n_samples_per_file: 3, ..dataset(format, 30_000.0) };
        let expected = reference(&dataset);
        let dir = tempdir().unwrap();
        let control = Control { threads: 4, ..Control::default() };
        let made: Vec<MadeRecords> = std::thread::scope(|scope| {
            let rank = |rank| {
                let (dataset, dir, control) = (&dataset, dir.path(), &control);
                scope.spawn(move || make_cut(dataset, dir, (rank, 3), control, Cut { from: 10_000, range: 7000 }))
            };
            let ranks = [2, 1, 0].map(rank);
            ranks.map(|rank| rank.join().unwrap().unwrap()).into()
        });
        assert!(tree(dir.path()) == expected, "{format:?}");
        assert_eq!(made.iter().map(|made| made.n_written).sum::<u64>(), 7, "{format:?}");
        let bytes: u64 = expected.values().map(|bytes| bytes.len() as u64).sum();
        let marker = expected[Path::new(RECORDS_MARKER)].len() as u64;
        assert_eq!(made.iter().map(|made| made.bytes).sum::<u64>(), bytes - marker, "{format:?}");
    }
}

#[test]
fn big_files_past_the_page_cache_are_the_same_as_in_ranges() {
    for format in [Format::Tfrecord, Format::Npz] {
        let dataset = Dataset { n_files_eval: 0, n_files_train: 1, n_samples_per_file: 3, ..dataset(format, 3e6) };
        let dir = tempdir().unwrap();
        let cut = Cut { from: 1 << 20, range: 1 << 20 };
        make_cut(&dataset, dir.path(), (0, 1), &Control::default(), cut).unwrap();
        assert!(tree(dir.path()) == reference(&dataset), "{format:?}");
    }
}

#[test]
fn more_files_than_wait_for_a_sync_are_all_there() {
    let dataset = Dataset { n_files_train: 140, ..dataset(Format::Npy, 1.1e6) };
    let dir = tempdir().unwrap();
    let made = make(&dataset, dir.path()).unwrap();
    assert_eq!((made.n_written, tree(dir.path()).len()), (142, 1 + 142));
}

#[test]
fn the_bytes_of_every_format_are_fixed_for_ever() {
    // Data that was made by an older version is kept as if this one had made it.
    let fixed = [
        (Format::Npy, 3_380_081_682),
        (Format::Npz, 4_072_327_532),
        (Format::Csv, 953_497_563),
        (Format::Parquet, 3_564_373_899),
        (Format::Tfrecord, 2_462_889_248),
        (Format::IndexedBinary, 4_104_340_400),
        (Format::Png, 1_619_647_413),
        (Format::Jpeg, 1_173_500_783),
    ];
    let found = fixed.map(|(format, _)| {
        let n_samples_per_file = if matches!(format, Format::Png | Format::Jpeg) { 1 } else { 2 };
        let made = reference(&Dataset { n_samples_per_file, ..dataset(format, 30_000.0) });
        let files = made.iter().filter(|(path, _)| *path != Path::new(RECORDS_MARKER));
        (format, files.fold(0, |crc, (_, bytes)| crc32c::crc32c_append(crc, bytes)))
    });
    assert_eq!(found, fixed);
}

#[test]
fn what_is_whole_is_kept_and_what_is_not_is_made_again() {
    for (format, compression) in [
        (Format::Npz, Compression::None),
        (Format::Npz, Compression::Zip),
        (Format::Csv, Compression::None),
        (Format::Tfrecord, Compression::None),
        (Format::Png, Compression::None),
        (Format::Jpeg, Compression::None),
        (Format::MmapIndexedBinary, Compression::None),
    ] {
        let dataset = Dataset { compression, n_subfolders_train: 2, ..dataset(format, 10_000.0) };
        let dir = tempdir().unwrap();
        make(&dataset, dir.path()).unwrap();
        let expected = tree(dir.path());
        let (gone, torn) = (dir.path().join(dataset.path_of(Part::Train, 1)), dataset.path_of(Part::Eval, 0));
        fs::remove_file(&gone).unwrap();
        let torn = fs::OpenOptions::new().write(true).open(dir.path().join(torn)).unwrap();
        torn.set_len(torn.metadata().unwrap().len() - 5).unwrap();
        // A hidden half that a killed run left.
        let half = gone.with_file_name(format!(".{}.tmp", gone.file_name().unwrap().to_str().unwrap()));
        fs::write(&half, vec![1; 1 << 20]).unwrap();
        let made = make(&dataset, dir.path()).unwrap();
        assert_eq!((made.n_written, made.n_kept), (2, 5), "{format:?} {compression:?}");
        assert!(tree(dir.path()) == expected, "{format:?} {compression:?}");
    }
}

#[test]
fn an_index_that_is_gone_is_made_again() {
    let dataset = dataset(Format::IndexedBinary, 1000.0);
    let dir = tempdir().unwrap();
    make(&dataset, dir.path()).unwrap();
    let expected = tree(dir.path());
    fs::remove_file(dir.path().join(format!("{}.sz.idx", dataset.path_of(Part::Train, 4)))).unwrap();
    assert_eq!(make(&dataset, dir.path()).unwrap().n_written, 1);
    assert!(tree(dir.path()) == expected);
}

#[test]
fn data_of_another_workload_is_refused_with_what_differs() {
    let dir = tempdir().unwrap();
    make(&dataset(Format::Npy, 1000.0), dir.path()).unwrap();
    let error = make(&dataset(Format::Npy, 2000.0), dir.path()).unwrap_err();
    let said = "the folder was made with record_length_bytes 1000.0; requested record_length_bytes 2000.0";
    assert!(error.to_string().ends_with(said), "{error}");
}

#[test]
fn data_without_a_mark_is_left_alone() {
    let dir = tempdir().unwrap();
    fs::create_dir(dir.path().join("train")).unwrap();
    fs::write(dir.path().join("train/img_0_of_5.npy"), "DLIO's").unwrap();
    let error = make(&dataset(Format::Npy, 1000.0), dir.path()).unwrap_err();
    assert!(matches!(error, Error::Foreign { .. }), "{error}");
    assert_eq!(tree(dir.path()).len(), 1);
}

#[test]
fn what_cannot_fit_is_refused_before_the_first_byte_with_both_sizes() {
    let parent = tempdir().unwrap();
    let dir = parent.path().join("data");
    let error = make(&dataset(Format::Npy, 1e17), &dir).unwrap_err();
    assert!(matches!(error, Error::NoRoom { needed, .. } if needed.0 > 6 * 99_000_000_000_000_000), "{error}");
    assert!(error.to_string().contains(", but only "), "{error}");
    assert!(!dir.exists());
}

#[test]
fn a_full_disk_is_named_and_nothing_half_stays() {
    let dir = tempdir().unwrap();
    let dataset = dataset(Format::Npy, 2e6);
    make(&dataset, dir.path()).unwrap();
    let victim = dir.path().join("train/img_3_of_5.npy");
    fs::remove_file(&victim).unwrap();
    // The hidden name leads to a device that is always full.
    let full = dir.path().join("train/.img_3_of_5.npy.tmp");
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    let error = make(&dataset, dir.path()).unwrap_err();
    assert!(matches!(&error, Error::Storage(StorageError::Full { path, .. }) if *path == victim), "{error:?}");
    assert!(!victim.exists() && fs::symlink_metadata(&full).is_err());
}

#[test]
fn a_folder_that_may_not_be_made_is_named() {
    // sysfs takes no folders from anybody, not even root.
    let error = make(&dataset(Format::Npy, 1000.0), Path::new("/sys/kernel/forebay-data")).unwrap_err();
    assert!(matches!(&error, Error::Storage(StorageError::Denied { .. })), "{error:?}");
    assert!(error.to_string().contains("/sys/kernel/forebay-data"), "{error}");
}

#[test]
fn a_stop_leaves_whole_files_only_and_the_next_run_goes_on() {
    let dataset = dataset(Format::Npz, 2e6);
    let dir = tempdir().unwrap();
    let cancel = AtomicBool::new(false);
    let progress = |at: crate::Progress| cancel.store(at.done >= 3, Ordering::Relaxed);
    let control = Control { threads: 1, cancel: &cancel, progress: &progress };
    let outcome = make_cut(&dataset, dir.path(), (0, 1), &control, Cut::default());
    assert!(matches!(outcome, Err(Error::Cancelled)), "{outcome:?}");
    assert_eq!(tree(dir.path()).len(), 1 + 3);
    let made = make(&dataset, dir.path()).unwrap();
    assert_eq!((made.n_written, made.n_kept), (4, 3));
    assert!(tree(dir.path()) == reference(&dataset));
}

#[test]
fn a_stop_within_a_file_in_ranges_leaves_nothing_of_it() {
    let dataset = Dataset { n_files_train: 1, n_files_eval: 0, ..dataset(Format::Npy, 9e6) };
    let dir = tempdir().unwrap();
    let cancel = AtomicBool::new(false);
    let progress = |at: crate::Progress| cancel.store(at.done >= 2, Ordering::Relaxed);
    let control = Control { threads: 2, cancel: &cancel, progress: &progress };
    let outcome = make_cut(&dataset, dir.path(), (0, 1), &control, Cut { from: 1 << 20, range: 1 << 20 });
    assert!(matches!(outcome, Err(Error::Cancelled)), "{outcome:?}");
    assert_eq!(tree(dir.path()).len(), 1, "but the mark");
}

#[test]
fn a_stop_within_a_file_that_is_made_as_a_whole_leaves_nothing_of_it() {
    let one = Dataset { n_files_train: 1, n_files_eval: 0, ..dataset(Format::Npz, 1e8) };
    let dataset = Dataset { compression: Compression::Zip, compression_level: 9, ..one };
    let dir = tempdir().unwrap();
    let (train, cancel) = (dir.path().join("train"), AtomicBool::new(false));
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            while fs::read_dir(&train).map_or(0, Iterator::count) == 0 {
                std::thread::yield_now();
            }
            cancel.store(true, Ordering::Relaxed);
        });
        let control = Control { threads: 1, cancel: &cancel, ..Control::default() };
        make_cut(&dataset, dir.path(), (0, 1), &control, Cut::default())
    });
    assert!(matches!(outcome, Err(Error::Cancelled)), "{outcome:?}");
    assert_eq!(tree(dir.path()).len(), 1, "but the mark");
}

#[test]
fn more_files_than_there_are_inodes_are_refused_before_any_is_made() {
    let dir = tempdir().unwrap();
    let dataset = Dataset { n_files_train: u64::MAX / 2, ..dataset(Format::Npy, 1.0) };
    let error = make(&dataset, &dir.path().join("set")).unwrap_err();
    match &error {
        Error::NoInodes { needed, free, .. } => {
            assert!(needed > free && error.to_string().contains(" files, but only "))
        }
        // A file system without a number of inodes has a number of bytes.
        other => assert!(matches!(other, Error::NoRoom { .. }), "{other:?}"),
    }
    assert!(!dir.path().join("set").exists());
}

#[test]
fn files_of_a_part_go_to_all_of_its_folders_also_where_a_rank_has_few() {
    let dataset = Dataset { n_subfolders_train: 3, n_files_train: 10, n_files_eval: 4, ..dataset(Format::Npy, 100.0) };
    let dataset = Dataset { n_subfolders_eval: 2, ..dataset };
    let form = format::made(&dataset).unwrap();
    let never = Control::default().cancel;
    for (rank, ranks) in [(0, 1), (1, 2), (2, 3), (4, 5), (3, 7)] {
        let dir = tempdir().unwrap();
        let ranges = Ranges::new(&dataset, &*form, (rank, ranks), Cut::default(), never).unwrap();
        let maker = Maker::new(&dataset, &*form, dir.path(), false, ranges, never);
        let made = maker.make_folders().unwrap();
        let folder_of = |file| maker.ranges.piece(file).path.rsplit_once('/').unwrap().0.to_owned();
        let mut expected: HashSet<String> = (0..maker.ranges.n_files()).map(folder_of).collect();
        expected.extend(["train".to_owned(), "valid".to_owned()]);
        assert_eq!(made, expected, "{rank} of {ranks}");
    }
}

/// Not a test of its own: the process that the next one kills.
#[test]
fn makes_data_until_it_is_killed() {
    let Some(dir) = std::env::var_os("FOREBAY_TEST_DATA") else { return };
    let dataset = Dataset { n_files_train: 2000, ..dataset(Format::Npz, 4e5) };
    make(&dataset, Path::new(&dir)).unwrap();
}

#[test]
fn a_killed_run_leaves_whole_files_only_and_the_next_goes_on() {
    let dir = tempdir().unwrap();
    let mut victim = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "records::tests::makes_data_until_it_is_killed"])
        .env("FOREBAY_TEST_DATA", dir.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let dataset = Dataset { n_files_train: 2000, ..dataset(Format::Npz, 4e5) };
    let seventh = dir.path().join(dataset.path_of(Part::Train, 7));
    while !seventh.exists() {
        assert!(victim.try_wait().unwrap().is_none(), "it made 2000 files before the eighth was seen");
        std::thread::yield_now();
    }
    victim.kill().unwrap();
    victim.wait().unwrap();
    let form = format::made(&dataset).unwrap();
    let never = Control::default().cancel;
    let ranges = Ranges::new(&dataset, &*form, (0, 1), Cut::default(), never).unwrap();
    let maker = Maker::new(&dataset, &*form, dir.path(), true, ranges, never);
    let mut there = Vec::new();
    for piece in (0..2000).map(|number| piece(&dataset, number)) {
        let path = dir.path().join(&piece.path);
        assert_eq!(path.exists(), maker.is_there(&piece), "{}", piece.path);
        there.extend(path.exists().then_some(piece.number));
    }
    // The rest is made of a rank that has only a few files, so that the test ends.
    let control = Control::default();
    let kept = make_cut(&dataset, dir.path(), (0, 200), &control, Cut::default()).unwrap();
    let expected = there.iter().filter(|number| **number % 200 == 0).count() as u64;
    assert_eq!((kept.n_kept, kept.n_written), (expected, 11 - expected), "{there:?}");
}
