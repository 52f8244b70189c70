//! The permission of a thread to write. The thread is counted in when it gets this value, and
//! counted out when the value is dropped, whatever happened meanwhile. A stop waits until all
//! threads are out.

use super::Recorder;
use super::gate::Admitted;

#[derive(Debug)]
pub(crate) struct Admission<'r> {
    recorder: &'r Recorder,
    admitted: Admitted,
}

impl<'r> Admission<'r> {
    /// Takes over what the recorder's gate has just said.
    pub(super) fn new(recorder: &'r Recorder, admitted: Admitted) -> Admission<'r> {
        Admission { recorder, admitted }
    }

    /// Whether anything may be written.
    pub(crate) fn writes(&self) -> bool {
        matches!(self.admitted, Admitted::InRun | Admitted::Counted)
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        match self.admitted {
            Admitted::Counted => self.recorder.leave(),
            Admitted::Unrecorded => self.recorder.gate.end_unrecorded(),
            Admitted::Shut | Admitted::InRun => {}
        }
    }
}

/// While this value lives, records of admitted runs are still to come. There is one at a time.
#[derive(Debug)]
pub(crate) struct Owed<'r>(&'r Recorder);

impl<'r> Owed<'r> {
    pub(super) fn new(recorder: &'r Recorder) -> Owed<'r> {
        Owed(recorder)
    }
}

impl Drop for Owed<'_> {
    fn drop(&mut self) {
        if !self.0.fork_mark.is_in_child() {
            self.0.gate.settle(&self.0.spool.header);
        }
    }
}
