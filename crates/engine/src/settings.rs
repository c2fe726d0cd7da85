//! The settings of an endpoint, each described once.
//!
//! A new setting is a field of [`Config`] or [`Profile`](crate::Profile) and a line of [`SETTINGS`]. Keys of scenario
//! files and of `--set`, their JSON schema, the `host` statement of scripts, the kernel's settings on a testbed and
//! docs/settings.md follow from the line.

use crate::config::MAX_SUBFLOWS;
use crate::{Config, FastClose, ReceiveTuning, RtoRule};
use anabranch_policy::congestion::{HyStart, LossResponse};
use anabranch_units::{Bytes, Duration};
use std::fmt;

use Domain::{Choice, Flag, Number, Size, Time, TimeOrOff};
use Kernel::{Other, Switch};

/// One setting: its name, values, and the places where it can be set.
#[derive(Clone, Copy)]
pub struct Setting {
    /// Name in kebab-case: the key in scenario files.
    pub name: &'static str,
    /// Meaning, in sentences.
    pub about: &'static str,
    /// Accepted values, and the field that holds them.
    pub domain: Domain,
    /// Unit of a number; empty for a count.
    pub unit: &'static str,
    /// Only scripts can set it.
    pub in_scripts_only: bool,
    /// Counterpart in the Linux kernel, which the testbed sets; `None` if the kernel has none.
    pub kernel: Option<Kernel>,
    script: Option<&'static str>,
}

