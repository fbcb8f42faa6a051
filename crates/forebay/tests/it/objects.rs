//! Data on an object store: every command that reads datasets, against a store in the test's own process.

use std::process::Command;
use std::time::Duration;

use forebay_testing::{S3Fault, S3Server};

use crate::dir::{Dir, Ran};

/// A store with what is in a folder, under `s3://bucket/set`.
fn stored(dir: &Dir, folder: &str) -> S3Server {
    let server = S3Server::start().unwrap();
    for (name, bytes) in dir.tree(folder) {
        server.put(&format!("bucket/{folder}/{name}"), bytes);
    }
    server
}

pub(crate) fn command(dir: &Dir, server: &S3Server, line: &str) -> Command {
    let mut command = dir.command(line);
    // The user's own credentials are not looked at.
    command.env("HOME", dir.path(".home")).envs(server.variables());
    command
}

pub(crate) fn run(dir: &Dir, server: &S3Server, line: &str) -> Ran {
    let ran: Ran = command(dir, server, line).output().unwrap().into();
    assert!(!ran.stdout.contains("hush") && !ran.stderr.contains("hush"), "{line}: a secret is shown\n{ran:?}");
    ran
}

pub(crate) fn met(dir: &Dir, server: &S3Server, line: &str) -> String {
    let ran = run(dir, server, line);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{line}\n{}", ran.stdout);
    ran.stdout
}

pub(crate) fn refused(dir: &Dir, server: &S3Server, line: &str) -> String {
    let ran = run(dir, server, line);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{line}\n{}", ran.stderr);
    ran.stderr
}

#[test]
fn a_folder_of_objects_is_inspected_verified_and_decoded_like_a_local_one() {
    let dir = Dir::with_set();
    let server = stored(&dir, "set");
    for command in ["data inspect", "data verify"] {
        let local = dir.met(&format!("{command} set"));
        let remote = met(&dir, &server, &format!("{command} s3://bucket/set"));
        assert_eq!(remote.replace("s3://bucket/set", "set"), local);
    }
    dir.met("data decode set --to local.npy --size 32");
    met(&dir, &server, "data decode s3://bucket/set --to remote.npy --size 32");
    assert!(dir.read("local.npy") == dir.read("remote.npy"));
}

#[test]
fn ingest_requests_ahead_and_its_record_names_the_store_and_no_cache() {
    let dir = Dir::with_set();
    let server = stored(&dir, "set");
    server.set_latency(Duration::from_millis(20));
    let line = "ingest s3://bucket/set --threads 1 --read-only --repeats 1 --warmups 0 --inflight 8 --json run.json";
    let shown = met(&dir, &server, line);
    assert!(shown.contains("object store, s3://bucket"), "{shown}");
    assert_eq!(server.most_at_once(), 8, "one thread, as many requests in flight as given");
    let gets = server.log().iter().filter(|line| line.starts_with("GET") && line.contains(".jpg")).count();
    assert_eq!(gets, 24, "each object is requested once, without asking for its size");
    let record = dir.json("run.json");
    let cell = &record["cells"][0];
    assert_eq!(cell["medium"]["storage"], "object store, s3://bucket");
    assert_eq!((&cell["medium"]["cache"], &cell["samples"][0]["images"]), (&serde_json::Value::Null, &24.into()));
    let notes = record["notes"].to_string();
    assert!(notes.contains("requests sent to the object store, warm-ups included; none was repeated"), "{notes}");
}

#[test]
fn without_readahead_each_thread_asks_for_itself() {
    let dir = Dir::with_set();
    let server = stored(&dir, "set");
    met(
        &dir,
        &server,
        "ingest s3://bucket/set --threads 1 --read-only --repeats 1 --warmups 0 --readahead 0 --batch 1",
    );
    assert_eq!(server.most_at_once(), 1);
}

