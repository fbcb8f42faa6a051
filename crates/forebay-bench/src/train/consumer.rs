//! Consumers of batches: a network on a device, or an emulated accelerator.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use forebay_pipeline::Batch;
use forebay_train::{
    Cpu, Cuda, EmulatedAccelerator, Emulation, Engine, HostMemory, Judgement, Labels, Manner, Model, Network,
    Normalize, Optimizer, PageLock, Settings, Shape, State, View,
};
use forebay_units::SystemClock;

use super::device::{Accelerator, Device};
use super::feeder::Load;
use super::plan::Plan;
use super::run::Error;

/// Mean and standard deviation of ImageNet's channels, for pixel values from 0 to 255.
const MEAN: [f32; 3] = [123.675, 116.28, 103.53];
const DEVIATION: [f32; 3] = [58.395, 57.12, 57.375];

/// Input size of an emulated accelerator.
pub(super) const EMULATED_IMAGE: Shape = Shape::new(224, 224, 3);

/// A step is `stage`, `start`, `finish`; during a step, further batches may be staged as long as there is room.
pub(super) trait Consumer {
    /// For records.
    fn device(&self) -> String;
    fn stage(&mut self, load: Load) -> Result<(), Error>;
    /// Waits until all staged batches have arrived.
    fn wait_arrived(&mut self) -> Result<(), Error>;
    /// Uses the oldest staged batch.
    fn start(&mut self) -> Result<(), Error>;
    fn is_done(&mut self) -> Result<bool, Error>;
    /// Waits for the current step, unless `cancel` can interrupt it.
    fn finish(&mut self, cancel: &AtomicBool) -> Result<Finished, Error>;
    /// Returns to the initial weights and random times.
    fn reset(&mut self) -> Result<(), Error>;
    /// The state to save, in place; `None` if nothing is learnt.
    fn view(&self) -> Result<Option<View<'_>>, Error>;
    /// Continues after `n_steps` steps, from this state if given.
    fn go_on(&mut self, n_steps: u64, state: Option<&State<'_>>) -> Result<(), Error>;
    /// After a step with a portion of its batch: replaces the gradients by `mean`'s; nothing if nothing is learnt.
    fn exchange(&mut self, mean: &mut dyn FnMut(&mut [f32]) -> Result<(), Error>) -> Result<(), Error>;
    /// Makes the update of such a step; nothing after others.
    fn apply(&mut self) -> Result<(), Error>;
    /// The state that the next step depends on, without its number; `None` if nothing is learnt.
    fn state(&self) -> Result<Option<State<'_>>, Error>;
    /// Evaluates held-out samples; `None` if nothing is learnt.
    fn evaluate(&mut self, batch: &Batch) -> Result<Option<Judgement>, Error>;
    /// Allows the device to fetch batches from this memory (DMA); `None` if that would not help.
    fn lock_pages(&self, memory: Arc<dyn HostMemory>) -> Result<Option<PageLock>, Error>;
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Finished {
    /// With its loss, if there is one.
    Done(Option<f32>),
    Stopped,
}

#[derive(Debug, Clone)]
pub(super) struct Blueprint {
    pub(super) model: Model,
    pub(super) classes: usize,
    pub(super) device: Device,
    pub(super) optimizer: Optimizer,
    /// Searched for CUDA's libraries.
    pub(super) cuda_folders: Vec<PathBuf>,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Network(Blueprint),
    Emulated(Emulation),
}

impl Kind {
    /// `classes` is the data's number of classes, used unless the settings give another.
    pub(super) fn of(plan: &Plan, accelerator: Accelerator, classes: usize) -> Result<Self, Error> {
        let settings = &plan.settings;
        Ok(match accelerator {
            Accelerator::Emulated(emulation) => Self::Emulated(emulation),
            Accelerator::Network(device) => {
                let classes = settings.classes.unwrap_or(classes);
                let (model, optimizer) = (Model::named(settings.model(), classes)?, settings.optimizer());
                Self::Network(Blueprint { model, classes, device, optimizer, cuda_folders: plan.cuda_folders.clone() })
            }
        })
    }

    /// The same seed gives the same weights and times. `portion` is the rank of several, which get a portion of each batch
    /// and exchange their gradients.
    pub(super) fn build(
        &self,
        batch: usize,
        places: usize,
        seed: u64,
        portion: Option<u64>,
    ) -> Result<Box<dyn Consumer>, Error> {
        let print = match self {
            Self::Emulated(emulation) => return Ok(Box::new(Emulated::new(*emulation, seed))),
            Self::Network(blueprint) => blueprint,
        };
        let normalize = Some(Normalize::of(&MEAN, &DEVIATION));
        let settings =
            Settings { batch, seed, optimizer: print.optimizer, normalize, places, portion: portion.unwrap_or(0) };
        let (classes, is_shared) = (print.classes, portion.is_some());
        Ok(match print.device {
            Device::Cpu { threads } => {
                let network = Network::new(Cpu::new(threads)?, &print.model, settings)?;
                Box::new(Learner { network, classes, is_shared })
            }
            Device::Cuda { ordinal, precision } => {
                let engine = Cuda::with_folders(ordinal, precision, &print.cuda_folders)?;
                Box::new(Learner { network: Network::new(engine, &print.model, settings)?, classes, is_shared })
            }
        })
    }

    fn blueprint(&self) -> Option<&Blueprint> {
        match self {
            Self::Network(blueprint) => Some(blueprint),
            Self::Emulated(_) => None,
        }
    }

    /// Threads that it computes with on the cores that prepare the samples.
    pub(super) fn threads_on_cores(&self) -> usize {
        match self {
            Self::Network(Blueprint { device: Device::Cpu { threads }, .. }) => *threads,
            Self::Emulated(Emulation { manner: Manner::Busy, .. }) => 1,
            Self::Network(_) | Self::Emulated(_) => 0,
        }
    }

    /// Whether it has its own memory, so batches can be sent ahead.
    pub(super) fn has_memory(&self) -> bool {
        self.blueprint().is_some_and(|print| matches!(print.device, Device::Cuda { .. }))
    }

    pub(super) fn name(&self) -> String {
        self.model().or_else(|| self.emulation()).expect("it is one or the other")
    }

    pub(super) fn image(&self) -> Shape {
        self.blueprint().map_or(EMULATED_IMAGE, |print| print.model.input)
    }

    pub(super) fn model(&self) -> Option<String> {
        self.blueprint().map(|print| print.model.name.clone())
    }

    pub(super) fn n_parameters(&self) -> Result<Option<u64>, Error> {
        Ok(self.blueprint().map(|print| print.model.n_parameters()).transpose()?.map(|n| n as u64))
    }

    pub(super) fn classes(&self) -> Option<u64> {
        self.blueprint().map(|print| print.classes as u64)
    }

    pub(super) fn precision(&self) -> Option<String> {
        self.blueprint().map(|print| match print.device {
            Device::Cpu { .. } => "f32".to_owned(),
            Device::Cuda { precision, .. } => precision.to_string(),
        })
    }

    pub(super) fn emulation(&self) -> Option<String> {
        match self {
            Self::Network(_) => None,
            Self::Emulated(emulation) => Some(emulation.to_string()),
        }
    }

    pub(super) fn optimizer(&self) -> Option<String> {
        self.blueprint().map(|print| print.optimizer.name().to_owned())
    }

    pub(super) fn learning_rate(&self) -> Option<f64> {
        self.blueprint().map(|print| print.optimizer.learning_rate())
    }
}

struct Learner<E: Engine> {
    network: Network<E>,
    classes: usize,
    /// Whether other ranks have the rest of each batch.
    is_shared: bool,
}

impl<E: Engine> Learner<E> {
    /// The error names the sample whose label is out of range.
    fn check_labels(&self, batch: &Batch) -> Result<(), Error> {
        let is_class = |label: &i64| usize::try_from(*label).is_ok_and(|label| label < self.classes);
        match batch.labels().iter().position(|label| !is_class(label)) {
            None => Ok(()),
            Some(place) => {
                let (name, label) = (batch.name_of(place), batch.labels()[place]);
                Err(Error::Label { name, label, classes: self.classes })
            }
        }
    }
}

impl<E: Engine> Consumer for Learner<E> {
    fn device(&self) -> String {
        self.network.describe_device()
    }

    fn stage(&mut self, load: Load) -> Result<(), Error> {
        if let Load::Read(batch) = &load {
            self.check_labels(batch)?;
        }
        let labels = load.labels().to_vec();
        self.network.stage_lent(Box::new(load), Labels::Index(&labels)).map_err(Error::from)
    }

    fn wait_arrived(&mut self) -> Result<(), Error> {
        self.network.wait_arrived().map_err(Error::from)
    }

    fn start(&mut self) -> Result<(), Error> {
        let started = if self.is_shared { self.network.start_portion() } else { self.network.start() };
        started.map_err(Error::from)
    }

    fn is_done(&mut self) -> Result<bool, Error> {
        self.network.is_done().map_err(Error::from)
    }

    fn finish(&mut self, _cancel: &AtomicBool) -> Result<Finished, Error> {
        Ok(Finished::Done(Some(self.network.finish()?)))
    }

    fn reset(&mut self) -> Result<(), Error> {
        self.network.reset().map_err(Error::from)
    }

    fn view(&self) -> Result<Option<View<'_>>, Error> {
        Ok(Some(self.network.view()?))
    }

    fn go_on(&mut self, n_steps: u64, state: Option<&State<'_>>) -> Result<(), Error> {
        let state = state.filter(|state| state.n_steps == n_steps);
        let state = state.ok_or_else(|| forebay_train::Error::State("there is none of this step".to_owned()))?;
        self.network.load_state(state).map_err(Error::from)
    }

    fn exchange(&mut self, mean: &mut dyn FnMut(&mut [f32]) -> Result<(), Error>) -> Result<(), Error> {
        self.network.exchange(mean)
    }

    fn apply(&mut self) -> Result<(), Error> {
        // Otherwise the step has made it.
        if self.is_shared { self.network.apply().map_err(Error::from) } else { Ok(()) }
    }

    fn state(&self) -> Result<Option<State<'_>>, Error> {
        Ok(Some(self.network.state()?.into_owned()))
    }

