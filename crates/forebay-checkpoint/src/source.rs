//! The sources of a checkpoint's bytes when it is written: the program's memory, a copy of it, or another tier.

use std::path::Path;
use std::sync::Arc;

use crate::format::Layout;
use crate::fs::{File, PAGE};
use crate::parallel::Pace;
use crate::plan::{self, At};
use crate::region::Region;
use crate::tier::Tier;
use crate::values::Errand;
use crate::verify::check_length;
use crate::{Damage, Error, Fetch, FilePlan, Manifest, Name, Result, Snapshot, damage, stream};

/// Files with known names and lengths whose bytes can be read in any order.
pub(crate) trait Source: Sync {
    /// Names and lengths of the files that can be written now.
    fn files(&self) -> Vec<(String, u64)>;

    /// Creates the files that are written last, from the checksums collected; `None` if there are none.
    fn layout(&self) -> Option<&Layout> {
        None
    }

    /// Returns `len` bytes of a file from `offset` and their crc32c. The bytes are in page-aligned memory: the source's
    /// own, or `scratch`, which is longer.
    fn bytes<'a>(&'a self, file: usize, offset: u64, len: usize, scratch: &'a mut [u8]) -> Result<Summed<'a>>;
}

pub(crate) type Summed<'a> = (&'a [u8], u32);

fn summed(bytes: &[u8]) -> Summed<'_> {
    (bytes, crc32c::crc32c(bytes))
}

/// The program's state, laid out by a format.
pub(crate) struct Planned<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) snapshot: &'a Snapshot<'a>,
    pub(crate) pace: &'a Pace<'a>,
}

impl Planned<'_> {
    /// The program's own memory, if a chunk lies within one tensor and is aligned for direct writes.
    fn in_place(&self, file: usize, offset: u64, len: usize) -> Option<&[u8]> {
        let plan = &self.layout.files[file];
        let (piece, range) = plan.pieces_of(offset..offset + len as u64).next()?;
        match plan::at(piece, range, self.snapshot) {
            At::Here(bytes) if bytes.len() == len && (bytes.as_ptr() as usize).is_multiple_of(PAGE) => Some(bytes),
            _ => None,
        }
    }
}

impl Source for Planned<'_> {
    fn files(&self) -> Vec<(String, u64)> {
        self.layout.files.iter().map(|plan| (plan.name.clone(), plan.len)).collect()
    }

    fn layout(&self) -> Option<&Layout> {
        Some(self.layout)
    }

    fn bytes<'a>(&'a self, file: usize, offset: u64, len: usize, scratch: &'a mut [u8]) -> Result<Summed<'a>> {
        self.pace.before(len)?;
        if let Some(bytes) = self.in_place(file, offset, len) {
            return Ok(summed(bytes));
        }
        let crc = self.layout.files[file].fetch_and_sum(self.snapshot, offset, &mut scratch[..len]);
        Ok((&scratch[..len], crc.map_err(Error::fetch)?))
    }
}

/// Small files created by a format, with all their bytes.
pub(crate) struct Made(pub(crate) Vec<FilePlan>);

impl Source for Made {
    fn files(&self) -> Vec<(String, u64)> {
        self.0.iter().map(|plan| (plan.name.clone(), plan.len)).collect()
    }

    fn bytes<'a>(&'a self, file: usize, offset: u64, len: usize, scratch: &'a mut [u8]) -> Result<Summed<'a>> {
        self.0[file].fill(&Snapshot::default(), offset, &mut scratch[..len]);
        Ok(summed(&scratch[..len]))
    }
}

/// Files laid out in memory, each starting at a page boundary.
pub(crate) struct Staged {
    layout: Layout,
    /// The offset of each file in the memory.
    starts: Vec<usize>,
    memory: Region,
}

impl Staged {
    /// Bytes of memory that these files need.
    pub(crate) fn n_bytes(plans: &[FilePlan]) -> u64 {
        plans.iter().map(|plan| plan.len.next_multiple_of(PAGE as u64)).sum()
    }

