//! Records the machine's activity while code runs: here, reading photographs from an emulated disk.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use forebay_observe::{Options, observe};
use forebay_pipeline::{Dataset, ReadOnly, Source, Threads};
use forebay_storage::{Local, Profile, Shaped};

fn main() -> Result<()> {
    let folder = forebay_examples::photographs(128)?;
    let source = Source::discover(Arc::new(Local::default()), folder.path())?;
    let options = Options { interval: Duration::from_millis(250), ..Options::default() };
    let (done, series) = observe(options, |sampler| -> Result<()> {
        for threads in [1, 8] {
            if let Some(sampler) = sampler {
                sampler.mark(format!("{threads} threads"));
            }
            let slow = Arc::new(Shaped::new(Local::default(), Profile::hdd()));
            let dataset = Dataset::new(source.clone()).storage(slow).map(ReadOnly);
            for batch in dataset.threads(Threads::Fixed(threads)).batch(16).iter()? {
                batch?;
            }
        }
        Ok(())
    });
    done?;
    let series = series?;
    let read = series.values("process.rchar_bytes_per_s");
    for (row, time) in series.time_s.iter().enumerate() {
        let rate = read.and_then(|rates| rates[row]).map_or("–".to_owned(), |rate| format!("{:.1} MB/s", rate / 1e6));
        println!("{time:5.2} s: {rate} read by this process");
    }
    for mark in &series.marks {
        println!("{:5.2} s: start of {}", mark.time_s, mark.what);
    }
    Ok(())
}
