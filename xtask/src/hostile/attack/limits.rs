//! Few descriptors, little memory, no more threads, files that may not grow.

use super::{SUBJECTS, is_root};
use crate::hostile::case::Case;

const DESCRIPTORS: &[u32] = &[4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 32, 48, 64];
const DESCRIPTORS_SHORT: &[u32] = &[5, 8, 12, 20];

pub fn cases(is_short: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for subject in SUBJECTS {
        for n in if is_short { DESCRIPTORS_SHORT } else { DESCRIPTORS } {
            let limit = format!("--nofile={n}");
            cases.push(Case::new(subject, format!("{n} descriptors")).under(&["prlimit", &limit]));
        }
        for (size, bytes) in
            [("0 B", "0"), ("4 KiB", "4096"), ("100 KiB", "102400")].iter().skip(usize::from(is_short) * 2)
        {
            let limit = format!("--fsize={bytes}");
            cases.push(Case::new(subject, format!("files of at most {size}")).under(&["prlimit", &limit]));
        }
        for (size, bytes) in [("1 GiB", "1073741824"), ("400 MiB", "419430400")].iter().skip(usize::from(is_short)) {
            let limit = format!("--as={bytes}");
            cases.push(Case::new(subject, format!("{size} of addresses")).under(&["prlimit", &limit]));
        }
        // Root is not held to a number of processes, so that somebody else runs it.
        if is_root() {
            for n in if is_short { [3].iter() } else { [1, 2, 3, 4, 8].iter() } {
                cases
                    .push(as_nobody(Case::new(subject, format!("{n} threads")), &["prlimit", &format!("--nproc={n}")]));
            }
        }
    }
    cases
}

/// Runs a case as a user without rights, in folders that belong to that user.
pub fn as_nobody(case: Case, under: &[&str]) -> Case {
    let mut words = vec!["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    words.extend(under);
    case.under(&words).prepare(|folder| {
        let all = [folder.to_owned(), folder.with_file_name("aside")];
        crate::hostile::arena::run_quietly(std::process::Command::new("chown").arg("-R").arg("65534:65534").args(all))
    })
}
