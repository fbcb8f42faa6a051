//! Compiles the interposer, a shared library in C, so that the crate can embed it.

use std::env;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

#[allow(dead_code, unreachable_pub)]
#[path = "src/layout.rs"]
mod layout;

const SOURCES: [&str; 5] = ["ring.c", "files.c", "names.c", "streams.c", "programs.c"];

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let library = out.join("libforebay_io.so");
    for path in SOURCES.iter().copied().chain(["ring.h", "forebay.h"]) {
        println!("cargo::rerun-if-changed=c/{path}");
    }
    println!("cargo::rerun-if-changed=src/layout.rs");
    println!("cargo::rustc-check-cfg=cfg(no_interposer)");
    // Other C libraries have other names for the same calls; the interposer knows glibc's.
    let is_glibc = env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux")
        && env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu")
        && matches!(env::var("CARGO_CFG_TARGET_ARCH").as_deref(), Ok("x86_64" | "aarch64"));
    if !is_glibc {
        println!("cargo::rustc-cfg=no_interposer");
        return;
    }
    std::fs::write(out.join("layout.h"), header()).expect("OUT_DIR can be written");
    compile(&out, &library);
}

/// The numbers of the layout as C.
fn header() -> String {
    let mut text = "/* Written by build.rs from src/layout.rs. */\n#pragma once\n".to_owned();
    let numbers = [
        ("HEADER_BYTES", layout::HEADER_BYTES),
        ("SEGMENT_BYTES", layout::SEGMENT_BYTES),
        ("SLOT_BYTES", layout::SLOT_BYTES),
        ("SLOTS", layout::SLOTS),
        ("TEXT_BYTES", layout::TEXT_BYTES),
        ("MAX_TEXT", layout::MAX_TEXT),
        ("OPS", layout::OPS),
        ("DROPPED_AT", layout::DROPPED_AT),
        ("EXE_AT", layout::EXE_AT),
        ("EXE_BYTES", layout::EXE_BYTES),
        ("COMMAND_AT", layout::COMMAND_AT),
        ("COMMAND_BYTES", layout::COMMAND_BYTES),
        ("VERSION", layout::VERSION as usize),
    ];
    let mut define = |name: &str, value: u64| {
        writeln!(text, "#define FB_{name} {value}u").expect("a string takes every write");
    };
    numbers.into_iter().for_each(|(name, value)| define(name, value as u64));
    define("LONG_DURATION", u64::from(layout::LONG_DURATION));
    layout::OPERATIONS.iter().for_each(|(number, name, ..)| define(&format!("OP_{name}"), u64::from(*number)));
    layout::MARKS.iter().for_each(|(number, name, _)| define(&format!("MARK_{name}"), u64::from(*number)));
    layout::TYPES.iter().for_each(|(number, name)| define(&format!("TYPE_{name}"), u64::from(*number)));
    writeln!(text, "#define FB_MAGIC {:#x}ull", layout::MAGIC).expect("a string takes every write");
    text
}

fn compile(out: &Path, library: &Path) {
    // The build's own flags may ask for a sanitizer or for static linking, which a preloaded library cannot have.
    let mut build = cc::Build::new();
    build.opt_level(2).debug(false).pic(true).warnings(true).extra_warnings(true).cargo_metadata(false);
    let mut command: Command = build.get_compiler().to_command();
    command.args([
        "-shared",
        "-std=gnu11",
        "-fno-plt",
        "-fvisibility=hidden",
        "-fno-stack-protector",
        "-U_FORTIFY_SOURCE",
    ]);
    command.args(["-ftls-model=initial-exec", "-Wl,-z,defs", "-Wl,-z,now", "-Wl,-soname,libforebay_io.so", "-I"]);
    command.arg(out).arg("-o").arg(library);
    command.args(SOURCES.map(|source| OsString::from(format!("c/{source}")))).arg("-ldl");
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("the C compiler could not make the interposer ({status}): {command:?}"),
        Err(error) => panic!("no C compiler to make the interposer: {error}: {command:?}"),
    }
}
