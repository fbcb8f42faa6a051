//! Images whose coefficients come in several scans: all scans are read before any pixel is computed.

use crate::Error;
use crate::baseline::{Codes, Fault, decode_block};
use crate::bits::Bits;
use crate::coefficients::{Block, Coefficients};
use crate::entropy::Entropy;
use crate::frame::{Frame, Process};
use crate::idct::Job;
use crate::marker::{Headers, Scan, Stop};
use crate::output::Output;
use crate::planes::Planes;
use crate::progress::Progress;
use crate::progressive::{self, Pass};
use crate::region::Window;
use crate::simd::Level;
use crate::tables::{Tables, quant_of};
use crate::zigzag::Workspace;

/// Quantisation tables by component, as they were at the start of the component's first scan.
pub(crate) type Quants = [Option<[i16; 64]>; 4];

/// An image during the reading of its scans.
pub(crate) struct Image<'a> {
    pub(crate) level: Level,
    pub(crate) frame: &'a Frame,
    pub(crate) tables: &'a mut Tables,
    pub(crate) coefficients: &'a mut Coefficients,
    /// Memory of the entropy reader, reused for all scans.
    pub(crate) segment: &'a mut Vec<u8>,
    pub(crate) max_scans: u32,
}

impl Image<'_> {
    /// Reads all scans, starting with `first`; fails unless they complete every coefficient.
    pub(crate) fn read_scans(&mut self, data: &[u8], headers: &mut Headers, first: Scan) -> Result<Quants, Error> {
        self.coefficients.prepare(self.frame);
        let mut progress = Progress::new(self.frame);
        let mut quants: Quants = [None; 4];
        let mut next = Stop::Scan(first);
        let mut n_scans = 0;
        while let Stop::Scan(scan) = next {
            n_scans += 1;
            if n_scans > self.max_scans {
                return Err(Error::TooManyScans { offset: scan.offset, max_scans: self.max_scans });
            }
            progress.record(self.frame.process, &scan)?;
            for c in &scan.components {
                if quants[c.index].is_none() {
                    quants[c.index] = Some(*quant_of(headers, self.frame, c.index, scan.offset)?);
                }
            }
            self.read_scan(data, headers, &scan)?;
            next = headers.advance(data)?;
        }
        match (progress.is_complete(), next) {
            (true, _) => Ok(quants),
            (false, Stop::EndOfData) => Err(Error::Truncated { offset: data.len() }),
            (false, _) => {
                Err(Error::corrupt(headers.pos - 2, "scans that complete every coefficient", "the end of the image"))
            }
        }
    }

    fn read_scan(&mut self, data: &[u8], headers: &mut Headers, scan: &Scan) -> Result<(), Error> {
        let is_sequential = self.frame.process == Process::Sequential;
        let (is_dc, is_first) = (scan.band.0 == 0, scan.bits.0 == 0);
        let needs = if is_sequential { (true, true) } else { (is_dc && is_first, !is_dc) };
        for c in &scan.components {
            self.tables.load(headers, c, needs, (scan.offset, data.len() - headers.pos))?;
        }
        let segment = std::mem::take(self.segment);
        let mut entropy = Entropy::new(self.level, data, headers.pos, headers.restart_interval, segment);
        let (frame, tables) = (self.frame, &*self.tables);
        let reading = Reading { frame, scan, tables, coefficients: self.coefficients, entropy: &mut entropy };
        let result = match self.level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this level guarantees these CPU features.
            Level::Avx2 => unsafe { read_blocks_avx2(reading) },
            Level::Portable => read_blocks(Level::Portable, reading),
        };
        let end = result.and_then(|()| entropy.finish());
        *self.segment = entropy.segment;
        headers.pos = end?;
        Ok(())
    }

    /// Computes the pixels of the window.
    pub(crate) fn render(&self, quants: &Quants, window: &Window, planes: &mut Planes, output: &mut Output<'_>) {
        for mcu_row in window.mcu_rows.clone() {
            for (i, (component, quant)) in self.frame.components.iter().zip(quants).enumerate() {
                let quant = quant.as_ref().expect("a complete image has had a scan of each component");
                let columns = window.mcu_columns.start * component.h..window.mcu_columns.end * component.h;
                for row in 0..component.v {
                    let blocks = &self.coefficients.row(i, mcu_row * component.v + row)[columns.clone()];
                    let at = planes.block_at(i, mcu_row, (columns.start, row));
                    self.render_blocks(blocks, quant, at, i, planes);
                }
            }
            planes.finish_mcu_row(mcu_row);
            output.finish_mcu_row(planes, mcu_row);
        }
    }

    fn render_blocks(&self, blocks: &[[i16; 64]], quant: &[i16; 64], at: usize, component: usize, planes: &mut Planes) {
        let plane = planes.planes()[component];
        let job = |i: usize| Job { coefficients: &blocks[i], quant, at: at + i * plane.edge, stride: plane.stride };
        for i in (0..blocks.len()).step_by(2) {
            match (plane.edge, i + 1 < blocks.len()) {
                (8, true) => planes.put_pair(self.level, [job(i), job(i + 1)]),
                (8, false) => planes.put_one(self.level, job(i)),
                (edge, true) => planes.put_reduced_pair(self.level, edge, [job(i), job(i + 1)]),
                (edge, false) => planes.put_reduced(edge, &job(i)),
            }
        }
    }
}

