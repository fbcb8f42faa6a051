//! A model being trained.
//!
//! A step has three parts, so the next batch can be transferred while the device computes: [`stage`](Network::stage)
//! sends a batch, [`start`](Network::start) begins a step on the oldest staged batch, and [`finish`](Network::finish)
//! waits for its loss.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::body::Body;
use crate::engine::{Engine, Judgement, Normalize};
use crate::error::{Error, Result};
use crate::labels::Labels;
use crate::lent::{HostMemory, Lent, PageLock};
use crate::model::Model;
use crate::optimizer::{Adam, Optimizer};
use crate::shape::Shape;

#[derive(Debug, Clone)]
pub struct Settings {
    pub batch: usize,
    /// The seed of weights and dropout.
    pub seed: u64,
    pub optimizer: Optimizer,
    /// Normalisation of pixels; `None` uses them unchanged.
    pub normalize: Option<Normalize>,
    /// Number of batches that can be on the device or in transfer to it, at least 1.
    pub places: usize,
    /// Which portion of each step's batch this network gets, counted from 0, if several networks share the steps; see
    /// [`Network::exchange`].
    pub portion: u64,
}

impl Settings {
    /// Adam with its usual constants, unchanged pixels, one batch at a time, the whole of it.
    pub fn new(batch: usize, seed: u64) -> Self {
        Self { batch, seed, optimizer: Optimizer::Adam(Adam::default()), normalize: None, places: 1, portion: 0 }
    }
}

/// Where the pixels of a batch are.
enum Pixels<'a> {
    /// Already in the slot's own memory, filled by the caller.
    Filled,
    /// In the caller's memory, read before the call returns.
    Copied(&'a [f32]),
    /// Kept here until they have left the host, then released.
    Lent(Box<dyn Lent>),
}

/// A model with its parameters, on an engine.
pub struct Network<E: Engine> {
    pub(crate) engine: E,
    pub(crate) body: Body<E>,
    pub(crate) optimizer: Optimizer,
    pub(crate) n_steps: u64,
    pub(crate) seed: u64,
    loss: E::Loss,
    normalize: Normalize,
    image: Shape,
    n_classes: usize,
    batch: usize,
    free: Vec<E::Input>,
    staged: VecDeque<E::Input>,
    /// The slot for evaluation batches; created on first use.
    visitor: Option<E::Input>,
    is_running: bool,
    /// Memory for [`exchange`](Self::exchange), kept between steps.
    pub(crate) exchanged: Vec<f32>,
}

impl<E: Engine> Network<E> {
    /// Plans a model and draws its weights.
    ///
    /// # Errors
    /// When the layers do not fit together, settings are out of range, or the device fails.
    pub fn new(engine: E, model: &Model, settings: Settings) -> Result<Self> {
        let (image, n_classes) = (model.input, model.n_classes()?);
        let Settings { batch, seed, optimizer, normalize, places, portion } = settings;
        if places == 0 {
            return Err(Error::Order("a network needs at least one input slot"));
        }
        let normalize = normalize.unwrap_or_else(|| Normalize::identity(image.channels));
        Error::check_length("the scale of pixels", image.channels, normalize.scale.len())?;
        Error::check_length("the shift of pixels", image.channels, normalize.shift.len())?;
        let body = Body::new(&engine, &model.layers, image, batch, (seed, portion))?;
        let loss = engine.loss(batch, n_classes)?;
        let free = (0..places).map(|_| engine.input(batch, image, n_classes)).collect::<Result<_>>()?;
        let staged = VecDeque::with_capacity(places);
        Ok(Self {
            engine,
            body,
            optimizer,
            n_steps: 0,
            seed,
            loss,
            normalize,
            image,
            n_classes,
            batch,
            free,
            staged,
            visitor: None,
            is_running: false,
            exchanged: Vec::new(),
        })
    }

    /// One step; returns the loss of the batch before its gradients changed the parameters.
    ///
    /// # Errors
    /// When the batch has the wrong size or labels, other batches are staged, or the device fails.
    pub fn step(&mut self, images: &[f32], labels: Labels<'_>) -> Result<f32> {
        if !self.staged.is_empty() || self.is_running {
            return Err(Error::Order("`step` called while another batch is staged or computed"));
        }
        self.stage(images, labels)?;
        self.start()?;
        self.finish()
    }

