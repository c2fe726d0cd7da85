//! Faults planted under connections of the stock kernel: `anabranch why` names each in its first sentence, from the
//! packets alone.
//!
//! Two namespaces are joined by two emulated paths, which are captured at both ends. The judge is shown the captures of
//! both ends, and then each alone: from one end some faults look alike, and the sentence says so.
#![allow(clippy::unwrap_used)]

mod ground;

use anabranch_host::testbed::Testbed;
use anabranch_interop::{Case, run};
use ground::{Ground, Transfer};
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    run(faults().into_iter().map(case).collect(), 5)
}

/// A fault, and the words that name it.
struct Fault {
    name: &'static str,
    /// Keys of the paths in a scenario.
    wlan: &'static str,
    lte: &'static str,
    transfer: Transfer,
    prepare: fn(&Testbed),
    /// Words of the first sentence about captures of both ends, of the client, and of the server.
    says: [&'static [&'static str]; 3],
    /// Words about the live connection, at the client and at the server.
    live: [&'static [&'static str]; 2],
}

/// Two sound paths and a download.
const SOUND: Fault = Fault {
    name: "nothing",
    wlan: "",
    lte: "",
    transfer: Transfer::DOWNLOAD,
    prepare: |_| (),
    says: [&[], &[], &[]],
    live: [&[], &[]],
};

const SEND_BUFFER: &[&str] = &["of the time the send buffer of the server was full"];

const BLACK_HOLE: &[&str] = &["On lte segments of", "never arrived", "MTU"];

/// The same words from everywhere.
const fn seen(words: &'static [&'static str]) -> [&'static [&'static str]; 3] {
    [words, words, words]
}

fn faults() -> Vec<Fault> {
    vec![
        Fault {
            name: "plain_server",
            transfer: Transfer { server_multipath: false, ..Transfer::DOWNLOAD },
            says: seen(&["the server answered without MP_CAPABLE"]),
            live: [&["the connection went on as plain TCP"], &[]],
            ..SOUND
        },
        Fault {
            name: "option_stripped_from_the_syn",
            wlan: "middlebox = [{ kind = \"strip\", from = \"syn\" }]",
            says: [
                &["MP_CAPABLE was removed from the SYN on its way"],
                &["the server answered without MP_CAPABLE", "a box on the way"],
                &["the client asked for plain TCP", "a box on the way"],
            ],
            ..SOUND
        },
        Fault {
            name: "option_stripped_from_the_syn_ack",
            wlan: "middlebox = [{ kind = \"strip\", from = \"syn-ack\" }]",
            says: [
                &["MP_CAPABLE was removed from the SYN/ACK on its way"],
                &["the server answered without MP_CAPABLE", "a box on the way"],
                &["plain TCP at the third ACK", "a box on the way"],
            ],
            ..SOUND
        },
        Fault {
            name: "options_stripped_after_the_handshake",
            wlan: "middlebox = [{ kind = \"strip\", from = \"after-handshake\" }]",
            transfer: Transfer { patience: Duration::from_secs(4), ..Transfer::DOWNLOAD },
            says: [
                &["a box on the way removed MPTCP's options from packets after the handshake"],
                &["plain TCP", "a box on the way"],
                &["plain TCP", "a box on the way"],
            ],
            ..SOUND
        },
        Fault {
            name: "no_subflows_by_limits",
            prepare: |bed| ground::ip(&bed.client, "mptcp limits set subflows 0 add_addr_accepted 0"),
            says: seen(&["no further subflow was begun", "ip mptcp limits"]),
            live: [&["this host admits no further subflow"], &["there is no further subflow"]],
            ..SOUND
        },
        Fault {
            name: "backup_flag",
            prepare: |bed| ground::ip(&bed.client, "mptcp endpoint change id 1 backup"),
            says: seen(&["lte carried nothing", "marked as a backup"]),
            live: [&[], &["10.77.2.2 carried nothing: it is marked as a backup"]],
            ..SOUND
        },
        Fault {
            name: "reverse_path_filter",
            prepare: |bed| {
                bed.server.sysctl("net.ipv4.conf.all.rp_filter", "1").unwrap();
                ground::ip(&bed.server, "route replace 10.77.2.0/24 dev wlan");
            },
            says: seen(&["lte carried nothing", "its join", "never answered", "rp_filter"]),
            live: [&["10.77.2.2 carried nothing: its join was never answered"], &[]],
            ..SOUND
        },
        Fault {
            name: "tiny_receive_buffer",
            prepare: |bed| bed.client.sysctl("net.ipv4.tcp_rmem", "4096 32768 32768").unwrap(),
            says: seen(&["of the time the client's window, of"]),
            live: [&[], &["the other host's window, of", "was used up"]],
            ..SOUND
        },
        Fault {
            name: "tiny_send_buffer",
            prepare: |bed| bed.server.sysctl("net.ipv4.tcp_wmem", "4096 32768 32768").unwrap(),
            // The client cannot tell a buffer from a scheduler.
            says: [SEND_BUFFER, &[], SEND_BUFFER],
            live: [&[], &["the send buffer here was full"]],
            ..SOUND
        },
        Fault {
            name: "slow_reader",
            transfer: Transfer { read: (16 << 10, Duration::from_millis(160)), size: 1 << 20, ..Transfer::DOWNLOAD },
            says: seen(&["of the time the application on the client did not read"]),
            live: [&["the application here did not read"], &[]],
            ..SOUND
        },
        Fault {
            name: "slow_writer",
            transfer: Transfer { write: (16 << 10, Duration::from_millis(40)), size: 1 << 20, ..Transfer::DOWNLOAD },
            says: seen(&["of the time the application on the server had written nothing more"]),
            live: [&[], &["the application here had written nothing more"]],
            ..SOUND
        },
        Fault { name: "one_path_lossy", lte: "loss = \"5%\"", says: seen(&["lte", "lost"]), ..SOUND },
        Fault {
            name: "one_path_behind_bufferbloat",
            lte: "rate = \"2mbit\"\nqueue = \"1000p\"",
            says: seen(&["lte", "bufferbloat"]),
            ..SOUND
        },
        Fault {
            name: "mtu_black_hole",
            lte: "middlebox = [{ kind = \"mtu-blackhole\", size = \"1000B\" }]",
            // At the client nothing may come at all: then it can only guess.
            says: [BLACK_HOLE, &["lte"], BLACK_HOLE],
            live: [&[], &["10.77.2.2 carried nothing: nothing that was sent there was acknowledged"]],
            ..SOUND
        },
        Fault {
            name: "join_refused_by_a_firewall",
            prepare: |bed| {
                ground::nft(&bed.server, "add table inet wall");
                ground::nft(&bed.server, "add chain inet wall in { type filter hook input priority 0; }");
                ground::nft(
                    &bed.server,
                    "add rule inet wall in iifname lte tcp option mptcp exists reject with tcp reset",
                );
            },
            says: seen(&["lte carried nothing", "its join was refused with a RST", "firewall"]),
            ..SOUND
        },
        Fault {
            name: "wrong_route",
            prepare: |bed| {
                ground::ip(&bed.client, "mptcp endpoint delete id 1");
                ground::ip(&bed.client, "mptcp endpoint add 10.77.2.2 id 1 subflow");
                ground::ip(&bed.client, "route replace default dev wlan table 102");
            },
            says: seen(&["10.77.2.2", "wlan", "a route leads them to the interface of another path"]),
            ..SOUND
        },
    ]
}

