//! Debian sid's `llama-server` on a port of its own, and clients that ask it for tokens at the
//! same time.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::debian_sid;

/// What a client got.
#[derive(Debug)]
pub struct Answer {
    pub slot: u32,
    pub tokens: u32,
    pub text: String,
}

/// A server that answers; it is ended when this is dropped.
#[derive(Debug)]
pub struct LlamaServer {
    process: Child,
    port: u16,
}

/// The command of a server with as many slots, and the port it will listen on. `None`, with a
/// sentence, where sid's packages cannot be had.
pub fn command(model: &Path, slots: u32) -> Option<(Command, u16)> {
    command_with(model, slots, &["cpu"])
}

/// The same with these backends.
pub fn command_with(model: &Path, slots: u32, backends: &[&str]) -> Option<(Command, u16)> {
    let mut command = debian_sid::command("llama-server", backends)?;
    // Free now, and unlikely to be taken by another process in the next moment.
    let port = TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port();
    command.arg("-m").arg(model).args(["--host", "127.0.0.1", "--port", &port.to_string()]);
    command.args(["-np", &slots.to_string(), "-c", "4096", "-t", "1", "-tb", "1"]);
    // Without the server's own cache of prompts, whose memory grows for long.
    command.args(["--no-webui", "--no-warmup", "--cache-ram", "0"]);
    Some((command, port))
}

impl LlamaServer {
    /// Starts `command`, which runs a server on the port, and waits until it answers.
    pub fn start(mut command: Command, port: u16) -> LlamaServer {
        command.stderr(Stdio::null());
        LlamaServer::start_logged(&mut command, port)
    }

    /// The same, with the standard error that the command has.
    pub fn start_logged(command: &mut Command, port: u16) -> LlamaServer {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut server = LlamaServer { process: command.spawn().expect("it starts"), port };
        let started = Instant::now();
        while get_status(port) != Some(200) {
            let ended = server.process.try_wait().expect("it is our child");
            assert_eq!(ended, None, "the server ended");
            assert!(started.elapsed() < Duration::from_secs(120), "the server does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    /// Of the process that was started: the server, or what it was started by.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Asks for so many tokens; an error where the answer is not one.
    pub fn complete(&self, prompt: &str, tokens: u32) -> Result<Answer, String> {
        let body = format!(
            "{{\"prompt\":\"{prompt}\",\"n_predict\":{tokens},\"ignore_eos\":true,\
             \"cache_prompt\":false,\"temperature\":0,\"seed\":1}}"
        );
        let (status, answer) =
            request(self.port, "POST /completion", &body).ok_or_else(|| "no answer".to_owned())?;
        if status != 200 {
            return Err(format!("{status}: {answer}"));
        }
        let field = |name: &str| value(&answer, name).ok_or_else(|| format!("no {name}: {answer}"));
        Ok(Answer {
            slot: field("id_slot")?.parse().map_err(|_| answer.clone())?,
            tokens: field("tokens_predicted")?.parse().map_err(|_| answer.clone())?,
            text: answer.split("\"content\":").nth(1).unwrap_or_default().to_owned(),
        })
    }

    /// What the server answers to a request for something else, as JSON.
    pub fn ask(&self, path: &str, body: &serde_json::Value) -> serde_json::Value {
        let answer = request(self.port, &format!("POST {path}"), &body.to_string());
        let (status, answer) = answer.expect("it answers");
        assert_eq!(status, 200, "{answer}");
        serde_json::from_str(&answer).expect("an answer in JSON")
    }

    /// Ends it as an operator does, and waits for it.
    pub fn end(mut self) {
        let _ = Command::new("kill").args(["-TERM", &self.id().to_string()]).status();
        let _ = self.process.wait();
    }
}

impl Drop for LlamaServer {
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            // The one it was started by passes this on; a kill would leave the server behind.
            let _ = Command::new("kill").args(["-TERM", &self.id().to_string()]).status();
            let _ = self.process.wait();
        }
    }
}

fn get_status(port: u16) -> Option<u16> {
    Some(request(port, "GET /health", "")?.0)
}

/// One request over a connection of its own: status and body.
fn request(port: u16, what: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let length = body.len();
    write!(
        stream,
        "{what} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .ok()?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    let mut rest = String::new();
    reader.read_to_string(&mut rest).ok()?;
    Some((status, rest.split_once("\r\n\r\n")?.1.to_owned()))
}

/// The number after a name.
fn value(json: &str, name: &str) -> Option<String> {
    let rest = json.split_once(&format!("\"{name}\":"))?.1;
    let number: String = rest.trim_start().chars().take_while(|c| c.is_ascii_digit()).collect();
    (!number.is_empty()).then_some(number)
}
