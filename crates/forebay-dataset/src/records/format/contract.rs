//! The laws of every format, with every compression it is made with: samples come back as planned, in any grouping, and a
//! file that is cut anywhere is an error.

use std::fs::{self, OpenOptions};
use std::path::Path;

use forebay_storage::Local;
use forebay_workload::{Compression, Workload};

use super::super::ranges::piece;
use super::*;
use crate::{Control, make_records};

/// Cuts that are tried of a file, where it is longer.
const MOST_CUTS: u64 = 600;

fn each_dataset(check: impl Fn(&Dataset)) {
    use Compression::{Bz2, Gzip, Lzf, None, Snappy, Xz, Zip};
    for format in Format::ALL.into_iter().filter(|format| is_built_in(*format)) {
        for compression in [None, Gzip, Lzf, Bz2, Zip, Xz, Snappy] {
            let n_samples_per_file = if matches!(format, Format::Jpeg | Format::Png) { 1 } else { 3 };
            let dataset = Dataset {
                format,
                compression,
                n_samples_per_file,
                n_files_train: 2,
                record_length_bytes: 900.0,
                ..Dataset::default()
            };
            if dataset.is_made() {
                check(&dataset);
            }
        }
    }
}

fn made(dataset: &Dataset) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let workload = Workload { dataset: dataset.clone(), ..Workload::default() };
    make_records(&workload, dir.path(), 0, 1, &Control::default()).unwrap();
    dir
}

/// Samples of file 1, of so many bytes each, by a reader that has read nothing yet.
fn read(dataset: &Dataset, dir: &Path, samples: Range<u32>, each: usize) -> std::result::Result<Vec<u8>, ReadError> {
    let workload = Workload { dataset: dataset.clone(), ..Workload::default() };
    let files = Files::find(&workload, Part::Train, Arc::new(Local::default()), dir.to_owned(), true)?;
    let (mut traffic, mut on_step) = (Traffic::default(), |_: Step| ());
    let mut out = vec![9; samples.len() * each];
    Arc::new(files).reader().read(1, samples, &mut out, &mut Tools::new(&mut on_step, &mut traffic))?;
    let is_read = dataset.format != Format::Synthetic;
    assert_eq!(traffic.asked > 0 && traffic.moved > 0, is_read, "{:?}", dataset.format);
    Ok(out)
}

/// The bytes of a sample: of most formats, its values.
fn planned(dataset: &Dataset, dir: &Path, sample: u64) -> Vec<u8> {
    let piece = piece(dataset, 1);
    let (n, len) = (piece.shape.n_samples, piece.shape.sample_bytes);
    let mut values = vec![0; piece.bytes() as usize];
    piece.noise.fill(0, &mut values);
    match dataset.format {
        Format::Synthetic => vec![0; len as usize],
        // The samples are the array's last side.
        Format::Npy | Format::Npz => (0..len).map(|i| values[(i * n + sample) as usize]).collect(),
        Format::Png => values.iter().flat_map(|grey| [*grey; 3]).collect(),
        // What is painted is not kept to the byte; that it is a picture is all that can be said.
        Format::Jpeg => {
            let mut decoder = forebay_format::image::ImageDecoder::new(Default::default());
            decoder.decode(&fs::read(dir.join(&piece.path)).unwrap()).unwrap().rgb.to_vec()
        }
        _ => values[(sample * len) as usize..][..len as usize].to_vec(),
    }
}

#[test]
fn every_sample_is_read_as_it_was_planned_alone_and_with_others_cut_and_padded() {
    each_dataset(|dataset| {
        let dir = made(dataset);
        let n = dataset.n_samples_per_file as u32;
        let what = format!("{:?} {:?}", dataset.format, dataset.compression);
        let whole: Vec<Vec<u8>> = (0..n).map(|sample| planned(dataset, dir.path(), sample.into())).collect();
        let len = whole[0].len();
        assert_eq!(read(dataset, dir.path(), 0..n, len).unwrap(), whole.concat(), "{what}");
        for (sample, bytes) in (0..n).zip(&whole) {
            assert_eq!(read(dataset, dir.path(), sample..sample + 1, len).unwrap(), *bytes, "{what}, {sample}");
        }
        let last = &whole[n as usize - 1];
        assert_eq!(read(dataset, dir.path(), n - 1..n, 100).unwrap(), last[..100], "{what}: the first bytes");
        let padded = [&last[..], &[0; 7]].concat();
        assert_eq!(read(dataset, dir.path(), n - 1..n, len + 7).unwrap(), padded, "{what}: zeros behind");
    });
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    each_dataset(|dataset| {
        if dataset.format == Format::Synthetic {
            return;
        }
        let dir = made(dataset);
        let (piece, n) = (piece(dataset, 1), dataset.n_samples_per_file as u32);
        let besides = of(dataset).unwrap().beside(&piece).into_iter().map(|beside| beside.path);
        // DALI's index is not read here.
        let is_read = |path: &String| !path.starts_with("index/");
        for path in besides.filter(is_read).chain([piece.path.clone()]) {
            let whole = read(dataset, dir.path(), 0..n, 900).unwrap();
            let bytes = fs::read(dir.path().join(&path)).unwrap();
            let len = bytes.len() as u64;
            for cut in (0..len).rev().step_by(len.div_ceil(MOST_CUTS) as usize) {
                // A table of text whose last number lost a digit is one of another number.
                if is_text(dataset) && !bytes[cut as usize..].contains(&b',') {
                    continue;
                }
                let file = OpenOptions::new().write(true).open(dir.path().join(&path)).unwrap();
                file.set_len(cut).unwrap();
                let found = read(dataset, dir.path(), 0..n, 900);
                // Without the mark that ends it, a picture still has all its pixels.
                let is_mark = dataset.format == Format::Jpeg && cut >= len - 2;
                assert!(
                    found.as_ref().map_or(true, |found| is_mark && *found == whole),
                    "{path} {:?} cut at {cut} of {len}",
                    dataset.compression
                );
            }
            fs::write(dir.path().join(&path), bytes).unwrap();
        }
    });
}

fn is_text(dataset: &Dataset) -> bool {
    dataset.format == Format::Csv && dataset.compression == Compression::None
}
