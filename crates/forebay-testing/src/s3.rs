//! An object store in the test's own process: as much of S3 as clients use, with faults on request.
//!
//! It listens on a free port of this machine and keeps objects in memory. It does not check signatures, only that the
//! access key is `test`; real servers are tested by `cargo xtask objects`. A fault hits the next requests that match it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// What happens to a request.
#[derive(Debug, Clone)]
pub enum S3Fault {
    /// It is answered with this status and error code.
    Status(u16, &'static str),
    /// The connection closes without an answer, and nothing is done.
    Reset,
    /// It is carried out, but the connection closes without an answer.
    LostAnswer,
    /// The connection closes after so many bytes of the content.
    Truncated(usize),
    /// The announced length is this many bytes too large, and the connection closes.
    TooLong(usize),
    /// The answer comes later.
    Late(Duration),
    /// The content stops for this long after half of it.
    Stalled(Duration),
    /// It is sent on to another address.
    Redirect(String),
}

struct Planned {
    method: &'static str,
    part_of_target: String,
    times: usize,
    fault: S3Fault,
}

#[derive(Default)]
struct State {
    /// By bucket and key: `bucket/key`.
    objects: BTreeMap<String, (Vec<u8>, u64)>,
    uploads: BTreeMap<u64, BTreeMap<u64, Vec<u8>>>,
    version: u64,
    planned: Vec<Planned>,
    log: Vec<String>,
    latency: Duration,
    n_open: usize,
    n_open_max: usize,
    page: usize,
}

/// A running server; it ends with the process.
pub struct S3Server {
    port: u16,
    state: Arc<Mutex<State>>,
}

struct Request {
    method: String,
    /// `bucket/key`.
    path: String,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    /// The body is announced and not sent.
    is_head: bool,
}

impl Answer {
    fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), is_head: false }
    }

    fn error(status: u16, code: &str) -> Self {
        Self::new(
            status,
            format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>{code} for a test</Message></Error>"),
        )
    }
}