    /// Starts the transfer of a batch to the device: pixels as NHWC floats.
    ///
    /// # Errors
    /// When no slot is free, the batch has the wrong size or labels, or the device fails.
    pub fn stage(&mut self, images: &[f32], labels: Labels<'_>) -> Result<()> {
        Error::check_length("the images of a step", self.batch * self.image.len(), images.len())?;
        self.send(Pixels::Copied(images), labels)
    }

    /// The pixels of the next batch, to be filled in place and sent by [`stage_filled`](Self::stage_filled). They are
    /// in memory that the device can access directly, which saves a copy; they still hold their previous content. Waits
    /// until the previous batch has left.
    ///
    /// # Errors
    /// When no slot is free, or the device fails.
    pub fn pixels(&mut self) -> Result<&mut [f32]> {
        let input = self.free.last_mut().ok_or(Error::Order("no input slot is free"))?;
        Ok(&mut self.engine.staging(input)?[..self.batch * self.image.len()])
    }

    /// Sends the batch whose pixels were filled in place.
    ///
    /// # Errors
    /// As [`stage`](Self::stage).
    pub fn stage_filled(&mut self, labels: Labels<'_>) -> Result<()> {
        self.pixels()?;
        self.send(Pixels::Filled, labels)
    }

    /// Like [`stage`](Self::stage), but takes ownership of the pixels until they have left host memory: no copy is made
    /// if the device can access them directly, see [`lock_pages`](Self::lock_pages). They are dropped by the first of
    /// `is_done`, `stage…`, `start`, `finish` and `wait_arrived` that finds them copied.
    ///
    /// # Errors
    /// As [`stage`](Self::stage); the pixels are dropped then too.
    pub fn stage_lent(&mut self, images: Box<dyn Lent>, labels: Labels<'_>) -> Result<()> {
        Error::check_length("the images of a step", self.batch * self.image.len(), images.floats().len())?;
        self.send(Pixels::Lent(images), labels)
    }

    /// Locks pages of host memory, so the device copies lent batches from them directly. Does nothing if no lock is
    /// needed.
    ///
    /// # Errors
    /// When the system refuses to lock that much, or the memory is locked already. Batches can be lent regardless.
    pub fn lock_pages(&self, memory: Arc<dyn HostMemory>) -> Result<PageLock> {
        self.engine.lock_pages(memory)
    }

    fn send(&mut self, images: Pixels<'_>, labels: Labels<'_>) -> Result<()> {
        let targets = labels.targets(self.batch, self.n_classes)?;
        self.reclaim()?;
        let mut input = self.free.pop().ok_or(Error::Order("no input slot is free"))?;
        let sent = match images {
            Pixels::Filled => self.engine.stage(&mut input, None, &targets, &self.normalize),
            Pixels::Copied(images) => self.engine.stage(&mut input, Some(images), &targets, &self.normalize),
            Pixels::Lent(images) => self.engine.stage_lent(&mut input, images, &targets, &self.normalize),
        };
        self.staged.push_back(input);
        sent
    }

    /// Releases lent memory that has left the host.
    fn reclaim(&mut self) -> Result<()> {
        self.free.iter_mut().chain(&mut self.staged).try_for_each(|input| self.engine.reclaim(input))
    }

    /// Waits until all staged batches are on the device.
    ///
    /// # Errors
    /// When the device fails.
    pub fn wait_arrived(&mut self) -> Result<()> {
        self.engine.wait_arrived()?;
        self.reclaim()
    }

    /// How many more batches can be staged.
    pub fn n_free(&self) -> usize {
        self.free.len()
    }

    /// Begins a step on the oldest staged batch. May return before it is done.
    ///
    /// # Errors
    /// When no batch is staged, the last step was not finished, or the device fails.
    pub fn start(&mut self) -> Result<()> {
        self.start_portion()?;
        self.apply()
    }

