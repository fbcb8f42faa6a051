//! The loader of images.

use forebay_format::image::{Layout, Tint};
use forebay_pipeline::{AugmentImage, Dataset, DecodeImage, Mapped, PixelShape, TakePixels};
use pyo3::prelude::*;

use crate::dlpack;
use crate::feed::{Feed, Kind, Taken};
use crate::order::Order;
use crate::spec::{ImageSettings, Output};
use crate::tensor::Tensor;

/// The native half of `forebay.ImageLoader`.
#[pyclass(frozen, extends = Feed, module = "forebay._forebay")]
pub(crate) struct Images {
    output: Output,
}

struct Decoded {
    output: Output,
    /// Of data that is already pixels.
    pixels: Option<PixelShape>,
}

impl Kind for Decoded {
    fn mapped(&self, dataset: Dataset) -> Mapped {
        let spec = self.output.image;
        match (self.output.is_plain, self.pixels) {
            (true, None) => dataset.map(DecodeImage(spec)),
            (true, Some(shape)) => dataset.map(TakePixels { shape, spec }),
            (false, pixels) => dataset.map(AugmentImage { spec, augment: self.output.augment, pixels }),
        }
    }

    /// Images, labels and sample indices.
    fn present<'py>(&self, py: Python<'py>, batch: Taken) -> PyResult<Bound<'py, PyAny>> {
        let image = self.output.image;
        let (n, width, height) = (batch.samples.len() as i64, i64::from(image.width), i64::from(image.height));
        let shape = match image.layout {
            Layout::Nchw => vec![n, 3, height, width],
            Layout::Nhwc => vec![n, height, width, 3],
        };
        let images = Tensor::new(batch.memory, shape, dlpack::of_image(image.dtype));
        let parts = (images, Tensor::numbers(batch.labels), Tensor::indices(&batch.samples));
        Ok(parts.into_pyobject(py)?.into_any())
    }
}

#[pymethods]
impl Images {
    #[new]
    fn new(py: Python<'_>, settings: ImageSettings) -> PyResult<PyClassInitializer<Self>> {
        let source = settings.source(py)?;
        let output = settings.output(&source)?;
        let kind = Box::new(Decoded { output, pixels: source.pixels() });
        let order = Order::of_samples(settings.common.shuffle());
        let feed = Feed::new(&settings.common, source, order, kind)?;
        Ok(PyClassInitializer::from(feed).add_subclass(Self { output }))
    }

    /// The names of the classes, by label; empty if the data has none.
    #[getter]
    fn classes(this: PyRef<'_, Self>) -> Vec<String> {
        this.as_super().source().classes().to_vec()
    }

    /// Width and height of a sample.
    #[getter]
    fn size(&self) -> (u32, u32) {
        (self.output.image.width, self.output.image.height)
    }

    /// The crop (left, top, width, height), the size it is resized to, the corner of the sample in that, and whether left and
    /// right are exchanged, for a sample of an image of this size.
    #[allow(clippy::type_complexity, reason = "plain tuples are what Python takes")]
    fn view(&self, sample: u32, epoch: u64, image: (u32, u32)) -> ((u32, u32, u32, u32), (u32, u32), (u32, u32), bool) {
        let view = self.output.augment.view(image, self.size(), epoch, sample);
        let crop = (view.crop.left, view.crop.top, view.crop.width, view.crop.height);
        (crop, view.resized, view.offset, view.mirrored)
    }

    /// The changes of colours of a sample in an epoch, in their order, with the factor of each.
    fn tints(&self, sample: u32, epoch: u64) -> Vec<(&'static str, f32)> {
        let one = |tint: &Tint| match tint {
            Tint::Brightness(factor) => ("brightness", *factor),
            Tint::Contrast(factor) => ("contrast", *factor),
            Tint::Saturation(factor) => ("saturation", *factor),
            Tint::Hue(turn) => ("hue", *turn),
        };
        self.output.augment.tints(epoch, sample).iter().map(one).collect()
    }
}
