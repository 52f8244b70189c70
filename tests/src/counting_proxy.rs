//! Stands between a client and a server, counts the bytes of each connection, and notes when answers came.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

/// What one connection came to.
#[derive(Debug, Clone)]
pub struct Counted {
    /// The client's own port, which tells its connections apart.
    pub port: u16,
    sent: Arc<AtomicU64>,
    received: Arc<AtomicU64>,
    answers: Arc<Mutex<Vec<(Instant, usize)>>>,
}

impl Counted {
    /// From the client to the server.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }

    pub fn received(&self) -> u64 {
        self.received.load(Ordering::SeqCst)
    }

    /// When the server answered with so many bytes or more at once.
    pub fn answers_of(&self, bytes: usize) -> Vec<Instant> {
        let answers = self.answers.lock().expect("no thread panics");
        answers.iter().filter(|(_, size)| *size >= bytes).map(|(when, _)| *when).collect()
    }
}

/// A proxy that runs as long as the test does.
#[derive(Debug)]
pub struct CountingProxy {
    address: SocketAddr,
    counted: Arc<Mutex<Vec<Counted>>>,
}

impl CountingProxy {
    /// Passes everything on to this server.
    pub fn before(server: String) -> CountingProxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let counted = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&counted);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(&server) else { return };
                all.lock().expect("no thread panics").push(pass_on(client, server));
            }
        });
        CountingProxy { address, counted }
    }

    pub fn endpoint(&self) -> String {
        self.address.to_string()
    }

    pub fn counted(&self) -> Vec<Counted> {
        self.counted.lock().expect("no thread panics").clone()
    }
}

fn pass_on(client: TcpStream, server: TcpStream) -> Counted {
    let port = client.peer_addr().map_or(0, |address| address.port());
    let (sent, received, answers) = Default::default();
    let counted = Counted { port, sent, received, answers };
    for stream in [&client, &server] {
        // As ggml does at both ends.
        let _ = stream.set_nodelay(true);
    }
    let copies = [&client, &server].map(|stream| stream.try_clone().expect("a descriptor"));
    let [client_too, server_too] = copies;
    let (sent, received) = (Arc::clone(&counted.sent), Arc::clone(&counted.received));
    let answers = Arc::clone(&counted.answers);
    thread::spawn(move || copy(client, server_too, &sent, |_| {}));
    thread::spawn(move || {
        copy(server, client_too, &received, |bytes| {
            answers.lock().expect("no thread panics").push((Instant::now(), bytes));
        });
    });
    counted
}

/// Counts before it passes on, so that no end knows of a byte that is not counted.
fn copy(mut from: TcpStream, mut to: TcpStream, count: &AtomicU64, note: impl Fn(usize)) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(bytes @ 1..) = from.read(&mut buffer) {
        count.fetch_add(bytes as u64, Ordering::SeqCst);
        note(bytes);
        if to.write_all(&buffer[..bytes]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
