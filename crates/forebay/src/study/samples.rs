//! The per-second series of a study run, written to disk row by row.
//!
//! A run writes `samples.csv`; each time it is resumed, it writes `samples-2.csv` and so on, since the machine may then have
//! other disks. Together the files are the run's series.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use forebay_observe::{CsvSink, Options, Sampler};
use forebay_record::Series;
use forebay_study::Event;
use forebay_units::PathText;

use crate::output::remark;

pub(super) struct Samples(Sampler);

impl Samples {
    pub(super) fn begin(out: &Path) -> Result<Self> {
        let path = (1..).map(|number| file(out, number)).find(|path| !path.exists());
        let path = path.expect("a free number exists");
        let name = path.escaped().into_owned();
        let failed = format!("forebay: {name} ends here: ");
        let sink = CsvSink::create(&path, move |error| remark(&format!("{failed}{error}")));
        let sink = sink.with_context(|| format!("cannot write {name}"))?;
        let options = Options { sink: Some(Box::new(sink)), ..Options::default() };
        Ok(Self(Sampler::start(options).with_context(|| format!("cannot write {name}"))?))
    }

    pub(super) fn mark(&self, event: &Event<'_>) {
        if let Event::Started { cell, .. } = event {
            self.0.mark(cell.id.as_str());
        }
    }

    pub(super) fn end(self) {
        self.0.stop();
    }
}

/// The series in a run's folder; `None` if it has none.
pub(crate) fn read(out: &Path) -> Result<Option<Series>> {
    let mut all = Series::default();
    for path in (1..).map(|number| file(out, number)).take_while(|path| path.exists()) {
        let name = || format!("cannot read {}", path.escaped());
        let text = std::fs::read_to_string(&path).with_context(name)?;
        // A run killed at the start leaves a file without a header.
        if text.contains('\n') {
            all.append(Series::from_csv(&text).with_context(name)?);
        }
    }
    Ok((!all.is_empty()).then_some(all))
}

fn file(out: &Path, number: usize) -> PathBuf {
    match number {
        1 => out.join("samples.csv"),
        more => out.join(format!("samples-{more}.csv")),
    }
}
