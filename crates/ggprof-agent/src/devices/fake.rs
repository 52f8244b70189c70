//! A third device API, for tests: only this file and the list of APIs know it. The tests show that its
//! settings, its splits, its locks and what concerns all APIs reach it without a change elsewhere. Calls of
//! a device's driver are hooked in the tests of the real ones only.

use std::cell::RefCell;

use crate::config::Environment;
use crate::lock::{HeldAtFork, Ranked, rank};
use crate::observe::adopted::Adopted;
use crate::observe::device_api::DeviceApi;
use crate::observe::this_thread::ThisThread;
use crate::recorder::lane::HeldLane;

thread_local! {
    /// What was asked on this thread.
    static ASKED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

static LOCK: Ranked<{ rank::OUTER_OF_DEVICES }, ()> = Ranked::new(());

fn note(asked: impl Into<String>) {
    ASKED.with_borrow_mut(|all| all.push(asked.into()));
}

#[derive(Debug)]
pub(super) struct FakeApi;

impl DeviceApi for FakeApi {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn variables(&self) -> &'static [&'static str] {
        &["FAKE_HOME"]
    }

    fn understand(&self, environment: &Environment) -> Result<(), String> {
        environment.word("GGPROF_FAKE", &[("on", ()), ("off", ())])
    }

    fn begin_split(
        &self,
        _: &ThisThread,
        _: &HeldLane<'static>,
        adopted: &Adopted,
        split: u32,
    ) -> bool {
        note(format!("split {split} of backend {} begins", adopted.id()));
        true
    }

    fn end_split(&self, _: &HeldLane<'_>, backend: u32, split: u32, stream: usize) {
        note(format!("split {split} of backend {backend} ends on stream {stream}"));
    }

    fn leave_split(&self) {
        note("left");
    }

    fn note_unrecorded_split(&self) {
        note("a split is not recorded");
    }

    fn note_waited(&self) {
        note("waited");
    }

    fn is_in_use(&self) -> bool {
        false
    }

    fn fork_lock(&self, number: usize) -> Option<&'static dyn HeldAtFork> {
        [&LOCK as &'static dyn HeldAtFork].get(number).copied()
    }
}

mod tests {
    use super::*;
    use crate::config::Config;
    use crate::devices;
    use crate::observe::begun::{Kind, Mark};
    use crate::observe::device_api::{self, DeviceSplit};
    use crate::observe::schedulers;
    use crate::observe::split::Split;
    use crate::observe::visits::{FollowsVisits, Visits};
    use crate::recorder::Recorder;

    /// A backend of this API.
    fn adopted() -> Adopted {
        device_api::register(devices::APIS);
        let place = devices::APIS.iter().position(|api| api.name() == "fake");
        Adopted::of_device_api(place.expect("it is in the list"), 7)
    }

    fn asked() -> Vec<String> {
        ASKED.with_borrow_mut(std::mem::take)
    }

    #[test]
    fn its_words_are_understood_or_refused_like_all_others() {
        assert!(devices::reads(b"FAKE_HOME=/") && !devices::reads(b"OTHER_HOME=/"));
        let understand = |word| devices::understand(&Environment::of(&[word]));
        assert_eq!(understand("GGPROF_FAKE=on"), Ok(()));
        let problem = "GGPROF_FAKE is \"odd\" and not one of on, off";
        assert_eq!(understand("GGPROF_FAKE=odd"), Err(problem.to_owned()));
    }

    #[test]
    fn splits_of_its_backends_begin_and_end() {
        let place = std::env::temp_dir().join(format!("ggprof-fake-{}", std::process::id()));
        let spool = format!("GGPROF_SPOOL={}", place.display());
        let config = Config::understand(&Environment::of(&[&spool])).expect("understood");
        let recorder = Recorder::create(&config, None).expect("a recording can be made");
        let recorder: &'static Recorder = Box::leak(Box::new(recorder));
        recorder.spool.remove();
        let (adopted, lane) = (adopted(), recorder.lane(0, 0).expect("a lane is free"));
        ThisThread::with(|this| {
            let split = DeviceSplit::begin(this, &lane, &adopted, 3).expect("it is this API's");
            split.end(&lane, 5);
            drop(DeviceSplit::begin(this, &lane, &adopted, 4));
        });
        assert_eq!(
            asked(),
            [
                "split 3 of backend 7 begins",
                "split 3 of backend 7 ends on stream 5",
                "left",
                "split 4 of backend 7 begins",
                "left",
            ]
        );
    }

    #[test]
    fn it_hears_of_what_concerns_all() {
        let adopted: &'static Adopted = Box::leak(Box::new(adopted()));
        let nothing = std::ptr::null_mut();
        ThisThread::with(|this| {
            schedulers::note_synchronize(this, nothing, 0);
            let split =
                Split::begin(this, Mark::new(Kind::Split).frame(), adopted, (nothing, nothing));
            assert!(split.is_none(), "nobody records");
        });
        assert_eq!(asked(), ["waited", "a split is not recorded"]);
    }

    #[derive(Debug, Default)]
    struct Steps(Vec<u32>);

    impl FollowsVisits for Steps {
        fn visit(&mut self, position: u32) {
            self.0.push(position);
        }
    }

    #[test]
    fn it_can_follow_the_loop_over_the_nodes() {
        let nodes: Vec<*const u8> = (1..=3).map(|node| (node * 16) as *const u8).collect();
        // SAFETY: the nodes stay.
        let mut visits = unsafe { Visits::new((1, 1, 7), &nodes) };
        assert!(visits.follower::<Steps>().is_none());
        visits.follower_or_new::<Steps>().expect("nobody else follows");
        for node in [1, 2, 3] {
            visits.visit(node * 16, 0x100);
        }
        assert_eq!(visits.follower::<Steps>().map(|steps| steps.0.clone()), Some(vec![0, 1, 2]));
    }
}
