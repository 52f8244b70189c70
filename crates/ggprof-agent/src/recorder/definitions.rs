//! What events refer to by number, in separate blocks: descriptions outlive the events of a
//! recording of limited size (`blocks`).
//!
//! Most descriptions are written again when a new epoch needs them. Those of objects that the
//! program creates once (copies of ggml, backends, schedulers) are kept in memory as long as the
//! object lives, and written again when an epoch begins. So objects that were created while nothing
//! was recorded are described, too, once recording begins.

use ggprof_spool::layout::{DEFINITIONS_LANE, LossKind, UNIT};
use ggprof_spool::writer::{BlockFull, BlockWriter};

use super::Recorder;
use super::blocks::Wanted;
use crate::fault::fault_point;

/// Whose description it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Instance(u32),
    Backend(u32),
    Scheduler(u32),
}

#[derive(Debug)]
pub(crate) struct Definitions {
    writer: BlockWriter,
    sequence: u32,
    lasting: Vec<(Owner, [u8; UNIT])>,
}

impl Definitions {
    pub(crate) fn new() -> Definitions {
        Definitions { writer: BlockWriter::without_block(), sequence: 0, lasting: Vec::new() }
    }

    /// For the recording of a forked child: what lasts is written when the first epoch begins.
    pub(crate) fn heir(&self) -> Definitions {
        Definitions { lasting: self.lasting.clone(), ..Definitions::new() }
    }

    pub(crate) fn remember(&mut self, owner: Owner, record: [u8; UNIT]) {
        self.lasting.push((owner, record));
    }

    pub(crate) fn forget(&mut self, owner: Owner) {
        self.lasting.retain(|(kept, _)| *kept != owner);
    }

    pub(crate) fn put(&mut self, recorder: &Recorder, record: &[u8; UNIT]) {
        fault_point!();
        self.write(recorder, |writer| writer.put(record));
    }

    pub(crate) fn put_long(&mut self, recorder: &Recorder, fixed: &mut [u8], tail: &[u8]) {
        self.write(recorder, |writer| writer.put_long(fixed, tail));
    }

    /// Begins an epoch: in a new block, with what lasts.
    pub(crate) fn begin_epoch(&mut self, recorder: &Recorder) {
        self.writer = BlockWriter::without_block();
        for at in 0..self.lasting.len() {
            let (_, record) = self.lasting[at];
            self.put(recorder, &record);
        }
    }

    fn write(
        &mut self,
        recorder: &Recorder,
        mut put: impl FnMut(&mut BlockWriter) -> Result<(), BlockFull>,
    ) {
        if put(&mut self.writer).is_err() && self.take_block(recorder) {
            let _ = put(&mut self.writer);
        }
    }

    #[cold]
    fn take_block(&mut self, recorder: &Recorder) -> bool {
        let wanted = Wanted { lane: None, epoch: recorder.epoch() };
        let Some(block) = recorder.take_block(wanted) else {
            recorder.lose(LossKind::NoBlock, 1);
            return false;
        };
        fault_point!();
        recorder.spool.let_go(self.writer.block(), block.index);
        self.sequence += 1;
        // SAFETY: an empty block of the mapped file that only this writer has, until the
        // epoch is over and with it this writer's use of it.
        unsafe { self.writer.start(block.base, DEFINITIONS_LANE, self.sequence, block.index) };
        true
    }
}