#[test]
fn shards_are_read_as_large_ranges() {
    let dir = Dir::with_set();
    dir.met("data pack set packed/tfrecord --to tfrecord");
    dir.met("data pack set packed/tar --to tar");
    let server = stored(&dir, "packed");
    for format in ["tfrecord", "tar"] {
        let local = dir.met(&format!("data inspect packed/{format}"));
        let remote = met(&dir, &server, &format!("data inspect s3://bucket/packed/{format}"));
        assert_eq!(remote.replace("s3://bucket/", ""), local);
        let line =
            format!("ingest s3://bucket/packed/{format} --threads 2 --repeats 1 --warmups 0 --json {format}.json");
        met(&dir, &server, &line);
        assert_eq!(dir.json(&format!("{format}.json"))["cells"][0]["samples"][0]["images"], 24);
    }
}

#[test]
fn a_list_may_name_objects_and_local_files() {
    let dir = Dir::with_set();
    let server = stored(&dir, "set");
    let names = dir.names("set");
    let jpg: Vec<&String> = names.iter().filter(|name| name.ends_with(".jpg")).take(2).collect();
    dir.write("list.txt", format!("s3://bucket/set/{} 0\nset/{} 1\n", jpg[0], jpg[1]));
    let shown = met(&dir, &server, "data verify list.txt --storage-option aws_region=us-east-1 --timeout 5s");
    assert!(shown.contains('2'), "{shown}");
}

#[test]
fn training_reads_objects() {
    let dir = Dir::with_set();
    let server = stored(&dir, "set");
    let line = "train s3://bucket/set --accelerator emulated:1ms --batch 8 --threads 2 --inflight 4 --readahead 1MB \
                --timeout 10s --storage-option aws_region=us-east-1 --json run.json";
    met(&dir, &server, line);
    let cell = &dir.json("run.json")["cells"][0];
    assert_eq!(cell["medium"]["storage"], "object store, s3://bucket");
    assert!(server.most_at_once() <= 4);
}

#[test]
fn a_cache_on_a_near_disk_is_filled_by_one_run_and_serves_the_next() {
    let dir = Dir::with_set();
    let server = stored(&dir, "set");
    let n_gets = || server.log().iter().filter(|line| line.starts_with("GET") && line.contains(".jpg")).count();
    let line =
        "ingest s3://bucket/set --threads 2 --read-only --repeats 1 --warmups 0 --cache near:10MB --json run.json";
    met(&dir, &server, line);
    let notes = dir.json("run.json")["notes"].to_string();
    assert!(n_gets() == 24 && notes.contains("the near cache served 0 reads of 0 B; 24, "), "{notes}");
    met(&dir, &server, line);
    let record = dir.json("run.json");
    assert_eq!(record["cells"][0]["medium"]["storage"], "object store, s3://bucket, cached in near");
    assert_eq!(record["cells"][0]["samples"][0]["images"], 24);
    let notes = record["notes"].to_string();
    assert!(notes.contains("no request sent to the object store; the near cache served 24 reads of "), "{notes}");
    let line = "train s3://bucket/set --accelerator emulated:1ms --batch 8 --epochs 3 --threads 1 --cache";
    met(&dir, &server, &format!("{line} near"));
    assert_eq!(n_gets(), 24, "another command finds what ingest kept");
    met(&dir, &server, &format!("{line} other"));
    assert_eq!(n_gets(), 48, "the first of three epochs fills a new cache");
}

#[test]
fn a_cache_that_would_keep_nothing_is_refused() {
    let dir = Dir::with_set();
    dir.met("data pack set packed --to tfrecord --compression gzip");
    let server = stored(&dir, "set");
    let packed = stored(&dir, "packed");
    for (flags, why) in [
        ("s3://bucket/set --cache near:2XB", "give DIR or DIR:SIZE such as nvme:200GB"),
        ("s3://bucket/set --cache s3://bucket/near", "give DIR or DIR:SIZE"),
        ("s3://bucket/set --cache near --readahead 0", "--cache keeps what is read ahead, and --readahead is 0"),
        ("s3://bucket/set --cache set", "set: the folder is not empty and not a cache"),
        ("set --cache near", "the data is local: `cache` is for data on an object store"),
    ] {
        let said = refused(&dir, &server, &format!("ingest {flags}"));
        assert!(said.contains(why), "{flags}: {said}");
    }
    let said = refused(&dir, &packed, "ingest s3://bucket/packed --cache near");
    assert!(
        said.contains("compressed shards on an object store: `cache` keeps files and samples of other shards"),
        "{said}"
    );
}

