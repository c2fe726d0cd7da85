//! `anabranch why --follow` of a connection over the loopback interface, which needs no privilege: lines that are valid
//! under their schema, a sentence about a peer that does not read, and an end with the connection.
#![allow(clippy::unwrap_used)]

mod common;

use common::schema::Schema;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};

fn anabranch(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(["why", "--follow"]).args(words).stdin(Stdio::null());
    command
}

/// The server never reads what fills the buffers of both ends.
#[test]
fn a_peer_that_does_not_read_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    let address = client.local_addr().unwrap().to_string();
    let mut child = anabranch(&[&address, "--json", "--interval", "200ms"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let head = lines.next().unwrap();
    assert!(head.starts_with("{\"format\":\"why-live\",\"format_version\":1}"), "{head}");
    // Begins after the first look, so that data moves in an interval.
    let first = lines.next().unwrap();
    client.set_nonblocking(true).unwrap();
    while client.write(&[0; 1 << 16]).is_ok() {}
    let mut all = vec![head, first];
    let says = |line: &String, words: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let connections = line["connections"].as_array().unwrap();
        connections.iter().any(|it| it["sentence"].as_str().unwrap().contains(words))
    };
    // One side is told by the window of the other, the other by what lies there unread.
    let named = |line: &String| says(line, "window") || says(line, "did not read");
    loop {
        let line = lines.next().expect("it goes on as long as the connection does");
        all.push(line);
        if named(all.last().unwrap()) {
            break;
        }
        assert!(all.len() < 100, "{all:#?}");
    }
    client.shutdown(Shutdown::Both).unwrap();
    drop((client, server));
    all.extend(lines);
    assert!(child.wait().unwrap().success());
    let last: Value = serde_json::from_str(all.last().unwrap()).unwrap();
    assert_eq!((&last["whole"], &last["connections"][0]["ended"]), (&Value::Bool(true), &Value::Bool(true)), "{last}");
    Schema::of("why-live").check_lines(&(all.join("\n") + "\n"), "why --follow");
}

#[test]
fn what_is_no_connection_is_refused() {
    for (words, said) in [
        (&["nonsense"][..], "accepted: the number of a process"),
        (&["--interval", "1ms"], "100ms or more"),
        (&["--repeat", "3"], "cannot be used with"),
        (&["4194305"], "there is no process 4194305"),
    ] {
        let output = anabranch(words).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(said), "{error}");
    }
}
