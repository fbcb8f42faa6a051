//! What an image becomes: size, type, order of values, and the way of decoding.

use std::os::unix::process::CommandExt;

use forebay_testing::{Reason, not_run};

use crate::dir::{Dir, Ran};
use crate::record::{cell_of, notes, number, of};

/// Runs with no more address space than so many megabytes.
fn run_within(dir: &Dir, megabytes: u64, line: &str) -> Ran {
    let mut command = dir.command(line);
    let limit = libc::rlimit { rlim_cur: megabytes * 1_000_000, rlim_max: megabytes * 1_000_000 };
    // SAFETY: between fork and exec only this one system call is made, with a valid structure.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_AS, &raw const limit) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        })
    };
    command.output().unwrap().into()
}

#[test]
fn size_and_dtype_decide_the_memory_of_a_batch() {
    let dir = Dir::with_set();
    // 64 × 1024 × 1024 × 3 values are 201 MB as bytes and 805 MB as floats; the program itself takes less than 300 MB.
    let run = |flags: &str| {
        let line = format!("ingest set --threads 1 --repeats 1 --warmups 0 --batch 64 --prefetch 0 {flags}");
        run_within(&dir, 700, &line)
    };
    assert_eq!(run("--size 1024 --dtype u8").code, Some(0));
    assert_eq!(run("--size 224 --dtype f32").code, Some(0));
    let ran = run("--size 1024 --dtype f32");
    assert_eq!(ran.code, Some(2));
    let said = "forebay: batch: cannot allocate its buffers (1 × 805.3 MB): Cannot allocate memory (os error 12); \
                lower batch or prefetch\n";
    assert_eq!(ran.stderr, said);
}

#[test]
fn the_record_says_what_an_image_became() {
    let dir = Dir::with_set();
    let output =
        |flags: &str| cell_of(&dir, &format!("set --threads 1 --repeats 1 --warmups 0 {flags}"))["output"].take();
    assert_eq!(output(""), "224x224 f32 nhwc");
    assert_eq!(output("--size 64x32"), "64x32 f32 nhwc");
    assert_eq!(output("--dtype u8"), "224x224 u8 nhwc");
    assert_eq!(output("--layout nchw"), "224x224 f32 nchw");
    assert_eq!(output("--scaled"), "224x224 f32 nhwc, scaled decoding");
    assert_eq!(output("--dtype bf16 --crop random --flip"), "224x224 bf16 nhwc, random crop, half mirrored");
    assert_eq!(output("--dtype f16 --crop center --antialias"), "224x224 f16 nhwc, center crop, antialiased");
    assert!(output("--read-only").is_null());
}

#[test]
fn tensor_shards_keep_their_size_unless_another_is_asked_for() {
    let dir = Dir::with_set();
    dir.met("data pack set shards --to tensor --size 48x40");
    let output = |flags: &str| {
        let cell = cell_of(&dir, &format!("shards --threads 1 --repeats 1 --warmups 0 {flags}"));
        assert_eq!((&cell["samples"][0]["images"], &cell["failed_samples"]), (&24.into(), &0.into()), "{flags}");
        cell["output"].as_str().unwrap().to_owned()
    };
    assert_eq!(output(""), "48x40 f32 nhwc");
    assert_eq!(output("--dtype u8 --layout nchw"), "48x40 u8 nchw");
    assert_eq!(output("--size 20"), "20x20 f32 nhwc");
    let said = dir.refused("ingest shards --scaled");
    assert_eq!(said, "forebay: shards: the images are already decoded, so scaled decoding has no effect\n");
}

#[test]
fn without_a_gpu_decode_gpu_is_refused_and_auto_decodes_on_the_cpu() {
    let dir = Dir::with_set();
    let flags = "set --threads 1 --repeats 1 --warmups 0";
    let ran = dir.run(&format!("ingest {flags} --decode gpu"));
    if ran.code == Some(0) {
        return not_run(Reason::Gpu, ran.stdout);
    }
    let hint = "\nhint: --decode auto uses a GPU where there is one; --decode cpu needs none\n";
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.starts_with("forebay: no GPU to decode on: ") && ran.stderr.ends_with(hint), "{}", ran.stderr);
    assert_eq!(dir.refused(&format!("ingest {flags} --decode gpu --dry-run")), ran.stderr);
    let record = of(&dir, &format!("{flags} --decode auto"));
    let said = notes(&record);
    assert!(said.iter().any(|note| note.starts_with("decoding on the CPU: no GPU to decode on: ")), "{said:?}");
    assert_eq!(record["cells"][0]["decode"], "cpu");
    assert!(cell_of(&dir, flags)["decode"].is_null(), "nothing was asked for");
}

#[test]
fn a_gpu_decodes_neither_scaled_nor_antialiased() {
    let dir = Dir::with_set();
    for flag in ["--scaled", "--antialias"] {
        let said = dir.refused(&format!("ingest set --decode gpu {flag}"));
        assert!(said.contains(&format!("a GPU that decodes does not support {flag}: omit it")), "{said}");
        dir.met(&format!("ingest set --decode auto {flag} --dry-run"));
    }
}

#[test]
fn scaled_decoding_goes_with_no_crop() {
    let dir = Dir::with_set();
    for flag in ["--crop random", "--flip", "--antialias"] {
        let said = dir.refused(&format!("ingest set --scaled {flag}"));
        assert!(said.contains("--scaled decodes images at other sizes"), "{said}");
    }
}

#[test]
fn scaled_decoding_costs_less() {
    let dir = Dir::new();
    dir.met("data make imagenet set --count 4 --dimensions 2000 --median-size 20KB --sigma 0");
    let cost = |flags: &str| {
        let cell = cell_of(&dir, &format!("set --threads 1 --repeats 7 --size 32 {flags}"));
        let samples = cell["samples"].as_array().unwrap();
        samples.iter().map(|sample| number(sample, "cpu_s")).fold(f64::INFINITY, f64::min)
    };
    let (whole, scaled) = (cost(""), cost("--scaled"));
    assert!(scaled < 0.9 * whole, "{scaled} CPU seconds scaled, {whole} whole");
}
