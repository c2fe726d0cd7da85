//! The real programs, unmodified, over two paths: curl, iperf3 and Python with the kernel's MPTCP against
//! `anabranch serve`, `anabranch proxy` in front of nginx and iperf3, and `anabranch fetch`. Every byte of a file is
//! compared.
#![allow(clippy::unwrap_used)]

use anabranch_host::Namespace;
use anabranch_interop::{Case, Direct, Family, KernelCounters, Role, read_once, run, wait};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

fn main() -> ExitCode {
    let mut cases = Vec::new();
    for family in [Family::V4, Family::V6] {
        let name = |what: &str| format!("{what}_{family:?}").to_lowercase();
        cases.push(case(name("curl_downloads_from_serve"), move || curl_downloads(family)));
        cases.push(case(name("curl_uploads_to_serve"), move || curl_uploads(family)));
        cases.push(case(name("plain_curl_downloads_from_serve"), move || plain_curl(family)));
        cases.push(case(name("fetch_downloads_from_python"), move || fetch_from_python(family)));
        cases.push(case(name("curl_downloads_from_nginx_through_proxy"), move || curl_through_proxy(family)));
    }
    for (protocol, multipath) in [("mptcp", true), ("tcp", false)] {
        for (direction, download) in [("uploads", false), ("downloads", true)] {
            let name = format!("iperf3_{direction}_through_proxy_{protocol}");
            cases.push(case(name, move || iperf3_through_proxy(multipath, download)));
        }
    }
    run(cases, 4)
}

fn case(name: String, test: impl FnOnce() + Send + 'static) -> Case {
    Case::new(name, move || {
        test();
        Ok(())
    })
}

/// Limit that only a hang reaches, in seconds.
const LIMIT: &str = "300";
const PATIENCE: Duration = Duration::from_secs(300);
/// Bytes moved: more than the buffers of both ends hold, so that a transfer cannot be over before it is let go on.
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
fn start(namespace: &Namespace, mut command: Command, ready: &'static str) -> Running {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = namespace.run(move || command.spawn()).unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let running = Running(child);
    let (sender, said) = channel();
    // The rest has to be read as well, or the program blocks.
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| drop(sender.send(line))));
    let mut all = Vec::new();
    while !all.last().is_some_and(|line: &String| line.contains(ready)) {
        match said.recv_timeout(PATIENCE) {
            Ok(line) => all.push(line),
            Err(error) => panic!("it never said `{ready}` ({error}):\n{}", all.join("\n")),
        }
    }
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

/// Returns the increase of the kernel's counters while `act` ran.
fn counted(direct: &Direct, act: impl FnOnce()) -> KernelCounters {
    let before = KernelCounters::read(&direct.namespace).unwrap();
    act();
    KernelCounters::read(&direct.namespace).unwrap().since(&before)
}

fn assert_multipath(counters: &KernelCounters, joins: &str) {
    assert!(counters.mptcp(joins) >= 1, "no second subflow: {counters}");
    assert!(counters.mptcp_trouble().is_empty(), "{counters}");
}

/// A stock curl over the kernel's MPTCP downloads `file` of what serves there, by two subflows.
fn assert_curl_gets_the_file(direct: &Direct, family: Family, directory: &Path) {
    assert!(directory.join("file").exists());
    let counters = counted(direct, || {
        let mut curl = Command::new("mptcpize");
        curl.args(["run", "curl", "-sSf", "-m", LIMIT, &url(direct, family, "file")]);
        let file = read_once(&direct.namespace, curl, PATIENCE, || has_joined(direct)).unwrap();
        assert!(file == content(), "the file is another one");
    });
    assert_multipath(&counters, "MPJoinSynAckRx");
}

/// Tells whether the kernel has joined a connection.
fn has_joined(direct: &Direct) -> bool {
    KernelCounters::read(&direct.namespace).unwrap().mptcp("MPJoinSynAckRx") >= 1
}

fn curl_downloads(family: Family) {
    let (direct, directory) = (Direct::new("curl").unwrap(), tempfile::tempdir().unwrap());
    direct.add_endpoint(Role::Client, family).unwrap();
    std::fs::write(directory.path().join("file"), content()).unwrap();
    let _serve = serve(&direct, family, directory.path());
    assert_curl_gets_the_file(&direct, family, directory.path());
}