fn case(fault: Fault) -> Case {
    Case::new(fault.name, move || {
        // Programs that a busy machine does not let run are another fault, and the answer names that one.
        for _ in 1..TRIES {
            match try_out(&fault) {
                Ok(()) => return Ok(()),
                Err(wrong) => eprintln!("{} again: {wrong}", fault.name),
            }
        }
        try_out(&fault)
    })
}

/// Times that a fault is tried before it counts as not found.
const TRIES: u32 = 3;

/// Makes the fault, moves data, and asks everywhere.
fn try_out(fault: &Fault) -> Result<(), String> {
    let name = fault.name;
    let ground = Ground::build(fault.wlan, fault.lte);
    (fault.prepare)(ground.testbed());
    let captures = ground.transfer(name, &fault.transfer);
    let views =
        [("both ends", &captures.files[..]), ("client", &captures.files[..1]), ("server", &captures.files[1..])];
    let mut wrong = Vec::new();
    for ((view, files), words) in views.into_iter().zip(fault.says) {
        let (sentence, answer) = ground::ask(files);
        if let Some(missing) = words.iter().find(|word| !sentence.contains(**word)) {
            wrong.push(format!("{view}: `{missing}` is missing: {sentence}"));
        }
        if std::env::var_os("ANABRANCH_SHOW").is_some() {
            println!("{name} {view}: {}", answer.sentence);
        }
    }
    for ((view, answer), words) in ["client", "server"].into_iter().zip(&captures.live).zip(fault.live) {
        let said: Vec<&str> = answer.connections.iter().map(|it| it.sentence.as_str()).collect();
        let said = said.join("\n");
        if let Some(missing) = words.iter().find(|word| !said.contains(**word)) {
            wrong.push(format!("live at the {view}: `{missing}` is missing: {said}"));
        }
        if std::env::var_os("ANABRANCH_SHOW").is_some() {
            println!("{name} live at the {view}: {said}");
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}
