//! Parquet and HDF5, made as a workload says and read as batches.

use std::path::Path;
use std::sync::Arc;

use forebay_dataset::{Control, make_records};
use forebay_storage::{Counted, Local, Storage};
use forebay_workload::{Dataset, Element, Format, Parquet, ParquetColumn, Part, Reader, Workload};
use tempfile::tempdir;

use super::{Access, Samples};

fn made(dataset: Dataset, reader: Reader, dir: &Path) -> Workload {
    let workload = Workload { dataset, reader, ..Workload::default() };
    make_records(&workload, dir, 0, 1, &Control::default()).unwrap();
    workload
}

/// All samples in file order, as a single accelerator gets them, and the bytes moved for them.
fn read(workload: &Workload, dir: &Path) -> (Vec<u8>, u64) {
    let storage = Arc::new(Counted::new(Local::default()));
    let access = Access { storage: Arc::clone(&storage) as Arc<dyn Storage>, data: dir.to_owned(), verify: true };
    let samples = Samples::open(workload, Part::Train, access).unwrap();
    let n_steps = samples.n_samples() / workload.reader.batch_size;
    let mut batches = samples.batches((0, 1), 1, n_steps, None).unwrap();
    let mut all = Vec::new();
    for batch in batches.by_ref() {
        all.extend_from_slice(batch.unwrap().data());
    }
    let moved = storage.counters().read.bytes();
    (all, moved)
}

fn columns() -> Parquet {
    let column = |name: &str, element, width, count, is_read| ParquetColumn {
        name: name.to_owned(),
        element,
        width,
        count,
        is_read,
    };
    let columns = vec![
        column("a", Element::F32, 1, 3, true),
        column("unread", Element::F64, 1000, 1, false),
        column("b", Element::I8, 1, 1, true),
        column("c", Element::F16, 5, 1, true),
    ];
    Parquet { columns, row_group_rows: 60 }
}

#[test]
fn rows_of_the_columns_that_are_read_come_in_order_for_any_threads_and_nothing_else_is_moved() {
    let dir = tempdir().unwrap();
    let dataset = Dataset {
        format: Format::Parquet,
        n_files_train: 2,
        n_samples_per_file: 200,
        parquet: columns(),
        ..Dataset::default()
    };
    let reader = |read_threads, batch_size| Reader { read_threads, batch_size, ..Reader::default() };
    let workload = made(dataset, reader(1, 40), dir.path());
    let (one, moved) = read(&workload, dir.path());
    assert_eq!(one.len(), 400 * (3 * 4 + 1 + 5 * 2));
    let unread = 400 * 8000;
    assert!(moved < unread / 10, "{moved} bytes, with {unread} bytes in the unread column");
    assert_ne!(one[..23], one[23..46], "rows differ");
    for (threads, batch) in [(3, 40), (2, 50), (4, 16)] {
        let workload = Workload { reader: reader(threads, batch), ..workload.clone() };
        assert_eq!(read(&workload, dir.path()).0, one, "{threads} threads, batches of {batch}");
    }
    let cut = Dataset { record_length_bytes_resize: 13, ..workload.dataset.clone() };
    let (resized, _) = read(&Workload { dataset: cut, ..workload.clone() }, dir.path());
    let first: Vec<u8> = one.chunks(23).flat_map(|row| row[..13].to_vec()).collect();
    assert_eq!(resized, first);
}

#[test]
fn a_file_that_lacks_a_column_fails_by_name() {
    let dir = tempdir().unwrap();
    let dataset = Dataset { format: Format::Parquet, n_files_train: 1, parquet: columns(), ..Dataset::default() };
    let mut workload = made(dataset, Reader::default(), dir.path());
    workload.dataset.parquet.columns[0].name = "other".to_owned();
    let storage: Arc<dyn Storage> = Arc::new(Local::default());
    let access = Access { storage, data: dir.path().to_owned(), verify: true };
    let samples = Samples::open(&workload, Part::Train, access).unwrap();
    let error = samples.batches((0, 1), 1, 1, None).unwrap().next().unwrap().unwrap_err();
    let said = forebay_units::chain(&error);
    assert!(said.contains("\"other0\""), "{said}");
}

#[cfg(feature = "hdf5")]
#[test]
fn samples_of_hdf5_are_the_same_contiguous_and_in_chunks_that_hold_one() {
    use forebay_workload::{Compression, Hdf5};
    let reader = Reader { read_threads: 3, batch_size: 4, ..Reader::default() };
    let dataset = Dataset {
        format: Format::Hdf5,
        n_files_train: 3,
        n_samples_per_file: 4,
        record_length_bytes: 10_000.0,
        ..Dataset::default()
    };
    let read_of = |dataset: &Dataset| {
        let dir = tempdir().unwrap();
        let workload = made(dataset.clone(), reader.clone(), dir.path());
        read(&workload, dir.path())
    };
    let (plain, moved) = read_of(&dataset);
    assert_eq!((plain.len(), moved), (120_000, 120_000));
    let whole = Hdf5 { chunk_dims: vec![1, 100, 100], ..Hdf5::default() };
    let chunked = Dataset { hdf5: whole, ..dataset.clone() };
    assert_eq!(read_of(&chunked).0, plain);
    let zipped = Dataset { compression: Compression::Gzip, ..chunked };
    assert_eq!(read_of(&zipped).0, plain);
    let small = Dataset { chunk_bytes: Some(1024), ..dataset.clone() };
    let (cut, _) = read_of(&small);
    assert_eq!(cut.len(), plain.len());
    assert_ne!(cut, plain, "other chunks hold the noise in another order");
    let spread = Hdf5 { n_dsets_per_record: 4, ..Hdf5::default() };
    assert_eq!(read_of(&Dataset { hdf5: spread, ..dataset.clone() }).0.len(), plain.len());
}
