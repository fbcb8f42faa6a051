//! A network's state where it lies, to be copied out a piece at a time.
//!
//! A host's values are borrowed. A device's are fetched: the caller that saves them says where each piece is to go, so that they
//! cross the bus once, straight into the memory they are saved from, and all of them on one wait.

use std::borrow::Cow;
use std::sync::Arc;

use crate::engine::Engine;
use crate::error::Result;
use crate::lent::{HostMemory, PageLock};
use crate::network::Network;

/// A piece of an entry, and where it is to go.
#[derive(Debug)]
pub struct Fetch<'a> {
    pub entry: usize,
    pub offset: usize,
    pub into: &'a mut [u8],
}

pub trait Remote: Sync {
    /// Copies all pieces to the host, from any thread; returns when they are there.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// When a piece reaches past its entry.
    fn fetch(&self, pieces: &mut [Fetch<'_>]) -> Result<()>;

    /// Locks pages, so that the device copies to them at its full rate.
    ///
    /// # Errors
    /// The system does not lock so much, or it is locked already. Pieces can be fetched there all the same.
    fn lock_pages(&self, memory: Arc<dyn HostMemory>) -> Result<PageLock>;
}

/// Where the values of a state are.
pub enum Values<'a> {
    Here(Vec<Cow<'a, [f32]>>),
    There(Box<dyn Remote + 'a>),
}

/// An entry's name and shape, as [`Entry`](crate::Entry) has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Title {
    pub name: String,
    pub shape: Vec<usize>,
}

/// All that the next step depends on, besides the model and the settings; as long as it lives, no step can be made.
pub struct View<'a> {
    pub n_steps: u64,
    /// What there is, in the order of [`State::entries`](crate::State).
    pub titles: Vec<Title>,
    pub values: Values<'a>,
}

impl<E: Engine> Network<E> {
    /// What a checkpoint must keep, without a copy. [`state`](Self::state) is the same, copied to the host.
    ///
    /// # Errors
    /// The device fails.
    pub fn view(&self) -> Result<View<'_>> {
        let (wanted, titles) = self.places().into_iter().map(|place| place.apart()).unzip::<_, _, Vec<_>, _>();
        Ok(View { n_steps: self.n_steps, titles, values: self.engine.view(&self.body.store, &wanted)? })
    }
}
