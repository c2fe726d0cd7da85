//! As an ordinary user, through a user namespace; and over veth pairs, which is what such a user has.

use super::{place, run, stderr, stdout};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Uid and gid of nobody.
const NOBODY: &str = "65534";

/// Copies the program and the scenario to a world-readable folder; `None` where ordinary users cannot make namespaces.
fn public_place(test: &str) -> Option<PathBuf> {
    let here = place(test)?;
    let public = std::env::temp_dir().join(format!("anabranch-{test}-{}", std::process::id()));
    fs::create_dir_all(&public).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_anabranch"), public.join("anabranch")).unwrap();
    fs::copy(here.join("two.toml"), public.join("two.toml")).unwrap();
    fs::set_permissions(&public, fs::Permissions::from_mode(0o777)).unwrap();
    let attempt = nobody(&public, &["unshare", "--user", "--net", "true"]);
    if attempt.as_ref().is_some_and(|output| output.status.success()) {
        return Some(public);
    }
    let why = attempt.map_or("there is no setpriv".to_owned(), |output| stderr(&output));
    eprintln!("SKIPPED: {test}: an ordinary user can make no namespaces here: {why}");
    fs::remove_dir_all(&public).unwrap();
    None
}

/// Runs this as nobody, or as the current user if that is not root.
fn nobody(directory: &Path, arguments: &[&str]) -> Option<Output> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|it| std::os::unix::fs::MetadataExt::uid(&it) == 0);
    let mut command = match is_root {
        true => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"]).args(arguments);
            command
        }
        false => {
            let mut command = Command::new(arguments[0]);
            command.args(&arguments[1..]);
            command
        }
    };
    command.current_dir(directory).stdin(Stdio::null()).output().ok()
}

/// Downloads over MPTCP, and says who one is and what one may.
const COMMAND: &str = "python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
s.settimeout(100)
s.connect((\"server\", 47110)); s.sendall(bytes(1))
n = 0
while data := s.recv(65536): n += len(data)
print(n)'; id -u; ip link set lte mtu 1400 && echo administers; ip -br link | grep -c -E '^(wlan|lte)'";

/// The second subflow is there before anything of size is sent (MPTCP_INFO of SOL_MPTCP).
const SERVER: &str = "python3 -c '
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
s.bind((\"10.77.0.1\", 47110)); s.listen()
c = s.accept()[0]; c.recv(1)
c.sendall(bytes(1000))
begin = time.monotonic()
while c.getsockopt(284, 1, 128)[0] == 0 and time.monotonic() - begin < 100: time.sleep(0.01)
c.sendall(bytes(1999000))'";

fn both_paths_carried_data(directory: &Path) {
    let json = fs::read_to_string(directory.join("result.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["backend"], "veth");
    for path in json["paths"].as_array().unwrap() {
        let [bytes, packets] = ["delivered_bytes", "delivered"].map(|key| path["down"][key].as_u64().unwrap());
        assert!(bytes > 100_000, "{} carried {bytes} bytes", path["name"]);
        // Several segments in one packet would be longer than any link's.
        assert!(bytes <= packets * 1500, "{bytes} bytes in {packets} packets");
    }
}

#[test]
fn an_ordinary_user_can_do_the_same() {
    let Some(here) = public_place("user") else { return };
    let args =
        ["./anabranch", "testbed", "two.toml", "--backend", "veth", "--server", SERVER, "--json", "result.json", "--"];
    let output = nobody(&here, &[&args[..], &["sh", "-c", COMMAND]].concat()).unwrap();
    let user = stdout(&nobody(&here, &["id", "-u"]).unwrap());
    assert_eq!(stdout(&output), format!("2000000\n{user}administers\n2\n"), "{}", stderr(&output));
    assert!(output.status.success(), "{}", stderr(&output));
    both_paths_carried_data(&here);
    fs::remove_dir_all(&here).unwrap();
}

#[test]
fn veth_pairs_carry_what_tun_devices_do() {
    let Some(here) = place("veth") else { return };
    let args =
        ["two.toml", "--backend", "veth", "--server", SERVER, "--json", "result.json", "--", "sh", "-c", COMMAND];
    let output = run(&here, &args);
    assert!(stdout(&output).starts_with("2000000\n"), "{}{}", stdout(&output), stderr(&output));
    both_paths_carried_data(&here);
}

/// Path names that `ip` would take for words of its own, that no interface can have, and that become equal.
#[test]
fn paths_of_any_name_become_interfaces_of_both_kinds() {
    let Some(here) = place("names") else { return };
    let paths: String =
        NAMES.iter().map(|name| format!("[path.{name:?}]\nrate = \"10mbit\"\ndelay = \"1ms\"\n")).collect();
    let workload = "[[workload]]\nkind = \"files\"\nsize = \"1MB\"\n";
    fs::write(here.join("names.toml"), format!("{paths}{workload}")).unwrap();
    // Every interface is there and up, a user can name it, and each address is on another one.
    let look = "for device in $ANABRANCH_DEVICES; do ip link show $device up; done | grep -c UP; \
                ip -4 -o address show scope global | wc -l; \
                for address in $ANABRANCH_ADDRESSES; do ip route get 10.77.0.1 from $address; done | \
                grep -o 'dev [^ ]*' | sort -u | wc -l";
    for backend in ["veth", "tun"] {
        let output = run(&here, &["names.toml", "--backend", backend, "--", "sh", "-c", look]);
        let count = NAMES.len();
        assert_eq!(stdout(&output), format!("{count}\n{count}\n{count}\n"), "{backend}: {}", stderr(&output));
    }
}

const NAMES: [&str; 16] = [
    "a",
    "dev",
    "type",
    "all",
    "default",
    "lo",
    "up",
    "7",
    "if2",
    "wlan%d",
    "wlan.1",
    "wlan/1",
    "-wlan",
    "Straße 日本",
    "a very long path name",
    "a very long path name too",
];
