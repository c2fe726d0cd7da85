//! The names that statements, fields and options may have.

/// Fields of a segment.
pub(crate) const FIELDS: &[&str] = &[
    "seq", "ack", "win", "data", "len", "payload", "urg", "mss", "wscale", "sack_ok", "sack", "ts", "mptcp", "option",
    "broken",
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

/// The accepted name most like `wrong`, then all of them.
pub(crate) fn suggest<'a>(wrong: &str, accepted: impl IntoIterator<Item = &'a str>) -> String {
    let accepted: Vec<&str> = accepted.into_iter().collect();
    let near = accepted.iter().copied().filter(|name| distance(wrong, name) <= (wrong.len() / 3).max(1));
    let best = near.min_by_key(|name| distance(wrong, name));
    let list = accepted.join(", ");
    best.map_or_else(|| format!("accepted: {list}"), |name| format!("did you mean `{name}`? accepted: {list}"))
}

/// Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_understood() {
        assert!(suggest("mp_capabel", OPTIONS.iter().map(|o| o.0)).starts_with("did you mean `mp_capable`?"));
        assert!(suggest("zebra", ["seq", "ack"]).starts_with("accepted: seq, ack"));
    }
}
