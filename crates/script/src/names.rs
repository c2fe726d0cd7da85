//! The names that statements, fields and options may have.

use anabranch_units::Ecn;

/// Fields of a segment.
pub(crate) const FIELDS: &[&str] = &[
    "seq", "ack", "win", "data", "len", "payload", "urg", "ecn", "mss", "wscale", "sack_ok", "sack", "ts", "mptcp",
    "accecn", "option", "broken",
];

/// Counters of the AccECN option, in each of its orders.
pub(crate) const COUNTERS: [[(&str, Ecn); 3]; 2] = [
    [("e0b", Ecn::Ect0), ("ceb", Ecn::Ce), ("e1b", Ecn::Ect1)],
    [("e1b", Ecn::Ect1), ("ceb", Ecn::Ce), ("e0b", Ecn::Ect0)],
];

/// MPTCP options with their arguments.
pub(crate) const OPTIONS: &[(&str, &[&str])] = &[
    ("mp_capable", &["v", "flags", "sender", "receiver", "len", "csum"]),
    ("mp_join", &["id", "backup", "token", "nonce", "hmac"]),
    ("dss", &["ack", "ack4", "ack8", "map", "dsn", "dsn4", "dsn8", "ssn", "len", "csum", "fin"]),
    ("add_addr", &["id", "addr", "port", "hmac", "echo"]),
    ("remove_addr", &["ids"]),
    ("mp_prio", &["backup"]),
    ("mp_fail", &["dsn"]),
    ("mp_fastclose", &["key"]),
    ("mp_tcprst", &["reason", "transient"]),
];

/// Statements other than segments, with an example each.
pub(crate) const STATEMENTS: &[(&str, &str)] = &[
    ("host", "host checksum=on addresses=10.1.0.1,10.1.1.1"),
    ("peer", "peer key=0x1122334455667788"),
    ("subflow", "subflow a host 10.1.0.1:80 peer 10.0.0.1:4000 join=a isn=1000"),
    ("listen", "listen 80"),
    ("open", "open a"),
    ("write", "write 1000 takes 500"),
    ("read", "read 1000"),
    ("shutdown", "shutdown"),
    ("abort", "abort"),
    ("close", "close a"),
    ("backup", "backup a on"),
    ("carrier", "carrier 10.1.1.1 down"),
    ("event", "event accepted mptcp"),
    ("no", "no event fallback"),
    ("check", "check subflows = 2"),
    ("nothing", "+1s nothing"),
    ("drain", "drain 1..10"),
    ("include", "include server.inc"),
    ("repeat", "repeat 100 as i"),
    ("end", "end"),
];
