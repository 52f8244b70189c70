//! What hazards may bring about; all else is a violation.

/// What a hazard may bring about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Excuses {
    /// The program's end, early.
    pub(super) end: bool,
    /// The launcher's end, early.
    pub(super) launcher_end: bool,
    /// Fewer records than without it, if that is said.
    pub(super) fewer_records: bool,
    /// Less recorded than the program did, because that was asked for.
    pub(super) asked_for_fewer: bool,
    /// No recording, if that is said.
    pub(super) no_recording: bool,
    /// No message: there is nowhere to print it.
    pub(super) silence: bool,
}

pub(super) const NOTHING: Excuses = Excuses {
    end: false,
    launcher_end: false,
    fewer_records: false,
    asked_for_fewer: false,
    no_recording: false,
    silence: false,
};
pub(super) const NO_RECORDING: Excuses =
    Excuses { no_recording: true, fewer_records: true, ..NOTHING };
pub(super) const END: Excuses = Excuses { end: true, ..NOTHING };
pub(super) const ASKED: Excuses = Excuses { asked_for_fewer: true, ..NOTHING };

impl Excuses {
    pub(super) fn or(self, other: Excuses) -> Excuses {
        Excuses {
            end: self.end || other.end,
            launcher_end: self.launcher_end || other.launcher_end,
            fewer_records: self.fewer_records || other.fewer_records,
            asked_for_fewer: self.asked_for_fewer || other.asked_for_fewer,
            no_recording: self.no_recording || other.no_recording,
            silence: self.silence || other.silence,
        }
    }
}
