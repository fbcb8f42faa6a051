//! `forebay workload list`.

use anyhow::Result;
use forebay_report::{Align, Table};
use forebay_workload::builtin;
use serde_json::json;

use crate::output::{JsonArgs, Outcome, Schema};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "DLIO's variants for object stores (unet3d_*_s3) are not included, because forebay reads files.\n\n\
                        Example: forebay workload list; forebay workload show unet3d_h100"
)]
pub(crate) struct Args {
    #[command(flatten)]
    json: JsonArgs,
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    let target = args.json.target([])?;
    let mut table = Table::new(&[("workload", Align::Left), ("what it is", Align::Left)]);
    for builtin in builtin::all() {
        table.row(vec![builtin.name.to_owned(), builtin.about.to_owned()]);
    }
    let all: Vec<_> = builtin::all()
        .iter()
        .map(|builtin| json!({"name": builtin.name, "about": builtin.about, "toml": builtin.text}))
        .collect();
    target.give(Schema::WorkloadList, &table.render(), &json!({ "workloads": all }))?;
    Ok(Outcome::Met)
}
