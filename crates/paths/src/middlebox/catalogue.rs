//! The kinds of middleboxes by name, for lists and documentation.

/// A kind of middlebox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MiddleboxInfo {
    /// Name in scenario files.
    pub name: &'static str,
    /// One line on what it does.
    pub about: &'static str,
    /// Reference that describes it.
    pub source: &'static str,
    /// Keys besides `end`, with defaults.
    pub keys: &'static str,
}

/// All kinds. Honda 2011 is M. Honda, Y. Nishida, C. Raiciu, A. Greenhalgh, M. Handley, H. Tokuda. *Is it still
/// possible to extend TCP?* Proc. ACM IMC 2011.
pub const MIDDLEBOXES: &[MiddleboxInfo] = &[
    MiddleboxInfo {
        name: "strip",
        about: "removes MPTCP options",
        source: "Honda 2011; RFC 8684 §3.7",
        keys: "from = syn | syn-ack | third-ack | all | after-handshake (all), options = mptcp | dss | add-addr | \
               control (mptcp), after = segments (0), direction",
    },
    MiddleboxInfo {
        name: "rewrite-sequence",
        about: "gives each flow random initial sequence numbers",
        source: "Honda 2011; RFC 8684 §3.3.1, §6",
        keys: "",
    },
    MiddleboxInfo {
        name: "split",
        about: "cuts segments into pieces; each or the first keeps the options",
        source: "Honda 2011; RFC 8684 §6",
        keys: "size (536B), options = copied | first (copied), direction",
    },
    MiddleboxInfo {
        name: "coalesce",
        about: "merges segments; the first one's options stay",
        source: "Honda 2011; RFC 8684 §6",
        keys: "size (2920B), wait (1ms), direction",
    },
    MiddleboxInfo {
        name: "alter-payload",
        about: "replaces bytes of the stream, adjusting sequence numbers where the length changes",
        source: "RFC 8684 §3.3.1, §3.7, §6; RFC 2663 §2.9",
        keys: "offset (100000), remove (4), insert (4), direction",
    },
    MiddleboxInfo {
        name: "early-ack",
        about: "acknowledges data before their receiver has them, and may lose them",
        source: "RFC 3135 §3.1.2; RFC 8684 §3.3.2, §6",
        keys: "delay (1ms), lose = every n-th (0: none), direction",
    },
    MiddleboxInfo {
        name: "nat",
        about: "rewrites the client's address and ports; mappings may be lost",
        source: "RFC 3022; RFC 8684 §6; Honda 2011",
        keys: "rebind = time (never), unmapped = dropped | reset (dropped)",
    },
    MiddleboxInfo {
        name: "mtu-blackhole",
        about: "swallows large packets without a word",
        source: "RFC 2923 §2.1; RFC 4821 §1",
        keys: "size (1280B), from = time (0s), direction",
    },
    MiddleboxInfo {
        name: "drop-syn",
        about: "drops SYNs that carry an MPTCP option",
        source: "Honda 2011; RFC 8684 §3.1, §3.7",
        keys: "option = mp-capable | mp-join (mp-capable)",
    },
    MiddleboxInfo {
        name: "faults",
        about: "drops, repeats, swaps or delays single segments, named by their number",
        source: "for tests and for experiments that leave nothing to chance",
        keys: "drop, duplicate, swap, delay = [numbers from 0] (none), wait = time (3s), direction",
    },
];