    fn evaluate(&mut self, batch: &Batch) -> Result<Option<Judgement>, Error> {
        self.check_labels(batch)?;
        Ok(Some(self.network.evaluate(batch.as_f32(), Labels::Index(batch.labels()))?))
    }

    fn lock_pages(&self, memory: Arc<dyn HostMemory>) -> Result<Option<PageLock>, Error> {
        Ok(Some(self.network.lock_pages(memory)?))
    }
}

struct Emulated {
    emulation: Emulation,
    seed: u64,
    accelerator: EmulatedAccelerator,
}

impl Emulated {
    fn new(emulation: Emulation, seed: u64) -> Self {
        let clock = Arc::new(SystemClock::default());
        Self { emulation, seed, accelerator: EmulatedAccelerator::new(emulation, seed, clock) }
    }
}

impl Consumer for Emulated {
    fn device(&self) -> String {
        self.emulation.to_string()
    }

    fn stage(&mut self, load: Load) -> Result<(), Error> {
        // A device with its own memory releases the host's as soon as it has the batch.
        drop(load);
        Ok(())
    }

    fn wait_arrived(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn start(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn is_done(&mut self) -> Result<bool, Error> {
        Ok(true)
    }

    fn finish(&mut self, cancel: &AtomicBool) -> Result<Finished, Error> {
        Ok(match self.accelerator.step_unless(cancel) {
            Some(_) => Finished::Done(None),
            None => Finished::Stopped,
        })
    }

    fn reset(&mut self) -> Result<(), Error> {
        *self = Self::new(self.emulation, self.seed);
        Ok(())
    }

    fn view(&self) -> Result<Option<View<'_>>, Error> {
        Ok(None)
    }

    fn go_on(&mut self, n_steps: u64, _state: Option<&State<'_>>) -> Result<(), Error> {
        self.accelerator.skip(n_steps);
        Ok(())
    }

    fn exchange(&mut self, _mean: &mut dyn FnMut(&mut [f32]) -> Result<(), Error>) -> Result<(), Error> {
        Ok(())
    }

    fn apply(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn state(&self) -> Result<Option<State<'_>>, Error> {
        Ok(None)
    }

    fn evaluate(&mut self, _batch: &Batch) -> Result<Option<Judgement>, Error> {
        Ok(None)
    }

    fn lock_pages(&self, _memory: Arc<dyn HostMemory>) -> Result<Option<PageLock>, Error> {
        Ok(None)
    }
}
