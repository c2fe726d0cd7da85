//! `anabranch proxy` between stock programs: curl with the kernel's MPTCP, nginx, in network namespaces of our own.
#![allow(clippy::unwrap_used)]

mod common;

use anabranch_host::Namespace;
use anabranch_interop::{machine, read_once};
use common::schema::Schema;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Limit that only a hang reaches.
const GUARD: Duration = Duration::from_secs(300);
/// More than the buffers on the way hold: a download that is not read does not end.
const SIZE: usize = 32 << 20;

/// Two hosts with two paths between them, and an address of the server's behind both.
struct Hosts {
    client: Namespace,
    server: Namespace,
    folder: tempfile::TempDir,
}

impl Hosts {
    /// `None`, and a line that says so, where that is not possible.
    fn new(test: &str) -> Option<Self> {
        let made = Namespace::new("client").and_then(|client| Ok((client, Namespace::new("server")?)));
        let (client, server) = match made {
            Ok(hosts) => hosts,
            Err(error) => {
                println!("SKIPPED: {test}: no network namespaces here: {error}");
                return None;
            }
        };
        for program in ["curl", "nginx", "mptcpize", "nft"] {
            if Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).spawn().is_err() {
                println!("SKIPPED: {test}: there is no {program} here");
                return None;
            }
        }
        for host in [&client, &server] {
            machine::set_defaults(host).unwrap();
        }
        let target = format!("/proc/{}/fd/{}", std::process::id(), client.file().as_raw_fd());
        for (path, name) in [(1, "wlan"), (2, "lte")] {
            let link = format!("link add {name} mtu 1500 type veth peer name {name} netns {target}");
            ip(&server, &link);
            for (host, end) in [(&server, 1), (&client, 2)] {
                ip(host, &format!("address add 10.77.{path}.{end}/24 dev {name}"));
                ip(host, &format!("-6 address add fd77:0:0:{path}::{end}/64 dev {name} nodad"));
                ip(host, &format!("link set {name} up"));
                host.sysctl(&format!("net.ipv4.conf.{name}.rp_filter"), "0").unwrap();
            }
            ip(&client, &format!("route add default via 10.77.{path}.1 dev {name} metric {path}"));
            ip(&client, &format!("route add default via 10.77.{path}.1 dev {name} table {}", path + 100));
            ip(&client, &format!("rule add from 10.77.{path}.2 lookup {}", path + 100));
            ip(&client, &format!("-6 route add default via fd77:0:0:{path}::1 dev {name} metric {path}"));
        }
        ip(&server, "address add 10.77.0.1/32 dev lo");
        ip(&client, "mptcp endpoint add 10.77.2.2 dev lte subflow");
        ip(&client, "mptcp limits set subflows 8 add_addr_accepted 8");
        ip(&server, "mptcp endpoint add 10.77.2.1 dev lte signal");
        ip(&server, "mptcp limits set subflows 8 add_addr_accepted 8");
        server.sysctl("net.ipv4.ip_forward", "1").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let data: Vec<u8> = (0..SIZE as u32).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
        fs::write(folder.path().join("file"), data).unwrap();
        Some(Hosts { client, server, folder })
    }

    fn file(&self) -> Vec<u8> {
        fs::read(self.folder.path().join("file")).unwrap()
    }

    /// The unmodified web server, in the server's namespace.
    fn nginx(&self, listen: &str, program: &[&str]) -> Process {
        let folder = self.folder.path().display();
        // Its worker runs as another user.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(self.folder.path(), mode).unwrap();
        let settings = format!(
            "daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log; events {{}}
             http {{ log_format who '$proxy_protocol_addr $status'; access_log {folder}/access.log who;
                     client_body_temp_path {folder}/body; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
                     uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
                     server {{ listen {listen}; root {folder}; }} }}"
        );
        let path = self.folder.path().join("nginx.conf");
        fs::write(&path, settings).unwrap();
        let words = [program, &["nginx", "-e", "stderr", "-c", path.to_str().unwrap()]].concat();
        let nginx = Process::start(&self.server, &words);
        let port = listen.split_whitespace().next().unwrap();
        wait("nginx listens", || {
            let listening = self.server.command("ss", &["-Hltn"]).unwrap();
            listening.contains(port)
        });
        nginx
    }

    fn proxy(&self, host: &Namespace, arguments: &[&str]) -> Process {
        let program = env!("CARGO_BIN_EXE_anabranch");
        let mut proxy = Process::start(host, &[&[program, "proxy"], arguments].concat());
        proxy.wait_for("ready");
        proxy
    }
}

