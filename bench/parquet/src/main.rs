//! Our Parquet beside the `parquet` crate on the shape of the workload `dlrm_b200`: 200 columns, 40 of them read. Both
//! write the same values and read the same rows; the times are processor time, taken in turns.

mod theirs;

use anyhow::{Result, ensure};
use forebay_format::parquet::{Codec, Column, Footer, GroupReader, TAIL_BYTES, Writer, footer_range};
use forebay_format::{Element, Error};

const GROUP_ROWS: usize = 6144;
const N_GROUPS: usize = 24;
/// Rounds in which all take their turn; the first only warms up.
const ROUNDS: usize = 12;
/// Bytes of one read of a column, as in a workload.
const PIECE: usize = 256 << 10;

/// The columns with their values, all rows of a column one behind the other.
pub struct Table {
    pub columns: Vec<Column>,
    pub values: Vec<Vec<u8>>,
}

/// Of the columns, the first so many are read.
pub const N_READ: usize = 40;

impl Table {
    fn new() -> Self {
        let kinds = [(Element::F32, 27), (Element::F64, 5), (Element::F16, 4), (Element::I8, 4)];
        let unread = [(Element::F32, 29), (Element::F64, 44), (Element::F16, 46), (Element::I8, 41)];
        let elements = kinds.into_iter().chain(unread).flat_map(|(element, n)| (0..n).map(move |_| element));
        let columns: Vec<Column> =
            elements.enumerate().map(|(i, element)| Column { name: format!("c{i}"), element, width: 1 }).collect();
        let values = columns.iter().map(|column| noise(N_GROUPS * GROUP_ROWS * column.element.bytes())).collect();
        Self { columns, values }
    }

    /// The values of a column in rows of a group.
    pub fn values(&self, column: usize, group: usize, from: usize, len: usize) -> &[u8] {
        &self.values[column][(group * GROUP_ROWS + from) * self.columns[column].element.bytes()..][..len]
    }

    /// Bytes of a row as it is read.
    pub fn row_bytes(&self) -> usize {
        self.columns[..N_READ].iter().map(|column| column.element.bytes()).sum()
    }
}

/// Incompressible, and no float that is not finite.
fn noise(len: usize) -> Vec<u8> {
    let mix = |i: u64| {
        let z = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB) & !0x4000_4000_4000_4000
    };
    (1..=len.div_ceil(8) as u64).flat_map(|i| mix(i).to_le_bytes()).take(len).collect()
}

fn write(table: &Table, codec: Codec, file: &mut Vec<u8>) -> Result<(), Error> {
    file.clear();
    let mut out = |bytes: &[u8]| -> Result<(), Error> {
        file.extend_from_slice(bytes);
        Ok(())
    };
    let mut writer = Writer::new(table.columns.clone(), codec)?;
    for group in 0..N_GROUPS {
        let mut values = |column: usize, row: u64, to: &mut [u8]| {
            to.copy_from_slice(table.values(column, group, row as usize, to.len()));
        };
        writer.write_group(GROUP_ROWS as u64, &mut values, &mut out)?;
    }
    writer.finish(&mut out)
}

fn read(table: &Table, file: &[u8], rows: &mut [u8]) -> Result<(), Error> {
    let names: Vec<String> = table.columns[..N_READ].iter().map(|column| column.name.clone()).collect();
    let range = footer_range(&file[file.len() - TAIL_BYTES..], file.len() as u64)?;
    let footer = Footer::parse(&file[range.start as usize..range.end as usize], range.start, Some(&names))?;
    let mut fetch = |offset: u64, len: usize, into: &mut Vec<u8>| -> Result<(), Error> {
        into.extend_from_slice(&file[offset as usize..][..len]);
        Ok(())
    };
    let group_bytes = GROUP_ROWS * footer.row_bytes();
    for (group, rows) in rows.chunks_mut(group_bytes).enumerate() {
        GroupReader::new(&footer, group, PIECE, true).read(rows, &mut fetch)?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let table = Table::new();
    let n_rows = N_GROUPS * GROUP_ROWS;
    println!("{} columns, {n_rows} rows; {N_READ} columns are read", table.columns.len());
    for (name, codec) in [("uncompressed", Codec::None), ("snappy", Codec::Snappy)] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let (mut rows, mut expected) = (vec![0; n_rows * table.row_bytes()], vec![0; n_rows * table.row_bytes()]);
        let mut times = [const { Vec::new() }; 5];
        for round in 0..ROUNDS {
            let made = [
                timed(|| Ok(write(&table, codec, &mut ours)?))?,
                timed(|| theirs::write(&table, codec, &mut theirs))?,
                timed(|| Ok(read(&table, &ours, &mut expected)?))?,
                timed(|| theirs::read(&table, &ours, &mut rows))?,
                timed(|| theirs::read_pages(&table, &ours, &mut rows))?,
            ];
            ensure!(rows == expected, "the rows are not the same");
            read(&table, &theirs, &mut rows)?;
            ensure!(rows == expected, "the rows of the other's file are not the same");
            if round > 0 {
                times.iter_mut().zip(made).for_each(|(times, seconds)| times.push(seconds));
            }
        }
        let [write, their_write, read, their_read, their_pages] = times.map(median);
        println!("{name}:");
        println!(
            "  write             {:6.1} ms, the crate {:6.1} ms, ratio {:.2}",
            write,
            their_write,
            their_write / write
        );
        println!(
            "  read              {:6.1} ms, the crate {:6.1} ms, ratio {:.2}",
            read,
            their_read,
            their_read / read
        );
        println!("  with its pages and our values     {:6.1} ms, ratio {:.2}", their_pages, their_pages / read);
    }
    Ok(())
}

/// In milliseconds of processor time.
fn timed(run: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = cpu_ms();
    run()?;
    Ok(cpu_ms() - start)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn cpu_ms() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is valid and written by the call alone.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}
