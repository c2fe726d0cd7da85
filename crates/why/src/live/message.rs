//! Messages of sock_diag(7): the request for all TCP or MPTCP sockets, and the description of each.
//!
//! Numbers are in the byte order of the machine, addresses and ports in that of the network. Kernels of different ages
//! describe a socket with more or fewer fields: those that are missing are zero.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Protocol whose sockets are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// TCP, subflows of MPTCP included.
    Tcp,
    /// MPTCP: the connections.
    Mptcp,
}

/// A socket, as the kernel describes it.
#[derive(Clone, PartialEq, Debug)]
pub struct Socket {
    /// Address and port of this host.
    pub local: SocketAddr,
    /// Address and port of the other.
    pub remote: SocketAddr,
    /// Inode, by which `/proc/PID/fd` names it; 0 if no process holds it.
    pub inode: u32,
    /// Number of the socket; no other has had it.
    pub cookie: u64,
    /// State (`TCP_ESTABLISHED` is 1).
    pub state: u8,
    /// Token of the MPTCP connection, on this host.
    pub token: Option<u32>,
    /// True if either side marked the subflow as a backup.
    pub backup: bool,
    /// Memory of its buffers.
    pub memory: Memory,
    /// Contents by protocol.
    pub info: Info,
}

/// Contents by protocol.
#[derive(Clone, PartialEq, Debug)]
pub enum Info {
    /// Fields of `struct tcp_info`.
    Tcp(TcpInfo),
    /// Fields of `struct mptcp_info`.
    Mptcp(MptcpInfo),
}

/// Memory of the buffers of a socket \[B\].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    /// Received, and not read.
    pub received: u32,
    /// Limit of that.
    pub receive_buffer: u32,
    /// Limit of what is written and not acknowledged.
    pub send_buffer: u32,
    /// Written, and not acknowledged.
    pub queued: u32,
}

/// Fields of `struct tcp_info`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpInfo {
    /// State of congestion control: 4 after a timeout.
    pub ca_state: u8,
    /// Retransmissions in a row of the first segment.
    pub retransmits: u8,
    /// Maximum segment size \[B\].
    pub mss: u32,
    /// Segments sent and not acknowledged.
    pub unacked: u32,
    /// Segments of these that arrived out of order.
    pub sacked: u32,
    /// Segments of these taken for lost.
    pub lost: u32,
    /// Segments of these that were sent again and are under way.
    pub retrans: u32,
    /// Smoothed round trip \[µs\].
    pub rtt_us: u32,
    /// Threshold of slow start, in segments.
    pub ssthresh: u32,
    /// Congestion window, in segments.
    pub cwnd: u32,
    /// Segments sent again, ever.
    pub total_retrans: u32,
    /// Bytes acknowledged.
    pub bytes_acked: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Bytes written to the subflow and never sent.
    pub notsent: u32,
    /// Shortest round trip \[µs\].
    pub min_rtt_us: u32,
    /// Segments with data sent.
    pub data_segs_out: u32,
    /// Time with data on its way or to be sent \[µs\].
    pub busy_us: u64,
    /// Time of this in which the receiver's window was full \[µs\].
    pub rwnd_limited_us: u64,
    /// Time of this in which the send buffer was full \[µs\].
    pub sndbuf_limited_us: u64,
    /// Bytes sent, repeats included.
    pub bytes_sent: u64,
    /// Bytes of these sent again.
    pub bytes_retrans: u64,
    /// The receiver's window \[B\].
    pub window: u32,
}

/// Fields of `struct mptcp_info`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MptcpInfo {
    /// Subflows beside the first.
    pub subflows: u8,
    /// Subflows beside the first that `ip mptcp limits` admits.
    pub subflows_max: u8,
    /// True if it went on as plain TCP.
    pub fallback: bool,
    /// Position of the next byte that is written.
    pub write_seq: u64,
    /// Position of the first byte that is not acknowledged.
    pub snd_una: u64,
    /// Position of the next byte that is received.
    pub rcv_nxt: u64,
}

