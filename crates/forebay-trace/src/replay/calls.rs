//! The calls inside fetches and checkpoints, by loader and kind of file.

use std::collections::{BTreeMap, HashMap, HashSet};

use forebay_interpose::layout::Class;

use super::marks::{Loop, Marks, Thread};
use crate::classes::FileClass;
use crate::event::{Entry, Event, FileType, Op};
use crate::file::{Chunk, Reader};

/// What a loader did with the files of an ending.
#[derive(Debug, Default)]
pub(super) struct Kind {
    /// By index of the path.
    pub(super) files: HashSet<u32>,
    pub(super) visits: u64,
    pub(super) opens: u64,
    pub(super) reads: u64,
    pub(super) empty_reads: u64,
    pub(super) bytes: u64,
    /// Bytes of the visited files, counted at every visit.
    pub(super) visited_bytes: u64,
    /// Visits whose first read went on where the last one of the file ended.
    pub(super) continued: u64,
    /// Visits to a file whose name comes after that of the visit before in its thread, and before it.
    pub(super) later: u64,
    pub(super) earlier: u64,
}

/// What a loader did beside.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) kinds: BTreeMap<Vec<u8>, Kind>,
    pub(super) stats: u64,
    pub(super) fstats: u64,
}

/// Calls of a checkpoint.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moved {
    pub(super) calls: u64,
    pub(super) bytes: u64,
    pub(super) syncs: u64,
}

/// Calls on data that belong to no fetch and no checkpoint.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LeftOut {
    pub(super) reads: u64,
    pub(super) bytes_read: u64,
    pub(super) writes: u64,
    pub(super) bytes_mapped: u64,
}

#[derive(Debug)]
struct OpenFile {
    path: u32,
    position: u64,
}

/// Which pass and which loader a moment belongs to.
pub(super) trait Places {
    fn loader_at(&self, at_ns: u64) -> Option<usize>;
}

pub(super) struct Found<'a, P> {
    marks: &'a Marks,
    of: (u32, &'a Loop),
    places: &'a P,
    pub(super) paths: Vec<Vec<u8>>,
    /// The largest that an open saw, by index of the path.
    pub(super) sizes: Vec<u64>,
    by_path: HashMap<Vec<u8>, u32>,
    classes: Vec<FileClass>,
    texts: HashMap<(u32, u32), Vec<u8>>,
    open: HashMap<(u32, u32), OpenFile>,
    /// Visits of the fetch that a thread is in, and the path of the last one.
    current: HashMap<Thread, (usize, HashSet<u32>, Option<u32>)>,
    /// By loader.
    pub(super) calls: Vec<Calls>,
    /// Time of replayed calls in each fetch.
    pub(super) spent: HashMap<(Thread, usize), u64>,
    pub(super) moved: Vec<Moved>,
    pub(super) left_out: LeftOut,
}