/// Accepted values of a setting, with access to the field.
#[derive(Clone, Copy)]
pub enum Domain {
    /// True or false.
    Flag(Field<bool>),
    /// A whole number from the first bound to the second, both included.
    Number(Field<dyn Whole>, i64, i64),
    /// An amount of data above zero.
    Size(Field<Bytes>),
    /// A span of time.
    Time(Field<Duration>),
    /// A span of time, or off.
    TimeOrOff(Field<Option<Duration>>),
    /// One of these words.
    Choice(&'static [Word]),
}

/// Access to a field of a configuration.
pub type Field<T> = fn(&mut Config) -> &mut T;

/// A whole number in a field, which may be optional.
pub trait Whole {
    /// Returns the number.
    fn number(&self) -> Option<i64>;
    /// Sets the number; clamps it to the field's type.
    fn set(&mut self, number: i64);
}

/// One of the values of a setting that has names for them.
#[derive(Clone, Copy)]
pub struct Word {
    /// Name in kebab-case.
    pub name: &'static str,
    /// Meaning, in sentences.
    pub about: &'static str,
    put: fn(&mut Config),
    is: fn(&Config) -> bool,
}

/// Counterpart of a setting in the Linux kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kernel {
    /// Kernel parameter that is 0 for false, and its value for true.
    Switch(&'static str, u8),
    /// Kernel parameter that is the same number.
    Number(&'static str),
    /// Kernel parameter that is the time in this unit.
    Time(&'static str, Duration),
    /// Something else, in Markdown; the testbed has code for it.
    Other(&'static str),
}

/// Value of a setting. Displays as in scenario files.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// True or false.
    Flag(bool),
    /// A whole number.
    Number(i64),
    /// An amount of data.
    Size(Bytes),
    /// A span of time.
    Time(Duration),
    /// No time at all.
    Off,
    /// A name.
    Word(&'static str),
}

/// A value that a setting does not accept.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{problem}; accepted: {accepted}")]
pub struct SettingError {
    /// The setting and its value.
    pub problem: String,
    /// Accepted values.
    pub accepted: String,
}

/// The longest queue of handshakes, and the highest rate of resets.
const MANY: i64 = 1 << 20;
/// The largest number of a field with 32 bits: no limit.
const ANY: i64 = u32::MAX as i64;

/// All settings but policies, which [`Policies`](crate::Policies) and their registries describe, and addresses.
pub const SETTINGS: &[Setting] = &[
    Setting::new(
        "ack-rewrite",
        "Pure ACKs may take another subflow's path, with addresses rewritten, if both hosts have this. The ACK paths \
         fixed and probed need it. Not part of MPTCP; false unless given.",
        Flag(|c| &mut c.ack_rewrite),
    ),
    Setting::new(
        "ack-caution",
        "Every sixteenth ACK keeps its own path, and all do where the other path loses them; true unless given. If \
         false, as in the paper, an ACK path that dies silences the other subflows until the policy leaves it.",
        Flag(|c| &mut c.ack_caution),
    ),
    Setting::new(
        "send-buffer",
        "Bytes written and not yet acknowledged, per connection; 6MiB unless given, and at least the other host's \
         receive buffer (RFC 8684 §3.3.5).",
        Size(|c| &mut c.send_buffer),
    )
    .in_kernel(Other("`net.ipv4.tcp_wmem`: twice the size, as the kernel counts its records in")),
    Setting::new("receive-buffer", "Bytes received and not yet read, per connection.", Size(|c| &mut c.receive_buffer))
        .in_scripts_only(),
    Setting::new(
        "initial-receive-buffer",
        "Size of a receive buffer that tunes itself, at first; it grows up to receive-buffer.",
        Size(|c| c.initial_receive_buffer.get_or_insert(c.receive_buffer)),
    )
    .in_scripts_only(),
    Setting::new("multipath", "Uses MPTCP; false for plain TCP.", Flag(|c| &mut c.multipath))
        .in_kernel(Switch("net.mptcp.enabled", 1)),
    Setting::new(
        "max-subflows",
        "Maximum number of subflows per connection.",
        Number(|c| &mut c.max_subflows, 1, MAX_SUBFLOWS as i64),
    )
    .in_kernel(Other("`ip mptcp limits`")),
    Setting::new(
        "full-mesh",
        "The client joins from each of its addresses to each address of the server.",
        Flag(|c| &mut c.full_mesh),
    )
    .in_kernel(Other("`fullmesh` of `ip mptcp endpoint`")),
    Setting::new("announce", "Announces further addresses (ADD_ADDR).", Flag(|c| &mut c.announce))
        .in_kernel(Other("`signal` of `ip mptcp endpoint`")),
    Setting::new(
        "announced-port",
        "Port that ADD_ADDR names; none unless given, and the peer uses that of the initial subflow (RFC 8684 §3.4.1).",
        Number(|c| &mut c.announced_port, 0, u16::MAX as i64),
    )
    .in_scripts_only(),
    Setting::new(
        "deny-join",
        "Forbids the peer to open subflows to the address and port of the initial one (flag C, RFC 8684 §3.1).",
        Flag(|c| &mut c.deny_join_to_initial),
    )
    .in_scripts_only(),
    Setting::new(
        "dss-checksum",
        "DSS checksums, which reveal altered payload. Used if either host has them.",
        Flag(|c| &mut c.checksum),
    )
    .called_in_scripts("checksum")
    .in_kernel(Switch("net.mptcp.checksum_enabled", 1)),
    Setting::new(
        "rejoin",
        "Time after which the path of a dead subflow is tried again; or false.",
        TimeOrOff(|c| &mut c.rejoin),
    ),
    Setting::new(
        "close-timeout",
        "Time for which a connection without any subflow waits for a new one.",
        Time(|c| &mut c.close_timeout),
    )
    .in_scripts_only(),
    Setting::new("fast-close", "The way in which an abort tells the peer (RFC 8684 §3.5).", Choice(FAST_CLOSE))
        .in_scripts_only(),
    Setting::new(
        "max-half-open",
        "Connections in the three-way handshake; further SYNs are answered with SYN cookies, with 0 all of them.",
        Number(|c| &mut c.max_half_open, 0, MANY),
    )
    .in_scripts_only(),
    Setting::new(
        "resets-per-second",
        "Resets per second to those whose segments belong to nothing; no limit unless given.",
        Number(|c| &mut c.resets_per_second, 0, MANY),
    )
    .in_scripts_only(),
    Setting::new(
        "mss",
        "The MSS option in bytes: 1460 in packets of 1500.",
        Number(|c| &mut c.profile.mss, *Config::MSS.start() as i64, *Config::MSS.end() as i64),
    )
    .in_unit("bytes")
    .in_kernel(Other("`advmss` of the routes")),
    Setting::new("initial-window", "Initial window in segments.", Number(|c| &mut c.profile.initial_window, 0, ANY))
        .in_unit("segments")
        .in_kernel(Other("`initcwnd` of the routes")),
    Setting::new("sack", "Selective acknowledgments.", Flag(|c| &mut c.profile.sack))
        .in_kernel(Switch("net.ipv4.tcp_sack", 1)),
    Setting::new("timestamps", "Timestamps.", Flag(|c| &mut c.profile.timestamps))
        .in_kernel(Switch("net.ipv4.tcp_timestamps", 1)),
    Setting::new("window-scaling", "Window scaling.", Flag(|c| &mut c.profile.window_scaling))
        .in_kernel(Switch("net.ipv4.tcp_window_scaling", 1)),
    Setting::new("rack", "RACK loss detection.", Flag(|c| &mut c.profile.rack))
        .in_kernel(Switch("net.ipv4.tcp_recovery", 1)),
    Setting::new("tlp", "Tail loss probes.", Flag(|c| &mut c.profile.tlp))
        .in_kernel(Switch("net.ipv4.tcp_early_retrans", 3)),
    Setting::new("early-retransmit", "Early retransmit.", Flag(|c| &mut c.profile.early_retransmit)),
    Setting::new("delayed-ack", "Maximum delay of an ACK; or false.", TimeOrOff(|c| &mut c.profile.delayed_ack)),
    Setting::new(
        "quick-acks",
        "Number of segments at the start that are acknowledged at once.",
        Number(|c| &mut c.profile.quick_acks, 0, ANY),
    )
    .in_unit("segments"),
    Setting::new("nagle", "Nagle's algorithm: short segments wait for an ACK.", Flag(|c| &mut c.profile.nagle)),
    Setting::new("rto", "Rule for the retransmission timeout.", Choice(RTO)),
    Setting::new(
        "min-rto",
        "Minimum of the timeout: under `rfc6298` and `mptcp-ns3` of the whole, under `linux` of its variance term.",
        Time(|c| match &mut c.profile.rto {
            RtoRule::Linux { min_var: min } | RtoRule::Rfc6298 { min, .. } | RtoRule::MptcpNs3 { min } => min,
        }),
    )
    .in_kernel(Kernel::Time("net.ipv4.tcp_rto_min_us", Duration::from_micros(1))),
    Setting::new("initial-rto", "Timeout before the first RTT sample.", Time(|c| &mut c.profile.initial_rto)),
    Setting::new("max-rto", "Maximum timeout.", Time(|c| &mut c.profile.max_rto))
        .in_kernel(Kernel::Time("net.ipv4.tcp_rto_max_ms", Duration::from_millis(1))),
    Setting::new("idle-restart", "The congestion window shrinks in idle times.", Flag(|c| &mut c.profile.idle_restart))
        .in_kernel(Switch("net.ipv4.tcp_slow_start_after_idle", 1)),
    Setting::new(
        "cwnd-limited-check",
        "The congestion window grows only while it limits sending.",
        Flag(|c| &mut c.profile.cwnd_limited_check),
    ),
    Setting::new(
        "tsq",
        "TCP Small Queues: maximum data waiting at the first hop, as a time at the pacing rate; or false.",
        TimeOrOff(|c| &mut c.profile.tsq),
    ),
    Setting::new(
        "tsq-segments",
        "Minimum of the TCP Small Queues limit in full segments: 2, under linux-4.1 3, under linux-3.14 57.",
        Number(|c| &mut c.profile.tsq_segments, 1, ANY),
    )
    .in_unit("segments"),
    Setting::new(
        "receive-tuning",
        "Growth of a receive buffer that tunes itself: proportional, under linux-4.1 and linux-3.14 stepwise.",
        Choice(RECEIVE_TUNING),
    ),
    Setting::new(
        "adv-win-scale",
        "Share of the receive buffer that is offered as window, as Linux' tcp_adv_win_scale: 1 half of it, 2 three \
         quarters, -2 a quarter. All of it unless given, under linux-4.1 and linux-3.14 half.",
        Number(|c| &mut c.profile.adv_win_scale, -31, 31),
    ),
    Setting::new(
        "initial-ssthresh",
        "Slow-start threshold of new subflows in segments, as remembered from earlier connections; none unless given.",
        Number(|c| &mut c.profile.initial_ssthresh, 2, ANY),
    )
    .in_unit("segments"),
    Setting::new(
        "temporal-sharing",
        "A subflow begins with the slow-start threshold and the path's rate that an earlier subflow of its connection \
         left on its path (RFC 9040). False unless given.",
        Flag(|c| &mut c.profile.temporal_sharing),
    ),
    Setting::new(
        "hystart",
        "Early end of slow start: in CUBIC eighth, under linux-3.14 sixteenth, off under all but Linux; or plus-plus \
         in all.",
        Choice(HYSTART),
    ),
    Setting::new(
        "prr",
        "Proportional rate reduction (RFC 6937): the window falls during a fast recovery rather than at its \
         beginning. True, false under all but Linux.",
        Flag(|c| &mut c.profile.prr),
    ),
    Setting::new(
        "loss-response",
        "Reduction of the window on a loss: standard, under mptcp-ns3 halve.",
        Choice(LOSS_RESPONSE),
    ),
    Setting::new(
        "single-repair",
        "Without SACK, only a third duplicate ACK and a timeout retransmit, one segment each. False, under mptcp-ns3 \
         true.",
        Flag(|c| &mut c.profile.single_repair),
    ),
    Setting::new(
        "coupled-acks",
        "A subflow acknowledges data only when all data before it in the stream has arrived. False, under mptcp-ns3 \
         true.",
        Flag(|c| &mut c.profile.coupled_acks),
    ),
    Setting::new(
        "syn-retries",
        "Number of times that a SYN is repeated.",
        Number(|c| &mut c.profile.syn_retries, 0, ANY),
    )
    .in_kernel(Kernel::Number("net.ipv4.tcp_syn_retries")),
    Setting::new(
        "syn-retries-with-mptcp",
        "Number of times that a SYN is repeated with MP_CAPABLE, before it is repeated without.",
        Number(|c| &mut c.profile.syn_retries_with_mptcp, 0, ANY),
    )
    .in_kernel(Kernel::Number("net.mptcp.syn_retrans_before_tcp_fallback")),
    Setting::new(
        "max-consecutive-rtos",
        "Number of timeouts in a row that kill a subflow.",
        Number(|c| &mut c.profile.max_consecutive_rtos, 0, ANY),
    )
    .in_kernel(Kernel::Number("net.ipv4.tcp_retries2")),
];

/// A word that stands for one value of a field.
macro_rules! word {
    ($name:literal, $about:literal, $c:ident.$($field:ident).+ = $value:expr) => {
        Word { name: $name, about: $about, put: |$c| $c.$($field).+ = $value, is: |$c| $c.$($field).+ == $value }
    };
}

const FAST_CLOSE: &[Word] = &[
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

const RECEIVE_TUNING: &[Word] = &[
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
const HYSTART: &[Word] = &[
    word!("off", "Only a loss ends slow start.", c.profile.hystart = None),
    word!(
        "sixteenth",
        "A sixteenth of the minimum RTT (Linux before 3.19).",
        c.profile.hystart = Some(HyStart::Sixteenth)
    ),
    word!("eighth", "An eighth of the minimum RTT (Linux 3.19 and later).", c.profile.hystart = Some(HyStart::Eighth)),
    word!(
        "plus-plus",
        "HyStart++ (RFC 9406): an eighth above the round trip before, with a slower slow start first. For every \
         congestion control that is not model-based.",
        c.profile.hystart = Some(HyStart::PlusPlus)
    ),
];

const LOSS_RESPONSE: &[Word] = &[
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

impl Setting {
    /// A setting of scenarios and scripts that kernels do not have.
    pub const fn new(name: &'static str, about: &'static str, domain: Domain) -> Self {
        Setting { name, about, domain, unit: "", in_scripts_only: false, kernel: None, script: None }
    }

    /// The same with this unit of its number.
    pub const fn in_unit(self, unit: &'static str) -> Self {
        Setting { unit, ..self }
    }

    /// The same for scripts alone.
    pub const fn in_scripts_only(self) -> Self {
        Setting { in_scripts_only: true, ..self }
    }

    /// The same with this name in scripts, in place of its own with underscores.
    pub const fn called_in_scripts(self, name: &'static str) -> Self {
        Setting { script: Some(name), ..self }
    }

    /// The same with this counterpart in the kernel.
    pub const fn in_kernel(self, kernel: Kernel) -> Self {
        Setting { kernel: Some(kernel), ..self }
    }

    /// Returns the name in scripts.
    pub fn script(&self) -> String {
        self.script.map_or_else(|| self.name.replace('-', "_"), str::to_owned)
    }

    /// Returns the accepted values in words.
    pub fn accepted(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        match self.domain {
            Flag(_) => "true or false".to_owned(),
            Number(_, min, ANY) => format!("{min}{unit} or more"),
            Number(_, min, max) => format!("{min} to {max}{unit}"),
            Size(_) => "any size from 1B".to_owned(),
            Time(_) => "a time such as 40ms".to_owned(),
            TimeOrOff(_) => "a time such as 40ms, or false".to_owned(),
            Choice(words) => words.iter().map(|word| word.name).collect::<Vec<_>>().join(", "),
        }
    }

    /// Returns the value in `config`; `None` for an optional number that is not there.
    pub fn value(&self, config: &Config) -> Option<Value> {
        let mut config = config.clone();
        Some(match self.domain {
            Flag(field) => Value::Flag(*field(&mut config)),
            Number(field, ..) => Value::Number(field(&mut config).number()?),
            Size(field) => Value::Size(*field(&mut config)),
            Time(field) => Value::Time(*field(&mut config)),
            TimeOrOff(field) => field(&mut config).map_or(Value::Off, Value::Time),
            Choice(words) => Value::Word(words.iter().find(|word| (word.is)(&config))?.name),
        })
    }

    /// Checks whether `value` is one of those accepted.
    ///
    /// # Errors
    ///
    /// It is not.
    pub fn check(&self, value: Value) -> Result<(), SettingError> {
        let problem = match (self.domain, value) {
            (Flag(_), Value::Flag(_)) | (Time(_) | TimeOrOff(_), Value::Time(_)) | (TimeOrOff(_), Value::Off) => {
                return Ok(());
            }
            (Number(_, min, max), Value::Number(number)) if (min..=max).contains(&number) => return Ok(()),
            (Size(_), Value::Size(size)) if !size.is_zero() => return Ok(()),
            (Size(_), Value::Size(_)) => format!("`{}` is empty", self.name),
            (Choice(words), Value::Word(name)) if words.iter().any(|word| word.name == name) => return Ok(()),
            (_, value) => format!("`{}` is {value}", self.name),
        };
        Err(SettingError { problem, accepted: self.accepted() })
    }

    /// Sets it to `value`.
    ///
    /// # Errors
    ///
    /// The value is none of those accepted ([`check`](Self::check)). Nothing has changed then.
    pub fn put(&self, config: &mut Config, value: Value) -> Result<(), SettingError> {
        self.check(value)?;
        match (self.domain, value) {
            (Flag(field), Value::Flag(on)) => *field(config) = on,
            (Number(field, ..), Value::Number(number)) => field(config).set(number),
            (Size(field), Value::Size(size)) => *field(config) = size,
            (Time(field), Value::Time(time)) => *field(config) = time,
            (TimeOrOff(field), Value::Time(time)) => *field(config) = Some(time),
            (TimeOrOff(field), _) => *field(config) = None,
            (Choice(words), Value::Word(name)) => {
                words.iter().filter(|word| word.name == name).for_each(|word| (word.put)(config));
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the kernel parameter and its text for `value`, if the counterpart is a parameter.
    pub fn kernel_parameter(&self, value: Value) -> Option<(&'static str, String)> {
        match (self.kernel?, value) {
            (Switch(key, on), Value::Flag(flag)) => Some((key, if flag { on } else { 0 }.to_string())),
            (Kernel::Number(key), Value::Number(number)) => Some((key, number.to_string())),
            (Kernel::Time(key, unit), Value::Time(time)) => {
                Some((key, (time.as_nanos() / unit.as_nanos()).to_string()))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Flag(on) => on.fmt(f),
            Value::Number(number) => number.fmt(f),
            Value::Size(size) => size.fmt(f),
            Value::Time(time) => time.fmt(f),
            Value::Off => f.write_str("false"),
            Value::Word(name) => f.write_str(name),
        }
    }
}

/// Implements [`Whole`] for a type of numbers, and for an optional one.
macro_rules! whole {
    ($($number:ty),*) => {$(
        impl Whole for $number {
            fn number(&self) -> Option<i64> {
                i64::try_from(*self).ok()
            }
            fn set(&mut self, number: i64) {
                let most = i64::try_from(<$number>::MAX).unwrap_or(i64::MAX);
                *self = number.clamp(<$number>::MIN as i64, most) as $number;
            }
        }

        impl Whole for Option<$number> {
            fn number(&self) -> Option<i64> {
                self.as_ref()?.number()
            }
            fn set(&mut self, number: i64) {
                self.insert(0).set(number);
            }
        }
    )*};
}

whole!(i8, u16, u32, usize);
