//! The system calls that no safe library offers.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `struct ifreq` with its flags (`netdevice(7)`).
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    rest: [u8; 22],
}

/// Makes `device`, an open `/dev/net/tun`, the TUN interface called `name` with these `IFF_*` flags; a `%d` in the name
/// is replaced. Answers the name.
pub(crate) fn tun_set_interface(device: BorrowedFd<'_>, name: &str, flags: i32) -> io::Result<String> {
    let mut request = InterfaceRequest { name: [0; libc::IFNAMSIZ], flags: flags as libc::c_short, rest: [0; 22] };
    if name.len() >= libc::IFNAMSIZ {
        let message = format!("interface name `{name}` has {} bytes; at most {}", name.len(), libc::IFNAMSIZ - 1);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: TUNSETIFF reads and writes one `struct ifreq`, which `request` is laid out as and which outlives the
    // call.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
    check(result)?;
    let name = CStr::from_bytes_until_nul(&request.name).map_err(io::Error::other)?;
    Ok(name.to_string_lossy().into_owned())
}

/// Shows the host of a TUN interface that its cable is in or out.
pub(crate) fn tun_set_carrier(device: BorrowedFd<'_>, up: bool) -> io::Result<()> {
    let carrier = libc::c_int::from(up);
    // SAFETY: TUNSETCARRIER reads one int, which outlives the call.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETCARRIER as _, &raw const carrier) })
}

/// Puts the calling thread under SCHED_FIFO; threads and processes that it starts are ordinary ones.
///
/// Calls the kernel itself: the function of musl refuses always, because it cannot speak for a whole process.
pub(crate) fn schedule_first_in_first_out(priority: i32) -> io::Result<()> {
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the kernel's `struct sched_param` is one int, which outlives the call and is only read; thread 0 is the
    // calling one.
    let result = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
    check(result as i32)
}

/// Sets how many bytes of `struct virtio_net_hdr` stand before each packet of a TUN device made with `IFF_VNET_HDR`.
pub(crate) fn tun_set_header_size(device: BorrowedFd<'_>, size: i32) -> io::Result<()> {
    // SAFETY: TUNSETVNETHDRSZ reads one `int`, which outlives the call.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETVNETHDRSZ as _, &raw const size) })
}

/// The number of the network namespace that a socket belongs to; no other has it before the machine starts again.
pub(crate) fn network_namespace(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let (mut cookie, mut length) = (0u64, size_of::<u64>() as libc::socklen_t);
    let fd = socket.as_raw_fd();
    // SAFETY: SO_NETNS_COOKIE writes eight bytes, which `cookie` has room for, and their number; both outlive the call.
    let result =
        unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, SO_NETNS_COOKIE, (&raw mut cookie).cast(), &raw mut length) };
    check(result)?;
    Ok(cookie)
}

/// Option of `asm-generic/socket.h`, since Linux 5.14.
const SO_NETNS_COOKIE: libc::c_int = 71;

/// Bytes in the send queue of a socket: not sent, or not acknowledged (`SIOCOUTQ`, tcp(7)).
pub(crate) fn queued_output(socket: BorrowedFd<'_>) -> io::Result<i32> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: TIOCOUTQ, which is SIOCOUTQ, writes one int, which outlives the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ as _, &raw mut bytes) })?;
    Ok(bytes)
}

/// Says which of the `TUN_F_*` the reader of a TUN device can do by itself.
pub(crate) fn tun_set_offload(device: BorrowedFd<'_>, features: u32) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes its argument by value and touches no memory of ours.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETOFFLOAD as _, libc::c_ulong::from(features)) })
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub(crate) mod packet;
pub(crate) mod process;
