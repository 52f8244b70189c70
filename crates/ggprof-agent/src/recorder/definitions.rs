//! What events refer to by number, in separate blocks: descriptions outlive the events of a
//! recording of limited size (`blocks`).
//!
//! Most descriptions are written again when a new epoch needs them. Those of objects that the program
//! creates once (copies of ggml, backends, schedulers, buffers) are kept in memory as long as the object
//! lives, and written again when an epoch begins. So objects that were created while nothing was recorded
//! are described, too, once recording begins.

use ggprof_spool::layout::{DEFINITIONS_LANE, FIRST_LONG_KIND, LossCounter, UNIT};
use ggprof_spool::writer::{BlockFull, BlockWriter};

use super::Recorder;
use super::blocks::BlockUse;
use crate::fault::fault_point;

/// Whose description it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Instance(u32),
    Backend(u32),
    Scheduler(u32),
    Buffer(u32),
    DeviceMemory(u32),
    MemoryKind(u32),
}

/// A description that is kept.
#[derive(Clone, Debug)]
struct Lasting {
    owner: Owner,
    record: Box<[u8]>,
    /// The recording has it, or an older one of the same object.
    is_written: bool,
    /// It says that the object is gone, and has to be written once.
    is_last: bool,
}

#[derive(Debug)]
pub(crate) struct Definitions {
    writer: BlockWriter,
    sequence: u32,
    lasting: Vec<Lasting>,
}

impl Definitions {
    pub(crate) fn new() -> Definitions {
        Definitions { writer: BlockWriter::without_block(), sequence: 0, lasting: Vec::new() }
    }

    /// For the recording of a forked child: what lasts is written when the first epoch begins.
    pub(crate) fn heir(&self) -> Definitions {
        let living = self.lasting.iter().filter(|kept| !kept.is_last).cloned();
        let lasting = living.map(|kept| Lasting { is_written: false, ..kept }).collect();
        Definitions { lasting, ..Definitions::new() }
    }

    /// `is_written` tells whether the recording gets it at once.
    pub(crate) fn remember(&mut self, owner: Owner, record: &[u8], is_written: bool) {
        let record = record.into();
        self.lasting.push(Lasting { owner, record, is_written, is_last: false });
    }

    pub(crate) fn forget(&mut self, owner: Owner) {
        self.lasting.retain(|kept| kept.owner != owner);
    }

    /// The same as `forget` and `remember`, except that the recording may already know the object.
    pub(crate) fn replace(&mut self, owner: Owner, record: &[u8], is_written: bool) {
        let known = self.lasting.iter_mut().find(|kept| kept.owner == owner);
        match known {
            Some(kept) => {
                kept.record = record.into();
                kept.is_written |= is_written;
            }
            None => self.remember(owner, record, is_written),
        }
    }

    /// The object is gone, while nothing is recorded. The recording is corrected when the next
    /// epoch begins.
    pub(crate) fn bury(&mut self, owner: Owner, record: &[u8]) {
        self.lasting.retain(|kept| kept.owner != owner || kept.is_written);
        for kept in self.lasting.iter_mut().filter(|kept| kept.owner == owner) {
            (kept.record, kept.is_last) = (record.into(), true);
        }
    }

    pub(crate) fn put(&mut self, recorder: &Recorder, record: &[u8; UNIT]) {
        fault_point!();
        self.write(recorder, |writer| writer.put(record));
    }

    pub(crate) fn put_long(&mut self, recorder: &Recorder, fixed: &mut [u8], tail: &[u8]) {
        self.write(recorder, |writer| writer.put_long(fixed, tail));
    }

    /// A record of either kind, with all its bytes.
    fn put_whole(&mut self, recorder: &Recorder, record: &[u8]) {
        match record.try_into() {
            Ok(short) if record[0] < FIRST_LONG_KIND => self.put(recorder, short),
            _ => self.put_long(recorder, &mut record.to_vec(), &[]),
        }
    }

    /// Begins an epoch: in a new block, with what lasts.
    pub(crate) fn begin_epoch(&mut self, recorder: &Recorder) {
        self.writer = BlockWriter::without_block();
        for at in 0..self.lasting.len() {
            let record = self.lasting[at].record.clone();
            self.put_whole(recorder, &record);
            self.lasting[at].is_written = true;
        }
        self.lasting.retain(|kept| !kept.is_last);
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
        let wanted = BlockUse { lane: None, epoch: recorder.epoch() };
        let Some(block) = recorder.take_block(wanted) else {
            recorder.lose(LossCounter::NoBlock, 1);
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
