//! `anabranch serve` and `anabranch fetch` against the Linux kernel, in a network namespace of their own: real
//! programs, real packets. Where no namespace or TUN device can be made they skip and say so; with
//! ANABRANCH_REQUIRE_NETNS that is a failure.
#![allow(clippy::unwrap_used)]

use anabranch_host::{Namespace, Tun};
use anabranch_interop::{KernelCounters, machine, read_once};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A namespace where the kernel has two addresses with MPTCP, and packets from one device to another are passed on.
fn namespace() -> Option<Namespace> {
    let made = Namespace::new("wire").and_then(|namespace| {
        namespace.run(|| Tun::open("probe%d").map(drop))?;
        Ok(namespace)
    });
    let namespace = match made {
        Ok(namespace) => namespace,
        Err(error) if std::env::var_os("ANABRANCH_REQUIRE_NETNS").is_some() => {
            panic!("ANABRANCH_REQUIRE_NETNS is set, and no namespace with a TUN device can be made: {error}")
        }
        Err(error) => {
            // Past the capture of the test harness, which would hide it.
            let _ = writeln!(std::io::stderr(), "SKIPPED: no namespace with a TUN device can be made here: {error}");
            return None;
        }
    };
    machine::set_defaults(&namespace).unwrap();
    namespace.sysctl("net.ipv4.ip_forward", "1").unwrap();
    for address in ["10.9.1.1/32", "10.9.2.1/32"] {
        namespace.command("ip", &["addr", "add", address, "dev", "lo"]).unwrap();
    }
    namespace.command("ip", &["mptcp", "limits", "set", "subflows", "4", "add_addr_accepted", "4"]).unwrap();
    Some(namespace)
}

/// A child that is killed with us.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(namespace: &Namespace, mut command: Command) -> Running {
    Running(namespace.run(move || command.spawn()).unwrap())
}

fn output(namespace: &Namespace, program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    namespace.run(move || command.output()).unwrap()
}

fn anabranch(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// A server that has said that it serves; what it says at the end is JSON.
fn serve(namespace: &Namespace, more: &[&str]) -> Running {
    let mut command = anabranch(&["serve", "--listen", "10.78.0.1,10.78.0.2,fd78::1", "--json"]);
    command.args(more).stderr(Stdio::piped()).stdout(Stdio::piped());
    let mut server = start(namespace, command);
    let mut line = String::new();
    BufReader::new(server.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("serving "), "{line}");
    server
}

/// Asks it to end, and answers what it says.
fn end(mut server: Running) -> Value {
    let pid = server.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let mut text = String::new();
    server.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(server.0.wait().unwrap().success());
    serde_json::from_str(&text).unwrap()
}

/// A directory with one file of bytes that do not repeat.
fn files(length: u32) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..length / 4).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    std::fs::write(directory.path().join("file"), bytes).unwrap();
    directory
}

/// Limit that only a hang reaches.
const GUARD: Duration = Duration::from_secs(300);

