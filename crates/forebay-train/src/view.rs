//! A network's state in place, to be copied out in pieces.
//!
//! Host values are borrowed; device values are copied. The caller says where each piece goes, so values cross the bus
//! once, directly into the buffer they are saved from, with a single wait for all of them.

use std::borrow::Cow;
use std::sync::Arc;

use crate::engine::Engine;
use crate::error::Result;
use crate::lent::{HostMemory, PageLock};
use crate::network::Network;

/// A piece of an entry and its destination.
#[derive(Debug)]
pub struct Fetch<'a> {
    pub entry: usize,
    pub offset: usize,
    pub into: &'a mut [u8],
}

pub trait Remote: Sync {
    /// Copies all pieces to the host, from any thread; returns when they have arrived.
    ///
    /// # Errors
    /// When the device fails.
    ///
    /// # Panics
    /// When a piece exceeds its entry.
    fn fetch(&self, pieces: &mut [Fetch<'_>]) -> Result<()>;

    /// Locks pages, so the device copies to them at full rate.
    ///
    /// # Errors
    /// When the system refuses to lock that much, or the memory is locked already. Pieces can be copied there
    /// regardless.
    fn lock_pages(&self, memory: Arc<dyn HostMemory>) -> Result<PageLock>;
}

/// The location of a state's values.
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

/// Everything that the next step depends on, besides the model and the settings. No step can be made while it lives.
pub struct View<'a> {
    pub n_steps: u64,
    /// Its entries, in the order of [`State::entries`](crate::State).
    pub titles: Vec<Title>,
    pub values: Values<'a>,
}

impl<E: Engine> Network<E> {
    /// The state to store in a checkpoint, without a copy. [`state`](Self::state) is the same, copied to the host.
    ///
    /// # Errors
    /// When the device fails.
    pub fn view(&self) -> Result<View<'_>> {
        let (wanted, titles) = self.places().into_iter().map(|place| place.apart()).unzip::<_, _, Vec<_>, _>();
        Ok(View { n_steps: self.n_steps, titles, values: self.engine.view(&self.body.store, &wanted)? })
    }
}
