//! One file per subcommand.

mod convert;
mod diff;
mod explain;
mod export;
mod generate;
mod index;
mod merge;
mod report;
mod view;

#[cfg(target_os = "linux")]
mod attach;
#[cfg(target_os = "linux")]
mod bench;
#[cfg(target_os = "linux")]
mod ctl;
#[cfg(target_os = "linux")]
mod deliver;
#[cfg(target_os = "linux")]
mod doctor;
#[cfg(target_os = "linux")]
mod env;
#[cfg(target_os = "linux")]
mod op_worker;
#[cfg(target_os = "linux")]
mod ops;
#[cfg(target_os = "linux")]
mod peaks;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod top;

pub(crate) use convert::convert;
pub(crate) use diff::diff;
pub(crate) use explain::explain;
pub(crate) use export::export;
pub(crate) use generate::generate;
pub(crate) use index::index;
pub(crate) use merge::merge;
pub(crate) use report::report;
pub(crate) use view::view;

/// Commands that run programs or measure the machine, each with its arguments. On systems where ggprof only
/// reads recordings, they are refused.
macro_rules! on_linux {
    ($($command:ident($($arguments:ident)?),)*) => {
        #[cfg(target_os = "linux")]
        pub(crate) use {$($command::$command),*};
        $(
            #[cfg(not(target_os = "linux"))]
            pub(crate) fn $command($(_: &crate::cli::$arguments)?) -> anyhow::Result<crate::exit::Outcome> {
                refuse()
            }
        )*
    };
}

on_linux! {
    attach(AttachArgs),
    bench(BenchArgs),
    ctl(CtlArgs),
    deliver(DeliverArgs),
    doctor(DoctorArgs),
    env(),
    op_worker(OpWorker),
    ops(Ops),
    peaks(PeaksArgs),
    run(RunArgs),
    top(TopArgs),
}

#[cfg(not(target_os = "linux"))]
fn refuse() -> anyhow::Result<crate::exit::Outcome> {
    anyhow::bail!(
        "ggprof records programs on Linux only. Record there with `ggprof run -o FILE.ggprof -- …`, \
         and open the file here with `ggprof report` or `ggprof view`."
    )
}
