//! One pass of announced reads: requests them ahead, and hands their bytes to the readers.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use super::Objects;
use super::failure::{self, Cause};
use super::get::{self, Answer, Ask};
use super::level::Level;
use super::location::Location;
use super::near::Pass;
use super::plan::{Found, Piece, Plan, Request, Taken};
use crate::{Ahead, Buffer, Entry, Error, Object, Operation, Reads, Requests, Result, Storage, Writer};

struct Session {
    objects: Objects,
    /// Largest whole object to read.
    limit: u64,
    desk: Mutex<Desk>,
    has_news: Condvar,
}

struct Desk {
    plan: Plan,
    level: Level,
    transfers: Vec<(u64, tokio::task::AbortHandle)>,
    is_stopped: bool,
}

pub(super) fn start(objects: Objects, reads: &dyn Fn() -> Reads, limit: u64, spread: usize) -> Ahead {
    let versions = || Arc::clone(&objects.client.versions);
    let near = objects.near.as_ref().map(|near| Pass::new(Arc::clone(near), versions(), reads()));
    let plan = Plan::new(reads(), objects.reading.readahead, spread as u64).with_near(near);
    let level = Level::new(objects.reading.inflight, Instant::now());
    let desk = Desk { plan, level, transfers: Vec::new(), is_stopped: false };
    let session = Arc::new(Session { objects, limit, desk: Mutex::new(desk), has_news: Condvar::new() });
    session.go_on(&mut session.desk());
    let stop = Arc::clone(&session);
    Ahead { storage: Arc::new(Reader(session)), stop: Box::new(move || stop.stop()) }
}

impl Session {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().expect("no holder of this lock panics")
    }

    /// Sends the next requests; returns whether one failed at once.
    fn go_on(self: &Arc<Self>, desk: &mut Desk) -> bool {
        let mut has_failed = false;
        for request in desk.plan.go_on(desk.level.limit()) {
            let id = request.id;
            match self.request(request) {
                Ok(transfer) => desk.transfers.push((id, transfer)),
                Err(error) => {
                    desk.plan.arrived(id, Err(error));
                    has_failed = true;
                }
            }
        }
        has_failed
    }

    fn request(self: &Arc<Self>, request: Request) -> Result<tokio::task::AbortHandle> {
        let Request { id, path, range, etag, buffer } = request;
        let location = Location::of(Operation::Read, &path)?;
        let ask = Ask { path: path.clone(), key: location.key.clone(), range, limit: self.limit, etag };
        let session = Arc::clone(self);
        let task = self.objects.client.start(Operation::Read, &path, &location, |client, store| async move {
            let outcome = get::get(client, store, ask, buffer).await;
            session.arrived(id, outcome);
        })?;
        Ok(task.abort_handle())
    }

    fn arrived(self: &Arc<Self>, id: u64, outcome: Result<Answer>) {
        let mut desk = self.desk();
        if desk.is_stopped {
            return;
        }
        desk.transfers.retain(|(known, _)| *known != id);
        let is_full = desk.plan.n_requested() >= desk.level.limit();
        let bytes = outcome.as_ref().map_or(0, |answer| answer.buffer.len() as u64);
        desk.level.answered(Instant::now(), bytes, is_full, self.objects.client.counts.throttled());
        desk.plan.arrived(id, outcome);
        self.go_on(&mut desk);
        drop(desk);
        self.has_news.notify_all();
    }

    fn stop(&self) {
        let mut desk = self.desk();
        desk.is_stopped = true;
        desk.plan.stop();
        desk.transfers.drain(..).for_each(|(_, transfer)| transfer.abort());
        drop(desk);
        self.has_news.notify_all();
    }

    /// Waits for the bytes that `look` looks for; `None` if they were not announced.
    fn wait(self: &Arc<Self>, path: &Path, mut look: impl FnMut(&mut Plan) -> Found) -> Option<Result<Taken>> {
        let mut desk = self.desk();
        loop {
            if desk.is_stopped {
                let stopped = Cause::Other("the run was stopped".to_owned());
                return Some(Err(failure::of(Operation::Read, path, stopped)));
            }
            let found = look(&mut desk.plan);
            let has_failed = self.go_on(&mut desk);
            match found {
                Found::Later if has_failed => self.has_news.notify_all(),
                Found::Nothing => return None,
                Found::Now(outcome) => return Some(outcome),
                Found::Later => desk = self.has_news.wait(desk).expect("no holder of this lock panics"),
            }
        }
    }
}

