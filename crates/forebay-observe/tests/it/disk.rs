//! The columns of a disk on this machine.

use std::time::{Duration, Instant};

use forebay_observe::{Options, Processes, Sampler};

use crate::load::{Load, alone};

#[test]
fn a_disk_at_work_has_sizes_waits_and_both_queues() {
    let _alone = alone();
    let Some(load) = Load::new(8) else { return };
    let options = Options { processes: Processes::None, gpu: false, ..Options::default() };
    let sampler = Sampler::start(options).unwrap();
    // The kernel counts busy time in clock ticks of some milliseconds; a fast disk finishes requests in between.
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(300) {
        load.write();
    }
    let series = sampler.stop();
    let value = |quantity: &str| series.values(&format!("disk.{}.{quantity}", load.disk)).unwrap()[0];
    for quantity in
        ["write_size_bytes", "size_bytes", "w_await_ms", "await_ms", "queue_mean", "queue_busy", "util_percent"]
    {
        assert!(value(quantity).is_some_and(|value| value > 0.0), "{quantity}: {:?}", value(quantity));
    }
    assert!(value("queue_busy") >= value("queue_mean"), "the mean while busy is at least the mean over all time");
    assert!(series.columns.iter().all(|column| !column.name.starts_with("process.")));
}
