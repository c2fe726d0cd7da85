//! Names of interfaces and tables that reach `ip`, `nft`, `tc` and `/proc/sys`.
//!
//! Paths have any name; an interface has few letters, and its tools take many short words for something else: to
//! `ip link add a type veth`, `a` is the beginning of `address`. Commands therefore say `dev` or `name` before an
//! interface, and every name that we choose is made here: of letters, digits, `-` and `_`, and no word of a tool, so
//! that users can type it, too.

use std::io;

/// Most bytes in the name of an interface (`IFNAMSIZ` and its final zero).
const LONGEST: usize = 15;

/// Names of directories beside those of interfaces in `/proc/sys/net/ipv4/conf`, and the loopback interface.
const SYSTEM: [&str; 3] = ["all", "default", "lo"];

/// Names of the engine's own devices, which a host of a testbed may have besides.
const ENGINES: [&str; 2] = ["anabranch0", "anabranch1"];

/// Words where `ip link`, `ip address` and captures expect an interface (iproute2 6.1, libpcap). `ip` takes the
/// beginning of a word for the word.
const WORDS: &str = "add address addrgenmode alias all allmulticast altname any anycast arp autojoin broadcast brd \
    carrier change dadfailed default delete del deprecated dev down dynamic from gro_max_size group gso_ipv4_max_size \
    gso_max_segs gso_max_size help home id index kind label link link-netns link-netnsid list lo local lookup lst \
    master metric mngtmpaddr mode mtu multicast name netns nodad nomaster none noprefixroute numrxqueues numtxqueues \
    parentbus parentdev peer permanent preferred_lft primary promisc property proto protocol protodown \
    protodown_reason qlen replace root route scope secondary set show state table temporary tentative to trailers \
    trust txqueuelen type up valid_lft vf via vrf xdp xdpdrv xdpgeneric xdpoffload xstats";

/// Returns a name for an interface, like `wish` as far as possible and unlike those in `taken`.
pub(crate) fn interface(wish: &str, taken: &[String]) -> String {
    let legal = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' };
    let mut base: String = wish.chars().map(legal).take(LONGEST).collect();
    if is_word(&base) {
        base = format!("p-{base}").chars().take(LONGEST).collect();
    }
    // Names of hosts are made of those of interfaces, and have no case.
    let is_free = |name: &String| !taken.iter().any(|other| other.eq_ignore_ascii_case(name)) && !is_word(name);
    let numbered = (2..).map(|number: u32| {
        let number = number.to_string();
        base.chars().take(LONGEST - number.len()).chain(number.chars()).collect()
    });
    std::iter::once(base.clone()).chain(numbered).find(is_free).expect("there are more numbers than paths")
}

/// True if a program takes `name` for an option, a number or a word of its own.
fn is_word(name: &str) -> bool {
    let is_option = name.is_empty() || name.starts_with('-');
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    // `if7` is the interface of this index.
    let is_index = is_number(name) || name.strip_prefix("if").is_some_and(is_number);
    is_option || is_index || ENGINES.contains(&name) || WORDS.split_whitespace().any(|word| word.starts_with(name))
}

/// Checks a name that a user gives to an interface. A `%d` in it becomes a number.
///
/// # Errors
/// If it is none, with the names that are accepted.
pub fn check_interface(name: &str) -> Result<(), String> {
    let plain = name.replacen("%d", "0", 1);
    let is_legal = plain.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    let begins = plain.starts_with(|first: char| first.is_ascii_alphanumeric());
    if is_legal && begins && name.len() <= LONGEST && !SYSTEM.contains(&name) {
        return Ok(());
    }
    let shown: String = name.escape_default().take(60).collect();
    Err(format!(
        "`{shown}` is no name for an interface: accepted are 1 to {LONGEST} letters, digits, `-`, `_` and `.`, the \
         first a letter or a digit, and `%d` for a number; not {}",
        SYSTEM.join(", ")
    ))
}