fn ip(host: &Namespace, words: &str) {
    let words: Vec<&str> = words.split_whitespace().collect();
    host.command("ip", &words).unwrap();
}

fn wait(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < GUARD, "this never happened: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A program in a namespace, killed when this is dropped.
struct Process {
    child: Child,
    lines: Receiver<String>,
    log: String,
}

impl Process {
    fn start(host: &Namespace, words: &[&str]) -> Self {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = host.run(move || command.spawn()).unwrap();
        let (sender, lines) = channel();
        let stderr = child.stderr.take().unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Process { child, lines, log: String::new() }
    }

    fn wait_for(&mut self, word: &str) {
        while !self.log.contains(word) {
            match self.lines.recv_timeout(GUARD) {
                Ok(line) => self.log += &format!("{line}\n"),
                Err(_) => panic!("no `{word}` from it: {}", self.log),
            }
        }
    }

    fn signal(&self, name: &str) {
        Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
    }

    /// Waits for its end; its log.
    fn end(&mut self) -> (bool, String) {
        wait("it ends", || self.child.try_wait().unwrap().is_some());
        let success = self.child.wait().unwrap().success();
        // Until its standard error is closed.
        while let Ok(line) = self.lines.recv_timeout(GUARD) {
            self.log += &format!("{line}\n");
        }
        (success, self.log.clone())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn curl(host: &Namespace, words: &[&str]) -> Output {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let work = move || Command::new(&words[0]).args(&words[1..]).output().unwrap();
    let output = host.spawn(work).join().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn counter(host: &Namespace, name: &str) -> u64 {
    let text = host.command("nstat", &["-asz", name]).unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Downloads, and reads nothing of it before this holds.
fn held_curl(host: &Namespace, words: &[&str], ready: impl FnMut() -> bool) -> Vec<u8> {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    read_once(host, command, GUARD, ready).unwrap()
}

/// A service that takes a body and answers with its length and whether it is the file's content.
fn uploads(host: &Namespace, address: &'static str, expected: Vec<u8>) {
    let listener = host.run(move || TcpListener::bind(address)).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut got, mut piece) = (Vec::new(), [0; 65536]);
        let body = loop {
            let length = stream.read(&mut piece).unwrap();
            got.extend_from_slice(&piece[..length]);
            if let Some(at) = got.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&got[..at]).to_lowercase();
                if head.contains("expect:") {
                    stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
                }
                break at + 4;
            }
        };
        while got.len() < body + expected.len() {
            let length = stream.read(&mut piece).unwrap();
            assert!(length > 0, "the upload ends early");
            got.extend_from_slice(&piece[..length]);
        }
        let same = got[body..] == expected[..];
        stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{same:5}").as_bytes()).unwrap();
    });
}

#[test]
fn stock_clients_reach_a_stock_server_with_mptcp_and_without() {
    let Some(hosts) = Hosts::new("stock clients") else { return };
    let _nginx = hosts.nginx("127.0.0.1:8080 proxy_protocol", &[]);
    let mut proxy = hosts.proxy(
        &hosts.server,
        &[
            "--listen",
            "10.78.0.1:80",
            "--listen",
            "10.78.0.2:80",
            "--to",
            "127.0.0.1:8080",
            "--proxy-protocol",
            "--metrics",
            "127.0.0.1:9100",
            "--log-format",
            "json",
        ],
    );
    let joined = || counter(&hosts.client, "MPTcpExtMPJoinSynAckRx") >= 1;
    for words in [&["mptcpize", "run", "curl"][..], &["curl"]] {
        let got = held_curl(&hosts.client, &[words, &["-sSf", "http://10.78.0.1/file"]].concat(), joined);
        assert!(got == hosts.file(), "{words:?}: every byte");
    }
    assert_eq!(counter(&hosts.client, "MPTcpExtMPCapableFallbackSYNACK"), 0);
    let log = fs::read_to_string(hosts.folder.path().join("access.log")).unwrap();
    assert_eq!(log.lines().collect::<Vec<_>>(), ["10.77.1.2 200"; 2], "nginx knows the client");

    let scraped = curl(&hosts.server, &["curl", "-sSf", "http://127.0.0.1:9100/metrics"]);
    let text = String::from_utf8(scraped.stdout).unwrap();
    for line in ["anabranch_handshakes_total{protocol=\"mptcp\"} 1", "anabranch_handshakes_total{protocol=\"tcp\"} 1"] {
        assert!(text.contains(line), "{line}\n{text}");
    }

    let status = fs::read_dir(format!("/proc/{}/task", proxy.child.id())).unwrap();
    for task in status {
        let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        for line in ["CapInh", "CapPrm", "CapEff", "CapAmb", "CapBnd"] {
            assert!(status.contains(&format!("{line}:\t0000000000000000")), "{line}: {status}");
        }
        assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    }

    proxy.signal("-TERM");
    let (success, log) = proxy.end();
    assert!(success, "{log}");
    let ends = log.lines().filter(|line| line.contains("\"outcome\":\"closed\""));
    assert_eq!(ends.count(), 2, "a line for each connection: {log}");
    Schema::of("proxy-log").check_lines(&log, "proxy --log-format json");
}

