//! What the files of a dataset take, before any is made.

use forebay_workload::{Dataset, Part};

use super::form::{self, Form, Piece};
use super::ranges::piece;
use crate::Result;

/// Bytes that all files of a dataset take, with what lies beside them; of compressed ones, the most.
///
/// # Errors
/// When there is no such format, or not in this build.
pub fn records_room(dataset: &Dataset) -> Result<u64> {
    let form = form::of(dataset)?;
    let of = |number: u64| of_piece(&*form, &piece(dataset, number));
    let (n_train, n_eval) = (dataset.n_files(Part::Train), dataset.n_files(Part::Eval));
    if dataset.sizes_vary() {
        return Ok((0..n_train + n_eval).map(of).fold(0, u64::saturating_add));
    }
    // One file is as another.
    let all = |first: u64, n: u64| if n > 0 { of(first).saturating_mul(n) } else { 0 };
    Ok(all(0, n_train).saturating_add(all(n_train, n_eval)))
}

/// What one file takes.
pub(super) fn of_piece(form: &dyn Form, piece: &Piece) -> u64 {
    form.room(piece) + form.beside(piece).iter().map(|beside| beside.room).sum::<u64>()
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
