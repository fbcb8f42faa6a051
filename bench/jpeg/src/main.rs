//! Our JPEG decoder beside libjpeg-turbo on the files of a folder: first every pixel is compared, then both are timed, in
//! turns, by processor time.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use forebay_jpeg::{Decoder, Scale};
use turbojpeg::{Decompressor, Image, PixelFormat};

/// Rounds over all files; the best of each side counts, since a disturbance only ever slows a round down.
const ROUNDS: usize = 7;

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).context("usage: forebay-bench-jpeg FOLDER")?;
    let mut files = Vec::new();
    collect(Path::new(&folder), &mut files)?;
    ensure!(!files.is_empty(), "{folder} holds no .jpg files");
    let bytes: usize = files.iter().map(Vec::len).sum();
    let (mut ours, mut theirs) = (Decoder::new(), Decompressor::new()?);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let mut n_different = 0;
    for file in &files {
        ours.decode_rgb(file, Scale::Full, &mut a)?;
        decode_turbo(&mut theirs, file, &mut b)?;
        n_different += usize::from(a != b);
    }
    let (mut our_s, mut their_s) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        our_s = our_s
            .min(timed(|| files.iter().try_for_each(|f| Ok(ours.decode_rgb(f, Scale::Full, &mut a).map(drop)?)))?);
        their_s = their_s.min(timed(|| files.iter().try_for_each(|f| decode_turbo(&mut theirs, f, &mut b)))?);
    }
    let rate = |seconds: f64| files.len() as f64 / seconds;
    println!("{} files of {} bytes on average; {n_different} differ in a pixel", files.len(), bytes / files.len());
    println!("forebay-jpeg   {:7.0} images per CPU-second", rate(our_s));
    println!("libjpeg-turbo  {:7.0} images per CPU-second", rate(their_s));
    println!("ratio          {:7.2}", their_s / our_s);
    ensure!(n_different == 0, "the pixels are not the same");
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<Vec<u8>>) -> Result<()> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)?.map(|e| Ok(e?.path())).collect::<Result<_>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "jpg") {
            files.push(std::fs::read(path)?);
        }
    }
    Ok(())
}

/// Into memory that is kept between images, as ours.
fn decode_turbo(decoder: &mut Decompressor, file: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let header = decoder.read_header(file)?;
    let (width, height) = (header.width, header.height);
    out.resize(width * height * 3, 0);
    let pixels = out.as_mut_slice();
    decoder.decompress(file, Image { pixels, width, pitch: width * 3, height, format: PixelFormat::RGB })?;
    Ok(())
}

fn timed(run: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = cpu_seconds();
    run()?;
    Ok(cpu_seconds() - start)
}

fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is valid and written by the call alone.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