fn same(a: &Path, b: &Path) -> bool {
    std::fs::read(a).unwrap() == std::fs::read(b).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn curl_over_the_kernels_mptcp_from_serve() {
    let Some(namespace) = namespace() else { return };
    namespace.command("ip", &["mptcp", "endpoint", "add", "10.9.2.1", "subflow"]).unwrap();
    // More than the buffers of both ends hold: no download is over before the kernel has joined it.
    let directory = files(16 << 20);
    let server = serve(&namespace, &["--root", text(directory.path())]);
    let joins = || KernelCounters::read(&namespace).unwrap().mptcp("MPJoinSynAckRx");
    for (url, least) in [("http://10.78.0.1/file", 1), ("http://10.78.0.2/file", 2)] {
        let mut curl = Command::new("mptcpize");
        curl.args(["run", "curl", "-sSf", "-m", "300", url]);
        let got = read_once(&namespace, curl, GUARD, || joins() >= least).unwrap();
        assert!(got == std::fs::read(directory.path().join("file")).unwrap(), "{url}");
    }
    // Without MPTCP as well.
    let curl = output(&namespace, "curl", &["-sSf", "-m", "300", "-r", "100-199", "http://10.78.0.1/file"]);
    assert_eq!(curl.stdout, std::fs::read(directory.path().join("file")).unwrap()[100..200]);
    let file = directory.path().join("file");
    let curl = output(&namespace, "curl", &["-sSf", "-m", "300", "-T", text(&file), "http://10.78.0.1/discard"]);
    assert_eq!(String::from_utf8_lossy(&curl.stdout), "{\"received\":16777216,\"pattern\":false}\n");

    let said = end(server);
    assert_eq!((&said["totals"]["multipath"], &said["totals"]["reset"]), (&2.into(), &0.into()), "{said:#}");
    assert_eq!(said["counters"]["fallback-syn"], 2, "{said:#}");
    let remark = said["remarks"][0].as_str().unwrap();
    assert!(remark.starts_with("2 of 4 connections are plain TCP: the SYN had no MP_CAPABLE"), "{remark}");
}

#[test]
fn fetch_from_a_kernel_that_serves() {
    let Some(namespace) = namespace() else { return };
    let directory = files(4 << 20);
    let mut python = Command::new("mptcpize");
    python.args(["run", "python3", "-u", "-m", "http.server", "8000", "--protocol", "HTTP/1.1"]);
    python.current_dir(directory.path()).stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped());
    let mut server = start(&namespace, python);
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();

    let got = directory.path().join("got");
    let from = "10.78.1.2,10.78.2.2";
    let command = anabranch(&["fetch", "http://10.9.1.1:8000/file", "--from", from, "--json", "-o", text(&got)]);
    let said = finish(&namespace, command);
    assert_eq!(said.0, Some(0), "{:#}", said.1);
    assert!(same(&got, &directory.path().join("file")));
    let said = said.1;
    assert_eq!((&said["multipath"], &said["bytes"]), (&true.into(), &(4 << 20).into()), "{said:#}");
    let subflows = said["connection"]["subflows"].as_array().unwrap();
    assert_eq!(subflows.len(), 2, "{said:#}");
    let carried: u64 = subflows.iter().map(|subflow| subflow["bytes_received"].as_u64().unwrap()).sum();
    assert!(carried >= 4 << 20, "{said:#}");

    let command = anabranch(&["fetch", "http://10.9.1.1:8000/nothing", "--from", from, "--json", "-o", text(&got)]);
    let said = finish(&namespace, command);
    assert_eq!((said.0, &said.1["status"]), (Some(5), &404.into()));
    assert!(same(&got, &directory.path().join("file")), "what was there stays");
    drop(server);
    let command = anabranch(&["fetch", "http://10.9.1.1:8000/file", "--from", from, "--json", "-o", text(&got)]);
    assert_eq!(finish(&namespace, command).0, Some(3));
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left.len(), 2, "no part of anything stays behind: {left:?}");
}

/// Exit status, and the JSON.
fn finish(namespace: &Namespace, mut command: Command) -> (Option<i32>, Value) {
    let output = namespace.run(move || command.output()).unwrap();
    let said = serde_json::from_slice(&output.stdout);
    (output.status.code(), said.unwrap_or_else(|_| String::from_utf8_lossy(&output.stderr).into_owned().into()))
}

#[test]
fn fetch_from_serve_over_ipv4_and_ipv6_with_every_option() {
    let Some(namespace) = namespace() else { return };
    namespace.sysctl("net.ipv6.conf.all.forwarding", "1").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let events = directory.path().join("events");
    let policies = ["--scheduler", "ecf:beta=0.5", "--congestion", "olia", "--ack-path", "data-ack-fast"];
    let more = ["--window", "even", "--reinjection", "none", "--profile", "rfc", "--dss-checksum"];
    let server = serve(&namespace, &[&policies[..], &more[..], &["--events", text(&events)]].concat());
    for url in ["http://10.78.0.1/bytes/3MiB", "http://[fd78::1]/bytes/3MiB"] {
        let from = "10.78.1.2,10.78.2.2,fd78::1:2,fd78::2:2";
        let mut command = anabranch(&["fetch", url, "--from", from, "--json", "-o", "/dev/null", "--no-offload"]);
        command.args(policies);
        let (code, said) = finish(&namespace, command);
        assert_eq!(code, Some(0), "{said:#}");
        assert_eq!(
            (&said["pattern"], &said["bytes"], &said["multipath"]),
            (&true.into(), &(3 << 20).into(), &true.into())
        );
        assert_eq!(said["policies"]["scheduler"]["parameters"]["beta"], 0.5, "{said:#}");
    }
    let said = end(server);
    assert_eq!((&said["totals"]["multipath"], &said["totals"]["closed"]), (&2.into(), &2.into()), "{said:#}");
    let lines: Vec<Value> =
        std::fs::read_to_string(events).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for event in ["accepted", "subflow-established", "closed"] {
        assert!(lines.iter().any(|line| line["event"] == event), "{event}");
    }
}

