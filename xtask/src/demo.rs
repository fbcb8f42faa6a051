//! The first command of a newcomer: a small dataset, the ingest sweep, the table.

use anyhow::Result;

use crate::shell::{binary, cargo, program, run, target};
use crate::system;

/// Enough images for rates that repeat within a few percent, few enough to be made in seconds.
const N_IMAGES: &str = "1024";

/// Builds, makes the data (once), and measures decoding and plain reading.
pub fn run_demo() -> Result<()> {
    system::need("cc", "gcc")?;
    run(&mut cargo(&["build", "--release", "--quiet"]))?;
    let data = target().join("demo/imagenet");
    run(program(binary()).args(["data", "make", "imagenet"]).arg(&data).args(["--count", N_IMAGES]))?;
    run(program(binary()).arg("ingest").arg(&data))?;
    run(program(binary()).arg("ingest").arg(&data).arg("--read-only"))
}
