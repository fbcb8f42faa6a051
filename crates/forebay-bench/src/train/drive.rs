//! The training loop: batches in, steps out, every moment charged to one part.

use std::collections::VecDeque;
use std::task::Poll;
use std::time::Duration;

use forebay_measure::laps::{Laps, Part, Parts};
use forebay_measure::stall::Charges;
use forebay_measure::{Event, Observer};
use forebay_pipeline::Times;

use super::consumer::{Consumer, Finished};
use super::feeder::{Feeder, Load};
use super::run::Error;
use super::shared::Site;

/// Pause between two polls for a batch while the device computes.
const NAP: Duration = Duration::from_micros(50);

#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) parts: Parts,
    pub(super) loss: Option<f32>,
    pub(super) images: u64,
}

pub(super) struct Driven {
    pub(super) steps: Vec<Step>,
    pub(super) total: Parts,
    pub(super) first_wait_ns: u64,
    pub(super) charges: Charges,
    /// The error that ended the run after these steps.
    pub(super) failure: Option<Error>,
}

pub(super) struct Orders<'a> {
    /// Steps of the run that this one resumes.
    pub(super) first: u64,
    pub(super) n_steps: u64,
    /// Batches sent to the device while it computes another.
    pub(super) device_prefetch: usize,
    /// Whether work happens only while the consumer waits.
    pub(super) no_prefetch: bool,
    pub(super) charges: Charges,
    pub(super) observer: Observer<'a>,
    /// The other ranks that have portions of the batches; `None` for one process.
    pub(super) site: Option<Site<'a>>,
}

pub(super) enum Judged {
    /// Not due.
    Not,
    /// Possibly with an event for the observer.
    Validated(Option<Event>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reached {
    /// Includes the run that it resumes.
    pub(super) step: u64,
    /// Samples of the order used so far; `None` for synthetic batches.
    pub(super) position: Option<u64>,
    pub(super) is_last: bool,
    /// Whether a cancellation ends the run here.
    pub(super) is_stopping: bool,
}

/// Work between two steps, each kind charged to its own part.
pub(super) trait StepHooks {
    /// Evaluates the network if it is due.
    fn judge(&mut self, step: u64, consumer: &mut dyn Consumer) -> Result<Judged, Error>;
    /// Saves the state; returns events for the observer, or `None` if nothing is due.
    fn save(&mut self, at: Reached, consumer: &dyn Consumer) -> Result<Option<Vec<Event>>, Error>;
    /// Restores the state if a failure has struck; returns the step from which training resumes.
    fn fail(&mut self, _reached: u64, _is_over: bool, _consumer: &mut dyn Consumer) -> Result<Option<u64>, Error> {
        Ok(None)
    }
}

/// For runs without validation and checkpoints.
impl StepHooks for () {
    fn judge(&mut self, _step: u64, _consumer: &mut dyn Consumer) -> Result<Judged, Error> {
        Ok(Judged::Not)
    }

    fn save(&mut self, _at: Reached, _consumer: &dyn Consumer) -> Result<Option<Vec<Event>>, Error> {
        Ok(None)
    }
}

struct Drive<'a> {
    consumer: &'a mut dyn Consumer,
    feeder: &'a mut Feeder,
    orders: Orders<'a>,
    laps: Laps,
    /// Images of the staged batches, oldest first, and the feeder's position after each. Batches prepared ahead of a
    /// checkpoint must be delivered again after resuming from it.
    staged: VecDeque<(u64, Option<u64>)>,
    /// Feeder's position after the batch of the last whole step.
    position: Option<u64>,
    /// Steps that failures undid.
    n_lost: u64,
    is_dry: bool,
    /// Charges at the end of the last whole step.
    at_last_step: Charges,
    driven: Driven,
}

/// The stopwatch must have been started before the pipeline, because the first wait begins there.
pub(super) fn drive(
    consumer: &mut dyn Consumer,
    feeder: &mut Feeder,
    started: Laps,
    orders: Orders<'_>,
    between: &mut dyn StepHooks,
) -> Result<Driven, Error> {
    // Starting the pipeline is part of the first wait.
    let (first_wait_ns, mut charges) = (started.total().ns(Part::Wait), orders.charges);
    charges.add(first_wait_ns, 0, &Times::default(), true);
    let driven = Driven { steps: Vec::new(), total: Parts::default(), first_wait_ns, charges, failure: None };
    let staged = VecDeque::new();
    let mut drive = Drive {
        consumer,
        feeder,
        orders,
        laps: started,
        staged,
        position: None,
        n_lost: 0,
        is_dry: false,
        at_last_step: charges,
        driven,
    };
    match drive.run(between) {
        // Ranks that lost one cannot put their results together.
        Err(error) if drive.driven.steps.is_empty() || drive.orders.site.is_some() => return Err(error),
        Err(error) => {
            drive.driven.charges = drive.at_last_step;
            drive.laps.forget_step();
            drive.driven.failure = Some(error);
        }
        Ok(()) => {}
    }
    drive.driven.total = drive.laps.total();
    Ok(drive.driven)
}

impl Drive<'_> {
    fn run(&mut self, between: &mut dyn StepHooks) -> Result<(), Error> {
        self.steps(between)?;
        match self.orders.observer.is_cancelled() && !self.driven.steps.is_empty() {
            true => self.save(true, between),
            false => Ok(()),
        }
    }