fn curl_uploads(family: Family) {
    let (direct, directory) = (Direct::new("curl").unwrap(), tempfile::tempdir().unwrap());
    direct.add_endpoint(Role::Client, family).unwrap();
    let _serve = serve(&direct, family, directory.path());
    let counters = counted(&direct, || {
        let mut curl = Command::new("mptcpize");
        curl.args(["run", "curl", "-sSf", "-m", LIMIT, "-T", "-", &url(&direct, family, "discard")]);
        curl.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut curl = direct.namespace.run(move || curl.spawn()).unwrap();
        let mut input = curl.stdin.take().unwrap();
        let content = content();
        let (first, rest) = content.split_at(1000);
        input.write_all(first).unwrap();
        assert!(wait(PATIENCE, || has_joined(&direct)), "nobody joined");
        input.write_all(rest).unwrap();
        drop(input);
        let output = curl.wait_with_output().unwrap();
        let answer = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}", output.status);
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
    let mut fetch = anabranch(&["fetch", &url, "--from", &from, "--json", "--max-time", "300s"]);
    fetch.arg("--output").arg(&output).stdin(Stdio::null());
    let counters = counted(&direct, || {
        let done = direct.namespace.run(move || fetch.output()).unwrap();
        assert!(done.status.success(), "{done:?}");
    });
    assert!(std::fs::read(&output).unwrap() == content(), "the file is another one");
    assert_multipath(&counters, "MPJoinAckRx");
}

/// Starts a program that does not announce readiness, and waits until it accepts connections.
fn start_listening(namespace: &Namespace, mut command: Command, port: u16) -> Running {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
    let mut running = Running(namespace.run(move || command.spawn()).unwrap());
    let listening = wait(PATIENCE, || {
        assert!(running.0.try_wait().unwrap().is_none(), "it has ended");
        namespace.run(move || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok())
    });
    assert!(listening, "nobody listens on port {port}");
    running
}

/// `anabranch proxy` on the engine's two addresses, in front of what listens on the loopback address.
fn proxy(direct: &Direct, family: Family, port: u16, to: u16) -> Running {
    let [first, second] = direct.engine.family(family).map(|ip| SocketAddr::new(ip, port).to_string());
    let to = format!("127.0.0.1:{to}");
    let command = anabranch(&["proxy", "--listen", &first, "--listen", &second, "--to", &to]);
    start(&direct.namespace, command, "ready")
}

/// nginx as Debian has it, with nothing of its own configuration.
fn nginx(direct: &Direct, directory: &Path) -> Running {
    let at = directory.display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary: String = temporary.iter().map(|what| format!("{what}_temp_path {at}/{what};\n")).collect();
    let settings = format!(
        "daemon off; master_process off; pid {at}/pid; error_log stderr; events {{}}\n\
         http {{ access_log off; {temporary} server {{ listen 127.0.0.1:8080; root {at}; }} }}"
    );
    let file = directory.join("nginx.conf");
    std::fs::write(&file, settings).unwrap();
    let mut command = Command::new("nginx");
    command.arg("-e").arg("stderr").arg("-c").arg(file);
    start_listening(&direct.namespace, command, 8080)
}

fn curl_through_proxy(family: Family) {
    let (direct, directory) = (Direct::new("nginx").unwrap(), tempfile::tempdir().unwrap());
    direct.add_endpoint(Role::Client, family).unwrap();
    std::fs::write(directory.path().join("file"), content()).unwrap();
    let _nginx = nginx(&direct, directory.path());
    let _proxy = proxy(&direct, family, 80, 8080);
    assert_curl_gets_the_file(&direct, family, directory.path());
}

/// iperf3 opens two connections and has the two ends agree on what was transferred.
fn iperf3_through_proxy(multipath: bool, download: bool) {
    let direct = Direct::new("iperf3").unwrap();
    direct.add_endpoint(Role::Client, Family::V4).unwrap();
    let mut server = Command::new("iperf3");
    server.args(["-s", "-B", "127.0.0.1", "-p", "5201"]);
    let _server = start_listening(&direct.namespace, server, 5201);
    let _proxy = proxy(&direct, Family::V4, 5202, 5201);
    let host = direct.engine.v4[0].to_string();
    let mut words = vec!["iperf3", "-c", &host, "-p", "5202", "-n", "32M", "-J"];
    words.extend(download.then_some("-R"));
    let measure = || {
        let said = if multipath {
            direct.namespace.command("mptcpize", &[&["run"], &words[..]].concat())
        } else {
            direct.namespace.command(words[0], &words[1..])
        };
        let said: serde_json::Value = serde_json::from_str(&said.unwrap()).unwrap();
        let bytes = |end: &str| said["end"][end]["bytes"].as_u64().unwrap_or(0);
        // The receiver stops counting when the sender says that it is done, on another connection, and buffers are
        // large.
        let (sent, received) = (bytes("sum_sent"), bytes("sum_received"));
        assert!(sent >= 32 << 20 && received <= sent && received > 0, "{:#}", said["end"]);
    };
    let counters = counted(&direct, || {
        // It cannot be held back, and on a busy machine may be over before the kernel joins.
        let enough = wait(PATIENCE, || {
            measure();
            !multipath || has_joined(&direct)
        });
        assert!(enough, "no second subflow");
    });
    if multipath {
        // iperf3's server closes its socket with data unread, and the proxy passes that on.
        let mut trouble = counters.mptcp_trouble();
        trouble.retain(|name, _| !name.contains("Rst") && !name.contains("Fastclose"));
        assert!(trouble.is_empty(), "{counters}");
    } else {
        assert_eq!(counters.mptcp("MPCapableSYNTX"), 0, "{counters}");
    }
}

const SERVER: &str = r#"
import http.server, socket, sys, time
class Handler(http.server.SimpleHTTPRequestHandler):
    def copyfile(self, source, output):
        # A beginning, then the rest when there is a second subflow (MPTCP_INFO of SOL_MPTCP): never over before it is there.
        output.write(source.read(1 << 16))
        begin = time.monotonic()
        while self.connection.getsockopt(284, 1, 128)[0] == 0 and time.monotonic() - begin < 300:
            time.sleep(0.01)
        super().copyfile(source, output)
class Server(http.server.ThreadingHTTPServer):
    def __init__(self, address):
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, 80), Handler, bind_and_activate=False)
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
