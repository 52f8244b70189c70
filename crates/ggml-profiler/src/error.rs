//! Errors as C programs get them: a number, and the words for it on request.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What went wrong; the numbers and their meaning are in `ggml-profiler.h`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Error {
    Invalid(&'static str),
    Off(String),
    Io(String),
}

impl Error {
    fn code(&self) -> c_int {
        match self {
            Self::Invalid(_) => -1,
            Self::Off(_) => -2,
            Self::Io(_) => -3,
        }
    }

    fn words(&self) -> &str {
        match self {
            Self::Invalid(words) => words,
            Self::Off(words) | Self::Io(words) => words,
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error.to_string())
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// Does the work of a function of the library. A fault of ours is an error, never the
/// program's end.
pub(crate) fn answer(work: impl FnOnce() -> Result<c_int, Error>) -> c_int {
    let result = catch_unwind(AssertUnwindSafe(work));
    let result = result.unwrap_or_else(|_| Err(Error::Off("a fault inside the profiler".into())));
    result.unwrap_or_else(|error| {
        LAST.with_borrow_mut(|last| {
            *last = CString::new(error.words().replace('\0', " ")).unwrap_or_default();
        });
        error.code()
    })
}

/// The words of this thread's last error.
pub(crate) fn last() -> *const c_char {
    LAST.with_borrow(|last| last.as_ptr())
}
