//! The fixtures of `forebay-jpeg`, whole and damaged, on the device; and what is said where there is none.

use std::path::Path;

use forebay_decode::{Device, Error, Gpu};
use forebay_jpeg::device::{Batch, Division, Dtype, Prepared, Target, View};
use forebay_jpeg::{Decoder, Limits, Scale};
use forebay_testing::{Reason, not_run};

/// A device, or a word that the test did not run.
pub(crate) fn open() -> Option<Gpu> {
    match Gpu::open(0) {
        Ok(gpu) => Some(gpu),
        Err(error) => {
            not_run(Reason::NoGpu, error);
            None
        }
    }
}

pub(crate) fn files() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../forebay-jpeg/tests/fixtures");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jpg"));
    paths.sort();
    assert!(paths.len() > 70);
    paths.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Decodes all files that a device decodes in one batch, at their own size, and compares each with the decoder.
fn compare(gpu: &mut Gpu, files: &[Vec<u8>]) {
    let limits = Limits { max_pixels: 1 << 20, ..Limits::default() };
    let prepare = |data: &Vec<u8>| {
        let mut file = Prepared::default();
        file.read(data, &limits).ok().map(|_| (file, data.clone()))
    };
    let files: Vec<(Prepared, Vec<u8>)> = files.iter().filter_map(prepare).collect();
    let view = |file: &Prepared| {
        let info = file.info().unwrap();
        View::whole([info.width, info.height], [info.width, info.height])
    };
    let items = files.iter().map(|(file, _)| (file, view(file))).collect();
    let batch = Batch::new(items, Target::plain(Dtype::U8), Division::default()).unwrap();
    let decoded = gpu.decode(&batch).unwrap();
    let mut rest = gpu.samples().unwrap().bytes;
    let mut decoder = Decoder::with_limits(limits);
    for ((_, data), is_marked) in files.iter().zip(decoded.is_marked) {
        let (mut pixels, info) = (Vec::new(), Decoder::info(data).unwrap());
        let (sample, tail) = rest.split_at(3 * info.width as usize * info.height as usize);
        rest = tail;
        assert_eq!(decoder.decode_rgb(data, Scale::Full, &mut pixels).is_err(), is_marked);
        assert!(is_marked || sample == pixels);
    }
}

#[test]
fn without_cuda_the_missing_library_is_named() {
    match Gpu::open(0) {
        Ok(_) => not_run(Reason::Gpu, "nothing is missing"),
        Err(error @ Error::MissingLibrary(_)) => {
            let text = error.to_string();
            assert!(["cannot load the CUDA driver", "cannot load NVRTC"].contains(&text.as_str()), "{text}");
        }
        Err(error) => not_run(Reason::NoGpu, error),
    }
}

#[test]
fn every_fixture_has_the_decoders_pixels() {
    if let Some(mut gpu) = open() {
        compare(&mut gpu, &files());
    }
}

#[test]
fn damaged_files_are_marked_and_the_others_of_the_batch_are_decoded() {
    let Some(mut gpu) = open() else { return };
    let (files, mut state) = (files(), 88_172_645_463_325_252_u64);
    let mut random = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % n
    };
    for _ in 0..20 {
        let mut changed = files.clone();
        for data in &mut changed {
            for _ in 0..random(3) {
                let at = random(data.len());
                data[at] = random(256) as u8;
            }
            if random(5) == 0 {
                data.truncate(random(data.len()));
            }
        }
        compare(&mut gpu, &changed);
    }
}
