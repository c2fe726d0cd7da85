//! AF_PACKET sockets (`packet(7)`), and what is asked of Ethernet interfaces.

use super::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A non-blocking socket for all frames of the interface `index` of the caller's namespace, each behind a
/// `struct virtio_net_hdr`, and not for those that this host sends by other ways.
pub(crate) fn packet_socket(index: u32) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: takes and gives plain numbers. Protocol 0 receives nothing until the socket is bound.
    let socket = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    check(socket)?;
    // SAFETY: the descriptor is new and has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    for option in [libc::PACKET_VNET_HDR, libc::PACKET_IGNORE_OUTGOING] {
        set_option(&socket, libc::SOL_PACKET, option, 1)?;
    }
    // SAFETY: the address is plain data, for which all bits zero are valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as i32;
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the address has the length given and outlives the call.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(socket)
}

/// Asks for a receive buffer of this many bytes, above the system's limit if permitted.
pub(crate) fn set_receive_buffer(socket: &OwnedFd, bytes: i32) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
        .or_else(|_| set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes))
}

/// Returns the number of frames that did not fit the socket's buffer since the last call.
pub(crate) fn packet_drops(socket: &OwnedFd) -> io::Result<u32> {
    let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut length = size_of_val(&statistics) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes of the structure, and how many.
    let result = unsafe {
        let into = (&raw mut statistics).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, into, &raw mut length)
    };
    check(result)?;
    Ok(statistics.tp_drops)
}

fn set_option(socket: &OwnedFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    let length = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the option is one int, which outlives the call.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length) })
}

/// `struct ifreq` for requests that fill in an address or point to something.
fn request(name: &str) -> io::Result<libc::ifreq> {
    if name.len() >= libc::IFNAMSIZ || name.is_empty() {
        let message = format!("interface name `{name}` has {} bytes; 1 to {}", name.len(), libc::IFNAMSIZ - 1);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    // SAFETY: the request is plain data, for which all bits zero are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

/// The Ethernet address of an interface in the socket's namespace.
pub(crate) fn hardware_address(socket: BorrowedFd<'_>, name: &str) -> io::Result<[u8; 6]> {
    let mut request = request(name)?;
    // SAFETY: SIOCGIFHWADDR reads the name of the request and writes its address; the request outlives the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR as _, &raw mut request) })?;
    // SAFETY: the kernel has just filled in this member of the union.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr.sa_data };
    Ok(std::array::from_fn(|at| address[at] as u8))
}

/// Brings an interface in the socket's namespace up or down.
pub(crate) fn set_up(socket: BorrowedFd<'_>, name: &str, up: bool) -> io::Result<()> {
    let mut request = request(name)?;
    // SAFETY: SIOCGIFFLAGS reads the name of the request and writes its flags; the request outlives the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS as _, &raw mut request) })?;
    // SAFETY: the kernel has just filled in this member of the union, and any flags are valid in it.
    unsafe {
        let flags = &mut request.ifr_ifru.ifru_flags;
        *flags = if up { *flags | libc::IFF_UP as i16 } else { *flags & !(libc::IFF_UP as i16) };
    }
    // SAFETY: SIOCSIFFLAGS reads the request, which outlives the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) })
}

/// Makes an interface in the socket's namespace send and receive packets as they are on a wire: checksums complete,
/// none longer than the MTU, none merged.
pub(crate) fn switch_offloads_off(socket: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    /// `struct ethtool_value` (`linux/ethtool.h`).
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    const ETHTOOL_STXCSUM: u32 = 0x17;
    const ETHTOOL_STSO: u32 = 0x1f;
    const ETHTOOL_SGSO: u32 = 0x24;
    const ETHTOOL_SGRO: u32 = 0x2c;
    for command in [ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO, ETHTOOL_STXCSUM] {
        let mut value = Value { command, data: 0 };
        let mut request = request(name)?;
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        // SAFETY: SIOCETHTOOL reads the request and, through its pointer, a value laid out as these commands take it;
        // both outlive the call.
        check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) })?;
    }
    Ok(())
}
