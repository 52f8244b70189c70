//! Steps at which the agent can be made to fail, in a build for tests (feature `inject-faults`). In
//! all other builds a step is nothing at all.
//!
//! There is a step wherever something was taken or set that has to be undone, and wherever a hook
//! continues with something else. Steps are counted over the whole process, without those of its children;
//! with `GGPROF_FAULT_IN_CHILDREN`, in each forked child from its own beginning instead. `GGPROF_FAULT_AT`
//! lists the ones that panic; `GGPROF_FAULT_LOG` names a file that gets a line for each step, with its
//! place in the source. `tests/tests/faults.rs` makes them fail one by one.

/// A step. Only where a panic is caught: inside a guard, and not on the path of an op.
macro_rules! fault_point {
    () => {
        #[cfg(feature = "inject-faults")]
        {
            $crate::fault::step(concat!(file!(), ":", line!()));
        }
    };
}
pub(crate) use fault_point;

#[cfg(feature = "inject-faults")]
pub(crate) use injected::{begin_in_child, step};

#[cfg(feature = "inject-faults")]
mod injected {
    use std::ffi::{CString, OsString};
    use std::os::unix::ffi::OsStringExt;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    use ggprof_spool::names;

    struct Wishes {
        process: u32,
        in_children: bool,
        fail_at: Vec<u64>,
        log: Option<CString>,
    }

    impl Wishes {
        fn from_environment() -> Wishes {
            let numbers = std::env::var(names::FAULT_AT).unwrap_or_default();
            let log = std::env::var_os(names::FAULT_LOG).map(OsString::into_vec);
            Wishes {
                process: std::process::id(),
                in_children: std::env::var_os("GGPROF_FAULT_IN_CHILDREN").is_some(),
                fail_at: numbers.split(',').filter_map(|number| number.parse().ok()).collect(),
                log: log.and_then(|path| CString::new(path).ok()),
            }
        }
    }

    static STEPS: AtomicU64 = AtomicU64::new(0);
    /// The process that was forked last.
    static CHILD: AtomicU32 = AtomicU32::new(0);

    /// This process was forked by the program. (Children of rehearsals are not told of here.)
    pub(crate) fn begin_in_child() {
        CHILD.store(std::process::id(), Ordering::Relaxed);
        STEPS.store(0, Ordering::Relaxed);
    }

    pub(crate) fn step(place: &'static str) {
        static WISHES: OnceLock<Wishes> = OnceLock::new();
        let wishes = WISHES.get_or_init(Wishes::from_environment);
        let of_child = CHILD.load(Ordering::Relaxed);
        let counted = if wishes.in_children { of_child } else { wishes.process };
        if counted != std::process::id() {
            return;
        }
        let number = STEPS.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(log) = &wishes.log {
            write_down(log, place);
        }
        if wishes.fail_at.contains(&number) {
            panic!("step {number}, at {place}");
        }
    }

    /// Opened each time: programs close descriptors that they do not know.
    fn write_down(log: &CString, place: &str) {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
        let line = format!("{place}\n");
        // SAFETY: a C string and bytes of ours; a log that cannot be written stays short.
        unsafe {
            let file = libc::open(log.as_ptr(), flags, 0o600);
            libc::write(file, line.as_ptr().cast(), line.len());
            libc::close(file);
        }
    }
}