/// Asks plain TCP for the first bytes of the file, and pauses for 20 ms after each 16 kB of the answer.
fn read_slowly(server: &str, bytes: usize) -> Vec<u8> {
    let mut stream = TcpStream::connect(server).unwrap();
    let last = bytes - 1;
    let request = format!("GET /file HTTP/1.1\r\nHost: h\r\nRange: bytes=0-{last}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let (mut got, mut piece) = (Vec::new(), [0; 16_000]);
    loop {
        let length = stream.read(&mut piece).unwrap();
        if length == 0 {
            return got;
        }
        got.extend_from_slice(&piece[..length]);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A client that reads at most 800 kB/s through a small buffer: the line of its connection says that its window was
/// used up. It uses plain TCP, whose window keeps the sender from sending more than the buffer holds.
#[test]
fn a_slow_client_is_explained_in_the_log() {
    let Some(hosts) = Hosts::new("slow client") else { return };
    let _nginx = hosts.nginx("127.0.0.1:8080", &[]);
    hosts.client.sysctl("net.ipv4.tcp_rmem", "4096 65536 65536").unwrap();
    let listen = ["--listen", "10.78.0.1:80", "--to", "127.0.0.1:8080", "--log-format", "json"];
    let mut proxy = hosts.proxy(&hosts.server, &listen);
    let got = hosts.client.spawn(|| read_slowly("10.78.0.1:80", 4_000_000)).join().unwrap();
    assert!(got.ends_with(&hosts.file()[..4_000_000]), "every byte");
    proxy.signal("-TERM");
    let (success, log) = proxy.end();
    assert!(success, "{log}");
    Schema::of("proxy-log").check_lines(&log, "proxy --log-format json");
    let line = log.lines().find(|line| line.contains("\"outcome\":\"closed\"")).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    let why = line["why"].as_str().unwrap_or_else(|| panic!("it has a reason: {line:#}"));
    assert!(why.contains("slower than") && why.contains("the other host's window was used up"), "{why}");
}

/// Two paths that lose nothing: the default reinjection sends at most one percent of a download twice. A busy machine
/// may stand still for longer than a timeout, after which sending again is right, so the best of five downloads counts.
#[test]
fn hardly_a_byte_is_sent_twice_over_paths_that_lose_nothing() {
    let Some(hosts) = Hosts::new("bytes sent twice") else { return };
    let _nginx = hosts.nginx("127.0.0.1:8080", &[]);
    let listen = ["--listen", "10.78.0.1:80", "--to", "127.0.0.1:8080", "--log-format", "json"];
    let mut proxy = hosts.proxy(&hosts.server, &listen);
    for _ in 0..5 {
        let words = ["mptcpize", "run", "curl", "-sSf", "http://10.78.0.1/file"];
        assert!(curl(&hosts.client, &words).stdout == hosts.file(), "every byte");
    }
    proxy.signal("-TERM");
    let (success, log) = proxy.end();
    assert!(success, "{log}");
    let lines = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let ends: Vec<_> = lines.filter(|line| line["outcome"] == "closed").collect();
    let shares = ends.iter().map(|line| line["reinjected"].as_u64().unwrap() as f64 / SIZE as f64);
    let least = shares.clone().fold(f64::INFINITY, f64::min);
    assert!(ends.len() == 5 && least <= 0.01, "shares sent twice: {:?}\n{log}", shares.collect::<Vec<_>>());
    let both = |line: &serde_json::Value| line["subflows"].as_str().unwrap().contains("10.77.2.2");
    assert!(ends.iter().any(both), "both paths are used: {log}");
}

#[test]
fn an_upload_arrives() {
    let Some(hosts) = Hosts::new("upload") else { return };
    uploads(&hosts.server, "127.0.0.1:8080", hosts.file());
    let _proxy = hosts.proxy(&hosts.server, &["--listen", "10.78.0.1:80", "--to", "127.0.0.1:8080"]);
    let path = hosts.folder.path().join("file");
    let words = ["mptcpize", "run", "curl", "-sSf", "-T", path.to_str().unwrap(), "http://10.78.0.1/"];
    assert_eq!(curl(&hosts.client, &words).stdout, b"true ");
}

#[test]
fn a_drain_lets_a_download_finish() {
    let Some(hosts) = Hosts::new("drain") else { return };
    let _nginx = hosts.nginx("127.0.0.1:8080", &[]);
    let listen = ["--listen", "10.78.0.1:80", "--to", "127.0.0.1:8080", "--drain", "600s"];
    let mut proxy = hosts.proxy(&hosts.server, &listen);
    let mut is_draining = false;
    let got = held_curl(&hosts.client, &["curl", "-sSf", "http://10.78.0.1/file"], || {
        if !hosts.client.command("ss", &["-Htn", "state", "established"]).unwrap().contains("10.78.0.1:80") {
            return false;
        }
        if !is_draining {
            is_draining = true;
            proxy.signal("-TERM");
            proxy.wait_for("draining");
        }
        let refused = hosts.client.command("curl", &["-sS", "http://10.78.0.1/file"]).unwrap_err();
        assert!(refused.to_string().contains("curl: (7)"), "{refused}");
        true
    });
    assert!(got == hosts.file(), "every byte");
    assert!(proxy.end().0);
}

/// Everything in a namespace that borrowing changes.
fn settings(host: &Namespace) -> String {
    let sysctl = |path: &str| {
        let path = format!("/proc/sys/net/{path}");
        host.run(move || fs::read_to_string(&path).unwrap_or_default())
    };
    let mut all = host.command("nft", &["list", "ruleset"]).unwrap();
    for family in ["-4", "-6"] {
        all += &host.command("ip", &[family, "rule"]).unwrap();
        let routes = host.command("ip", &[family, "route", "show", "table", "all", "type", "unicast"]).unwrap();
        // Link-local ones come by themselves, a little after the link.
        routes.lines().filter(|route| !route.starts_with("fe80")).for_each(|route| all += &format!("{route}\n"));
    }
    for device in ["wlan", "lte"] {
        all += &sysctl(&format!("ipv4/conf/{device}/forwarding"));
        all += &sysctl(&format!("ipv6/conf/{device}/force_forwarding"));
    }
    all + &sysctl("ipv6/conf/all/forwarding") + &sysctl("ipv4/ip_local_reserved_ports")
}

#[test]
fn borrowed_addresses_carry_socks_clients_and_are_given_back() {
    let Some(hosts) = Hosts::new("borrowed addresses") else { return };
    let _nginx = hosts.nginx("10.77.0.1:80", &["mptcpize", "run"]);
    let before = settings(&hosts.client);
    let directory = tempfile::tempdir().unwrap();
    let memory = directory.path().join("paths");
    let memory_words = ["--path-memory", memory.to_str().unwrap()];
    let arguments = [&["--socks", "127.0.0.1:1080", "--via", "10.77.1.2,10.77.2.2"][..], &memory_words].concat();
    let mut proxy = hosts.proxy(&hosts.client, &arguments);
    assert_ne!(settings(&hosts.client), before, "or this test cannot tell");
    let joins = || counter(&hosts.server, "MPTcpExtMPJoinAckRx");
    for (words, least) in [
        (["--socks5-hostname", "127.0.0.1:1080"], 1),
        (["-px", "http://127.0.0.1:1080"], 2),
        (["-x", "http://127.0.0.1:1080"], 3),
    ] {
        let words = [&["curl", "-sSf"], &words[..], &["http://10.77.0.1/file"]].concat();
        // The kernel sees joins from the second address.
        let got = held_curl(&hosts.client, &words, || joins() >= least);
        assert!(got == hosts.file(), "{words:?}: every byte");
    }
    assert_eq!(counter(&hosts.server, "MPTcpExtMPCapableFallbackACK"), 0);
    // Two requests on one connection, and an answer of nginx's own.
    let plain = ["curl", "-sS", "-x", "http://127.0.0.1:1080", "-w", "%{http_code} %{num_connects}\n", "-r", "0-3"];
    let words = [&plain[..], &["http://10.77.0.1/file", "http://10.77.0.1/none"]].concat();
    let got = curl(&hosts.client, &words).stdout;
    assert_eq!(got[..4], hosts.file()[..4]);
    assert!(got.ends_with(b"404 0\n"), "{}", String::from_utf8_lossy(&got));
    // The address is the kernel's own as well.
    let own = curl(&hosts.client, &["curl", "-sSf", "--interface", "10.77.1.2", "http://10.77.0.1/file"]);
    assert!(own.stdout == hosts.file());
    let status = fs::read_to_string(format!("/proc/{}/status", proxy.child.id())).unwrap();
    for line in ["CapPrm:\t0000000000001000", "CapEff:\t0000000000001000", "NoNewPrivs:\t1"] {
        assert!(status.contains(line), "only CAP_NET_ADMIN is kept: {status}");
    }

    // Killed, it leaves things behind, which the next one clears away.
    proxy.signal("-KILL");
    proxy.end();
    assert_ne!(settings(&hosts.client), before, "nobody was left to give them back");
    let mut next = hosts.proxy(&hosts.client, &arguments);
    let words = ["curl", "-sSf", "--socks5-hostname", "127.0.0.1:1080", "http://10.77.0.1/file"];
    assert!(curl(&hosts.client, &words).stdout == hosts.file());
    next.signal("-TERM");
    let (success, log) = next.end();
    assert!(success, "{log}");
    assert_eq!(settings(&hosts.client), before, "all is as it was");
    let kept = fs::read_to_string(&memory).unwrap();
    let known = |line: &str| line.starts_with("10.77.1.2 10.77.0.1 rtt_us=") && line.contains(" capable_ms=");
    assert!(kept.lines().any(known), "the path by its own address, not the borrowed one's stand-in: {kept}");
}

#[test]
fn a_borrowed_address_accepts_clients() {
    let Some(hosts) = Hosts::new("borrowed listener") else { return };
    let _nginx = hosts.nginx("127.0.0.1:8080", &[]);
    let addresses = ["--listen", "10.77.0.1:80", "--listen", "10.77.2.1:80", "--to", "127.0.0.1:8080"];
    let _proxy = hosts.proxy(&hosts.server, &addresses);
    let words = ["mptcpize", "run", "curl", "-sSf", "http://10.77.0.1/file"];
    let joined = || counter(&hosts.client, "MPTcpExtMPJoinSynAckRx") >= 1;
    assert!(held_curl(&hosts.client, &words, joined) == hosts.file());
}

/// Every signal that can be caught gives them back; after one that cannot, the next command does.
#[test]
fn however_it_ends_borrowed_addresses_are_given_back() {
    let Some(hosts) = Hosts::new("every end") else { return };
    let before = settings(&hosts.client);
    let arguments = ["--socks", "127.0.0.1:1080", "--via", "10.77.1.2"];
    for signal in ["-QUIT", "-USR1", "-ALRM", "-INT"] {
        let mut proxy = hosts.proxy(&hosts.client, &arguments);
        assert_ne!(settings(&hosts.client), before, "or this test cannot tell");
        proxy.signal(signal);
        let (success, log) = proxy.end();
        assert!(success, "{signal}: {log}");
        assert_eq!(settings(&hosts.client), before, "{signal}");
    }
    let mut proxy = hosts.proxy(&hosts.client, &[&arguments[..], &["--tun", "other"]].concat());
    proxy.signal("-HUP");
    proxy.wait_for("settings reloaded");
    let second = hosts.client.command(
        env!("CARGO_BIN_EXE_anabranch"),
        &["proxy", "--socks", "127.0.0.1:1081", "--via", "10.77.1.2", "--inner", "198.18.152.0"],
    );
    let second = second.unwrap_err().to_string();
    let said = second.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
    assert!(said.contains("borrowed already, by the program with the device other"), "{said}");
    proxy.signal("-KILL");
    proxy.end();
    assert_ne!(settings(&hosts.client), before, "nobody was left to give them back");
    hosts.client.command(env!("CARGO_BIN_EXE_anabranch"), &["list", "profiles"]).unwrap();
    assert_eq!(settings(&hosts.client), before, "any command does");
}

/// The terminal is closed with the proxy in its foreground: the kernel sends SIGHUP, and there are no settings to be
/// read again.
#[test]
fn a_terminal_that_is_closed_ends_it_and_borrowed_addresses_are_given_back() {
    let Some(hosts) = Hosts::new("lost terminal") else { return };
    if Command::new("script").arg("--version").stdout(Stdio::null()).status().is_err() {
        return println!("SKIPPED: lost terminal: there is no script here");
    }
    let before = settings(&hosts.client);
    let program = env!("CARGO_BIN_EXE_anabranch");
    let words = format!("exec {program} proxy --socks 127.0.0.1:1080 --via 10.77.1.2 --tun seen");
    // Whatever is written to the terminal comes out of the standard output of `script`.
    let mut terminal =
        Process::start(&hosts.client, &["sh", "-c", "exec script -qfc \"$0\" /dev/null >&2", words.as_str()]);
    terminal.wait_for("ready");
    assert_ne!(settings(&hosts.client), before, "or this test cannot tell");
    // Its end closes the terminal.
    terminal.signal("-KILL");
    wait("all is as it was", || settings(&hosts.client) == before);
    let devices = || hosts.client.command("ip", &["-o", "link"]).unwrap();
    wait("the device is gone with the process", || !devices().contains("seen"));
}

#[test]
fn an_address_is_one_programs_alone_and_a_device_that_goes_is_named() {
    let Some(hosts) = Hosts::new("one address") else { return };
    let arguments = ["--listen", "10.78.0.1:80", "--to", "127.0.0.1:8080", "--tun", "first"];
    let mut proxy = hosts.proxy(&hosts.server, &arguments);
    for words in
        [&["serve", "--listen", "10.78.0.1"][..], &["proxy", "--listen", "10.78.0.1:81", "--to", "127.0.0.1:1"]]
    {
        let second = hosts.server.command(env!("CARGO_BIN_EXE_anabranch"), words).unwrap_err().to_string();
        let said = second.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        assert!(said.contains("10.78.0.1 is led to first already"), "{said}");
    }
    ip(&hosts.server, "link del first");
    let (success, log) = proxy.end();
    assert!(!success && log.contains("the TUN device first is gone"), "{log}");
}

#[test]
fn nobody_opens_a_relay_to_all_by_accident() {
    let output = |words: &[&str]| {
        let words = [&["proxy", "--via", "10.78.0.1", "--socks"], words].concat();
        let output = Command::new(env!("CARGO_BIN_EXE_anabranch")).args(words).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for listen in ["0.0.0.0:1080", "[::]:1080", "192.0.2.1:1080"] {
        let (code, said) = output(&[listen]);
        assert!(code == Some(2) && said.contains("--users") && said.contains("--allow"), "{listen}: {said}");
    }
    let (code, said) = output(&["0.0.0.0:1080", "--allow", "10.0.0.0/40"]);
    assert!(code == Some(2) && said.contains("192.168.0.0/16"), "{said}");
}

/// It has a log instead: an option of other commands that it would do nothing about is none of its own.
#[test]
fn events_are_refused_rather_than_not_written() {
    let words = ["proxy", "--listen", "10.78.0.1:80", "--to", "127.0.0.1:8080", "--events", "/tmp/never"];
    let output = Command::new(env!("CARGO_BIN_EXE_anabranch")).args(words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("unexpected argument '--events'"), "{said}");
}

#[test]
fn without_the_capability_it_says_what_to_run() {
    if !Path::new("/usr/sbin/capsh").exists() && !Path::new("/sbin/capsh").exists() {
        return println!("SKIPPED: there is no capsh here");
    }
    let program = env!("CARGO_BIN_EXE_anabranch");
    let words = format!("{program} proxy --listen 10.78.0.1:80 --to 127.0.0.1:8080");
    let output = Command::new("capsh").args(["--drop=cap_net_admin", "--", "-c", &words]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("CAP_NET_ADMIN") && said.contains("setcap cap_net_admin+ep"), "{said}");
}
