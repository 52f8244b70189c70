//! Operations on the file, which is opened for each and closed again at once.

use std::ffi::CString;

use ggprof_spool::layout::StopReason;

use crate::patch::page_bytes;
use crate::signals;

/// A descriptor that is closed again at once.
#[derive(Debug)]
pub(super) struct OpenFile(libc::c_int);

/// Which file it is, and how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileFacts {
    pub(super) identity: (libc::dev_t, libc::ino_t),
    pub(super) bytes: usize,
}

impl OpenFile {
    pub(super) fn open(path: &CString, flags: libc::c_int) -> Option<OpenFile> {
        // SAFETY: the path is a valid C string.
        let fd = unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, 0o600) };
        // Not `then_some`: a value made for nothing would be dropped, and closing
        // -1 would replace the error we are about to report.
        (fd >= 0).then(|| OpenFile(fd))
    }

    pub(super) fn facts(&self) -> Option<FileFacts> {
        // SAFETY: all-zero is a valid `stat`, which the call fills in.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: the descriptor is open and `stat` is ours.
        let known = unsafe { libc::fstat(self.0, &mut stat) } == 0;
        let identity = (stat.st_dev, stat.st_ino);
        known.then_some(FileFacts { identity, bytes: stat.st_size as usize })
    }

    pub(super) fn reserve(&self, offset: usize, bytes: usize) -> Result<(), StopReason> {
        if beyond_size_limit(offset + bytes) {
            return Err(StopReason::NoSpace);
        }
        // File systems in memory give up at any signal that can be delivered, and undo what they have done: a
        // timer's would keep this from ever coming to an end.
        signals::while_blocked(|| match self.allocate(offset, bytes) {
            0 => Ok(()),
            // File systems that cannot reserve can still be written to.
            libc::EOPNOTSUPP | libc::ENOSYS => self.write_zeros(offset, bytes),
            _ => Err(StopReason::NoSpace),
        })
    }

    /// 0 or the error's number.
    fn allocate(&self, offset: usize, bytes: usize) -> libc::c_int {
        loop {
            // SAFETY: plain system call on our open descriptor.
            if unsafe { libc::fallocate(self.0, 0, offset as i64, bytes as i64) } == 0 {
                return 0;
            }
            // Even now a debugger or SIGSTOP may interrupt it.
            match last_error() {
                libc::EINTR => {}
                error => return error,
            }
        }
    }

    fn write_zeros(&self, offset: usize, bytes: usize) -> Result<(), StopReason> {
        const AT_ONCE: usize = 64 << 10;
        let zeros = vec![0_u8; AT_ONCE.min(bytes)];
        let mut done = 0;
        while done < bytes {
            let (length, at) = (zeros.len().min(bytes - done), (offset + done) as i64);
            // SAFETY: as many bytes are there, and they are only read.
            let wrote = unsafe { libc::pwrite(self.0, zeros.as_ptr().cast(), length, at) };
            match wrote {
                1.. => done += wrote as usize,
                -1 if last_error() == libc::EINTR => {}
                _ => return Err(StopReason::NoSpace),
            }
        }
        Ok(())
    }

    /// Maps part of the file, shared. Pages may be larger than our header, so
    /// the mapping starts at the page before and the pointer is moved on.
    pub(super) fn map(&self, offset: usize, bytes: usize) -> Option<*mut u8> {
        let ahead = offset % page_bytes();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new shared mapping; whoever uses a part of it knows that the file has it.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes + ahead,
                protection,
                libc::MAP_SHARED,
                self.0,
                (offset - ahead) as i64,
            )
        };
        // SAFETY: `ahead` is inside the mapping.
        (at != libc::MAP_FAILED).then(|| unsafe { at.cast::<u8>().add(ahead) })
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // SAFETY: ours, and closed only here.
        unsafe { libc::close(self.0) };
    }
}

/// Why the last call failed.
fn last_error() -> libc::c_int {
    // SAFETY: this thread's own error number.
    unsafe { *libc::__errno_location() }
}

/// Growing past the program's own file-size limit would raise SIGXFSZ in it.
fn beyond_size_limit(bytes: usize) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is ours.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
    known && limit.rlim_cur != libc::RLIM_INFINITY && bytes as u64 > limit.rlim_cur
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    #[test]
    fn zeros_fill_what_is_asked_for_and_no_more() {
        let name = format!("ggprof-zeros-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, [7; 90_000]).expect("the file can be written");
        let name = CString::new(path.as_os_str().as_bytes()).expect("no zero byte");
        let file = OpenFile::open(&name, libc::O_RDWR).expect("it was just made");
        file.write_zeros(100, 70_001).expect("there is room");
        let bytes = std::fs::read(&path).expect("it is there");
        std::fs::remove_file(&path).expect("it is ours");
        let is_zero = |at: usize| (100..70_101).contains(&at);
        assert_eq!(bytes.len(), 90_000);
        assert!(
            bytes.iter().enumerate().all(|(at, &byte)| byte == if is_zero(at) { 0 } else { 7 })
        );
    }

    /// A file system in memory gives up at any signal, and undoes what it has done.
    #[test]
    fn room_is_made_while_signals_arrive_without_pause() {
        extern "C" fn handler(_: libc::c_int) {}
        const BYTES: usize = 64 << 20;
        let name = format!("/dev/shm/ggprof-room-{}", std::process::id());
        let Ok(name) = CString::new(name) else { return };
        let Some(file) = OpenFile::open(&name, libc::O_RDWR | libc::O_CREAT) else { return };
        // SAFETY: the file is the test's own; the handler does nothing; ids of this process and thread.
        let (process, thread) = unsafe {
            libc::unlink(name.as_ptr());
            libc::signal(libc::SIGUSR1, handler as *const () as libc::sighandler_t);
            (libc::getpid(), libc::syscall(libc::SYS_gettid))
        };
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    // SAFETY: a thread that waits for this one.
                    unsafe { libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGUSR1) };
                    std::thread::sleep(Duration::from_micros(200));
                }
            });
            let made = file.reserve(0, BYTES);
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(made, Ok(()));
        });
        assert_eq!(file.facts().map(|facts| facts.bytes), Some(BYTES));
    }
}
