//! Checkpoints on an object store, against a store in the test's own process.

use std::process::Stdio;
use std::time::{Duration, Instant};

use forebay_testing::{S3Fault, S3Server};

use crate::dir::Dir;
use crate::objects::{command, met, refused, run};
use crate::train_checkpoint::names;

/// Steps of a millisecond on a batch in memory, with a state of two parts.
const MADE: &str = "train --synthetic --accelerator emulated:1ms --batch 2 --checkpoint-every 2 --checkpoint-size 12MB";

fn steps(server: &S3Server) -> Vec<String> {
    let manifests = server.names().into_iter().filter(|name| name.ends_with("/manifest.forebay"));
    manifests.map(|name| name.split('/').nth_back(1).unwrap().to_owned()).collect()
}

#[test]
fn training_saves_by_way_of_a_burst_buffer_and_resumes_from_the_store_alone() {
    let (dir, server) = (Dir::with_set(), S3Server::start().unwrap());
    let url = "s3://bucket/run";
    let folders = format!("--checkpoint-dir {url} --burst-dir near");
    met(&dir, &server, &format!("{MADE} --steps 6 --keep 2 {folders} --json r.json"));
    assert_eq!(names(&dir, "near"), ["step-000000000004", "step-000000000006"]);
    assert_eq!((steps(&server), server.n_uploads()), (names(&dir, "near"), 0));
    let of_run =
        |n: usize| server.names().len() == n && server.names().iter().all(|name| name.starts_with("bucket/run"));
    assert!(of_run(4), "{:?}", server.names());
    // The record of the run says how fast what went where.
    let record = String::from_utf8(dir.read("r.json")).unwrap();
    assert!(record.contains("drain_after_s") && !record.contains("hush"), "{record}");
    // The machine with the burst buffer is gone.
    std::fs::remove_dir_all(dir.path("near")).unwrap();
    let listed = met(&dir, &server, &format!("checkpoint ls {url}"));
    assert!(listed.contains("12.0 MB") && listed.contains(url) && !listed.contains("in use"), "{listed}");
    assert!(met(&dir, &server, &format!("checkpoint verify {url}")).contains("2 good, 0 damaged"));
    let restored = met(&dir, &server, &format!("checkpoint restore {url} --to state.safetensors"));
    assert!(restored.starts_with("step 6 of s3://bucket/run, verified"), "{restored}");
    let resumed = run(&dir, &server, &format!("{MADE} --steps 8 --keep 2 {folders} --resume"));
    assert!(
        resumed.code == Some(0) && resumed.stdout.contains("resumed after step 6 from s3://bucket/run"),
        "{resumed:?}"
    );
    met(&dir, &server, &format!("checkpoint prune {url} --keep 1"));
    assert_eq!((steps(&server), server.names().len()), (vec!["step-000000000008".to_owned()], 2));
}

#[test]
fn what_a_killed_run_leaves_is_listed_and_removed_by_the_next() {
    let (dir, server) = (Dir::with_set(), S3Server::start().unwrap());
    let line = format!("{MADE} --steps 100 --checkpoint-dir s3://bucket/run");
    // The second part of the first checkpoint does not arrive.
    server.fail("PUT", "partNumber=2", 1, S3Fault::Late(Duration::from_secs(120)));
    let mut running = command(&dir, &server, &line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    while server.n_parts() == 0 && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!((server.n_uploads(), steps(&server).len()), (1, 0));
    let listed = met(&dir, &server, "checkpoint ls s3://bucket/run");
    assert!(listed.contains("1 unfinished folder, cleared by the next save or drain"), "{listed}");
    assert!(!listed.contains("in use"), "its holder is gone: {listed}");
    met(&dir, &server, &format!("{MADE} --steps 2 --checkpoint-dir s3://bucket/run"));
    assert_eq!((steps(&server).len(), server.n_uploads(), server.names().len()), (1, 0, 2), "{:?}", server.names());
}

#[test]
fn a_benchmark_measures_the_store_beside_its_bare_rate_and_leaves_nothing() {
    let (dir, server) = (Dir::with_set(), S3Server::start().unwrap());
    server.put("bucket/other", *b"another's");
    let line =
        "checkpoint bench s3://bucket/run --burst-dir near --size 12MB --saves 1 --format safetensors --json r.json";
    let shown = run(&dir, &server, line);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let record: serde_json::Value = serde_json::from_slice(&dir.read("r.json")).unwrap();
    let cells = record["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 3);
    for cell in cells {
        assert_eq!(cell["medium"]["storage"], "s3://bucket/run: object store", "{cell}");
        assert!(cell["ceiling_mb_per_s"].as_f64().unwrap() > 0.0 && cell["durable_slow_s"].as_f64().unwrap() > 0.0);
    }
    assert_eq!((server.names(), server.n_uploads()), (vec!["bucket/other".to_owned()], 0));
}

#[test]
fn errors_name_the_url_and_the_cause() {
    let (dir, server) = (Dir::with_set(), S3Server::start().unwrap());
    let said = |line: &str| refused(&dir, &server, line);
    let gone = said("checkpoint ls s3://no-such-bucket/run");
    assert!(gone.contains("s3://no-such-bucket/run") && gone.contains("there is no such bucket"), "{gone}");
    let nothing = run(&dir, &server, "checkpoint restore s3://bucket/none --to x.safetensors");
    assert!(
        nothing.code == Some(1) && nothing.stderr.contains("no valid checkpoint in s3://bucket/none"),
        "{nothing:?}"
    );
    let shaped = said(&format!("{MADE} --steps 2 --checkpoint-dir s3://bucket/run --checkpoint-tier hdd"));
    assert!(shaped.contains("a device is emulated for local folders, not for an object store"), "{shaped}");
    let apart = said(&format!("{MADE} --steps 2 --checkpoint-dir s3://bucket/run --burst-dir s3://bucket/run/near"));
    assert!(apart.contains("must not contain one another"), "{apart}");
    let workload = said("workload run unet3d_a100 --data d --dry-run --checkpoint-dir s3://bucket/run");
    assert!(workload.contains("saves checkpoints to local folders"), "{workload}");
    let probe = said("probe s3://bucket/run");
    assert!(probe.contains("probe measures folders and files") && probe.contains("\nhint: "), "{probe}");
    let silent = "--timeout 1s --storage-option aws_endpoint_url=http://127.0.0.1:1";
    let said = said(&format!("checkpoint verify s3://bucket/run {silent}"));
    assert!(said.contains("s3://bucket/run") && said.contains("cannot connect"), "{said}");
    assert!(server.names().is_empty());
}
