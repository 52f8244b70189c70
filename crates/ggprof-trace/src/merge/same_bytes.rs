//! The same bytes at both ends of a connection: what a process received was sent before. Each piece
//! that was received bounds the distance of the two clocks.

use super::clock_line::{Bound, Side};
use crate::model::{Trace, Transfer};
use hashbrown::HashMap;

/// Bounds of a server's clock by all that it and its client sent each other.
pub(super) fn bounds(client: &Trace, server: &Trace) -> Vec<Bound> {
    let (of_client, of_server) = (streams(client), streams(server));
    let mut bounds = Vec::new();
    for (key, sent) in &of_client {
        let (connection, is_received) = *key;
        let Some(other) = of_server.get(&(connection, !is_received)) else { continue };
        match is_received {
            // The server had it after the client began to send it.
            false => each(sent, other, |sent, received| {
                bounds.push(Bound::new(received.end_ns, sent.start_ns, Side::AtLeast));
            }),
            // The client had it after the server began to send it.
            true => each(other, sent, |replied, received| {
                bounds.push(Bound::new(replied.start_ns, received.end_ns, Side::AtMost));
            }),
        }
    }
    bounds
}

/// What went one way through each connection that was seen from its beginning, in order.
fn streams(trace: &Trace) -> HashMap<(u64, bool), Vec<Transfer>> {
    let mut streams: HashMap<(u64, bool), Vec<Transfer>> = HashMap::new();
    for transfer in trace.transfers.iter().filter(|it| it.is_whole && it.bytes > 0) {
        let key = (transfer.connection, transfer.is_received);
        streams.entry(key).or_default().push(*transfer);
    }
    streams.values_mut().for_each(|stream| stream.sort_by_key(|it| it.offset));
    streams
}

/// Each piece that was received, with the one in which its last byte was sent.
fn each(sent: &[Transfer], received: &[Transfer], mut take: impl FnMut(&Transfer, &Transfer)) {
    for piece in received {
        let last = piece.offset.saturating_add(piece.bytes - 1);
        let at = sent.partition_point(|it| it.offset <= last);
        let Some(sender) = at.checked_sub(1).map(|at| &sent[at]) else { continue };
        // Pieces may be missing.
        if last - sender.offset < sender.bytes {
            take(sender, piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(
        is_received: bool,
        offset: u64,
        bytes: u64,
        (start_ns, end_ns): (u64, u64),
    ) -> Transfer {
        Transfer {
            process: None,
            connection: 7,
            is_received,
            is_whole: true,
            port: 1,
            other_port: 2,
            offset,
            bytes,
            start_ns,
            end_ns,
        }
    }

    #[test]
    fn what_is_received_was_sent_before() {
        let client = Trace {
            transfers: vec![
                transfer(false, 0, 10, (100, 110)),
                transfer(false, 30, 5, (200, 210)),
                transfer(true, 0, 8, (300, 340)),
            ],
            ..Trace::default()
        };
        let server = Trace {
            transfers: vec![
                transfer(true, 0, 4, (1000, 1005)),
                transfer(true, 4, 6, (1006, 1007)),
                // What the client sent of this was not recorded.
                transfer(true, 10, 20, (1010, 1050)),
                transfer(true, 30, 5, (1090, 1100)),
                transfer(false, 0, 8, (1180, 1185)),
            ],
            ..Trace::default()
        };
        let mut found = bounds(&client, &server);
        found.sort_by_key(|bound| bound.at_ns);
        let expected = [
            Bound::new(1005, 100, Side::AtLeast),
            Bound::new(1007, 100, Side::AtLeast),
            Bound::new(1100, 200, Side::AtLeast),
            Bound::new(1180, 340, Side::AtMost),
        ];
        assert_eq!(found, expected);
    }
}
