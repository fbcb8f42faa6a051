//! What is not understood is refused with status 2, before anything is read or written.

use std::io::Read;
use std::process::Stdio;

use crate::dir::Dir;

#[test]
fn unknown_words_are_refused() {
    let dir = Dir::with_set();
    for (line, wanted) in [
        ("bogus", "unrecognized subcommand 'bogus'"),
        ("data bogus", "unrecognized subcommand 'bogus'"),
        ("ingest set --bogus", "unexpected argument '--bogus'"),
        ("data make mnist set", "\"mnist\" is not one of imagenet, caltech101"),
        ("data pack set out --to zip", "[possible values: tfrecord, tar, tensor, files]"),
        ("data pack set out --to tfrecord --compression lzma", "[possible values: gzip, zlib]"),
        ("ingest set --tier tape", "\"tape\" is not one of hdd, ssd, optane, lustre, s3"),
        ("ingest set --io foo", "\"foo\" is not one of buffered, direct, uring, uring-direct, auto"),
        ("ingest set --dtype f64", "give f32, f16, bf16 or u8"),
        ("ingest set --layout hwcn", "give nhwc or nchw"),
        ("ingest set --size 0", "give WIDTHxHEIGHT or a side, from 1 to 16,384 pixels"),
        ("ingest set --size 8x", "give WIDTHxHEIGHT or a side, from 1 to 16,384 pixels"),
        ("ingest set --threads 1,x", "give a number from 1 to 1,024, or auto"),
        ("data make caltech101 out --median-size 4XB", "--median-size"),
    ] {
        let said = dir.refused(line);
        assert!(said.starts_with("error: ") && said.contains(wanted), "{line}\n{said}");
    }
    assert!(!dir.path("out").exists());
}

#[test]
fn numbers_without_sense_are_refused() {
    let dir = Dir::with_set();
    let huge = u64::MAX;
    for flag in [
        "--threads 0",
        "--threads 5000",
        "--batch 0",
        "--batches 0",
        "--repeats 0",
        "--min-images-per-s nan",
        "--min-images-per-s -1",
        &format!("--batch {huge}"),
        &format!("--batches {huge}"),
        &format!("--prefetch {huge}"),
        &format!("--readers {huge}"),
        &format!("--warmups {huge}"),
        &format!("--repeats {huge}"),
    ] {
        let said = dir.refused(&format!("ingest set {flag}"));
        let name = flag.split(' ').next().unwrap();
        let named = said.starts_with("error: ") && said.contains(name);
        assert!(named || said.contains("unexpected argument '-1'"), "{flag}\n{said}");
    }
}

#[test]
fn more_threads_than_a_machine_can_have_are_refused() {
    let dir = Dir::with_set();
    for line in
        ["data verify set", "data inspect set", "data make caltech101 out --count 9", "data pack set out --to tar"]
    {
        let said = dir.refused(&format!("{line} --threads {}", u32::MAX));
        assert!(said.contains("4294967295 is not in 0..=1024"), "{said}");
    }
}

#[test]
fn flags_that_exclude_each_other_are_refused() {
    let dir = Dir::with_set();
    for line in [
        "ingest set --cold --warm",
        "ingest set --read-only --size 8",
        "ingest set --read-only --dtype u8",
        "ingest set --read-only --layout nchw",
        "ingest set --read-only --scaled",
        "ingest set --read-only --crop center",
        "ingest set --read-only --flip",
        "ingest set --read-only --antialias",
        "ingest set --read-only --decode gpu",
        "train --synthetic --crop random",
        "train --synthetic --flip",
        "train --synthetic --decode auto",
        "ingest set --mmap --io direct",
        "ingest set --mmap --tier hdd",
        "data pack set out --to tar --keep-order --seed 3",
    ] {
        let said = dir.refused(line);
        assert!(said.contains("cannot be used with") || said.contains("would have no effect"), "{line}\n{said}");
    }
}

#[test]
fn a_path_that_is_not_there_is_named() {
    let dir = Dir::new();
    for line in [
        "ingest gone --json record.json",
        "data inspect gone --json record.json",
        "data verify gone --json record.json",
        "data pack gone out --to tar",
        "data pack gone out --to files",
        "data decode gone --to a.npy",
    ] {
        assert_eq!(dir.refused(line), "forebay: listing gone: no such file or folder\n", "{line}");
    }
    assert_eq!(dir.names(""), [] as [&str; 0], "nothing was written");
}

#[test]
fn a_folder_without_data_is_named() {
    let dir = Dir::new();
    std::fs::create_dir(dir.path("empty")).unwrap();
    for line in [
        "ingest empty",
        "train empty",
        "data inspect empty",
        "data verify empty",
        "data pack empty out --to tar",
        "data pack empty out --to files",
        "data decode empty --to a.npy",
    ] {
        let said = dir.refused(line);
        assert!(said.contains("empty: ") && said.contains("no images or shards"), "{line}\n{said}");
    }
}

#[test]
fn a_target_that_cannot_be_written_is_named_before_the_run() {
    let dir = Dir::with_set();
    let start = std::time::Instant::now();
    for line in ["ingest set --tier hdd --repeats 1000 --json no/record.json", "data inspect set --json no/record.json"]
    {
        assert_eq!(dir.refused(line), "forebay: cannot write no/record.json: No such file or directory (os error 2)\n");
    }
    assert!(start.elapsed().as_secs() < 60, "a thousand repeats would have taken minutes");
    let said = dir.refused("data decode set --to set/list.txt/a.npy");
    assert!(said.contains("set/list.txt"), "{said}");
    let said = dir.refused("data make caltech101 set/list.txt --count 3");
    assert!(said.contains("set/list.txt"), "{said}");
}

#[test]
fn help_and_version_are_no_failure() {
    let dir = Dir::new();
    assert_eq!(dir.met("-V"), format!("forebay {}\n", env!("CARGO_PKG_VERSION")));
    let help = dir.met("--help").split_whitespace().collect::<Vec<_>>().join(" ");
    let status = "Exit status: 0 for success; 1 if the command ran but missed its goal (`data verify` found bad files, `data pack` \
                  left some out, a threshold was missed, the run was interrupted); 2 if it could not run.";
    assert!(help.contains(status), "{help}");
    assert_eq!(dir.run("").code, Some(2), "without a command there is nothing to do");
}

#[test]
fn a_reader_that_goes_away_early_is_no_panic_and_does_not_change_the_status() {
    let dir = Dir::with_set();
    dir.write("set/class_004/class_004_000004.jpg", "");
    for (line, code) in [
        ("data inspect set", 0),
        ("data inspect set --json -", 0),
        ("data verify set", 1),
        ("ingest set --threads 1 --repeats 1", 0),
        ("train set --threads 1 --batch 4 --accelerator emulated:1ms", 0),
        ("--help", 0),
    ] {
        let mut child = dir.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(code), ""), "{line}");
    }
}
