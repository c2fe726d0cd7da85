//! Words for the values of settings that have names for them.

use super::Domain::{Choice, Time};
use super::{Kernel, Setting, Word};
use crate::{EcnRule, FastClose, ReceiveTuning, RtoRule};
use anabranch_policy::congestion::{HyStart, LossResponse};
use anabranch_units::Duration;

/// A word that stands for one value of a field.
macro_rules! word {
    ($name:literal, $about:literal, $c:ident.$($field:ident).+ = $value:expr) => {
        Word { name: $name, about: $about, put: |$c| $c.$($field).+ = $value, is: |$c| $c.$($field).+ == $value }
    };
}

pub(crate) const FAST_CLOSE: &[Word] = &[
    word!("rst", "MP_FASTCLOSE on a RST of every subflow (option R; Linux).", c.fast_close = FastClose::Rst),
    word!(
        "ack",
        "MP_FASTCLOSE on an ACK of one subflow, until the peer's RST arrives (option A).",
        c.fast_close = FastClose::Ack
    ),
];

/// Each with its usual minimum: 200 ms of Linux and mptcp-ns3, 1 s of RFC 6298 §2.4.
const RTO: &[Word] = &[
    Word {
        name: "linux",
        about: "SRTT plus a variance term that has its own minimum.",
        put: |c| c.profile.rto = RtoRule::Linux { min_var: Duration::from_millis(200) },
        is: |c| matches!(c.profile.rto, RtoRule::Linux { .. }),
    },
    Word {
        name: "rfc6298",
        about: "RFC 6298 with a minimum of the whole timeout.",
        put: |c| {
            c.profile.rto = RtoRule::Rfc6298 { min: Duration::from_secs(1), granularity: Duration::from_millis(1) };
        },
        is: |c| matches!(c.profile.rto, RtoRule::Rfc6298 { .. }),
    },
    Word {
        name: "mptcp-ns3",
        about: "Twice the RTT while it is steady, with a minimum of the whole timeout.",
        put: |c| c.profile.rto = RtoRule::MptcpNs3 { min: Duration::from_millis(200) },
        is: |c| matches!(c.profile.rto, RtoRule::MptcpNs3 { .. }),
    },
];

/// The rule of the retransmission timeout, and the minimum that each rule has.
pub(crate) const RTO_SETTINGS: &[Setting] = &[
    Setting::new("rto", "Rule for the retransmission timeout.", Choice(RTO)),
    Setting::new(
        "min-rto",
        "Minimum of the timeout: under `rfc6298` and `mptcp-ns3` of the whole, under `linux` of its variance term.",
        Time(|c| match &mut c.profile.rto {
            RtoRule::Linux { min_var: min } | RtoRule::Rfc6298 { min, .. } | RtoRule::MptcpNs3 { min } => min,
        }),
    )
    .in_kernel(Kernel::Time("net.ipv4.tcp_rto_min_us", Duration::from_micros(1))),
];

pub(crate) const RECEIVE_TUNING: &[Word] = &[
    word!(
        "proportional",
        "Grows by twice the relative growth of the amount read per round trip (Linux 4.16 and later).",
        c.profile.receive_tuning = ReceiveTuning::Proportional
    ),
    word!(
        "stepwise",
        "Grows by half if a quarter more is read in a round trip, doubles if half more is (Linux 3.14 to 4.15).",
        c.profile.receive_tuning = ReceiveTuning::Stepwise
    ),
];

/// HyStart, by the rise of the RTT over its minimum that ends slow start.
pub(crate) const HYSTART: &[Word] = &[
    word!("off", "Only a loss ends slow start.", c.profile.hystart = None),
    word!(
        "sixteenth",
        "A sixteenth of the minimum RTT (Linux before 3.19).",
        c.profile.hystart = Some(HyStart::Sixteenth)
    ),
    word!("eighth", "An eighth of the minimum RTT (Linux 3.19 to 5.5).", c.profile.hystart = Some(HyStart::Eighth)),
    word!(
        "linux-5.16",
        "As `eighth`, by all samples of a round; a train of ACKs may last half a millisecond longer (Linux 5.16 and \
         later).",
        c.profile.hystart = Some(HyStart::Linux5_16)
    ),
    word!(
        "plus-plus",
        "HyStart++ (RFC 9406): an eighth above the round trip before, with a slower slow start first. For every \
         congestion control that is not model-based.",
        c.profile.hystart = Some(HyStart::PlusPlus)
    ),
];

/// ECN rules of a host, in the order of the numbers that Linux has for them.
pub(crate) const ECN: &[Word] = &[
    word!("off", "Neither asks nor agrees.", c.profile.ecn = EcnRule::OFF),
    word!("classic", "Asks for that of RFC 3168, and agrees to it.", c.profile.ecn = EcnRule::CLASSIC),
    word!(
        "accept-classic",
        "Agrees to that of RFC 3168, and does not ask (Linux by default).",
        c.profile.ecn = EcnRule::ACCEPT_CLASSIC
    ),
    word!(
        "accurate",
        "Asks for accurate feedback (AccECN, RFC 9768), and agrees to it or to the classic one.",
        c.profile.ecn = EcnRule::ACCURATE
    ),
    word!(
        "accept-accurate-ask-classic",
        "Agrees to accurate feedback, and asks for the classic one.",
        c.profile.ecn = EcnRule::ACCEPT_ACCURATE_ASK_CLASSIC
    ),
    word!(
        "accept-accurate",
        "Agrees to accurate feedback or the classic one, and does not ask.",
        c.profile.ecn = EcnRule::ACCEPT_ACCURATE
    ),
];

pub(crate) const LOSS_RESPONSE: &[Word] = &[
    word!(
        "standard",
        "Reduces as the congestion control says, from the data in flight if the window was no limit; to one \
         segment on a timeout (RFC 5681).",
        c.profile.loss_response = LossResponse::Standard
    ),
    word!("linux", "As `standard`, but always from the window (Linux).", c.profile.loss_response = LossResponse::Linux),
    word!(
        "halve",
        "Halves the window on a fast retransmit and on each timeout, without a new slow start.",
        c.profile.loss_response = LossResponse::Halve
    ),
];
