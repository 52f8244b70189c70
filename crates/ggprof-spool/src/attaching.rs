//! What the agent answers to `ggprof attach`, which has loaded it into a running program: the changes
//! of code that have to wait until every thread stands, or why nothing will be recorded.

/// The function of the agent that is called. It takes the settings, as C strings with an empty one
/// behind them, and returns the address of the encoded answer.
pub const FUNCTION: &str = "ggprof_agent_attach";

/// The function that is called where the changes could not be made. It takes nothing, and returns
/// [`PREPARED`] when the recording can begin without them, or [`BUSY`].
pub const WITHOUT: &str = "ggprof_agent_go_without";
pub const PREPARED: usize = 1;
/// The thread is inside the agent, whose locks it may hold: another one has to be asked, or later.
pub const BUSY: usize = 2;

/// The longest change of code.
pub const LONGEST: usize = 16;
/// The bytes in front of an answer: how long it is.
pub const LENGTH_BYTES: usize = 4;

/// More than this is not an answer.
const MOST_BYTES: u32 = 1 << 20;
const CHANGE_BYTES: usize = 8 + 1 + 2 * LONGEST;

/// A few bytes of code, as they are and as they are to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    pub at: u64,
    length: u8,
    before: [u8; LONGEST],
    after: [u8; LONGEST],
}

impl Change {
    /// `None` if it is too long, or the two are not of one length.
    pub fn new(at: u64, before: &[u8], after: &[u8]) -> Option<Change> {
        let fits = before.len() == after.len() && before.len() <= LONGEST;
        let padded = |bytes: &[u8]| std::array::from_fn(|at| bytes.get(at).copied().unwrap_or(0));
        let length = before.len() as u8;
        fits.then(|| Change { at, length, before: padded(before), after: padded(after) })
    }

    pub fn before(&self) -> &[u8] {
        &self.before[..usize::from(self.length)]
    }

    pub fn after(&self) -> &[u8] {
        &self.after[..usize::from(self.length)]
    }

    /// Whether a thread that would go on at this address would go on in the middle of it.
    pub fn is_inside(&self, address: u64) -> bool {
        address > self.at && address < self.at + u64::from(self.length)
    }
}

/// The changes, or why there is nothing to record.
pub type AttachAnswer = Result<Vec<Change>, Refused>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// As [`BUSY`].
    Busy,
    Because(String),
}

impl From<String> for Refused {
    fn from(why: String) -> Refused {
        Refused::Because(why)
    }
}

impl From<&str> for Refused {
    fn from(why: &str) -> Refused {
        Refused::Because(why.to_owned())
    }
}

/// As bytes, with their number in front.
pub fn encode(answer: &AttachAnswer) -> Vec<u8> {
    let mut body = Vec::new();
    match answer {
        Ok(changes) => {
            body.push(1);
            for change in changes {
                body.extend(change.at.to_le_bytes());
                body.push(change.length);
                body.extend(change.before);
                body.extend(change.after);
            }
        }
        Err(Refused::Because(problem)) => {
            body.push(0);
            body.extend(problem.as_bytes());
        }
        Err(Refused::Busy) => body.push(2),
    }
    let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
    bytes.extend(body);
    bytes
}

/// The length of an answer, from the bytes in front of it; `None` where that is not one.
pub fn length(front: [u8; LENGTH_BYTES]) -> Option<usize> {
    let length = u32::from_le_bytes(front);
    (1..=MOST_BYTES).contains(&length).then_some(length as usize)
}

/// What follows the length; `None` where it is not an answer.
pub fn decode(body: &[u8]) -> Option<AttachAnswer> {
    let (kind, rest) = body.split_first()?;
    match kind {
        0 => Some(Err(Refused::Because(String::from_utf8_lossy(rest).into_owned()))),
        1 if rest.len() % CHANGE_BYTES == 0 => {
            rest.chunks_exact(CHANGE_BYTES).map(change).collect::<Option<Vec<_>>>().map(Ok)
        }
        2 if rest.is_empty() => Some(Err(Refused::Busy)),
        _ => None,
    }
}

fn change(bytes: &[u8]) -> Option<Change> {
    let at = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
    let length = *bytes.get(8)?;
    let before = bytes.get(9..9 + LONGEST)?.try_into().ok()?;
    let after = bytes.get(9 + LONGEST..)?.try_into().ok()?;
    (usize::from(length) <= LONGEST).then_some(Change { at, length, before, after })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_kept(answer: AttachAnswer) {
        let bytes = encode(&answer);
        let (front, body) = bytes.split_at(LENGTH_BYTES);
        assert_eq!(length(front.try_into().unwrap()), Some(body.len()));
        assert_eq!(decode(body), Some(answer));
    }

    #[test]
    fn answers_come_back_as_they_were() {
        is_kept(Ok(Vec::new()));
        is_kept(Ok(vec![Change::new(7, &[1, 2, 3], &[4, 5, 6]).unwrap(); 3]));
        is_kept(Err("there is no room".into()));
        is_kept(Err(Refused::Busy));
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        assert_eq!(length([0; 4]), None);
        assert_eq!(length([0xff; 4]), None);
        let mut too_long = [1; 1 + CHANGE_BYTES];
        too_long[9] = LONGEST as u8 + 1;
        for body in [&[][..], &[3], &[2, 0], &[1, 0], &too_long] {
            assert_eq!(decode(body), None, "{body:?}");
        }
        assert_eq!(Change::new(0, &[0; LONGEST + 1], &[0; LONGEST + 1]), None);
        assert_eq!(Change::new(0, &[0], &[0; 2]), None);
    }

    #[test]
    fn a_thread_may_stand_at_the_start_of_a_change_but_not_in_it() {
        let change = Change::new(100, &[0; 5], &[1; 5]).unwrap();
        let inside: Vec<u64> = (98..108).filter(|&at| change.is_inside(at)).collect();
        assert_eq!(inside, [101, 102, 103, 104]);
    }
}
