//! An object store in the test's own process: as much of S3 as clients use, with faults on request.
//!
//! It listens on a free port of this machine and keeps objects in memory. It does not check signatures, only that the
//! access key is `test`; real servers are tested by `cargo xtask objects`. A fault hits the next requests that match it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use crate::s3_state::{Answer, Request, Stored};

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
    stored: Stored,
    planned: Vec<Planned>,
    /// A fault of one request, counted from now on.
    nth: Option<(usize, S3Fault)>,
    /// Requests that are still answered.
    left: Option<usize>,
    log: Vec<String>,
    latency: Duration,
    n_open: usize,
    n_open_max: usize,
}

impl State {
    /// What happens to the next request.
    fn fault(&mut self, method: &str, target: &str) -> Option<S3Fault> {
        if let Some(left) = &mut self.left {
            if *left == 0 {
                return Some(S3Fault::Reset);
            }
            *left -= 1;
        }
        if let Some((n, fault)) = self.nth.take() {
            if n == 0 {
                return Some(fault);
            }
            self.nth = Some((n - 1, fault));
        }
        let hit = |of: &&mut Planned| of.times > 0 && of.method == method && target.contains(&of.part_of_target);
        self.planned.iter_mut().find(hit).map(|of| {
            of.times -= 1;
            of.fault.clone()
        })
    }
}

/// A running server; it ends with the process.
pub struct S3Server {
    port: u16,
    state: Arc<Mutex<State>>,
}

impl S3Server {
    /// # Errors
    /// When no port can be listened on.
    pub fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let state = Arc::new(Mutex::new(State::default()));
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
        let stored = &mut self.state().stored;
        stored.version += 1;
        stored.objects.insert(path.to_owned(), (bytes.into(), stored.version));
    }

    pub fn remove(&self, path: &str) {
        self.state().stored.objects.remove(path);
    }

    pub fn get(&self, path: &str) -> Option<Vec<u8>> {
        self.state().stored.objects.get(path).map(|(bytes, _)| bytes.clone())
    }

    /// Uploads in parts that are neither complete nor removed.
    pub fn n_uploads(&self) -> usize {
        self.state().stored.uploads.len()
    }

    /// The next `times` requests of this method with `part_of_target` in path and query meet this fault.
    pub fn fail(&self, method: &'static str, part_of_target: &str, times: usize, fault: S3Fault) {
        let part_of_target = part_of_target.to_owned();
        self.state().planned.push(Planned { method, part_of_target, times, fault });
    }

    /// The request that comes after `n` others meets this fault.
    pub fn fail_after(&self, n: usize, fault: S3Fault) {
        self.state().nth = Some((n, fault));
    }

    /// Answers `n` more requests and no others, as if the client had been killed then.
    pub fn stop_after(&self, n: usize) {
        self.state().left = Some(n);
    }

    /// Carries out every PUT, whatever its conditions say, as some older stores do.
    pub fn ignore_conditions(&self) {
        self.state().stored.ignores_conditions = true;
    }

    /// From now on, nothing fails any more.
    pub fn heal(&self) {
        let mut state = self.state();
        (state.left, state.nth) = (None, None);
        state.planned.clear();
    }

    /// The names of all objects, as `bucket/key`.
    pub fn names(&self) -> Vec<String> {
        self.state().stored.objects.keys().cloned().collect()
    }

    /// Parts of uploads that are neither complete nor removed.
    pub fn n_parts(&self) -> usize {
        self.state().stored.uploads.values().map(std::collections::BTreeMap::len).sum()
    }

    /// Answers every request this much later.
    pub fn set_latency(&self, latency: Duration) {
        self.state().latency = latency;
    }

    /// Objects per page of a listing.
    pub fn set_page(&self, n: usize) {
        self.state().stored.page = n;
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
            (state.fault(&request.method, &target), state.latency)
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
        lock(state).stored.answer(request)
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

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