/// A path on which nothing answered lately is not where the next program begins.
#[test]
fn what_one_fetch_finds_of_paths_the_next_knows() {
    let Some(namespace) = namespace() else { return };
    let directory = tempfile::tempdir().unwrap();
    let memory = directory.path().join("paths");
    let server = serve(&namespace, &[]);
    let fetch = || {
        let from = ["--from", "10.78.1.2,10.78.2.2", "--path-memory", text(&memory)];
        let command = ["fetch", "http://10.78.0.1/bytes/1MiB", "--json", "-o", "/dev/null"];
        let (code, said) = finish(&namespace, anabranch(&[&command[..], &from].concat()));
        assert_eq!(code, Some(0), "{said:#}");
        let kept = std::fs::read_to_string(&memory).unwrap();
        (said["connection"]["subflows"][0]["local"].as_str().unwrap().to_owned(), kept)
    };
    let known = |kept: &str, local: &str| {
        let begins = format!("{local} 10.78.0.1 rtt_us=");
        kept.lines().any(|line| line.starts_with(&begins) && line.contains(" capable_ms="))
    };
    let (local, kept) = fetch();
    assert!(local.starts_with("10.78.1.2:") && known(&kept, "10.78.1.2"), "{local}\n{kept}");
    std::fs::write(&memory, "anabranch paths 1\n10.78.1.2 10.78.0.1 silent_ms=60000\n").unwrap();
    let (local, kept) = fetch();
    assert!(local.starts_with("10.78.2.2:") && known(&kept, "10.78.2.2"), "{local}\n{kept}");
    end(server);
}

#[test]
fn what_is_refused_says_why_and_what_would_be_right() {
    for (arguments, code, words) in [
        (&["serve", "--listen", "10.78.0.1", "--scheduler", "ecg"][..], 2, "did you mean `ecf`"),
        (&["serve", "--listen", "10.78.0.1", "--scheduler", "ecf:beta=x"], 2, "it must be a number"),
        (&["serve", "--listen", "127.0.0.1"], 2, "cannot be the engine's address"),
        (&["serve", "--listen", "10.78.0.1", "--root", "/nowhere"], 2, "cannot serve /nowhere"),
        (&["serve", "--listen", "10.78.0.1", "--http", "80", "--echo", "80"], 2, "two services"),
        (&["serve", "--source", "5001"], 2, "a port and a size"),
        (&["serve", "--listen", "10.78.0.1", "--profile", "linus"], 2, "did you mean `linux`"),
        (&["serve"], 2, "the engine has no address"),
        (&["fetch", "http://h/x", "--path-memory", "Cargo.toml"], 2, "Cargo.toml: the first line must be"),
        (&["proxy", "--listen", "10.78.0.1:80", "--to", "a:1", "--path-memory", "x"], 2, "goes with --socks"),
        (&["fetch", "https://h/x"], 2, "not supported"),
        (&["fetch", "http://h/x", "--from", "10.78.1.2", "--range", "5"], 2, "one range of bytes"),
        (&["fetch", "http://h/", "--from", "10.78.1.2", "--json", "-o", "-"], 2, "standard output can hold one"),
        (&["fetch", "http://h/%20", "--from", "10.78.1.2"], 2, "ends in no name for the file"),
        (&["fetch", "http://[fd78::1]/x", "--from", "10.78.1.2"], 3, "only IPv6 addresses"),
    ] {
        let output = anabranch(arguments).env_remove("ANABRANCH_HOST").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        let said = said.replace(" │ ", " ");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}
