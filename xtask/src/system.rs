//! System packages beyond Rust: names them, and installs them where possible.

use std::process::Command;

use anyhow::{Result, bail};

use crate::shell::run;

/// Makes sure a program is there; `package` is its Debian package.
pub fn need(program: &str, package: &str) -> Result<()> {
    if works(program, &["--version"]) { Ok(()) } else { install(&[package], &format!("{program} is missing")) }
}

/// Whether a program starts and succeeds.
pub fn works(program: &str, args: &[&str]) -> bool {
    let output = Command::new(program).args(args).output();
    output.is_ok_and(|output| output.status.success())
}

/// Installs Debian packages if this is root on a Debian machine; otherwise says which are needed.
pub fn install(packages: &[&str], why: &str) -> Result<()> {
    if !is_root() || !works("apt-get", &["--version"]) {
        bail!(
            "{why}; install the Debian packages {} (or your system's counterparts) and try again",
            packages.join(" ")
        );
    }
    eprintln!("{why}; installing {}", packages.join(" "));
    run(Command::new("apt-get").args(["update", "-qq"]))?;
    let quiet = ["install", "-y", "-qq", "--no-install-recommends"];
    run(Command::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive").args(quiet).args(packages))
}

/// Whether this process may do everything.
pub fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.starts_with(b"0\n"))
}