impl Session {
    /// Reads from the near cache what a reader took there, and keeps there what it took from the store. Returns whether
    /// the reader has all its bytes; `range` is `None` for a whole object.
    fn finish(&self, taken: &Taken, range: Option<&Range<u64>>, into: &mut Buffer) -> bool {
        let mut has_all = true;
        for piece in &taken.near {
            let is_read = self.fill(piece, range, into);
            if !is_read {
                self.desk().plan.forget(&piece.key);
            }
            has_all &= is_read;
        }
        for keep in &taken.keep {
            if !keep.store(into.as_slice()) {
                self.desk().plan.forget(&keep.key);
            }
        }
        has_all
    }

    fn fill(&self, piece: &Piece, range: Option<&Range<u64>>, into: &mut Buffer) -> bool {
        let Some(near) = &self.objects.near else { return false };
        let (Some(range), Some(of)) = (range, &piece.range) else { return near.read(&piece.key, into) };
        let len = into.len();
        if range == of {
            return near.read(&piece.key, into) && into.len() == len;
        }
        let mut bytes = Buffer::default();
        let (start, end) = (range.start.max(of.start), range.end.min(of.end));
        if !near.read(&piece.key, &mut bytes) || bytes.len() as u64 != of.end - of.start {
            return false;
        }
        let from = &bytes.as_slice()[(start - of.start) as usize..(end - of.start) as usize];
        into.as_mut_slice()[(start - range.start) as usize..(end - range.start) as usize].copy_from_slice(from);
        true
    }
}

/// Reads through a session; what was not announced is read directly.
struct Reader(Arc<Session>);

impl Storage for Reader {
    fn description(&self) -> String {
        self.0.objects.description()
    }

    fn description_of(&self, path: &Path) -> String {
        self.0.objects.description_of(path)
    }

    fn concurrency(&self, path: &Path) -> usize {
        self.0.objects.concurrency(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<Entry>> {
        self.0.objects.list(dir)
    }

    fn size(&self, path: &Path) -> Result<u64> {
        self.0.objects.size(path)
    }

    /// Sends no request: a missing object is found out when it is read.
    fn open(&self, path: &Path) -> Result<Box<dyn Object>> {
        let direct = OnceLock::new();
        Ok(Box::new(AnnouncedObject { session: Arc::clone(&self.0), path: path.to_owned(), direct }))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn Writer>> {
        self.0.objects.create(path)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.0.objects.remove(path)
    }

    fn requests(&self) -> Option<Requests> {
        self.0.objects.requests()
    }
}

struct AnnouncedObject {
    session: Arc<Session>,
    path: PathBuf,
    /// Opened when something is read that was not announced.
    direct: OnceLock<Box<dyn Object>>,
}

impl AnnouncedObject {
    fn direct(&self) -> Result<&dyn Object> {
        if let Some(object) = self.direct.get() {
            return Ok(object.as_ref());
        }
        let object = self.session.objects.open(&self.path)?;
        Ok(self.direct.get_or_init(|| object).as_ref())
    }
}

impl Object for AnnouncedObject {
    fn len(&self) -> Result<u64> {
        self.direct()?.len()
    }

    fn read_within(&self, limit: u64, into: &mut Buffer) -> Result<()> {
        match self.session.wait(&self.path, |plan| plan.whole(&self.path, into)).transpose()? {
            Some(taken) if self.session.finish(&taken, None, into) => {
                Error::check_size(&self.path, into.len() as u64, limit)
            }
            _ => self.direct()?.read_within(limit, into),
        }
    }

    fn read_at(&self, offset: u64, len: usize, into: &mut Buffer) -> Result<()> {
        let range = offset..offset + len as u64;
        match self.session.wait(&self.path, |plan| plan.part(&self.path, range.clone(), into)).transpose()? {
            Some(taken) if self.session.finish(&taken, Some(&range), into) => Ok(()),
            _ => self.direct()?.read_at(offset, len, into),
        }
    }
}
