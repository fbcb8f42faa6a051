//! Finding the ranks that are present at a meeting and those that are missing.
//!
//! An MPI collective does not report whom it waits for. So a rank that has waited for long asks all others, once,
//! whether they are at the same meeting. Ranks that also wait there answer at once, later ones when they arrive. Ranks
//! without an answer are missing. A short wait only reads the clock.

use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Destination, MatchedReceiveVec, Source};

/// Message tag of questions and answers.
const TAG: i32 = 17;
const QUESTION: i64 = 0;
const ANSWER: i64 = 1;

pub(super) struct Roll {
    meeting: i64,
    me: i32,
    is_asked: bool,
    /// A rank before this one has asked and will report the missing ranks.
    is_led: bool,
    here: Vec<bool>,
    /// Questions about a later meeting: who asked, and which meeting.
    early: Early,
}

/// Answered when this rank reaches their meeting.
pub(super) type Early = Vec<(i32, i64)>;

impl Roll {
    pub(super) fn new(meeting: i64, world: &SimpleCommunicator, early: Early) -> Self {
        let n = usize::try_from(world.size()).expect("a size is not negative");
        Self { meeting, me: world.rank(), is_asked: false, is_led: false, here: vec![false; n], early }
    }

    pub(super) fn into_early(self) -> Early {
        self.early
    }

    pub(super) fn ask(&mut self, world: &SimpleCommunicator) {
        if std::mem::replace(&mut self.is_asked, true) {
            return;
        }
        for rank in (0..world.size()).filter(|rank| *rank != self.me) {
            world.process_at_rank(rank).send_with_tag(&[QUESTION, self.meeting][..], TAG);
        }
    }

    /// Answers questions and collects answers without waiting. A rank at a later meeting was at the earlier one.
    pub(super) fn hear(&mut self, world: &SimpleCommunicator) {
        let meeting = self.meeting;
        for (from, of) in self.early.extract_if(.., |(_, of)| *of <= meeting).collect::<Early>() {
            self.answer(world, from, of);
        }
        while let Some(message) = world.any_process().immediate_matched_probe_with_tag(TAG) {
            let (words, status) = message.matched_receive_vec::<i64>();
            let from = status.source_rank();
            match words[..] {
                [QUESTION, meeting] if meeting <= self.meeting => self.answer(world, from, meeting),
                [QUESTION, meeting] => self.early.push((from, meeting)),
                [ANSWER, meeting] if meeting >= self.meeting => {
                    self.here[usize::try_from(from).expect("a rank is not negative")] = true;
                }
                _ => {}
            }
        }
    }

    fn answer(&mut self, world: &SimpleCommunicator, from: i32, meeting: i64) {
        // A rank that asks at the meeting before still collects what this rank has sent.
        self.is_led |= from < self.me && meeting + 1 >= self.meeting;
        world.process_at_rank(from).send_with_tag(&[ANSWER, self.meeting][..], TAG);
    }

    pub(super) fn is_led(&self) -> bool {
        self.is_led
    }

    pub(super) fn missing(&self) -> Vec<u64> {
        let me = u64::try_from(self.me).expect("a rank is not negative");
        let not_here = (0..).zip(&self.here).filter(|(_, is_here)| !**is_here).map(|(rank, _)| rank);
        not_here.filter(|rank| *rank != me).collect()
    }
}
