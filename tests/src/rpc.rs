//! ggml's RPC as Debian sid packages it: servers on ports of their own, and a client that leaves all layers to them, each
//! recorded by a `ggprof run` of its own.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::model::Model;
use crate::{built, debian_sid, python_bindings};

/// A server that is being recorded; it is ended when this is dropped.
#[derive(Debug)]
pub struct RpcServer {
    launcher: Child,
    port: u16,
    recording: PathBuf,
}

impl RpcServer {
    /// Starts one whose recording will be `name` in the directory, made with these options. `None`,
    /// with a sentence, where sid's packages cannot be had.
    pub fn start(directory: &Path, name: &str, options: &[&str]) -> Option<RpcServer> {
        let mut server = debian_sid::command("ggml-rpc-server", &["cpu", "rpc"])?;
        let port = free_port();
        server.args(["--host", "127.0.0.1", "--threads", "1", "--port", &port.to_string()]);
        Some(Self::serving(&server, port, directory.join(name), options))
    }

    /// The same of a build that is published for Python, newer than sid's.
    pub fn start_published(directory: &Path, name: &str) -> Option<RpcServer> {
        let mut server = python_bindings::python()?;
        let port = free_port();
        let script = format!(
            "from llama_cpp_py_sync.rpc import start_rpc_server\n\
             start_rpc_server('127.0.0.1:{port}', devices=['CPU'], n_threads=1)"
        );
        server.args(["-c", &script]);
        Some(Self::serving(&server, port, directory.join(name), &[]))
    }

    /// The same of a build of our own, which speaks an older protocol.
    pub fn start_built(program: &Path, recording: PathBuf) -> RpcServer {
        let port = free_port();
        let mut server = Command::new(program);
        server.args(["serve", &format!("127.0.0.1:{port}")]);
        Self::serving(&server, port, recording, &[])
    }

    fn serving(server: &Command, port: u16, recording: PathBuf, options: &[&str]) -> RpcServer {
        let mut launcher = without_broken_pipes(&recorded(&recording, options, server));
        let launcher = launcher.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut server = RpcServer { launcher: launcher.expect("ggprof starts"), port, recording };
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = server.launcher.try_wait().expect("it is our child");
            assert_eq!(ended, None, "the server ended");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    pub fn endpoint(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Ends it, and gives its recording.
    pub fn end(mut self) -> PathBuf {
        self.stop();
        self.recording.clone()
    }

    fn stop(&mut self) {
        // The launcher passes this on; a kill would leave the server behind.
        let _ = Command::new("kill").args(["-TERM", &self.launcher.id().to_string()]).status();
        let _ = self.launcher.wait();
    }
}

impl Drop for RpcServer {
    fn drop(&mut self) {
        if matches!(self.launcher.try_wait(), Ok(None)) {
            self.stop();
        }
    }
}

/// Free now, and unlikely to be taken by another process in the next moment.
fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    free.expect("a free port").port()
}

/// llama-bench on the slowest kind of processor that ggml knows, so that any server is faster.
pub fn slow_client(model: &Path, endpoints: &[String], arguments: &[&str]) -> Option<Command> {
    let mut client = debian_sid::command("llama-bench", &["cpu-x64", "rpc"])?;
    client.args(["--threads", "1", "--repetitions", "1", "--rpc", &endpoints.join(",")]);
    client.args(arguments).arg("--model").arg(model);
    Some(client)
}

/// llama-bench that leaves all layers of a tiny model to these servers, recorded to a file.
pub fn client(recording: &Path, endpoints: &[String], arguments: &[&str]) -> Command {
    let bench = debian_sid::command("llama-bench", &["cpu", "rpc"]).expect("as the server's");
    let model = Model::TINY.file("tiny").expect("a model can be written");
    let mut client = recorded(recording, &[], &bench);
    client.args(["--threads", "1", "--repetitions", "1", "--n-gpu-layers", "99"]);
    client.args(["--rpc", &endpoints.join(",")]).args(arguments).arg("--model").arg(model);
    client
}

/// A client of our own build that leaves so many graphs to a server, recorded to a file.
pub fn built_client(program: &Path, recording: &Path, endpoint: &str, graphs: u32) -> Command {
    let mut client = Command::new(program);
    client.args(["ask", endpoint, &graphs.to_string()]);
    recorded(recording, &[], &client)
}

/// The command with SIGPIPE ignored, as systemd starts programs. Otherwise a client that is killed while
/// the server answers takes the server with it, recorded or not.
fn without_broken_pipes(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' PIPE; exec \"$@\"", "sh"]);
    shell.arg(command.get_program()).args(command.get_args());
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.env_remove("LD_PRELOAD").stdin(Stdio::null());
    shell
}

/// `ggprof run` of a command.
fn recorded(recording: &Path, options: &[&str], command: &Command) -> Command {
    let mut run = Command::new(built::ggprof());
    run.arg("run").args(options).arg("-o").arg(recording).arg("--");
    run.arg(command.get_program()).args(command.get_args());
    run.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    run.env_remove("LD_PRELOAD").stdin(Stdio::null());
    run
}
