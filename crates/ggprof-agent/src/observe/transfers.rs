//! Bytes that go to another machine or come from it: how many of which connection, and when. What they
//! say is not looked at.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

use ggprof_spool::layout;

use super::this_thread::ThisThread;
use crate::clock;
use crate::digest::{digest, mix};
use crate::fault::fault_point;
use crate::recorder::current;
use crate::recorder::lane::HeldLane;

/// Connections at once; more are not followed. ggml has up to 16 servers.
const CONNECTIONS: usize = 64;
/// Nobody uses the entry, or it is being filled. (Zero for the first, so that the table takes no room in
/// the library's file.)
const FREE: i32 = 0;
const CLAIMED: i32 = -1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Sent,
    Received,
}

/// An open connection of the program.
struct Connection {
    /// The descriptor plus one, or one of the marks below.
    holder: AtomicI32,
    id: AtomicU64,
    ports: AtomicU32,
    /// It was seen from its beginning, so the counts are those of the whole connection.
    is_whole: AtomicBool,
    sent: AtomicU64,
    received: AtomicU64,
}

static ALL: [Connection; CONNECTIONS] = [const {
    Connection {
        holder: AtomicI32::new(FREE),
        id: AtomicU64::new(0),
        ports: AtomicU32::new(0),
        is_whole: AtomicBool::new(false),
        sent: AtomicU64::new(0),
        received: AtomicU64::new(0),
    }
}; CONNECTIONS];

/// A connection was made.
pub(crate) fn begin(fd: c_int) {
    end(fd);
    fault_point!();
    take(fd, true);
}

/// A descriptor is about to be closed.
pub(crate) fn end(fd: c_int) {
    if let Some(known) = find(fd) {
        known.holder.store(FREE, Ordering::Release);
    }
}

fn find(fd: c_int) -> Option<&'static Connection> {
    let wanted = held_by(fd)?;
    ALL.iter().find(|it| it.holder.load(Ordering::Acquire) == wanted)
}

/// The mark of an entry for this descriptor. Numbers below zero are no descriptors, whatever the program
/// passes.
fn held_by(fd: c_int) -> Option<i32> {
    (fd >= 0).then(|| fd.wrapping_add(1))
}

/// Gives a connection a free entry. Only this thread knows the entry until it has its descriptor.
fn take(fd: c_int, is_whole: bool) -> Option<&'static Connection> {
    let ((id, ports), held) = (identity(fd)?, held_by(fd)?);
    let order = Ordering::AcqRel;
    for place in &ALL {
        if place.holder.compare_exchange(FREE, CLAIMED, order, Ordering::Relaxed).is_ok() {
            place.id.store(id, Ordering::Relaxed);
            place.ports.store(ports, Ordering::Relaxed);
            place.is_whole.store(is_whole, Ordering::Relaxed);
            place.sent.store(0, Ordering::Relaxed);
            place.received.store(0, Ordering::Relaxed);
            place.holder.store(held, Ordering::Release);
            return Some(place);
        }
    }
    None
}

/// A call that moved bytes has returned; `moved` is what it returned.
pub(crate) fn note(this: &ThisThread, fd: c_int, way: Way, moved: isize, start: u64) -> Option<()> {
    let end = clock::ticks();
    let bytes = u64::try_from(moved).ok().filter(|&bytes| bytes > 0)?;
    let connection = find(fd).or_else(|| take(fd, false))?;
    fault_point!();
    let count = match way {
        Way::Sent => &connection.sent,
        Way::Received => &connection.received,
    };
    let offset = count.fetch_add(bytes, Ordering::Relaxed);
    let recorder = current::recording()?;
    let lane = this.lane(recorder).filter(HeldLane::writes)?;
    fault_point!();
    let is_received = if way == Way::Received { layout::TRANSFER_RECEIVED } else { 0 };
    let is_whole = connection.is_whole.load(Ordering::Relaxed);
    let record = layout::Transfer {
        flags: is_received | if is_whole { layout::TRANSFER_WHOLE } else { 0 },
        ports: connection.ports.load(Ordering::Relaxed),
        connection: connection.id.load(Ordering::Relaxed),
        offset,
        bytes,
        start,
        end,
        ..Default::default()
    };
    lane.put_long(&mut record.encode(), &[]);
    Some(())
}

/// A number that both ends of a connection have in common, and the ports here and there. `None` for
/// what is no connection of TCP.
fn identity(fd: c_int) -> Option<(u64, u32)> {
    let (here, there) = (end_of(fd, libc::getsockname)?, end_of(fd, libc::getpeername)?);
    let (one, other) = (digest(&here), digest(&there));
    let port = |end: &[u8; END_BYTES]| u32::from(u16::from_le_bytes([end[16], end[17]]));
    Some((mix(one.min(other), one.max(other)), port(&here) << 16 | port(&there)))
}

/// An address of version 6, and a port.
const END_BYTES: usize = 18;

type AskName = unsafe extern "C" fn(c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> c_int;

fn end_of(fd: c_int, ask: AskName) -> Option<[u8; END_BYTES]> {
    // SAFETY: all zeros are an address of no family.
    let mut address: libc::sockaddr_in6 = unsafe { std::mem::zeroed() };
    let mut bytes = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
    // SAFETY: there is room for as many bytes as are said.
    let status = unsafe { ask(fd, (&raw mut address).cast(), &raw mut bytes) };
    if status != 0 {
        return None;
    }
    let mut end = [0; END_BYTES];
    match c_int::from(address.sin6_family) {
        libc::AF_INET6 => end[..16].copy_from_slice(&address.sin6_addr.s6_addr),
        libc::AF_INET => {
            // SAFETY: the system filled in an address of this family, which is smaller.
            let four = unsafe { *(&raw const address).cast::<libc::sockaddr_in>() };
            // As version 6 writes addresses of version 4: the other end may use that.
            end[10..12].copy_from_slice(&[u8::MAX; 2]);
            end[12..16].copy_from_slice(&four.sin_addr.s_addr.to_ne_bytes());
        }
        _ => return None,
    }
    // The port is at the same offset in both structs.
    end[16..].copy_from_slice(&u16::from_be(address.sin6_port).to_le_bytes());
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    #[test]
    fn both_ends_have_the_same_number() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let pairs: Vec<_> = (0..2)
            .map(|_| {
                let client = TcpStream::connect(address).unwrap();
                (client, listener.accept().unwrap().0)
            })
            .collect();
        let of = |stream: &TcpStream| identity(stream.as_raw_fd()).unwrap();
        for (client, server) in &pairs {
            let (here, there) = (of(client), of(server));
            assert_eq!(here.0, there.0);
            assert_eq!(here.1.rotate_left(16), there.1);
            assert_eq!(here.1 & 0xffff, u32::from(address.port()));
        }
        assert_ne!(of(&pairs[0].0).0, of(&pairs[1].0).0);
        assert_eq!(identity(listener.as_raw_fd()), None, "nobody is at the other end");
        assert_eq!(identity(-1), None);
    }

    #[test]
    fn places_are_used_again() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        for _ in 0..2 * CONNECTIONS {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let fd = client.as_raw_fd();
            begin(fd);
            assert!(find(fd).is_some_and(|it| it.is_whole.load(Ordering::Relaxed)));
            end(fd);
            assert!(find(fd).is_none());
        }
        assert!(find(-1).is_none() && find(-2).is_none());
    }
}
