//! `libggml-profiler.so`: programs that profile themselves link it beside ggml.
//!
//! It joins the recorder (`ggprof-agent`) and the formats. The recording is the same file as
//! `ggprof run` makes, in the directory for temporary files; each question reads from it the
//! graph runs of one scheduler. What the functions promise is in `include/ggml-profiler.h`.

mod agent;
mod error;
mod profiled;
mod record;
mod stream;

use error::{Error, answer};
use ggprof_report::render::{self, Style};
use ggprof_report::{documents, text};
use ggprof_trace::Trace;
use ggprof_trace::formats::ggml_json;
use record::{Record, Records};
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use stream::Stream;

/// `ggml_backend_sched_t`.
type Scheduler = *mut c_void;
type Format = fn(&Trace, &mut dyn Write) -> io::Result<()>;

/// # Safety
/// As all functions here: pointers are null or what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ggml_backend_sched_set_profiling(sched: Scheduler, enable: bool) -> c_int {
    answer(|| profiled::switch(sched, enable).map(|()| 0))
}

/// # Safety
/// See [`ggml_backend_sched_set_profiling`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ggml_backend_sched_get_profiling(sched: Scheduler) -> bool {
    answer(|| profiled::with(sched, |profiled| Ok(profiled.is_on().into()))) == 1
}

/// # Safety
/// See [`ggml_backend_sched_set_profiling`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ggml_backend_sched_get_profiling_records(
    sched: Scheduler,
    records: *mut *const Record,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's own variable, or null.
        let out = unsafe { records.as_mut() };
        let out = out.ok_or(Error::Invalid("there is no place for the records (NULL)"))?;
        *out = std::ptr::null();
        profiled::with(sched, |profiled| {
            profiled.records = Records::of(&profiled.trace()?);
            let records = profiled.records.as_slice();
            *out = records.as_ptr();
            c_int::try_from(records.len()).map_err(|_| Error::Io("there are too many".into()))
        })
    })
}

/// # Safety
/// See [`ggml_backend_sched_set_profiling`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ggml_backend_sched_print_profiling(sched: Scheduler) -> c_int {
    answer(|| to_stream(sched, Stream::stdout(), summary))
}

/// # Safety
/// See [`ggml_backend_sched_set_profiling`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ggml_backend_sched_reset_profiling(sched: Scheduler) -> c_int {
    answer(|| {
        profiled::with(sched, |profiled| {
            profiled.reset();
            Ok(0)
        })
    })
}

/// # Safety
/// See [`ggml_backend_sched_set_profiling`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ggml_backend_sched_export_profiling_json(
    sched: Scheduler,
    filepath: *const c_char,
) -> c_int {
    // SAFETY: the caller's C string, or null.
    answer(|| unsafe { to_file(sched, filepath, json) })
}

/// # Safety
/// See [`ggml_backend_sched_set_profiling`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ggml_backend_sched_export_profiling_text(
    sched: Scheduler,
    filepath: *const c_char,
) -> c_int {
    // SAFETY: the caller's C string, or null.
    answer(|| unsafe { to_file(sched, filepath, plain_text) })
}

/// # Safety
/// See [`ggml_backend_sched_set_profiling`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ggml_backend_sched_write_profiling_json(
    sched: Scheduler,
    fp: *mut libc::FILE,
) -> c_int {
    // SAFETY: the caller's open stream, or null.
    answer(|| to_stream(sched, unsafe { open_stream(fp) }?, json))
}

/// # Safety
/// See [`ggml_backend_sched_set_profiling`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ggml_backend_sched_write_profiling_text(
    sched: Scheduler,
    fp: *mut libc::FILE,
) -> c_int {
    // SAFETY: the caller's open stream, or null.
    answer(|| to_stream(sched, unsafe { open_stream(fp) }?, plain_text))
}

#[unsafe(no_mangle)]
pub extern "C" fn ggml_profiler_last_error() -> *const c_char {
    error::last()
}

fn summary(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let name = trace.provenance.as_ref().map_or("", |facts| &facts.command);
    out.write_all(render::console(&documents::summary(trace, name, None), &Style::PLAIN).as_bytes())
}

fn json(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    ggml_json::write(trace, out)
}

fn plain_text(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(text::text(trace).as_bytes())
}

/// # Safety
/// The path is a C string or null.
unsafe fn to_file(sched: Scheduler, path: *const c_char, format: Format) -> Result<c_int, Error> {
    if path.is_null() {
        return Err(Error::Invalid("the path is NULL"));
    }
    // SAFETY: by this function's contract.
    let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()));
    let trace = profiled::with(sched, |profiled| profiled.trace())?;
    stream::to_file(path, |out| format(&trace, out)).map(|()| 0)
}

/// # Safety
/// The stream is open or null.
unsafe fn open_stream(file: *mut libc::FILE) -> Result<Stream, Error> {
    match file.is_null() {
        true => Err(Error::Invalid("the stream is NULL")),
        // SAFETY: by this function's contract.
        false => Ok(unsafe { Stream::new(file) }),
    }
}

fn to_stream(sched: Scheduler, mut stream: Stream, format: Format) -> Result<c_int, Error> {
    let trace = profiled::with(sched, |profiled| profiled.trace())?;
    let written = format(&trace, &mut stream).and_then(|()| stream.flush());
    written.map_err(|error| Error::Io(format!("the stream cannot be written: {error}")))?;
    Ok(0)
}
