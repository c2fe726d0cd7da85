//! `anabranch lab`: the page inside the program, what it asks the program, and who is answered.
//!
//! Without Chromium, node or npm the test of the page in a browser says on standard error that it was skipped; with
//! `ANABRANCH_REQUIRE_BROWSER` set, as in CI, it fails.
#![allow(clippy::unwrap_used)]

// The report's own test uses all of it.
#[allow(dead_code)]
#[path = "../../report/tests/html/browser.rs"]
mod browser;
mod common;

use common::{build, directory, succeed};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A served laboratory, which ends with the test.
struct Lab {
    process: Child,
    /// Host and port.
    address: String,
}

impl Lab {
    /// Starts the program from a folder of its own, which has no page near it.
    fn alone(test: &str) -> (Lab, PathBuf) {
        let here = directory(test);
        let program = here.join("bin/anabranch");
        fs::create_dir(here.join("bin")).unwrap();
        fs::hard_link(env!("CARGO_BIN_EXE_anabranch"), &program)
            .or_else(|_| fs::copy(env!("CARGO_BIN_EXE_anabranch"), &program).map(drop))
            .unwrap();
        (Lab::started(&program, &here, &[]), here)
    }

    fn started(program: &Path, here: &Path, args: &[&str]) -> Lab {
        let mut lab = Command::new(program);
        lab.current_dir(here).args(["lab", "--no-open"]).args(args).stdout(Stdio::piped());
        let mut process = lab.spawn().unwrap();
        let mut said = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let address =
            said.trim().strip_prefix("http://").and_then(|rest| rest.strip_suffix('/')).expect(&said).to_owned();
        Lab { process, address }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).unwrap()
    }

    /// Sends bytes and returns the whole answer.
    fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(bytes).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn get(&self, path: &str) -> String {
        self.exchange(format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address).as_bytes())
    }

    fn question(&self, request: &Value, files: &[u8]) -> Vec<u8> {
        let body = [format!("{request}\n").as_bytes(), files].concat();
        let (host, length) = (&self.address, body.len());
        let head =
            format!("POST /ask HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Length: {length}\r\n\r\n");
        [head.as_bytes(), &body].concat()
    }

    /// Asks as the page does, and returns the answer.
    fn ask(&self, request: &Value, files: &[u8]) -> Value {
        let said = self.exchange(&self.question(request, files));
        let (head, lines) = said.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
        let last: Value = serde_json::from_str(lines.lines().last().expect("an answer")).unwrap();
        serde_json::from_str(last["answer"].as_str().expect("the last line is the answer")).unwrap()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn scenario() -> Value {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/wlan-lte.toml")).unwrap();
    json!({ "name": "wlan-lte", "text": text, "sets": [] })
}

#[test]
fn a_page_from_disk_is_served_as_it_is() {
    let here = directory("lab-disk");
    fs::write(here.join("page.html"), "<p>a page</p>").unwrap();
    let lab = Lab::started(Path::new(env!("CARGO_BIN_EXE_anabranch")), &here, &["--page", "page.html"]);
    assert!(lab.address.starts_with("127.0.0.1:"), "{}", lab.address);
    let answer = lab.get("/");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\n<p>a page</p>"), "{answer}");
    // That page brings its own simulator.
    assert!(lab.exchange(&lab.question(&json!({ "do": "about" }), &[])).starts_with("HTTP/1.1 404 "));
}

/// As from `cargo install`: the program and nothing beside it.
#[test]
fn the_page_travels_inside_the_program() {
    let (lab, _) = Lab::alone("lab-inside");
    let page = lab.get("/");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains("connect-src 'self'"), "{page}");
    let named: Vec<&str> = page.split("=\"/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(named.len() >= 5, "{named:?}");
    for path in named {
        let part = lab.get(&format!("/{path}"));
        assert!(part.starts_with("HTTP/1.1 200 OK\r\n") && part.len() > 1000, "{path}: {}", &part[..100]);
    }
    let about = lab.ask(&json!({ "do": "about" }), &[]);
    assert_eq!(about["ok"]["build"].as_str(), Some(&*build()));

    let run = lab.ask(&json!({ "do": "run", "source": scenario(), "seed": 3 }), &[]);
    let command = succeed(Path::new("."), &["run", "wlan-lte", "--seed", "3", "--json"]);
    let command: Value = serde_json::from_str(&command).unwrap();
    assert!(run["ok"]["digest"].is_string(), "{run}");
    assert_eq!(run["ok"]["digest"], command["runs"][0]["events_digest"]);

    let files = json!([["mine.toml", 9]]);
    let refused = lab.ask(&json!({ "do": "capture", "files": files }), b"[path.a]\n");
    assert_eq!(refused["error"]["problem"], "mine.toml is a scenario, not a capture");
}

/// DNS rebinding, a page of another site, and three hundred connections that say half of a request.
#[test]
fn strangers_are_refused_and_in_nobodys_way() {
    let (lab, _) = Lab::alone("lab-strangers");
    for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example"] {
        let answer = lab.exchange(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
        assert!(answer.starts_with("HTTP/1.1 421 ") && answer.contains("localhost"), "{host}: {answer}");
    }
    for host in ["localhost", "localhost:8000", "[::1]:8000", "127.0.0.1"] {
        let answer = lab.exchange(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
        assert!(answer.starts_with("HTTP/1.1 200 "), "{host}: {answer}");
    }
    let question = String::from_utf8(lab.question(&json!({ "do": "about" }), &[])).unwrap();
    let foreign = question.replace("Origin: http://", "Origin: http://evil.");
    assert!(lab.exchange(foreign.as_bytes()).starts_with("HTTP/1.1 403 "));

    let half = |bytes: &str| {
        let mut stream = lab.connect();
        stream.write_all(bytes.as_bytes()).unwrap();
        stream
    };
    let _heads: Vec<TcpStream> = (0..300).map(|_| half("GET / HTTP/1.1\r\nHost: loc")).collect();
    let _bodies: Vec<TcpStream> = (0..300).map(|_| half(&question[..question.len() - 1])).collect();
    assert!(lab.get("/").starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(lab.ask(&json!({ "do": "about" }), &[])["ok"].is_object());
}

/// Processes that the laboratory has started for answers.
#[cfg(target_os = "linux")]
fn answering(lab: &Lab) -> usize {
    let tasks = fs::read_dir(format!("/proc/{}/task", lab.process.id())).unwrap().filter_map(Result::ok);
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    children.map(|children| children.split_whitespace().count()).sum()
}

#[cfg(target_os = "linux")]
#[test]
fn runs_end_when_the_page_loses_interest() {
    let (lab, _) = Lab::alone("lab-cancel");
    let request = json!({ "do": "compare", "source": scenario(), "schedulers": [], "seed": 1, "repeat": 1000 });
    let mut page = lab.connect();
    page.write_all(&lab.question(&request, &[])).unwrap();
    let mut lines = BufReader::new(page.try_clone().unwrap()).lines();
    let progress = lines.find_map(|line| Some(line.ok()?).filter(|line| line.contains("\"made\""))).unwrap();
    assert!(progress.contains("\"all\""), "{progress}");
    assert_eq!(answering(&lab), 1);
    drop((page, lines));
    let until = Instant::now() + Duration::from_secs(60);
    while answering(&lab) > 0 {
        assert!(Instant::now() < until, "the runs go on");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_page_inside_works_in_a_browser() {
    let Some(chromium) = browser::chromium() else { return };
    let (lab, here) = Lab::alone("lab-browser");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // Beside the script is where node looks for it; what has been installed stays for the next time.
    let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lab-browser-tools");
    fs::create_dir_all(&tools).unwrap();
    for file in ["package.json", "package-lock.json"] {
        fs::copy(root.join("crates/report/tests/html/browser").join(file), tools.join(file)).unwrap();
    }
    fs::copy(root.join("web/tests/served.mjs"), tools.join("served.mjs")).unwrap();
    if let Err(problem) = browser::install(&tools) {
        return browser::skip(&format!("npm cannot install playwright-core: {problem}"));
    }
    let command = succeed(Path::new("."), &["run", "wlan-lte", "--seed", "3", "--json"]);
    let command: Value = serde_json::from_str(&command).unwrap();
    let digest = &command["runs"][0]["events_digest"];
    let expected = json!({ "build": build(), "digest": digest, "scenario": scenario()["text"] });
    fs::write(here.join("expected.json"), expected.to_string()).unwrap();
    let mut check = Command::new("node");
    check.current_dir(&tools).arg("served.mjs").arg(chromium).arg(format!("http://{}/", lab.address));
    let output = check.arg(here.join("expected.json")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.ends_with("all checks hold\n"), "{said}");
}