    fn steps(&mut self, between: &mut dyn StepHooks) -> Result<(), Error> {
        let mut told = 0;
        while self.n_left() > 0 && !self.orders.observer.is_cancelled() {
            self.at_last_step = self.driven.charges;
            if self.staged.is_empty() && !self.fetch()? {
                // The others would wait.
                self.orders.site.map_or(Ok(()), |_| Err(self.ran_out()))?;
                break;
            }
            let Some(step) = self.step()? else {
                self.driven.charges = self.at_last_step;
                self.laps.forget_step();
                return Ok(());
            };
            let so_far = self.feeder.bytes_read();
            self.orders.observer.tell(Event::Step {
                step: self.reached(),
                images: step.images * self.orders.site.map_or(1, |site| site.ranks.size()),
                loss: step.loss,
                wait_share: self.wait_share(),
                bytes: so_far - told,
            });
            told = so_far;
            self.laps.lap(Part::Other);
            if let Judged::Validated(event) = between.judge(self.reached(), self.consumer)? {
                self.laps.lap(Part::Validate);
                event.into_iter().for_each(self.orders.observer.hear);
            }
            if !self.fail(false, between)? {
                self.save(false, between)?;
                self.fail(self.n_left() == 0, between)?;
            }
        }
        self.laps.lap(Part::Other);
        Ok(())
    }

    /// Steps so far, including earlier runs and without those that failures undid.
    fn reached(&self) -> u64 {
        self.orders.first + self.driven.steps.len() as u64 - self.n_lost
    }

    fn n_left(&self) -> u64 {
        self.orders.n_steps + self.orders.first - self.reached()
    }

    /// Whether a failure has struck. Restoring, and the save that it tore, count as the checkpoint's time.
    fn fail(&mut self, is_over: bool, between: &mut dyn StepHooks) -> Result<bool, Error> {
        let Some(step) = between.fail(self.reached(), is_over, self.consumer)? else { return Ok(false) };
        let n_lost = self.reached() - step;
        self.n_lost += n_lost;
        self.feeder.give_again(n_lost);
        self.is_dry = false;
        self.charge_checkpoint();
        Ok(true)
    }

    /// The time since the last lap belongs to the step before.
    fn charge_checkpoint(&mut self) {
        self.laps.lap(Part::Checkpoint);
        if let Some(last) = self.driven.steps.last_mut() {
            self.laps.count_to(&mut last.parts, Part::Checkpoint);
        }
    }