impl<'a, P: Places> Found<'a, P> {
    pub(super) fn read(
        reader: Reader<'_>,
        marks: &'a Marks,
        of: (u32, &'a Loop),
        places: &'a P,
        n_loaders: usize,
    ) -> Self {
        let mut found = Self {
            marks,
            of,
            places,
            paths: Vec::new(),
            sizes: Vec::new(),
            by_path: HashMap::new(),
            classes: Vec::new(),
            texts: HashMap::new(),
            open: HashMap::new(),
            current: HashMap::new(),
            calls: (0..n_loaders).map(|_| Calls::default()).collect(),
            spent: HashMap::new(),
            moved: vec![Moved::default(); of.1.saves.len()],
            left_out: LeftOut::default(),
        };
        for chunk in reader {
            let Chunk::Events { process, entries, .. } = chunk else { continue };
            for entry in entries {
                match entry {
                    Entry::Text { file, text } => drop(found.texts.insert((process, file), text)),
                    Entry::Event(event) => found.event(process, &event),
                }
            }
        }
        found
    }

    fn event(&mut self, process: u32, event: &Event) {
        let key = (process, event.file);
        let class = event.op.class();
        if event.file != 0 && (event.op == Op::FOUND || class == Some(Class::Open)) && !self.open.contains_key(&key) {
            self.opened(key, event);
        }
        let Some(class) = class.filter(|class| *class != Class::Event) else { return };
        let file = self.open.get(&key);
        let path = file.map(|file| file.path);
        let is_own =
            path.is_none_or(|path| matches!(self.classes[path as usize], FileClass::Data | FileClass::Checkpoint));
        let thread = (process, event.thread);
        let fetch = self.marks.fetch_at(thread, event.start_ns);
        let loader = fetch.and_then(|(_, fetch)| self.places.loader_at(fetch.span.start_ns));
        if is_own {
            match fetch.zip(loader) {
                Some(((index, _), loader)) => self.fetched((thread, index), loader, event, class, path),
                None => self.elsewhere(process, event, class, path),
            }
        }
        self.advance(key, event, class);
    }

    fn opened(&mut self, key: (u32, u32), event: &Event) {
        let text = self.texts.remove(&key).unwrap_or_default();
        let next = self.paths.len() as u32;
        let path = *self.by_path.entry(text.clone()).or_insert(next);
        if path == next {
            self.classes.push(FileClass::of(&text));
            self.paths.push(text);
            self.sizes.push(0);
        }
        let size = if event.file_type == FileType::REGULAR { event.arg } else { 0 };
        self.sizes[path as usize] = self.sizes[path as usize].max(size);
        let position = if event.op == Op::FOUND { event.bytes() } else { 0 };
        self.open.insert(key, OpenFile { path, position });
    }

    fn fetched(&mut self, fetch: (Thread, usize), loader: usize, event: &Event, class: Class, path: Option<u32>) {
        let calls = &mut self.calls[loader];
        match (class, path) {
            (Class::Open, Some(_)) if event.result >= 0 && event.op != Op::OPENDIR => {
                self.visit(fetch, loader, event, path, true);
            }
            (Class::Open, _) => calls.stats += 1,
            (Class::Read, Some(_)) => self.visit(fetch, loader, event, path, false),
            (Class::Meta, _) => match event.op {
                Op::CLOSE | Op::FCLOSE => {}
                Op::STAT | Op::ACCESS => calls.stats += 1,
                _ => calls.fstats += 1,
            },
            (Class::Map, _) => {
                self.left_out.bytes_mapped += event.bytes();
                return;
            }
            (Class::Write, _) => {
                self.left_out.writes += 1;
                return;
            }
            _ => return,
        }
        *self.spent.entry(fetch).or_default() += event.duration_ns;
    }

    /// An open or a read of a file in a fetch. The first of them on a file is a visit, and so is every open.
    fn visit(
        &mut self,
        (thread, index): (Thread, usize),
        loader: usize,
        event: &Event,
        path: Option<u32>,
        is_open: bool,
    ) {
        let Some(path) = path else { return };
        let current = self.current.entry(thread).or_insert_with(|| (index, HashSet::new(), None));
        if current.0 != index {
            *current = (index, HashSet::new(), current.2);
        }
        let is_first = current.1.insert(path);
        let before = current.2.replace(path);
        let at = self.open.get(&(thread.0, event.file)).map_or(0, |file| file.position);
        let ending = ending(&self.paths[path as usize]);
        let kind = self.calls[loader].kinds.entry(ending.to_vec()).or_default();
        kind.files.insert(path);
        if is_open || is_first {
            kind.visits += 1;
            kind.visited_bytes += self.sizes[path as usize];
            let offset = if event.op.has_offset() { event.arg } else { at };
            kind.continued += u64::from(is_open || offset == at);
            if let Some(before) = before.filter(|before| *before != path) {
                let is_later = self.paths[path as usize] > self.paths[before as usize];
                *(if is_later { &mut kind.later } else { &mut kind.earlier }) += 1;
            }
        }
        if is_open {
            kind.opens += 1;
        } else {
            kind.reads += 1;
            kind.empty_reads += u64::from(event.result <= 0);
            kind.bytes += event.bytes();
        }
    }

    fn elsewhere(&mut self, process: u32, event: &Event, class: Class, path: Option<u32>) {
        let save = self.of.1.saves.iter().position(|save| save.span.has(event.start_ns));
        if let Some(save) = save.filter(|_| process == self.of.0) {
            let wanted = if self.of.1.saves[save].is_restore { Class::Read } else { Class::Write };
            let moved = &mut self.moved[save];
            if class == wanted {
                moved.calls += 1;
                moved.bytes += event.bytes();
            }
            moved.syncs += u64::from(class == Class::Sync);
            return;
        }
        match class {
            Class::Read if path.is_some() => {
                self.left_out.reads += 1;
                self.left_out.bytes_read += event.bytes();
            }
            Class::Write if path.is_some() => self.left_out.writes += 1,
            Class::Map => self.left_out.bytes_mapped += event.bytes(),
            _ => {}
        }
    }

    fn advance(&mut self, key: (u32, u32), event: &Event, class: Class) {
        if matches!(event.op, Op::CLOSE | Op::FCLOSE) || (class == Class::Open && event.result < 0) {
            self.open.remove(&key);
            return;
        }
        let Some(file) = self.open.get_mut(&key) else { return };
        match (class, event.op) {
            (Class::Read | Class::Write, op) => {
                let at = if op.has_offset() { event.arg } else { file.position };
                file.position = at + event.bytes();
            }
            (_, Op::LSEEK) => file.position = event.bytes(),
            _ => {}
        }
    }
}

/// The end of a file's name from its last dot, as a path's extension; empty without one.
pub(super) fn ending(path: &[u8]) -> &[u8] {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    match name.iter().rposition(|byte| *byte == b'.') {
        Some(dot) if dot > 0 => &name[dot..],
        _ => &[],
    }
}
