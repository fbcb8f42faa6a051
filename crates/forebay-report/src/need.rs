//! How much a disk has to give so that accelerators never wait: the rate at which one takes images, times what an image
//! takes in storage, times how many there are.
//!
//! Both factors are measured: the rate by the steps that were run on a batch in memory, or by the time that computing
//! took; the size by the bytes that were moved.

use forebay_record::TrainCell;

/// The quantity's name in studies: what [`ACCELERATORS`] need.
pub(crate) const METRIC: &str = "need_mb_per_s";
/// The number of accelerators that published values are for.
pub(crate) const ACCELERATORS: f64 = 8.0;

/// Images a second that the accelerator takes when it never waits.
pub(crate) fn takes_images_per_s(cell: &TrainCell) -> Option<f64> {
    let rate = match cell.baseline {
        Some(baseline) => cell.batch as f64 / baseline.step_s,
        None => cell.totals.images as f64 / cell.totals.compute_s,
    };
    (rate.is_finite() && rate > 0.0).then_some(rate)
}

/// Bytes that an image took in storage; `None` when none was read.
pub(crate) fn bytes_per_image(cell: &TrainCell) -> Option<f64> {
    let (bytes, images) = (cell.totals.bytes, cell.totals.images);
    (bytes > 0 && images > 0).then(|| bytes as f64 / images as f64)
}

/// Megabytes a second that [`ACCELERATORS`] like a cell's take.
pub(crate) fn mb_per_s(cell: &TrainCell) -> Option<f64> {
    Some(ACCELERATORS * takes_images_per_s(cell)? * bytes_per_image(cell)? / 1e6)
}
