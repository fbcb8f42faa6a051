//! Checks and times decoding on a GPU: `decode_rate check|fuzz|gpu|host|cpu DIR BATCH THREADS SECONDS` prints one line.
//!
//! `check` compares every JPEG file of the folder with the decoder for CPUs, pixel by pixel, in batches of BATCH; `fuzz` does so
//! with damaged copies for SECONDS. `gpu` decodes the files again and again, with THREADS that each read headers, copy and
//! launch, to 224×224 floats that stay on the device; `host` also copies them back. `cpu` decodes on THREADS to bytes at full
//! size, as PyTorch's `decode_jpeg` does. Files are read before the clock starts.

use std::error::Error;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use forebay_decode::{Device, Gpu, Times};
use forebay_jpeg::device::{Batch, Division, Dtype, Prepared, Target, View};
use forebay_jpeg::{Decoder, Limits, Scale};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[expect(clippy::print_stdout, reason = "the result")]
fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mode, folder, batch, threads, seconds] = arguments.as_slice() else {
        return Err("usage: decode_rate check|fuzz|gpu|host|cpu DIR BATCH THREADS SECONDS".into());
    };
    let files = files(folder)?;
    let (batch, threads) = (batch.parse::<usize>()?, threads.parse::<usize>()?);
    let time = Duration::from_secs_f64(seconds.parse()?);
    let line = match mode.as_str() {
        "check" => check(&files, batch)?,
        "fuzz" => fuzz(&files, batch, time)?,
        "gpu" => rate_on_gpu(&files, batch, threads, time, false)?,
        "host" => rate_on_gpu(&files, batch, threads, time, true)?,
        "cpu" => rate_on_cpu(&files, threads, time)?,
        other => return Err(format!("unknown mode {other}").into()),
    };
    println!("{mode} {folder} batch {batch} threads {threads}: {line}");
    Ok(())
}

fn files(folder: &str) -> Outcome<Vec<Vec<u8>>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jpg" || extension == "jpeg") {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        return Err(format!("no JPEG files in {folder}").into());
    }
    Ok(paths.into_iter().map(std::fs::read).collect::<Result<_, _>>()?)
}

fn own_size(file: &Prepared) -> View {
    let size = file.info().map_or([0, 0], |info| [info.width, info.height]);
    View::whole(size, size)
}

fn sample_size(file: &Prepared) -> View {
    View { sample: [224, 224], resized: [224, 224], ..own_size(file) }
}

/// Decodes files together and compares each with the decoder. Returns how many were decoded, and how many marked.
fn compare(gpu: &mut Gpu, files: &[Vec<u8>]) -> Outcome<(usize, usize)> {
    let limits = Limits { max_pixels: 1 << 24, ..Limits::default() };
    let mut prepared = Vec::new();
    for data in files {
        let mut file = Prepared::default();
        if file.read(data, &limits).is_ok() {
            prepared.push((file, data));
        }
    }
    if prepared.is_empty() {
        return Ok((0, 0));
    }
    let items = prepared.iter().map(|(file, _)| (file, own_size(file))).collect();
    let batch = Batch::new(items, Target::plain(Dtype::U8), Division::default()).ok_or("a batch too large")?;
    let marks = gpu.decode(&batch)?.is_marked;
    let (mut rest, mut decoder, mut pixels) = (gpu.samples()?.bytes, Decoder::with_limits(limits), Vec::new());
    for (number, ((_, data), is_marked)) in prepared.iter().zip(&marks).enumerate() {
        let info = Decoder::info(data)?;
        let (sample, tail) = rest.split_at(3 * info.width as usize * info.height as usize);
        rest = tail;
        let result = decoder.decode_rgb(data, Scale::Full, &mut pixels);
        if result.is_err() != *is_marked || !is_marked && sample != pixels {
            let n = sample.iter().zip(&pixels).filter(|(a, b)| a != b).count();
            return Err(format!("file {number}: decoder {result:?}, marked {is_marked}, {n} values differ").into());
        }
    }
    let n_marked = marks.iter().filter(|mark| **mark).count();
    Ok((marks.len() - n_marked, n_marked))
}

fn check(files: &[Vec<u8>], batch: usize) -> Outcome<String> {
    let mut gpu = Gpu::open(0)?;
    let mut sums = (0, 0);
    for files in files.chunks(batch) {
        let (n_decoded, n_marked) = compare(&mut gpu, files)?;
        sums = (sums.0 + n_decoded, sums.1 + n_marked);
    }
    Ok(format!("{} of {} files decoded to equal pixels, {} marked", sums.0, files.len(), sums.1))
}