#[test]
fn what_breaks_is_repeated_and_what_is_lost_is_a_counted_sample() {
    let dir = Dir::with_set();
    let server = stored(&dir, "set");
    server.fail("GET", ".jpg", 3, S3Fault::Status(503, "SlowDown"));
    let line = "ingest s3://bucket/set --threads 2 --read-only --repeats 1 --warmups 0 --json run.json";
    met(&dir, &server, line);
    let record = dir.json("run.json");
    assert_eq!(record["cells"][0]["failed_samples"], 0);
    assert!(
        record["notes"].to_string().contains("repeated: 3 because the store asked to slow down"),
        "{}",
        record["notes"]
    );
    // What is refused is asked for once more, in case it was sent on to another host.
    let lost = server.names().into_iter().find(|name| name.ends_with(".jpg")).unwrap();
    server.fail("GET", &lost, 2, S3Fault::Status(403, "AccessDenied"));
    met(&dir, &server, line);
    let cell = &dir.json("run.json")["cells"][0];
    assert_eq!(cell["failed_samples"], 1);
    assert!(cell["failures"][0]["reason"].as_str().unwrap().contains("permission denied: AccessDenied"), "{cell}");
}

#[test]
fn errors_name_the_url_and_the_cause() {
    let dir = Dir::new();
    let server = S3Server::start().unwrap();
    server.put("bucket/set/1.jpg", b"x");
    let said = |line: &str| refused(&dir, &server, line);
    let missing = said("data inspect s3://bucket/nothing");
    assert!(missing.contains("s3://bucket/nothing: no such file or folder"), "{missing}");
    let bucket = said("ingest s3://no-such-bucket/set");
    assert!(bucket.contains("s3://no-such-bucket/set: there is no such bucket"), "{bucket}");
    let dots = said("ingest s3://bucket/set/../x");
    assert!(dots.contains("not the name of an object"), "{dots}");
    server.fail("GET", "list-type", 9, S3Fault::Status(403, "AccessDenied"));
    let denied = said("train s3://bucket/set --accelerator emulated:1ms");
    assert!(denied.contains("listing s3://bucket/set: permission denied"), "{denied}");
    let secret = said("ingest https://me:hush@host/set");
    assert!(secret.contains("a URL must hold no credentials"), "{secret}");
    for (option, why) in [("aws_regoin=x", "\"aws_regoin\" is not an option"), ("aws_region", "give NAME=VALUE")] {
        let said = said(&format!("data inspect s3://bucket/set --storage-option {option}"));
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn a_store_that_does_not_answer_is_given_up_in_time() {
    let dir = Dir::new();
    let server = S3Server::start().unwrap();
    let line = "data inspect s3://bucket/set --timeout 2s --storage-option aws_endpoint_url=http://127.0.0.1:1";
    let start = std::time::Instant::now();
    let said = refused(&dir, &server, line);
    assert!(said.contains("s3://bucket/set: cannot connect"), "{said}");
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
}

#[test]
fn settings_that_mean_nothing_where_the_data_is_are_refused() {
    let dir = Dir::with_set();
    let server = stored(&dir, "set");
    let said = |line: &str| refused(&dir, &server, line);
    for flag in ["--cold", "--io direct", "--tier hdd"] {
        let said = said(&format!("ingest s3://bucket/set {flag}"));
        assert!(said.contains("the data is on an object store"), "{flag}: {said}");
    }
    for flag in ["--inflight 4", "--readahead 1MB"] {
        assert!(said(&format!("ingest set {flag}")).contains("is for data on an object store"), "{flag}");
    }
    for flag in ["--timeout 3s", "--storage-option aws_region=x"] {
        assert!(said(&format!("data inspect set {flag}")).contains("is for data on an object store"), "{flag}");
    }
    assert!(said("tune s3://bucket/set --accelerator emulated:1ms").contains("tune changes how local data is read"));
    let from_store = said("data pack s3://bucket/set packed --to tar");
    assert!(from_store.contains("s3://bucket/set: pack reads local files"), "{from_store}");
    assert!(said("data pack set s3://bucket/new --to files").contains("--to files writes local files"));
}

#[test]
fn no_secret_reaches_the_record_and_profiles_are_read() {
    let dir = Dir::with_set();
    let server = stored(&dir, "set");
    dir.write(".home/.aws/credentials", "[team]\naws_access_key_id = test\naws_secret_access_key = hush-file\n");
    dir.write(
        ".home/.aws/config",
        format!("[profile team]\nregion = us-east-1\nendpoint_url = {}\n", server.endpoint()),
    );
    let line = "ingest s3://bucket/set --threads 1 --read-only --repeats 1 --warmups 0 --json run.json \
                --storage-option aws_session_token=hush-token --storage-option=aws_secret_access_key=hush-flag";
    let mut command = dir.command(line);
    for (name, _) in server.variables() {
        command.env_remove(name);
    }
    let ran: Ran = command.env("HOME", dir.path(".home")).env("AWS_PROFILE", "team").output().unwrap().into();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
    let record = String::from_utf8(dir.read("run.json")).unwrap();
    assert!(!record.contains("hush"), "{record}");
    assert!(record.contains("aws_session_token=***") && record.contains("aws_secret_access_key=***"), "{record}");
}

/// The objects that are not hidden.
fn shown(server: &S3Server) -> Vec<String> {
    server.names().into_iter().filter(|name| !name.contains("/.")).collect()
}

#[test]
fn a_dataset_is_made_in_a_store_as_on_a_disk_and_a_second_run_keeps_it() {
    let (dir, server) = (Dir::with_set(), S3Server::start().unwrap());
    let line = "data make caltech101 s3://bucket/new --count 24 --median-size 4KB --timeout 10s --storage-option aws_region=us-east-1";
    dir.met("data make caltech101 new --count 24 --median-size 4KB");
    let said = met(&dir, &server, line);
    assert!(said.starts_with("s3://bucket/new: 24 images, "), "{said}");
    let local = dir.tree("new");
    assert_eq!(shown(&server), local.keys().map(|name| format!("bucket/new/{name}")).collect::<Vec<_>>());
    assert!(local.iter().all(|(name, bytes)| server.get(&format!("bucket/new/{name}")).as_ref() == Some(bytes)));
    let lost = shown(&server).into_iter().find(|name| name.ends_with(".jpg")).unwrap();
    server.remove(&lost);
    assert!(met(&dir, &server, line).contains("23 of them already there"));
    assert!(server.get(&lost).is_some());
    let other = refused(&dir, &server, "data make caltech101 s3://bucket/new --count 25 --median-size 4KB");
    assert!(other.contains("s3://bucket/new"), "{other}");
    server.put("bucket/theirs/thesis.tex", *b"x");
    let foreign = refused(&dir, &server, "data make caltech101 s3://bucket/theirs --count 1");
    assert!(foreign.contains("s3://bucket/theirs"), "{foreign}");
}

#[test]
fn shards_are_packed_into_a_store_as_onto_a_disk() {
    let (dir, server) = (Dir::with_set(), S3Server::start().unwrap());
    let flags = "--to tfrecord --shard-size 64KiB --timeout 10s --storage-option aws_region=us-east-1";
    dir.met("data pack set packed --to tfrecord --shard-size 64KiB");
    let packed = run(&dir, &server, &format!("data pack set s3://bucket/packed {flags}"));
    assert_eq!(packed.code, Some(0), "{packed:?}");
    let local = dir.tree("packed");
    assert_eq!(shown(&server), local.keys().map(|name| format!("bucket/packed/{name}")).collect::<Vec<_>>());
    assert!(local.iter().all(|(name, bytes)| server.get(&format!("bucket/packed/{name}")).as_ref() == Some(bytes)));
    let again = run(&dir, &server, &format!("data pack set s3://bucket/packed {flags}"));
    assert!(again.stdout.contains("already there"), "{again:?}");
    assert!(met(&dir, &server, "data verify s3://bucket/packed").contains("24"));
}
