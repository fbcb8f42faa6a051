//! Who is at a meeting and who is missing.
//!
//! A collective of MPI does not tell whom it waits for. So a rank that has waited for half of its patience asks all others
//! whether they are at the same meeting; those that are, and wait themselves, answer. Who has not answered when patience
//! ends is missing.

use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Destination, MatchedReceiveVec, Source};

/// What questions and answers are sent with.
const TAG: i32 = 17;
const QUESTION: i64 = 0;
const ANSWER: i64 = 1;

/// The roll of one meeting, kept by one rank.
pub(super) struct Roll {
    meeting: i64,
    me: i32,
    is_asked: bool,
    here: Vec<bool>,
}

impl Roll {
    pub(super) fn new(meeting: i64, world: &SimpleCommunicator) -> Self {
        let n = usize::try_from(world.size()).expect("a size is not negative");
        Self { meeting, me: world.rank(), is_asked: false, here: vec![false; n] }
    }

    /// Asks everybody, once.
    pub(super) fn ask(&mut self, world: &SimpleCommunicator) {
        if std::mem::replace(&mut self.is_asked, true) {
            return;
        }
        for rank in (0..world.size()).filter(|rank| *rank != self.me) {
            world.process_at_rank(rank).send_with_tag(&[QUESTION, self.meeting][..], TAG);
        }
    }

    /// Answers what was asked and hears the answers; does not wait. Questions of meetings that are over are dropped.
    pub(super) fn hear(&mut self, world: &SimpleCommunicator) {
        while let Some(message) = world.any_process().immediate_matched_probe_with_tag(TAG) {
            let (words, status) = message.matched_receive_vec::<i64>();
            let from = status.source_rank();
            match words[..] {
                [QUESTION, meeting] if meeting == self.meeting => {
                    world.process_at_rank(from).send_with_tag(&[ANSWER, meeting][..], TAG);
                }
                [ANSWER, meeting] if meeting == self.meeting => {
                    self.here[usize::try_from(from).expect("a rank is not negative")] = true;
                }
                _ => {}
            }
        }
    }

    /// Those that did not answer.
    pub(super) fn missing(&self) -> Vec<usize> {
        let me = usize::try_from(self.me).expect("a rank is not negative");
        (0..self.here.len()).filter(|&rank| rank != me && !self.here[rank]).collect()
    }
}