    /// Copies the state into the memory: values on a device in one call, the rest on as many threads as help.
    pub(crate) fn copy(
        layout: &Layout,
        snapshot: &Snapshot<'_>,
        mut memory: Region,
        chunk: usize,
        pace: &Pace<'_>,
    ) -> Result<Self> {
        let mut starts = Vec::new();
        let (mut jobs, mut errand) = (Vec::new(), Errand::default());
        let (mut start, mut rest) = (0, &mut memory[..]);
        for plan in &layout.files {
            let span = (plan.len as usize).next_multiple_of(PAGE);
            starts.push(start);
            let (mut mine, others) = std::mem::take(&mut rest).split_at_mut(span);
            for (piece, range) in plan.pieces_of(0..plan.len) {
                let (into, after) = mine.split_at_mut((range.end - range.start) as usize);
                match plan::at(piece, range, snapshot) {
                    At::Here(bytes) => jobs.extend(bytes.chunks(chunk).zip(into.chunks_mut(chunk))),
                    At::There { device, index, offset } => errand.add(device, Fetch { index, offset, into }),
                }
                mine = after;
            }
            (start, rest) = (start + span, others);
        }
        errand.run().map_err(Error::fetch)?;
        pace.before(0)?;
        let n_threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
        crate::parallel::for_each(n_threads, 0, jobs.into_iter(), |(bytes, into), _| {
            pace.before(bytes.len())?;
            stream::copy(bytes, into);
            Ok(())
        })?;
        Ok(Self { layout: layout.clone(), starts, memory })
    }

    pub(crate) fn into_memory(self) -> Region {
        self.memory
    }
}

impl Source for Staged {
    fn files(&self) -> Vec<(String, u64)> {
        self.layout.files.iter().map(|plan| (plan.name.clone(), plan.len)).collect()
    }

    fn layout(&self) -> Option<&Layout> {
        Some(&self.layout)
    }

    fn bytes<'a>(&'a self, file: usize, offset: u64, len: usize, _: &'a mut [u8]) -> Result<Summed<'a>> {
        let start = self.starts[file] + offset as usize;
        Ok(summed(&self.memory[start..start + len]))
    }
}

/// A checkpoint on another tier, verified while it is read.
pub(crate) struct Copied<'a> {
    dir: &'a Path,
    manifest: Arc<Manifest>,
    files: Vec<Box<dyn File>>,
    pace: &'a Pace<'a>,
}

impl<'a> Copied<'a> {
    pub(crate) fn open(
        tier: &Tier,
        name: Name,
        dir: &'a Path,
        manifest: Arc<Manifest>,
        pace: &'a Pace<'a>,
    ) -> Result<Self> {
        let files =
            manifest.files.iter().map(|sum| check_length(tier, name, sum)).collect::<std::result::Result<_, _>>();
        let files = files.map_err(|damage| Error::Damaged { path: dir.to_owned(), damage })?;
        Ok(Self { files, dir, manifest, pace })
    }
}

impl Source for Copied<'_> {
    fn files(&self) -> Vec<(String, u64)> {
        self.manifest.files.iter().map(|sum| (sum.name.clone(), sum.len)).collect()
    }

    fn bytes<'a>(&'a self, file: usize, offset: u64, len: usize, scratch: &'a mut [u8]) -> Result<Summed<'a>> {
        self.pace.before(len)?;
        let into = &mut scratch[..len.next_multiple_of(PAGE)];
        let found = self.files[file].read_at(offset, into)?;
        let sum = &self.manifest.files[file];
        let damaged = |damage| Error::Damaged { path: self.dir.to_owned(), damage };
        if found < len {
            let (expected, found) = (sum.len, offset + found as u64);
            return Err(damaged(Damage::Length { file: sum.name.clone(), expected, found }));
        }
        let (expected, found) = (sum.crcs[(offset / self.manifest.chunk_bytes) as usize], crc32c::crc32c(&into[..len]));
        if expected != found {
            return Err(damaged(damage::of_chunk(&sum.name, offset, &into[..len], expected, found)));
        }
        self.pace.after(len);
        Ok((&scratch[..len], expected))
    }
}
