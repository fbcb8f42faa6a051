//! The space that a dataset's files need, before any is made.

use forebay_workload::{Dataset, Part};

use super::claim::Room;
use super::format::{self, Beside, DataFormat, Piece};
use super::ranges::{is_alike, piece};
use crate::Result;

/// Size in bytes of all files of a dataset, with their companions; an upper bound for compressed files.
///
/// # Errors
/// When this build does not support the format.
pub fn records_room(dataset: &Dataset) -> Result<u64> {
    let form = format::made(dataset)?;
    let (n_train, n_eval) = (dataset.n_files(Part::Train), dataset.n_files(Part::Eval));
    let of = |number: u64| of_piece(&*form, &piece(dataset, number));
    let all = match is_alike(dataset) {
        true => of_alike((n_train, n_eval), of),
        false => (0..n_train + n_eval).map(of).fold(Room::default(), Room::plus),
    };
    Ok(all.bytes)
}

/// The companion files of file `file` of a part, relative to the data folder; empty if this build lacks the format.
pub fn records_beside(dataset: &Dataset, part: Part, file: u64) -> Vec<String> {
    let number = if part == Part::Train { file } else { dataset.n_files(Part::Train) + file };
    let besides = format::of(dataset).map(|form| form.beside(&piece(dataset, number))).unwrap_or_default();
    besides.into_iter().map(|beside| beside.path).collect()
}

/// Space of the given numbers of training files and other files if all files of a part are equal; `of` returns it for one.
pub(super) fn of_alike((n_train, n_eval): (u64, u64), of: impl Fn(u64) -> Room) -> Room {
    let all = |first: u64, n: u64| if n > 0 { of(first).times(n) } else { Room::default() };
    all(0, n_train).plus(all(n_train, n_eval))
}

/// Space of one file with its companions.
pub(super) fn of_piece(form: &dyn DataFormat, piece: &Piece) -> Room {
    let of_beside = |room: Room, beside: &Beside| room.plus(Room { bytes: beside.room, n_files: 1 });
    form.beside(piece).iter().fold(Room { bytes: form.room(piece), n_files: 1 }, of_beside)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use forebay_workload::{Format, Workload};

    use super::*;
    use crate::{Control, make_records};

    #[test]
    fn what_is_reckoned_is_what_is_made_or_little_more() {
        for (format, stdev) in
            [(Format::Csv, 0.0), (Format::Csv, 9_000.0), (Format::Npz, 9_000.0), (Format::Tfrecord, 0.0)]
        {
            let dataset = Dataset {
                format,
                record_length_bytes: 30_000.0,
                record_length_bytes_stdev: stdev,
                n_files_train: 4,
                n_files_eval: 2,
                ..Dataset::default()
            };
            let dir = tempfile::tempdir().unwrap();
            let workload = Workload { dataset: dataset.clone(), ..Workload::default() };
            let control = Control { threads: 2, cancel: &AtomicBool::new(false), progress: &|_| () };
            let made = make_records(&workload, dir.path(), 0, 1, &control).unwrap();
            let reckoned = records_room(&dataset).unwrap();
            assert!(
                made.bytes <= reckoned && reckoned as f64 <= 1.1 * made.bytes as f64,
                "{format:?} {reckoned} {made:?}"
            );
        }
    }
}