/// The parts of an image that the loop over blocks needs.
struct Reading<'a, 'b> {
    frame: &'a Frame,
    scan: &'a Scan,
    tables: &'a Tables,
    coefficients: &'a mut Coefficients,
    entropy: &'a mut Entropy<'b>,
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn read_blocks_avx2(reading: Reading<'_, '_>) -> Result<(), Error> {
    read_blocks(Level::Avx2, reading)
}

/// Selects the kind of scan once, outside the loop over blocks. Inlined into a function per level.
#[inline(always)]
fn read_blocks(level: Level, r: Reading<'_, '_>) -> Result<(), Error> {
    let pass = Pass { band: (r.scan.band.0 as u32, r.scan.band.1 as u32), shift: r.scan.bits.1, level };
    match (r.frame.process, r.scan.band.0 == 0, r.scan.bits.0 == 0) {
        (Process::Sequential, ..) => each_block(r, Whole { workspace: [0; 256] }),
        (_, true, true) => each_block(r, DcFirst { pass }),
        (_, true, false) => each_block(r, DcRefine { pass }),
        (_, false, true) => each_block(r, AcFirst { pass, end_run: 0 }),
        (_, false, false) => each_block(r, AcRefine { pass, end_run: 0 }),
    }
}

/// Decodes the blocks of the scan: those of whole MCUs, or for a single component only those that contain image.
#[inline(always)]
fn each_block(r: Reading<'_, '_>, mut kind: impl Kind) -> Result<(), Error> {
    let lone = match r.scan.components.as_slice() {
        [only] => Some(r.frame.components[only.index].blocks),
        _ => None,
    };
    let (n_x, n_y) = lone.unwrap_or(r.frame.mcus);
    let mut predictions = [0; 4];
    for (x, y) in (0..n_y).flat_map(|y| (0..n_x).map(move |x| (x, y))) {
        if r.entropy.begin_mcu()? {
            predictions = [0; 4];
            kind.restart();
        }
        for scanned in &r.scan.components {
            let c = &r.frame.components[scanned.index];
            let (h, v) = if lone.is_some() { (1, 1) } else { (c.h, c.v) };
            let prediction = &mut predictions[scanned.index & 3];
            for (bx, by) in (0..v).flat_map(|by| (0..h).map(move |bx| (bx, by))) {
                let block = r.coefficients.block_mut(scanned.index, (x * h + bx, y * v + by));
                let entropy = &mut *r.entropy;
                let codes = r.tables.codes(scanned);
                if let Err(fault) = kind.decode(&entropy.segment, &mut entropy.bits, codes, prediction, block) {
                    return Err(entropy.error(fault));
                }
            }
        }
    }
    Ok(())
}

/// A kind of scan, with the state it keeps from block to block. A trait instead of closures, because methods can be
/// inlined into the function of a level.
trait Kind {
    fn decode(
        &mut self,
        segment: &[u8],
        bits: &mut Bits,
        codes: Codes<'_>,
        prediction: &mut i32,
        block: Block<'_>,
    ) -> Result<(), Fault>;

    /// Restart markers reset predictions and runs; kinds without this state do nothing.
    fn restart(&mut self) {}
}

/// All coefficients of a block: the sequential process.
struct Whole {
    workspace: Workspace,
}

impl Kind for Whole {
    #[inline(always)]
    fn decode(
        &mut self,
        segment: &[u8],
        bits: &mut Bits,
        codes: Codes<'_>,
        prediction: &mut i32,
        block: Block<'_>,
    ) -> Result<(), Fault> {
        decode_block(segment, bits, codes, prediction, &mut self.workspace)?;
        block.coefficients.copy_from_slice(&self.workspace[..64]);
        self.workspace[..64].fill(0);
        Ok(())
    }
}

struct DcFirst {
    pass: Pass,
}

impl Kind for DcFirst {
    #[inline(always)]
    fn decode(
        &mut self,
        segment: &[u8],
        bits: &mut Bits,
        codes: Codes<'_>,
        prediction: &mut i32,
        block: Block<'_>,
    ) -> Result<(), Fault> {
        progressive::dc_first(segment, bits, codes.dc, prediction, self.pass, block)
    }
}

struct DcRefine {
    pass: Pass,
}

impl Kind for DcRefine {
    #[inline(always)]
    fn decode(
        &mut self,
        segment: &[u8],
        bits: &mut Bits,
        _: Codes<'_>,
        _: &mut i32,
        block: Block<'_>,
    ) -> Result<(), Fault> {
        progressive::dc_refine(segment, bits, self.pass, block)
    }
}

struct AcFirst {
    pass: Pass,
    /// Number of following blocks without further coefficients in the band.
    end_run: u32,
}

impl Kind for AcFirst {
    #[inline(always)]
    fn decode(
        &mut self,
        segment: &[u8],
        bits: &mut Bits,
        codes: Codes<'_>,
        _: &mut i32,
        block: Block<'_>,
    ) -> Result<(), Fault> {
        progressive::ac_first(segment, bits, codes.ac, &mut self.end_run, self.pass, block)
    }

    fn restart(&mut self) {
        self.end_run = 0;
    }
}

struct AcRefine {
    pass: Pass,
    end_run: u32,
}

impl Kind for AcRefine {
    #[inline(always)]
    fn decode(
        &mut self,
        segment: &[u8],
        bits: &mut Bits,
        codes: Codes<'_>,
        _: &mut i32,
        block: Block<'_>,
    ) -> Result<(), Fault> {
        progressive::ac_refine(segment, bits, codes.ac, &mut self.end_run, self.pass, block)
    }

    fn restart(&mut self) {
        self.end_run = 0;
    }
}