/// Returns a name that passes [`check_interface`], or an [`io::Error`] that says what is wrong with it.
pub(crate) fn checked(name: &str) -> io::Result<&str> {
    check_interface(name).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    Ok(name)
}

/// Returns the table of nftables that belongs to `device`. No two devices have the same: of bytes that a table's name
/// cannot have, and of `_`, it has the number.
pub(crate) fn table(device: &str) -> String {
    let write = |byte: u8| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => char::from(byte).to_string(),
        other => format!("_{other:02x}"),
    };
    device.bytes().fold("anabranch_".to_owned(), |table, byte| table + &write(byte))
}

/// Returns an interface of the machine as nftables read it; `None` if they could read it as something else: `"` ends a
/// string and `*` stands for any ending.
pub(crate) fn quoted(interface: &str) -> Option<String> {
    let is_plain = interface.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\*".contains(&byte));
    is_plain.then(|| format!("\"{interface}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_have_names_that_kernel_and_tools_take_and_no_two_have_the_same() {
        let mut names = Vec::new();
        for (wish, expected) in [
            ("wlan", "wlan"),
            ("a very long path name", "a-very-long-pat"),
            ("a very long path name!", "a-very-long-pa2"),
            ("lo", "p-lo"),
            ("", "p-"),
            ("Zug/4G", "Zug-4G"),
            ("wlan", "wlan2"),
            ("WLAN", "WLAN3"),
            ("a", "p-a"),
            ("b", "p-b"),
            ("c", "p-c"),
            ("addr", "p-addr"),
            ("dev", "p-dev"),
            ("type", "p-type"),
            ("all", "p-all"),
            ("default", "p-default"),
            ("any", "p-any"),
            ("up", "p-up"),
            ("via", "p-via"),
            ("5", "p-5"),
            ("5g", "5g"),
            ("if3", "p-if3"),
            ("eth%d", "eth-d"),
            ("wlan.100", "wlan-100"),
            ("..", "p---"),
            ("-n", "p--n"),
            ("\u{1b}[2J", "p--[2J".replace('[', "-").as_str()),
            ("日本", "p---2"),
            ("anabranch0", "p-anabranch0"),
            ("x\"; drop", "x---drop"),
            ("$(reboot)", "p---reboot-"),
        ] {
            let name = interface(wish, &names);
            assert_eq!(name, expected, "{wish:?}");
            check_interface(&name).expect("the kernel takes it");
            names.push(name);
        }
    }

    #[test]
    fn a_thousand_equal_names_stay_apart() {
        let mut names: Vec<String> = Vec::new();
        for _ in 0..1000 {
            names.push(interface("temporary address", &names));
        }
        let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
        assert!(distinct.len() == 1000 && names.iter().all(|name| name.len() <= LONGEST));
    }

    #[test]
    fn names_given_by_users_are_looked_at() {
        for name in ["anabranch%d", "tun0", "a", "eth0.100", "x_y-z", "0"] {
            assert_eq!(check_interface(name), Ok(()));
        }
        for name in ["", "a b", "-x", "..", "a/b", "tun*", "x\"", "lo", "all", "default", "a:1", "%s", "%d%d", "é"] {
            let error = check_interface(name).expect_err(name);
            assert!(error.contains("accepted are 1 to 15 letters"), "{error}");
        }
        assert!(check_interface("sixteen-letters-").is_err());
    }

    #[test]
    fn each_device_has_a_table_of_its_own() {
        let tables = ["a-b", "a.b", "a_b", "a_2db", "ab"].map(table);
        assert_eq!(
            tables,
            ["anabranch_a_2db", "anabranch_a_2eb", "anabranch_a_5fb", "anabranch_a_5f2db", "anabranch_ab"]
        );
        assert_eq!(quoted("eth0.1"), Some("\"eth0.1\"".to_owned()));
        assert_eq!([quoted("tun*"), quoted("x\""), quoted("x\\")], [None, None, None]);
    }
}