impl S3Server {
    /// # Errors
    /// When no port can be listened on.
    pub fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let state = Arc::new(Mutex::new(State { page: 1_000, ..State::default() }));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                thread::spawn(move || drop(serve(stream, &state)));
            }
        });
        Ok(Self { port, state })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Variables of the environment with which a client finds this server.
    pub fn variables(&self) -> Vec<(String, String)> {
        let pairs = [
            ("AWS_ENDPOINT_URL", self.endpoint()),
            ("AWS_ACCESS_KEY_ID", "test".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "hush-hush".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
        ];
        pairs.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// Stores an object under `bucket/key`.
    pub fn put(&self, path: &str, bytes: impl Into<Vec<u8>>) {
        let mut state = self.state();
        state.version += 1;
        let version = state.version;
        state.objects.insert(path.to_owned(), (bytes.into(), version));
    }

    pub fn get(&self, path: &str) -> Option<Vec<u8>> {
        self.state().objects.get(path).map(|(bytes, _)| bytes.clone())
    }

    /// Uploads in parts that are neither complete nor removed.
    pub fn n_uploads(&self) -> usize {
        self.state().uploads.len()
    }

    /// The next `times` requests of this method with `part_of_target` in path and query meet this fault.
    pub fn fail(&self, method: &'static str, part_of_target: &str, times: usize, fault: S3Fault) {
        let part_of_target = part_of_target.to_owned();
        self.state().planned.push(Planned { method, part_of_target, times, fault });
    }

    /// Answers every request this much later.
    pub fn set_latency(&self, latency: Duration) {
        self.state().latency = latency;
    }

    /// Objects per page of a listing.
    pub fn set_page(&self, n: usize) {
        self.state().page = n;
    }

    /// Method and target of every request so far.
    pub fn log(&self) -> Vec<String> {
        self.state().log.clone()
    }

    /// The most requests, listings aside, that were answered at the same time.
    pub fn most_at_once(&self) -> usize {
        self.state().n_open_max
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("no holder of this lock panics")
}

fn serve(mut stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some((request, target)) = read(&mut reader)? {
        let is_listing = target.contains("list-type");
        let (fault, latency) = {
            let mut state = lock(state);
            state.n_open += usize::from(!is_listing);
            state.n_open_max = state.n_open_max.max(state.n_open);
            state.log.push(format!("{} {target}", request.method));
            let hit =
                |of: &&mut Planned| of.times > 0 && of.method == request.method && target.contains(&of.part_of_target);
            let fault = state.planned.iter_mut().find(hit).map(|of| {
                of.times -= 1;
                of.fault.clone()
            });
            (fault, state.latency)
        };
        thread::sleep(latency);
        let is_open = answer(&mut stream, &request, state, fault);
        lock(state).n_open -= usize::from(!is_listing);
        if !is_open? {
            return stream.shutdown(Shutdown::Both);
        }
    }
    Ok(())
}

/// Answers a request; returns whether the connection stays open.
fn answer(
    stream: &mut TcpStream,
    request: &Request,
    state: &Mutex<State>,
    fault: Option<S3Fault>,
) -> std::io::Result<bool> {
    match &fault {
        Some(S3Fault::Reset) => return Ok(false),
        Some(S3Fault::Status(status, code)) => {
            let answer = Answer { is_head: request.method == "HEAD", ..Answer::error(*status, code) };
            return send(stream, &answer, usize::MAX, 0).map(|()| true);
        }
        Some(S3Fault::Redirect(to)) => {
            let mut answer = Answer::error(307, "TemporaryRedirect");
            answer.headers.push(("Location", to.clone()));
            return send(stream, &answer, usize::MAX, 0).map(|()| true);
        }
        Some(S3Fault::Late(by)) => thread::sleep(*by),
        _ => {}
    }
    let mut answer = if request.header("authorization").is_some_and(|text| text.contains("Credential=test/")) {
        lock(state).answer(request)
    } else {
        Answer::error(403, "InvalidAccessKeyId")
    };
    answer.is_head = request.method == "HEAD";
    match fault {
        Some(S3Fault::LostAnswer) => return Ok(false),
        Some(S3Fault::Truncated(at)) => return send(stream, &answer, at, 0).map(|()| false),
        Some(S3Fault::TooLong(by)) => return send(stream, &answer, usize::MAX, by).map(|()| false),
        Some(S3Fault::Stalled(by)) => {
            send(stream, &answer, answer.body.len() / 2, 0)?;
            thread::sleep(by);
            stream.write_all(&answer.body[answer.body.len() / 2..])?;
        }
        _ => send(stream, &answer, usize::MAX, 0)?,
    }
    Ok(true)
}

fn send(stream: &mut TcpStream, answer: &Answer, at_most: usize, too_long_by: usize) -> std::io::Result<()> {
    let at_most = if answer.is_head { 0 } else { at_most };
    let len = answer.body.len() + too_long_by;
    let mut head = format!("HTTP/1.1 {} X\r\nContent-Length: {len}\r\n", answer.status);
    for (name, value) in &answer.headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    stream.write_all(head.as_bytes())?;
    stream.write_all(&answer.body[..answer.body.len().min(at_most)])
}

fn read(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<(Request, String)>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let query = pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(k, v)| (k.to_owned(), decoded(&v.replace('+', " "))))
        .collect();
    let mut request = Request { method, path: decoded(path.trim_start_matches('/')), query, headers, body: Vec::new() };
    let len = request.header("content-length").and_then(|len| len.parse().ok()).unwrap_or(0);
    request.body.resize(len, 0);
    reader.read_exact(&mut request.body)?;
    Ok(Some((request, target)))
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        match (first, code) {
            (b'%', Some(code)) => {
                bytes.push(code);
                rest = &after[2..];
            }
            (byte, _) => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

impl State {
    fn answer(&mut self, request: &Request) -> Answer {
        let path = request.path.trim_end_matches('/');
        let upload = request.query("uploadId").and_then(|id| id.parse().ok());
        match (request.method.as_str(), upload) {
            _ if path.starts_with("no-such-bucket") => Answer::error(404, "NoSuchBucket"),
            ("GET", _) if request.query("list-type").is_some() => self.list(request, path),
            ("GET" | "HEAD", _) => self.read(request),
            ("PUT", Some(id)) => {
                let part = request.query("partNumber").and_then(|part| part.parse().ok()).unwrap_or(0);
                self.uploads.entry(id).or_default().insert(part, request.body.clone());
                Answer { headers: vec![("ETag", format!("\"{part}\""))], ..Answer::new(200, "") }
            }
            ("PUT", None) => self.write(path, request.body.clone()),
            ("POST", None) if request.query("uploads").is_some() => {
                self.version += 1;
                self.uploads.insert(self.version, BTreeMap::new());
                let id = self.version;
                Answer::new(
                    200,
                    format!("<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"),
                )
            }
            ("POST", None) if request.query("delete").is_some() => {
                let body = String::from_utf8_lossy(&request.body).into_owned();
                let keys = body.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next());
                let deleted = keys.map(|key| {
                    self.objects.remove(&format!("{path}/{key}"));
                    format!("<Deleted><Key>{key}</Key></Deleted>")
                });
                Answer::new(200, format!("<DeleteResult>{}</DeleteResult>", deleted.collect::<String>()))
            }
            ("POST", Some(id)) => {
                let parts = self.uploads.remove(&id).unwrap_or_default();
                let mut answer = self.write(path, parts.into_values().flatten().collect());
                let etag = self.version;
                answer.body =
                    format!("<CompleteMultipartUploadResult><ETag>\"{etag}\"</ETag></CompleteMultipartUploadResult>")
                        .into();
                answer
            }
            ("DELETE", Some(id)) => {
                self.uploads.remove(&id);
                Answer::new(204, "")
            }
            ("DELETE", None) => {
                self.objects.remove(path);
                Answer::new(204, "")
            }
            _ => Answer::error(405, "MethodNotAllowed"),
        }
    }

    fn write(&mut self, path: &str, bytes: Vec<u8>) -> Answer {
        self.version += 1;
        self.objects.insert(path.to_owned(), (bytes, self.version));
        Answer { headers: vec![("ETag", format!("\"{}\"", self.version))], ..Answer::new(200, "") }
    }

    fn read(&self, request: &Request) -> Answer {
        let Some((bytes, version)) = self.objects.get(&request.path) else { return Answer::error(404, "NoSuchKey") };
        let etag = format!("\"{version}\"");
        if request.header("if-match").is_some_and(|wanted| wanted != etag) {
            return Answer::error(412, "PreconditionFailed");
        }
        let date = "Thu, 19 Nov 2026 04:00:00 GMT".to_owned();
        let mut answer = Answer { headers: vec![("ETag", etag), ("Last-Modified", date)], ..Answer::new(200, "") };
        let range = request.header("range").and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
        match range {
            None => answer.body.clone_from(bytes),
            Some((start, end)) => {
                let start: usize = start.parse().unwrap_or(0);
                let end = end.parse::<usize>().map_or(bytes.len(), |end| end + 1).min(bytes.len());
                if start >= bytes.len() {
                    return Answer::error(416, "InvalidRange");
                }
                answer.status = 206;
                answer.headers.push(("Content-Range", format!("bytes {start}-{}/{}", end - 1, bytes.len())));
                answer.body = bytes[start..end].to_vec();
            }
        }
        answer
    }

    fn list(&self, request: &Request, bucket: &str) -> Answer {
        let prefix = request.query("prefix").unwrap_or_default();
        let delimiter = request.query("delimiter").filter(|text| !text.is_empty());
        let after = request.query("continuation-token").unwrap_or_default().to_owned();
        let (mut xml, mut n, mut seen, mut next) = (String::new(), 0, String::new(), None);
        let keys =
            self.objects.iter().filter_map(|(path, of)| Some((path.strip_prefix(bucket)?.strip_prefix('/')?, of)));
        for (key, (bytes, version)) in keys.filter(|(key, _)| key.starts_with(prefix) && *key > after.as_str()) {
            if n == self.page {
                next = Some(seen.clone());
                break;
            }
            key.clone_into(&mut seen);
            let below = delimiter
                .and_then(|of| key[prefix.len()..].split_once(of).map(|(name, _)| format!("{prefix}{name}{of}")));
            if let Some(below) = below {
                let element = format!("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", escaped(&below));
                if !xml.contains(&element) {
                    xml += &element;
                    n += 1;
                }
                // The next page goes on behind everything with this prefix.
                seen = format!("{below}\u{10ffff}");
                continue;
            }
            n += 1;
            xml += &format!(
                "<Contents><Key>{}</Key><LastModified>2026-11-19T04:00:00.000Z</LastModified><ETag>\"{version}\"</ETag>\
                 <Size>{}</Size></Contents>",
                escaped(key),
                bytes.len()
            );
        }
        let more = next.map(|token| format!("<NextContinuationToken>{}</NextContinuationToken>", escaped(&token)));
        let more = more.unwrap_or_default();
        Answer::new(200, format!("<?xml version=\"1.0\"?><ListBucketResult>{more}{xml}</ListBucketResult>"))
    }
}
