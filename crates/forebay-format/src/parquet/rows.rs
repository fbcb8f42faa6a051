//! The rows of a row group: its chosen columns decoded in step.

use super::chunk::{ChunkReader, Fetch, Rows};
use super::footer::Footer;
use crate::Error;

/// Reads the rows of one row group from first to last.
#[derive(Debug)]
pub struct GroupReader {
    columns: Vec<(ChunkReader, usize)>,
    row_bytes: usize,
    rows_left: u64,
}

impl GroupReader {
    /// Of group `group`. Bytes are asked for in pieces of `piece_bytes` a column, more only where a page is longer;
    /// `verify` checks the pages' checksums.
    ///
    /// # Panics
    /// When there is no such group.
    pub fn new(footer: &Footer, group: usize, piece_bytes: usize, verify: bool) -> Self {
        let group = &footer.groups[group];
        let mut at = 0_usize;
        let columns = footer.leaves.iter().zip(&group.chunks);
        let columns = columns
            .map(|(leaf, chunk)| {
                let from = at;
                at = at.saturating_add(leaf.row_bytes());
                (ChunkReader::new(leaf.clone(), *chunk, piece_bytes, verify), from)
            })
            .collect();
        Self { columns, row_bytes: at, rows_left: group.n_rows }
    }

    pub fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    pub fn rows_left(&self) -> u64 {
        self.rows_left
    }

    /// Passes over rows, asking for no more than the headers of pages where it can. Their checksums are not looked at.
    ///
    /// # Errors
    /// As [`read`](Self::read); and when there are not so many.
    pub fn skip<E: From<Error>>(&mut self, n_rows: u64, fetch: Fetch<'_, E>) -> Result<(), E> {
        if n_rows > self.rows_left {
            return Err(Error::truncated("Parquet row group: rows", 0, n_rows, self.rows_left).into());
        }
        for (column, _) in &mut self.columns {
            column.skip(n_rows, fetch)?;
        }
        self.rows_left -= n_rows;
        Ok(())
    }

    /// Reads the next rows into `rows`, as many as fit, at most those left; returns how many. `fetch` appends exactly so
    /// many bytes of the file from an offset on.
    ///
    /// # Errors
    /// Those of `fetch`; and when a page is damaged or of a kind that is not read. The group can then not be read on.
    pub fn read<E: From<Error>>(&mut self, rows: &mut [u8], fetch: Fetch<'_, E>) -> Result<usize, E> {
        let fitting = rows.len().checked_div(self.row_bytes).unwrap_or(0);
        let n_rows = fitting.min(usize::try_from(self.rows_left).unwrap_or(usize::MAX));
        if n_rows == 0 {
            return Ok(0);
        }
        for (column, at) in &mut self.columns {
            let mut target = Rows { bytes: &mut *rows, stride: self.row_bytes, at: *at };
            column.read(n_rows, &mut target, fetch)?;
        }
        self.rows_left -= n_rows as u64;
        Ok(n_rows)
    }
}
