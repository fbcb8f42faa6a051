//! Objects over HTTP: what is requested, what is repeated, and what is said when it fails.
#![cfg(feature = "object")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use forebay_storage::{Access, Buffer, Error, NextRead, Objects, Reading, Reads, Requests, Storage};
use forebay_testing::{S3Fault, S3Server};

fn objects(server: &S3Server, timeout: Duration, reading: Reading) -> Objects {
    Objects::with_access(Access::of_variables(server.variables()).with_timeout(timeout), reading).unwrap()
}

fn started() -> (S3Server, Objects) {
    let server = S3Server::start().unwrap();
    let objects = objects(&server, Duration::from_secs(6), Reading::default());
    (server, objects)
}

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n % 251) as u8).collect()
}

fn read(storage: &dyn Storage, path: &str) -> Result<Vec<u8>, Error> {
    let mut buffers = [Buffer::default()];
    storage.read_many(&[Path::new(path)], u64::MAX, &mut buffers).remove(0)?;
    Ok(buffers[0].as_slice().to_vec())
}

fn n_of(server: &S3Server, method: &str) -> usize {
    server.log().iter().filter(|line| line.starts_with(method)).count()
}

#[test]
fn many_objects_are_requested_at_once_with_one_request_each() {
    let (server, objects) = started();
    let paths: Vec<PathBuf> = (0..32).map(|n| format!("s3://b/{n}").into()).collect();
    (0..32).for_each(|n| server.put(&format!("b/{n}"), content(1_000 + n)));
    server.set_latency(Duration::from_millis(50));
    let all: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let mut buffers: Vec<Buffer> = paths.iter().map(|_| Buffer::default()).collect();
    let outcomes = objects.read_many(&all, u64::MAX, &mut buffers);
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert!(buffers.iter().enumerate().all(|(n, buffer)| buffer.as_slice() == content(1_000 + n)));
    assert_eq!((server.log().len(), n_of(&server, "GET /b/")), (32, 32));
    assert!(server.most_at_once() > 16, "{}", server.most_at_once());
}

#[test]
fn announced_reads_are_in_flight_before_their_readers_ask() {
    let (server, _) = started();
    let reading = Reading { inflight: Some(8), readahead: 1 << 20, ..Reading::default() };
    let objects = objects(&server, Duration::from_secs(6), reading);
    (0..64).for_each(|n| server.put(&format!("b/{n}"), content(1_000 + n)));
    server.set_latency(Duration::from_millis(20));
    let reads = || -> Reads { Box::new((0..64).map(|n| NextRead { path: format!("s3://b/{n}").into(), range: None })) };
    let ahead = objects.read_ahead(&reads, u64::MAX, 4).unwrap();
    let (mut buffer, start) = (Buffer::default(), Instant::now());
    for n in 0..64 {
        let object = ahead.storage.open(Path::new(&format!("s3://b/{n}"))).unwrap();
        object.read_all(&mut buffer).unwrap();
        assert_eq!(buffer.as_slice(), content(1_000 + n));
    }
    assert!(start.elapsed() < Duration::from_millis(64 * 20 / 2), "{:?}: one reader, many in flight", start.elapsed());
    assert_eq!((server.log().len(), server.most_at_once()), (64, 8), "as many as allowed, each object once");
    assert!(
        ahead.storage.open(Path::new("s3://b/never")).unwrap().len().is_err(),
        "what was not announced is asked for"
    );
}

#[test]
fn parts_of_an_object_are_joined_and_read_of_one_version() {
    let (server, objects) = started();
    let bytes = content(3_000_000);
    server.put("b/shard", bytes.clone());
    let parts: Vec<_> = (0..30u64).map(|n| n * 100_000..(n + 1) * 100_000).collect();
    let part = |range| NextRead { path: "s3://b/shard".into(), range: Some(range) };
    let ahead = objects.read_ahead(&|| Box::new(parts.clone().into_iter().map(part)), u64::MAX, 4).unwrap();
    let shard = ahead.storage.open(Path::new("s3://b/shard")).unwrap();
    let mut buffer = Buffer::default();
    for part in parts {
        shard.read_at(part.start, 100_000, &mut buffer).unwrap();
        assert_eq!(buffer.as_slice(), &bytes[part.start as usize..part.end as usize]);
    }
    assert_eq!(server.log(), ["GET /b/shard"], "30 reads are one request");
    let opened = objects.open(Path::new("s3://b/shard")).unwrap();
    opened.read_at(0, 10, &mut buffer).unwrap();
    server.put("b/shard", content(3_000_000));
    let changed = opened.read_at(1_000_000, 10, &mut buffer).unwrap_err().to_string();
    assert_eq!(changed, "reading s3://b/shard: it changed since it was opened");
}