/// Type of requests and answers (`SOCK_DIAG_BY_FAMILY`).
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
/// Extensions: `INET_DIAG_INFO` and `INET_DIAG_SKMEMINFO`.
const WANTED: u8 = 1 << (INFO - 1) | 1 << (SKMEMINFO - 1);
const INFO: u16 = 2;
const SKMEMINFO: u16 = 7;
const ULP_INFO: u16 = 19;
/// Below `INET_DIAG_ULP_INFO`: `INET_ULP_INFO_MPTCP`, and of that token and flags.
const ULP_MPTCP: u16 = 3;
const SUBFLOW_TOKEN: u16 = 2;
const SUBFLOW_FLAGS: u16 = 8;
/// `MPTCP_SUBFLOW_FLAG_BKUP_REM` and `_LOC`.
const BACKUP: u32 = 0x30;
/// `INET_DIAG_REQ_PROTOCOL`: a protocol of more than eight bits.
const REQ_PROTOCOL: u16 = 3;
const TCP: u32 = 6;
const MPTCP: u32 = 262;
/// All states but those of sockets that listen, wait or are closed.
const STATES: u32 = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;
const INET4: u8 = 2;
const INET6: u8 = 10;
/// `MPTCP_INFO_FLAG_FALLBACK`.
const FALLBACK: u32 = 1;

impl Protocol {
    /// Returns the request for all its sockets of one version of IP.
    pub fn request(self, v6: bool) -> Vec<u8> {
        let protocol = if self == Protocol::Tcp { TCP } else { MPTCP };
        let mut message = vec![0; 4];
        message.extend(BY_FAMILY.to_ne_bytes());
        message.extend(DUMP.to_ne_bytes());
        message.extend([0; 8]);
        message.extend([if v6 { INET6 } else { INET4 }, protocol as u8, WANTED, 0]);
        message.extend(STATES.to_ne_bytes());
        // Any ports, addresses, interface and cookie.
        message.extend([0; 40]);
        message.extend([0xff; 8]);
        if self == Protocol::Mptcp {
            message.extend(8u16.to_ne_bytes());
            message.extend(REQ_PROTOCOL.to_ne_bytes());
            message.extend(protocol.to_ne_bytes());
        }
        let length = message.len() as u32;
        message[..4].copy_from_slice(&length.to_ne_bytes());
        message
    }

    /// Reads the description of a socket: the payload of one message.
    pub fn read(self, payload: &[u8]) -> Option<Socket> {
        let v6 = *payload.first()? == INET6;
        let octets = |at: usize| payload.get(at..at + 16);
        let address = |at: usize| -> Option<IpAddr> {
            let octets: [u8; 16] = octets(at)?.try_into().ok()?;
            let [a, b, c, d, ..] = octets;
            Some(match v6 {
                true => IpAddr::V6(Ipv6Addr::from(octets)).to_canonical(),
                false => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
            })
        };
        let port = |at: usize| Some(u16::from_be_bytes(payload.get(at..at + 2)?.try_into().ok()?));
        // The state stands in the second byte; from the fifth on are the ports, the addresses, interface and cookie.
        let mut socket = Socket {
            local: SocketAddr::new(address(8)?, port(4)?),
            remote: SocketAddr::new(address(24)?, port(6)?),
            inode: u32_at(payload.get(..FIXED)?, 68),
            cookie: u64_at(payload, 44),
            state: payload[1],
            token: None,
            backup: false,
            memory: Memory::default(),
            info: Info::Tcp(TcpInfo::default()),
        };
        let mut has_info = false;
        for (kind, value) in Attributes(payload.get(FIXED..)?) {
            match kind {
                INFO if self == Protocol::Tcp => socket.info = Info::Tcp(TcpInfo::read(value)),
                INFO => {
                    socket.info = Info::Mptcp(MptcpInfo::read(value));
                    socket.token = Some(u32_at(value, 12)).filter(|token| *token != 0);
                }
                SKMEMINFO => socket.memory = Memory::read(value),
                ULP_INFO => socket.learn_subflow(value),
                _ => {}
            }
            has_info |= kind == INFO;
        }
        has_info.then_some(socket)
    }
}

/// Length of `struct inet_diag_msg`.
const FIXED: usize = 72;

impl Socket {
    fn learn_subflow(&mut self, value: &[u8]) {
        let of_mptcp = Attributes(value).filter(|(kind, _)| *kind == ULP_MPTCP);
        for (kind, value) in of_mptcp.flat_map(|(_, value)| Attributes(value)) {
            match kind {
                SUBFLOW_TOKEN => self.token = Some(u32_at(value, 0)).filter(|token| *token != 0),
                SUBFLOW_FLAGS => self.backup = u32_at(value, 0) & BACKUP != 0,
                _ => {}
            }
        }
    }

    /// Returns what the kernel says of it as TCP.
    pub fn tcp(&self) -> Option<&TcpInfo> {
        if let Info::Tcp(info) = &self.info { Some(info) } else { None }
    }

    /// Returns what the kernel says of it as MPTCP.
    pub fn mptcp(&self) -> Option<&MptcpInfo> {
        if let Info::Mptcp(info) = &self.info { Some(info) } else { None }
    }
}