    /// Saves if due; the time belongs to the step before.
    fn save(&mut self, is_stopping: bool, between: &mut dyn StepHooks) -> Result<(), Error> {
        let is_last = self.n_left() == 0;
        let at = Reached { step: self.reached(), position: self.position, is_last, is_stopping };
        self.laps.lap(Part::Other);
        let saved = between.save(at, &*self.consumer);
        if saved.as_ref().is_ok_and(Option::is_none) {
            return Ok(());
        }
        self.charge_checkpoint();
        saved?.into_iter().flatten().for_each(self.orders.observer.hear);
        self.laps.lap(Part::Other);
        Ok(())
    }

    /// Waits for a batch and its transfer to the device; `false` at the end of the data.
    fn fetch(&mut self) -> Result<bool, Error> {
        self.laps.lap(Part::Other);
        let before = self.feeder.stall();
        let load = self.feeder.next(self.orders.observer.cancel);
        let waited = self.laps.lap(Part::Wait);
        let stall = self.feeder.stall().since(&before);
        let hidden = if self.orders.no_prefetch { self.last_compute_ns() } else { 0 };
        let is_first = self.driven.steps.is_empty();
        self.driven.charges.add(waited, hidden, &stall, is_first);
        if is_first {
            self.driven.first_wait_ns += waited;
        }
        let Some(load) = load.transpose()? else { return Ok(false) };
        self.stage(load)?;
        self.consumer.wait_arrived()?;
        self.laps.lap(Part::Copy);
        Ok(true)
    }

    fn stage(&mut self, load: Load) -> Result<(), Error> {
        self.staged.push_back((load.len() as u64, self.feeder.position()));
        self.consumer.stage(load)
    }

    /// Makes a step; `None` if it was interrupted.
    fn step(&mut self) -> Result<Option<Step>, Error> {
        let (images, position) = self.staged.pop_front().expect("a step follows a batch");
        self.consumer.start()?;
        self.send_ahead()?;
        let finished = self.consumer.finish(self.orders.observer.cancel)?;
        self.laps.lap(Part::Compute);
        let Finished::Done(loss) = finished else { return Ok(None) };
        let loss = match self.orders.site {
            Some(site) => self.exchange(site, loss)?,
            None => loss,
        };
        self.consumer.apply()?;
        self.laps.lap(Part::Compute);
        let step = Step { parts: self.laps.end_step(), loss, images };
        self.driven.steps.push(step);
        self.position = position;
        Ok(Some(step))
    }

    /// Exchanges the gradients with the other ranks; returns the mean of their losses.
    fn exchange(&mut self, site: Site<'_>, loss: Option<f32>) -> Result<Option<f32>, Error> {
        site.meet()?;
        self.consumer.exchange(&mut |gradients| site.mean(gradients))?;
        let mut losses = [loss.unwrap_or_default()];
        if loss.is_some() {
            site.mean(&mut losses)?;
        }
        self.laps.lap(Part::Barrier);
        Ok(loss.map(|_| losses[0]))
    }

    fn ran_out(&self) -> Error {
        let stats = self.feeder.stats().unwrap_or_default();
        let first = stats.failures.first();
        Error::RanOut {
            n_left: self.n_left(),
            n_failed: stats.n_failed,
            name: first.map(|failed| failed.name.clone()).unwrap_or_default(),
            reason: first.map(|failed| failed.reason()).unwrap_or_default(),
        }
    }

    /// Sends the following batches as they become ready while the device computes.
    fn send_ahead(&mut self) -> Result<(), Error> {
        let left = self.n_left() - 1;
        let wanted = (self.orders.device_prefetch as u64).min(left) as usize;
        while self.staged.len() < wanted && !self.is_dry {
            match self.feeder.poll() {
                Poll::Ready(Some(load)) => self.stage(load?)?,
                Poll::Ready(None) => self.is_dry = true,
                Poll::Pending if self.consumer.is_done()? => break,
                Poll::Pending => std::thread::sleep(NAP),
            }
        }
        Ok(())
    }

    fn last_compute_ns(&self) -> u64 {
        self.driven.steps.last().map_or(0, |step| step.parts.ns(Part::Compute))
    }

    fn wait_share(&self) -> f64 {
        let total = self.laps.total();
        let wall = (total.total_ns() - total.ns(Part::Validate)).max(1);
        total.ns(Part::Wait) as f64 / wall as f64
    }
}