#[test]
fn stopping_wakes_a_reader_that_waits() {
    let (server, objects) = started();
    server.put("b/slow", content(10));
    server.fail("GET", "slow", 1, S3Fault::Late(Duration::from_secs(5)));
    let read = || NextRead { path: "s3://b/slow".into(), range: None };
    let ahead = objects.read_ahead(&|| Box::new(std::iter::once(read())), u64::MAX, 4).unwrap();
    let start = Instant::now();
    let outcome = std::thread::scope(|scope| {
        let reader =
            scope.spawn(|| ahead.storage.open(Path::new("s3://b/slow")).unwrap().read_all(&mut Buffer::default()));
        while server.log().is_empty() {
            std::thread::yield_now();
        }
        (ahead.stop)();
        reader.join().unwrap()
    });
    assert_eq!(outcome.unwrap_err().to_string(), "reading s3://b/slow: the run was stopped");
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

#[test]
fn what_breaks_is_repeated_and_counted() {
    let (server, objects) = started();
    let bytes = content(200_000);
    server.put("b/a", bytes.clone());
    let cases = [
        (S3Fault::Status(503, "SlowDown"), Requests { sent: 2, throttled: 1, ..Requests::default() }),
        (S3Fault::Status(500, "InternalError"), Requests { sent: 2, failed: 1, ..Requests::default() }),
        (S3Fault::Reset, Requests { sent: 2, failed: 1, ..Requests::default() }),
        (S3Fault::Truncated(70_000), Requests { sent: 2, resumed: 1, ..Requests::default() }),
    ];
    for (fault, wanted) in cases {
        server.fail("GET", "/b/a", 1, fault.clone());
        let before = objects.requests().unwrap();
        assert_eq!(read(&objects, "s3://b/a").unwrap(), bytes, "{fault:?}");
        assert_eq!(objects.requests().unwrap().since(&before), wanted, "{fault:?}");
    }
    server.fail("GET", "/b/a", 1, S3Fault::TooLong(10));
    assert!(read(&objects, "s3://b/a").is_err(), "a length that no answer keeps is an error");
}

#[test]
fn a_put_whose_answer_is_lost_is_repeated() {
    let (server, objects) = started();
    server.fail("PUT", "/b/new", 1, S3Fault::LostAnswer);
    let mut writer = objects.create(Path::new("s3://b/new")).unwrap();
    writer.write(b"bytes").unwrap();
    writer.commit().unwrap();
    assert_eq!((server.get("b/new").unwrap(), n_of(&server, "PUT")), (b"bytes".to_vec(), 2));
}

#[test]
fn large_objects_travel_in_parts_and_nothing_is_left_of_those_given_up() {
    let (server, objects) = started();
    let bytes = content(20 << 20);
    let mut writer = objects.create(Path::new("s3://b/large")).unwrap();
    bytes.chunks(1_000_000).for_each(|part| writer.write(part).unwrap());
    assert_eq!(server.get("b/large"), None, "invisible before commit");
    writer.commit().unwrap();
    assert!(server.get("b/large").unwrap() == bytes);
    assert_eq!(n_of(&server, "PUT"), 3);
    let mut writer = objects.create(Path::new("s3://b/dropped")).unwrap();
    writer.write(&bytes).unwrap();
    drop(writer);
    assert_eq!((server.n_uploads(), server.get("b/dropped")), (0, None));
}

#[test]
fn silence_ends_within_the_time_limit_and_says_so() {
    let server = S3Server::start().unwrap();
    let objects = objects(&server, Duration::from_millis(1_500), Reading::default());
    server.put("b/a", content(100_000));
    for fault in [S3Fault::Late(Duration::from_secs(20)), S3Fault::Stalled(Duration::from_secs(20))] {
        server.fail("GET", "/b/a", 20, fault);
        let start = Instant::now();
        let said = read(&objects, "s3://b/a").unwrap_err().to_string();
        assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
        assert!(said.starts_with("reading s3://b/a: ") && said.contains("no answer within"), "{said}");
    }
}

#[test]
fn one_late_answer_is_asked_for_again() {
    let (server, objects) = started();
    server.put("b/a", content(1_000));
    server.fail("GET", "/b/a", 1, S3Fault::Late(Duration::from_secs(30)));
    let start = Instant::now();
    assert_eq!(read(&objects, "s3://b/a").unwrap(), content(1_000));
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
}

#[test]
fn listings_of_many_pages_and_prefixes_are_whole_and_leave_out_marks_of_folders() {
    let (server, objects) = started();
    server.set_page(7);
    for n in 0..100 {
        server.put(&format!("b/set/c{}/{n}.jpg", n % 5), content(n));
    }
    server.put("b/set/readme", content(1));
    server.put("b/set/c1/", content(0));
    server.put("b/settle/other", content(1));
    let listed = objects.list(Path::new("s3://b/set")).unwrap();
    assert_eq!(listed.len(), 101, "{:?}", listed.iter().map(|entry| &entry.path).collect::<Vec<_>>());
    assert!(listed.is_sorted() && listed.iter().all(|entry| entry.path.starts_with("s3://b/set")));
    assert!(matches!(objects.list(Path::new("s3://b/nothing")), Err(Error::NotFound { .. })));
}

#[test]
fn refusals_name_the_url_and_the_cause_and_no_secret() {
    let (server, objects) = started();
    server.put("b/a", content(10));
    let said = |path: &str| objects.list(Path::new(path)).unwrap_err().to_string();
    assert!(said("s3://no-such-bucket/x").contains("listing s3://no-such-bucket/x: there is no such bucket"));
    let causes = [
        (403, "AccessDenied", "permission denied"),
        (403, "SignatureDoesNotMatch", "the secret key is wrong"),
        (403, "RequestTimeTooSkewed", "the clock of this machine is wrong"),
        (400, "ExpiredToken", "the credentials have expired"),
        (400, "AuthorizationHeaderMalformed", "the region is wrong"),
        (301, "PermanentRedirect", "the bucket is in another region"),
    ];
    for (status, code, meaning) in causes {
        // What is refused is asked for once more, in case it was sent on to another host.
        let times = if status == 403 { 2 } else { 1 };
        server.fail("GET", "list-type", times, S3Fault::Status(status, code));
        let said = said("s3://b/x");
        assert!(said.starts_with("listing s3://b/x: ") && said.contains(meaning), "{code}: {said}");
        assert!(!said.contains("hush") && !said.contains("Signature="), "{said}");
    }
    let mut variables = server.variables();
    variables[1].1 = "someone".to_owned();
    let stranger = Objects::with_access(Access::of_variables(variables), Reading::default()).unwrap();
    let refused = stranger.list(Path::new("s3://b/x")).unwrap_err().to_string();
    assert!(refused.contains("the access key is unknown"), "{refused}");
}

#[test]
fn a_server_that_is_not_there_is_an_error_within_the_time_limit() {
    let variables =
        [("AWS_ENDPOINT_URL", "http://127.0.0.1:1"), ("AWS_ACCESS_KEY_ID", "x"), ("AWS_SECRET_ACCESS_KEY", "hush")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let access = Access::of_variables(variables).with_timeout(Duration::from_secs(2));
    let start = Instant::now();
    let objects = Objects::with_access(access, Reading::default()).unwrap();
    let said = objects.list(Path::new("s3://b/x")).unwrap_err().to_string();
    assert!(said.starts_with("listing s3://b/x: cannot connect: "), "{said}");
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
}

#[test]
fn a_redirect_to_the_same_host_is_followed() {
    let (server, objects) = started();
    server.put("b/there", content(10));
    server.fail("GET", "/b/here", 1, S3Fault::Redirect(format!("{}/b/there", server.endpoint())));
    assert_eq!(read(&objects, "s3://b/here").unwrap(), content(10));
}

#[test]
fn a_redirect_to_another_host_is_signed_for_it_and_followed() {
    let (server, objects) = started();
    let other = S3Server::start().unwrap();
    other.put("b/there", content(10));
    // The usual client follows without a signature and is refused; the second request finds out.
    let to = |name: &str| S3Fault::Redirect(format!("{}/b/{name}", other.endpoint()));
    server.fail("GET", "/b/there", 2, to("there"));
    assert_eq!(read(&objects, "s3://b/there").unwrap(), content(10));
    // From then on, one request each.
    let before = (server.log().len(), other.log().len());
    server.fail("GET", "/b/there", 1, to("there"));
    assert_eq!(read(&objects, "s3://b/there").unwrap(), content(10));
    assert_eq!((server.log().len(), other.log().len()), (before.0 + 1, before.1 + 1));
    // A store that sends requests round in circles is given up.
    server.fail("GET", "/b/round", usize::MAX, S3Fault::Redirect(format!("{}/b/round", server.endpoint())));
    let said = read(&objects, "s3://b/round").unwrap_err().to_string();
    assert!(said.starts_with("reading s3://b/round: "), "{said}");
    // What a store writes goes there, too.
    server.fail("PUT", "/b/written", 1, to("written"));
    let mut writer = objects.create(Path::new("s3://b/written")).unwrap();
    writer.write(b"by way of another").unwrap();
    writer.commit().unwrap();
    assert_eq!(other.get("b/written").unwrap(), b"by way of another");
    let refused = S3Fault::Status(403, "AccessDenied");
    server.fail("GET", "/b/mine", usize::MAX, refused);
    assert!(read(&objects, "s3://b/mine").unwrap_err().to_string().contains("permission denied"));
}

#[test]
fn a_request_that_is_slow_to_be_answered_is_sent_a_second_time() {
    let (server, objects) = started();
    (0..100).for_each(|n| server.put(&format!("b/{n}"), content(1_000 + n)));
    (0..100).for_each(|n| drop(read(&objects, &format!("s3://b/{n}")).unwrap()));
    let before = objects.requests().unwrap();
    server.fail("GET", "/b/7", 1, S3Fault::Late(Duration::from_secs(2)));
    let start = Instant::now();
    assert_eq!(read(&objects, "s3://b/7").unwrap(), content(1_007));
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    let since = objects.requests().unwrap().since(&before);
    assert_eq!(since, Requests { sent: 2, hedged: 1, ..Requests::default() });
}