impl Memory {
    fn read(value: &[u8]) -> Self {
        let field = |index: usize| u32_at(value, 4 * index);
        Memory { received: field(0), receive_buffer: field(1), send_buffer: field(3), queued: field(5) }
    }
}

impl TcpInfo {
    fn read(value: &[u8]) -> Self {
        let (short, long) = (|at| u32_at(value, at), |at| u64_at(value, at));
        TcpInfo {
            ca_state: value.get(1).copied().unwrap_or(0),
            retransmits: value.get(2).copied().unwrap_or(0),
            mss: short(16),
            unacked: short(24),
            sacked: short(28),
            lost: short(32),
            retrans: short(36),
            rtt_us: short(68),
            ssthresh: short(76),
            cwnd: short(80),
            total_retrans: short(100),
            bytes_acked: long(120),
            bytes_received: long(128),
            notsent: short(144),
            min_rtt_us: short(148),
            data_segs_out: short(156),
            busy_us: long(168),
            rwnd_limited_us: long(176),
            sndbuf_limited_us: long(184),
            bytes_sent: long(200),
            bytes_retrans: long(208),
            window: short(228),
        }
    }
}

impl MptcpInfo {
    fn read(value: &[u8]) -> Self {
        MptcpInfo {
            subflows: value.first().copied().unwrap_or(0),
            subflows_max: value.get(3).copied().unwrap_or(0),
            fallback: u32_at(value, 8) & FALLBACK != 0,
            write_seq: u64_at(value, 16),
            snd_una: u64_at(value, 24),
            rcv_nxt: u64_at(value, 32),
        }
    }
}

/// Attributes one after the other, each padded to four bytes.
struct Attributes<'a>(&'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let field = |at: usize| Some(u16::from_ne_bytes(self.0.get(at..at + 2)?.try_into().ok()?));
        let (length, kind) = (usize::from(field(0)?), field(2)?);
        let value = self.0.get(4..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        // The upper two bits say that it nests, and in which byte order it is.
        Some((kind & 0x3fff, value))
    }
}

/// Returns the number at a place, or 0 if the kernel does not tell it.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|it| it.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|it| it.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut all = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
        all.extend(kind.to_ne_bytes());
        all.extend(value);
        all.resize(all.len().next_multiple_of(4), 0);
        all
    }

    #[test]
    fn requests_have_the_length_that_they_say() {
        for (protocol, length) in [(Protocol::Tcp, 72), (Protocol::Mptcp, 80)] {
            let request = protocol.request(false);
            assert_eq!((u32_at(&request, 0), request.len()), (length, length as usize));
        }
        assert_eq!(Protocol::Tcp.request(true)[16], INET6);
    }

    #[test]
    fn a_subflow_has_the_token_of_its_connection() {
        let mut payload = vec![0; FIXED];
        payload[0] = INET4;
        payload[1] = 1;
        payload[4..8].copy_from_slice(&[0x1f, 0x90, 0xc0, 0x00]);
        payload[8..12].copy_from_slice(&[10, 77, 0, 1]);
        payload[24..28].copy_from_slice(&[10, 77, 2, 2]);
        let mut info = vec![0; 232];
        info[80..84].copy_from_slice(&42u32.to_ne_bytes());
        info[200..208].copy_from_slice(&123_456_789_000u64.to_ne_bytes());
        let subflow = [attribute(SUBFLOW_TOKEN, &7u32.to_ne_bytes()), attribute(SUBFLOW_FLAGS, &0x20u32.to_ne_bytes())];
        payload.extend(attribute(INFO, &info));
        // Nested attributes have their bit set.
        payload.extend(attribute(ULP_INFO, &attribute(ULP_MPTCP | 0x8000, &subflow.concat())));
        let socket = Protocol::Tcp.read(&payload).unwrap();
        assert_eq!(socket.local.to_string(), "10.77.0.1:8080");
        assert_eq!(socket.remote.to_string(), "10.77.2.2:49152");
        assert_eq!((socket.token, socket.backup, socket.state), (Some(7), true, 1));
        let info = socket.tcp().unwrap();
        assert_eq!((info.cwnd, info.bytes_sent, info.window), (42, 123_456_789_000, 0));
    }

    proptest! {
        /// Whatever the kernel says, nothing panics.
        #[test]
        fn any_bytes_can_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            for protocol in [Protocol::Tcp, Protocol::Mptcp] {
                let _ = protocol.read(&bytes);
                let mut with_address = vec![INET6; 1];
                with_address.extend(&bytes);
                let _ = protocol.read(&with_address);
            }
        }
    }
}
