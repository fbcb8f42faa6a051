//! The kernels for devices, compiled as C and run on this CPU. Tests of `forebay-decode` use this file too.

use std::ffi::{CString, c_char, c_int};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use forebay_jpeg::device::{Arguments, Batch, KERNEL_NAMES};
use forebay_testing::{Reason, not_run};
use libloading::Library;

type Launch = unsafe extern "C" fn(*const c_char, *const Arguments, u32, u32, u32, c_int) -> c_int;

/// The kernels for this CPU.
pub(crate) struct Shim {
    library: Library,
}

/// How the threads of a launch are run, and what memory holds before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    pub(crate) is_backwards: bool,
    pub(crate) poison: u8,
}

pub(crate) const MANNERS: [Manner; 2] =
    [Manner { is_backwards: false, poison: 0xA5 }, Manner { is_backwards: true, poison: 0x3C }];

impl Shim {
    /// `None`, and a line that the test did not run, without a C compiler.
    pub(crate) fn get() -> Option<&'static Self> {
        static SHIM: OnceLock<Option<Shim>> = OnceLock::new();
        let shim = SHIM.get_or_init(Self::build).as_ref();
        if shim.is_none() {
            not_run(Reason::NoProgram, "cc");
        }
        shim
    }

    fn build() -> Option<Self> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../forebay-jpeg/tests/it/device.c");
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("device-{}.so", std::process::id()));
        let mut compiler = Command::new("cc");
        compiler.args([
            "-std=gnu11",
            "-O1",
            "-ffp-contract=off",
            "-fwrapv",
            "-fno-strict-aliasing",
            "-shared",
            "-fPIC",
            "-o",
        ]);
        let status = compiler.arg(&path).arg(source).arg("-lm").status().ok()?;
        assert!(status.success(), "the kernels are valid C");
        // SAFETY: the library has no initialisers.
        let library = unsafe { Library::new(&path) }.unwrap();
        std::fs::remove_file(path).unwrap();
        Some(Self { library })
    }

    /// Whether each file is marked, and all samples.
    pub(crate) fn run(&self, batch: &Batch<'_>, manner: Manner) -> (Vec<bool>, Vec<u8>) {
        let mut memory = vec![u64::from_ne_bytes([manner.poison; 8]); batch.n_device_bytes().div_ceil(8) + 32];
        let start = memory.as_ptr().align_offset(256);
        let base = memory[start..].as_mut_ptr();
        // SAFETY: initialised bytes of the vector, which is not used in another way while the slice is.
        let bytes = || unsafe { std::slice::from_raw_parts_mut(base.cast::<u8>(), batch.n_device_bytes()) };
        batch.upload(&mut bytes()[..batch.n_upload_bytes()]);
        bytes()[batch.zeroed()].fill(0);
        let arguments = batch.arguments(base.expose_provenance() as u64);
        // SAFETY: the function has this signature.
        let function = unsafe { self.library.get::<Launch>(b"launch") }.unwrap();
        for launch in batch.launches() {
            let (name, n_blocks) = (CString::new(launch.kernel).unwrap(), launch.n_items.div_ceil(32).clamp(1, 97));
            // SAFETY: the kernels stay within the memory that the batch asked for.
            let found =
                unsafe { function(name.as_ptr(), &arguments, launch.round, n_blocks, 32, manner.is_backwards.into()) };
            assert_eq!(found, 1, "{} exists", launch.kernel);
            assert!(KERNEL_NAMES.contains(&launch.kernel));
        }
        let bytes = bytes();
        let faults = bytes[batch.faults()].as_chunks::<4>().0.iter().map(|fault| *fault != [0; 4]).collect();
        (faults, bytes[batch.out()].to_vec())
    }
}
