//! The real programs: curl and Python over the kernel's MPTCP against `anabranch serve` and `anabranch fetch`, unmodified,
//! over two paths, every byte compared.
#![allow(clippy::unwrap_used)]

use anabranch_host::Namespace;
use anabranch_interop::{Case, Direct, Family, KernelCounters, Role, run};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

fn main() -> ExitCode {
    let mut cases = Vec::new();
    for family in [Family::V4, Family::V6] {
        let name = |what: &str| format!("{what}_{family:?}").to_lowercase();
        cases.push(case(name("curl_downloads_from_serve"), move || curl_downloads(family)));
        cases.push(case(name("curl_uploads_to_serve"), move || curl_uploads(family)));
        cases.push(case(name("plain_curl_downloads_from_serve"), move || plain_curl(family)));
        cases.push(case(name("fetch_downloads_from_python"), move || fetch_from_python(family)));
    }
    run(cases, 4)
}

fn case(name: String, test: impl FnOnce() + Send + 'static) -> Case {
    Case::new(name, move || {
        test();
        Ok(())
    })
}

/// Longer than any test takes.
const LIMIT: &str = "60";
/// What is moved.
const SIZE: usize = 16 << 20;

/// A program that runs until the test is over.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `command` in the namespace and waits until it says, on standard error, a line with `ready` in it.
fn start(namespace: &Namespace, mut command: Command, ready: &str) -> Running {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = namespace.run(move || command.spawn()).unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let running = Running(child);
    let mut said = String::new();
    let found = lines.by_ref().map_while(Result::ok).any(|line| {
        said = said.clone() + &line + "\n";
        line.contains(ready)
    });
    assert!(found, "it ended and never said `{ready}`:\n{said}");
    // Somebody has to read the rest.
    std::thread::spawn(move || lines.for_each(drop));
    running
}

fn anabranch(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(words);
    command
}

/// A file that does not repeat itself soon.
fn content() -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut bytes = Vec::with_capacity(SIZE);
    while bytes.len() < SIZE {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes
}

fn url(direct: &Direct, family: Family, path: &str) -> String {
    let host = direct.engine.family(family)[0];
    match family {
        Family::V4 => format!("http://{host}/{path}"),
        Family::V6 => format!("http://[{host}]/{path}"),
    }
}

/// `anabranch serve` on the engine's two addresses of the family; their routes lead to its device.
fn serve(direct: &Direct, family: Family, root: &Path) -> Running {
    let listen = direct.engine.family(family).map(|ip| ip.to_string()).join(",");
    let mut command = anabranch(&["serve", "--listen", &listen, "--http", "80"]);
    command.arg("--root").arg(root);
    start(&direct.namespace, command, "serving")
}

/// What the kernel counted while `act` ran.
fn counted(direct: &Direct, act: impl FnOnce()) -> KernelCounters {
    let before = KernelCounters::read(&direct.namespace).unwrap();
    act();
    KernelCounters::read(&direct.namespace).unwrap().since(&before)
}

fn assert_multipath(counters: &KernelCounters, joins: &str) {
    assert!(counters.mptcp(joins) >= 1, "no second subflow: {counters}");
    assert!(counters.mptcp_trouble().is_empty(), "{counters}");
}

fn curl_downloads(family: Family) {
    let (direct, directory) = (Direct::new("curl").unwrap(), tempfile::tempdir().unwrap());
    direct.add_endpoint(Role::Client, family).unwrap();
    std::fs::write(directory.path().join("file"), content()).unwrap();
    let _serve = serve(&direct, family, directory.path());
    let output = directory.path().join("output").display().to_string();
    let counters = counted(&direct, || {
        let words = ["run", "curl", "-sSf", "-m", LIMIT, "-o", &output, &url(&direct, family, "file")];
        direct.namespace.command("mptcpize", &words).unwrap();
    });
    assert!(std::fs::read(&output).unwrap() == content(), "the file is another one");
    assert_multipath(&counters, "MPJoinSynAckRx");
}

fn curl_uploads(family: Family) {
    let (direct, directory) = (Direct::new("curl").unwrap(), tempfile::tempdir().unwrap());
    direct.add_endpoint(Role::Client, family).unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, content()).unwrap();
    let _serve = serve(&direct, family, directory.path());
    let counters = counted(&direct, || {
        let (file, url) = (file.display().to_string(), url(&direct, family, "discard"));
        let words = ["run", "curl", "-sSf", "-m", LIMIT, "-T", &file, &url];
        let answer = direct.namespace.command("mptcpize", &words).unwrap();
        assert!(answer.contains(&SIZE.to_string()), "serve says what came: {answer}");
    });
    assert_multipath(&counters, "MPJoinSynAckRx");
}

fn plain_curl(family: Family) {
    let (direct, directory) = (Direct::new("curl").unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(directory.path().join("file"), content()).unwrap();
    let _serve = serve(&direct, family, directory.path());
    let output = directory.path().join("output").display().to_string();
    let counters = counted(&direct, || {
        let words = ["-sSf", "-m", LIMIT, "-o", &output, &url(&direct, family, "file")];
        direct.namespace.command("curl", &words).unwrap();
    });
    assert!(std::fs::read(&output).unwrap() == content(), "the file is another one");
    assert_eq!(counters.mptcp("MPCapableSYNTX"), 0, "{counters}");
}

/// Python's HTTP server with MPTCP sockets; its second address is announced and joined, as is our second.
fn fetch_from_python(family: Family) {
    let (direct, directory) = (Direct::new("fetch").unwrap(), tempfile::tempdir().unwrap());
    direct.add_endpoint(Role::Server, family).unwrap();
    std::fs::write(directory.path().join("file"), content()).unwrap();
    let mut python = Command::new("python3");
    python.current_dir(directory.path()).args(["-u", "-c", SERVER, &direct.kernel.family(family)[0].to_string()]);
    let _python = start(&direct.namespace, python, "ready");
    let output = directory.path().join("output");
    let host = direct.kernel.family(family)[0];
    let url = if family == Family::V4 { format!("http://{host}/file") } else { format!("http://[{host}]/file") };
    let from = direct.engine.family(family).map(|ip| ip.to_string()).join(",");
    let mut fetch = anabranch(&["fetch", &url, "--from", &from, "--json", "--max-time", "60s"]);
    fetch.arg("--output").arg(&output).stdin(Stdio::null());
    let counters = counted(&direct, || {
        let done = direct.namespace.run(move || fetch.output()).unwrap();
        assert!(done.status.success(), "{done:?}");
    });
    assert!(std::fs::read(&output).unwrap() == content(), "the file is another one");
    assert_multipath(&counters, "MPJoinAckRx");
}

const SERVER: &str = r#"
import http.server, socket, sys
class Server(http.server.ThreadingHTTPServer):
    def __init__(self, address):
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, 80), http.server.SimpleHTTPRequestHandler, bind_and_activate=False)
        self.socket.close()
        self.socket = socket.socket(self.address_family, socket.SOCK_STREAM, 262)
        self.server_bind()
        self.server_activate()
    def server_bind(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("::" if self.address_family == socket.AF_INET6 else "0.0.0.0", 80))
        self.server_name, self.server_port = "server", 80
server = Server(sys.argv[1])
print("ready", file=sys.stderr)
server.serve_forever()
"#;
