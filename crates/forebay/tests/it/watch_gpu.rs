//! GPU columns, by a stand-in for NVIDIA's library: its functions as nvml.h declares them, and two made-up GPUs.

use std::path::Path;
use std::process::Command;

use forebay_record::Series;

use forebay_testing::{Reason, not_run};

use crate::dir::Dir;
use crate::process::once_in_ten;

/// The second GPU knows neither its power nor its PCIe traffic, as an old one.
const LIBRARY: &str = r"
#include <unistd.h>
struct utilization { unsigned int gpu, memory; };
struct memory { unsigned long long total, free, used; };
static int gpus[2];
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned int *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int i, void **device) { *device = &gpus[i]; return 0; }
int nvmlDeviceGetUtilizationRates(void *device, struct utilization *u) {
    u->gpu = device == gpus ? 97 : 3;
    u->memory = 44;
    return 0;
}
int nvmlDeviceGetMemoryInfo(void *device, struct memory *m) {
    m->total = 150754820096;
    m->free = 150109880320;
    m->used = 644939776;
    return 0;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned int *mw) { *mw = 111073; return device == gpus ? 0 : 3; }
int nvmlDeviceGetPcieThroughput(void *device, unsigned int direction, unsigned int *kb) {
    usleep(20000);
    *kb = direction == 0 ? 1539 : 543;
    return device == gpus ? 0 : 3;
}
";

/// Builds the library; `None`, and a word why, without a C compiler.
fn build(dir: &Dir) -> Option<()> {
    dir.write("nvml.c", LIBRARY);
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o", "libnvidia-ml.so.1", "nvml.c"]).current_dir(dir.path(""));
    match cc.output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(())
        }
        Err(error) => {
            not_run(Reason::NoProgram, format!("cc: {error}"));
            None
        }
    }
}

#[test]
fn a_gpu_has_columns_and_its_slow_library_makes_no_tick_late() {
    let dir = Dir::new();
    if build(&dir).is_none() {
        return;
    }
    let watch = || {
        let mut command = dir.command("watch --interval 200ms --count 4 --csv -");
        let output = command.env("LD_LIBRARY_PATH", dir.path("")).output().unwrap();
        Series::from_csv(std::str::from_utf8(&output.stdout).unwrap()).unwrap()
    };
    let series = watch();
    let of = |name: &str| series.values(name).unwrap_or_else(|| panic!("no {name}")).to_vec();
    assert_eq!(of("gpu.0.util_percent"), [Some(97.0); 4]);
    assert_eq!(of("gpu.1.util_percent"), [Some(3.0); 4]);
    assert_eq!(of("gpu.0.memory_bytes"), [Some(644_939_776.0); 4]);
    assert_eq!(of("gpu.0.power_w"), [Some(111.073); 4]);
    assert_eq!(of("gpu.0.pcie_tx_bytes_per_s"), [Some(1_539_000.0); 4]);
    assert_eq!(of("gpu.0.pcie_rx_bytes_per_s"), [Some(543_000.0); 4]);
    assert_eq!((of("gpu.1.power_w"), of("gpu.1.pcie_rx_bytes_per_s")), (vec![None; 4], vec![None; 4]));
    // The two take 80 ms to read, which is not in the way of a tick.
    let is_in_time = |_| forebay_units::median(&watch().late_s).unwrap() < 0.06;
    assert!(once_in_ten(is_in_time), "{:?}", series.late_s);
}

#[test]
fn the_table_shows_the_first_gpu() {
    let dir = Dir::new();
    if build(&dir).is_none() {
        return;
    }
    let mut command = dir.command("watch --interval 50ms --count 1");
    let output = command.env("LD_LIBRARY_PATH", dir.path("")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let last_words: Vec<&str> = text.lines().map(|line| line.split_whitespace().last().unwrap()).collect();
    assert_eq!(last_words, ["gpu0", "%", "97"]);
}

#[test]
fn without_a_gpu_there_are_no_columns_and_no_words() {
    let dir = Dir::new();
    if Path::new("/proc/driver/nvidia/version").exists() {
        return not_run(Reason::Gpu, "a driver");
    }
    let text = dir.met("watch --interval 10ms --count 1 --csv -");
    assert!(!text.contains("gpu."), "{text}");
}
