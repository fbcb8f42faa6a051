//! A workload as our TOML: only what differs from the defaults, with the notes as comments.

use crate::Checked;

/// The TOML text, which [`read`](crate::read()) reads back as the same workload.
pub fn to_toml(checked: &Checked) -> String {
    let _ = checked;
    unimplemented!()
}