fn fuzz(files: &[Vec<u8>], batch: usize, time: Duration) -> Outcome<String> {
    let (mut gpu, mut state, begin) = (Gpu::open(0)?, 88_172_645_463_325_252_u64, Instant::now());
    let mut random = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % n
    };
    let (mut n_files, mut sums) = (0, (0, 0));
    while begin.elapsed() < time {
        let mut changed: Vec<Vec<u8>> = (0..batch).map(|_| files[random(files.len())].clone()).collect();
        for data in &mut changed {
            for _ in 0..random(4) {
                let at = random(data.len());
                data[at] = random(256) as u8;
            }
            if random(5) == 0 {
                data.truncate(random(data.len()));
            }
        }
        let (n_decoded, n_marked) = compare(&mut gpu, &changed)?;
        sums = (sums.0 + n_decoded, sums.1 + n_marked);
        n_files += batch;
    }
    Ok(format!("{n_files} files, {} decoded to equal pixels, {} marked as the decoder does", sums.0, sums.1))
}

/// What a thread did.
#[derive(Default)]
struct Work {
    n_images: usize,
    n_batches: usize,
    prepare_ms: f64,
    times: Times,
}

fn rate_on_gpu(files: &[Vec<u8>], batch: usize, threads: usize, time: Duration, to_host: bool) -> Outcome<String> {
    let first = Gpu::open(0)?;
    let all = Mutex::new(Work::default());
    let gpus = (0..threads).map(|_| first.sibling()).collect::<Result<Vec<_>, _>>()?;
    let name = first.describe();
    let begin = Instant::now();
    std::thread::scope(|scope| -> Outcome<()> {
        let handles: Vec<_> = gpus
            .into_iter()
            .enumerate()
            .map(|(t, gpu)| scope.spawn(move || work(gpu, files, batch, t * batch, time, to_host)))
            .collect();
        for handle in handles {
            let one = handle.join().map_err(|_| "a thread panicked")??;
            let mut all = all.lock().map_err(|_| "a thread panicked")?;
            all.n_images += one.n_images;
            all.n_batches += one.n_batches;
            all.prepare_ms += one.prepare_ms;
            all.times.upload_ms += one.times.upload_ms;
            all.times.kernels_ms += one.times.kernels_ms;
        }
        Ok(())
    })?;
    let seconds = begin.elapsed().as_secs_f64();
    let all = all.into_inner().map_err(|_| "a thread panicked")?;
    let n = all.n_batches.max(1) as f64;
    Ok(format!(
        "{:.0} images/s on {name}; per batch: headers {:.2} ms, upload {:.2} ms, kernels {:.2} ms",
        all.n_images as f64 / seconds,
        all.prepare_ms / n,
        f64::from(all.times.upload_ms) / n,
        f64::from(all.times.kernels_ms) / n,
    ))
}

fn work(
    mut gpu: Box<dyn Device>,
    files: &[Vec<u8>],
    batch: usize,
    first: usize,
    time: Duration,
    to_host: bool,
) -> Outcome<Work> {
    let mut done = Work::default();
    let mut prepared: Vec<Prepared> = (0..batch).map(|_| Prepared::default()).collect();
    let (begin, mut next) = (Instant::now(), first);
    while begin.elapsed() < time {
        let start = Instant::now();
        for file in &mut prepared {
            file.read(&files[next % files.len()], &Limits::default()).map_err(|refusal| format!("{refusal:?}"))?;
            next += 1;
        }
        done.prepare_ms += start.elapsed().as_secs_f64() * 1e3;
        let items = prepared.iter().map(|file| (file, sample_size(file))).collect();
        let one = Batch::new(items, Target::plain(Dtype::F32), Division::default()).ok_or("a batch too large")?;
        let decoded = gpu.decode(&one)?;
        if to_host {
            gpu.samples()?;
        }
        if decoded.is_marked.contains(&true) {
            return Err("a file is damaged".into());
        }
        done.times.upload_ms += decoded.times.upload_ms;
        done.times.kernels_ms += decoded.times.kernels_ms;
        done.n_images += batch;
        done.n_batches += 1;
    }
    Ok(done)
}

fn rate_on_cpu(files: &[Vec<u8>], threads: usize, time: Duration) -> Outcome<String> {
    let begin = Instant::now();
    let decode = |t: usize| -> Outcome<usize> {
        let (mut decoder, mut pixels, mut n) = (Decoder::new(), Vec::new(), 0);
        while begin.elapsed() < time {
            decoder.decode_rgb(&files[(t * 31 + n) % files.len()], Scale::Full, &mut pixels)?;
            n += 1;
        }
        Ok(n)
    };
    let n_images = std::thread::scope(|scope| -> Outcome<usize> {
        let decode = &decode;
        let handles: Vec<_> = (0..threads).map(|t| scope.spawn(move || decode(t))).collect();
        handles.into_iter().map(|handle| handle.join().map_err(|_| "a thread panicked")?).sum()
    })?;
    Ok(format!("{:.0} images/s", n_images as f64 / begin.elapsed().as_secs_f64()))
}