    /// Like [`start`](Self::start), but keeps the parameters: [`apply`](Self::apply) updates them, after
    /// [`exchange`](Self::exchange) of the gradients with other networks. [`finish`](Self::finish) returns the loss
    /// before or after that.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_portion(&mut self) -> Result<()> {
        if self.is_running {
            return Err(Error::Order("`start` called before the last step was finished"));
        }
        self.reclaim()?;
        let mut input = self.staged.pop_front().ok_or(Error::Order("`start` called with no batch staged"))?;
        self.n_steps += 1;
        let Self { engine, body, loss, n_steps, batch, n_classes, .. } = self;
        let x = engine.images(&input)?;
        engine.repeat(&input, &mut || {
            body.forward(engine, x, true, *n_steps)?;
            let mut gradient = body.spare.take(engine, *batch * *n_classes)?;
            engine.loss_forward(loss, body.sequence.output(), &input, *batch, Some(&mut gradient.1))?;
            body.backward(engine, x, &mut gradient.1, None, *n_steps)?;
            body.spare.give(gradient);
            Ok(())
        })?;
        self.engine.release(&mut input)?;
        // At the front: the caller may be filling the pixels of the last one.
        self.free.insert(0, input);
        self.is_running = true;
        Ok(())
    }

    /// Updates the parameters by their gradients, once after each [`start_portion`](Self::start_portion).
    ///
    /// # Errors
    /// When the device fails.
    pub fn apply(&mut self) -> Result<()> {
        self.engine.update(&mut self.body.store, &self.optimizer.rule(self.n_steps))
    }

    /// Waits for the started step and returns its loss.
    ///
    /// # Errors
    /// When no step was started, or the device fails.
    pub fn finish(&mut self) -> Result<f32> {
        if !std::mem::take(&mut self.is_running) {
            return Err(Error::Order("`finish` called without a started step"));
        }
        let judgement = self.engine.judgement(&self.loss)?;
        self.reclaim()?;
        Ok(judgement.loss)
    }

    /// Returns an error if a batch is in transfer or a step in progress.
    pub(crate) fn check_idle(&self) -> Result<()> {
        match self.is_running || !self.staged.is_empty() {
            true => Err(Error::Order("a batch is staged or a step not finished")),
            false => Ok(()),
        }
    }

    /// Whether the started step is done, so [`finish`](Self::finish) would not wait.
    ///
    /// # Errors
    /// When no step was started, or the device fails.
    pub fn is_done(&mut self) -> Result<bool> {
        if !self.is_running {
            return Err(Error::Order("`is_done` called without a started step"));
        }
        self.reclaim()?;
        self.engine.is_idle()
    }

    /// Loss and correct predictions on samples without learning from them: at most one batch.
    ///
    /// # Errors
    /// When there are more samples than a batch, labels are wrong, a step is not finished, or the device fails.
    pub fn evaluate(&mut self, images: &[f32], labels: Labels<'_>) -> Result<Judgement> {
        let n = self.n_samples(images)?;
        let targets = labels.targets(n, self.n_classes)?;
        self.look(images, &targets)?;
        let input = self.visitor.as_ref().expect("looking makes the place");
        self.engine.loss_forward(&mut self.loss, self.body.sequence.output(), input, n, None)?;
        self.engine.judgement(&self.loss)
    }

    /// The outputs before the softmax for at most one batch of images, one row of classes per sample.
    ///
    /// # Errors
    /// When there are more images than a batch, a step is not finished, or the device fails.
    pub fn predict(&mut self, images: &[f32]) -> Result<Vec<f32>> {
        let n = self.n_samples(images)?;
        self.look(images, &[])?;
        self.engine.download(self.body.sequence.output(), n * self.n_classes)
    }

    fn n_samples(&self, images: &[f32]) -> Result<usize> {
        let n = (images.len() / self.image.len()).clamp(1, self.batch);
        Error::check_length("the images", n * self.image.len(), images.len())?;
        Ok(n)
    }

    /// A forward pass without dropout or an update.
    fn look(&mut self, images: &[f32], targets: &[f32]) -> Result<()> {
        if self.is_running {
            return Err(Error::Order("evaluation requested before the last step was finished"));
        }
        let mut input = match self.visitor.take() {
            Some(input) => input,
            None => self.engine.input(self.batch, self.image, self.n_classes)?,
        };
        self.engine.stage(&mut input, Some(images), targets, &self.normalize)?;
        self.body.forward(&self.engine, self.engine.images(&input)?, false, self.n_steps)?;
        self.engine.release(&mut input)?;
        self.visitor = Some(input);
        Ok(())
    }

    pub fn optimizer(&self) -> &Optimizer {
        &self.optimizer
    }

    pub fn set_learning_rate(&mut self, learning_rate: f64) {
        self.optimizer.set_learning_rate(learning_rate);
    }

    /// Steps made since the weights were drawn.
    pub fn n_steps(&self) -> u64 {
        self.n_steps
    }

    pub fn describe_device(&self) -> String {
        self.engine.describe()
    }
}
