//! Makes the data of a workload file: `make_records FILE DIR [++workload.a.b=c …]`; prints what was made and how fast.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use forebay_dataset::{Control, make_records};

#[allow(clippy::print_stdout, reason = "an example prints")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (file, dir) = arguments.next().zip(arguments.next()).ok_or("usage: make_records FILE DIR [overrides]")?;
    let overrides: Vec<String> = arguments.collect();
    let text = std::fs::read_to_string(&file)?;
    let checked = forebay_workload::read("workload", &text, &overrides).map_err(|problems| format!("{problems:?}"))?;
    let begun = Instant::now();
    let made = make_records(&checked.workload, Path::new(&dir), 0, 1, &Control::default())?;
    let seconds = begun.elapsed().as_secs_f64();
    println!("{made:?} in {seconds:.3} s: {:.3} GB/s", made.bytes as f64 / seconds / 1e9);
    Ok(())
}
