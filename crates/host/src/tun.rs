//! A TUN device: what the kernel routes to it we read, what we write the kernel takes for received.

use crate::interface::InterfaceCounters;
use crate::names;
use crate::{Device, MOST_PIECES, VirtioHeader, sys};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// An open TUN device. It is not persistent: when this is dropped, or the process killed, the interface is gone.
#[derive(Debug)]
pub struct Tun {
    file: OwnedFd,
    name: String,
    /// `None` where there is no `/proc`.
    counters: Option<InterfaceCounters>,
    /// Each packet has a [`VirtioHeader`].
    offload: bool,
}

impl Tun {
    /// Creates the interface `name` in the caller's network namespace (see [`Namespace::run`](crate::Namespace::run)),
    /// or attaches to a persistent one that has this name. It is down and has no address. Packets are as they would be
    /// on a wire: no larger than the MTU, checksums complete.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_NET_ADMIN in the namespace or without access to `/dev/net/tun`; `NotFound` where
    /// the kernel has no TUN.
    pub fn open(name: &str) -> io::Result<Self> {
        let (file, name) = attach(name, 0)?;
        Ok(Tun::new(file, name, false))
    }

    /// Returns true if opening failed on the permissions of `/dev/net/tun` (EACCES). A lack of CAP_NET_ADMIN, which is
    /// checked later, has the same kind but another error (EPERM).
    pub fn is_node_closed(error: &io::Error) -> bool {
        error.raw_os_error() == Some(libc::EACCES)
    }

    /// Like [`Tun::open`], with TCP segmentation and checksums left to the device if the kernel supports that: packets
    /// may have up to 64 KiB. See [`Device::has_offload`].
    ///
    /// # Errors
    /// As [`Tun::open`].
    pub fn with_offload(name: &str) -> io::Result<Self> {
        match Tun::try_offload(name) {
            // A kernel that does not know the flag or the features; a persistent interface made without.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOTTY)) => Tun::open(name),
            result => result,
        }
    }

    fn try_offload(name: &str) -> io::Result<Self> {
        let (file, name) = attach(name, libc::IFF_VNET_HDR)?;
        sys::tun_set_header_size(file.as_fd(), VirtioHeader::LENGTH as i32)?;
        sys::tun_set_offload(file.as_fd(), libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6)?;
        Ok(Tun::new(file, name, true))
    }

    fn new(file: OwnedFd, name: String, offload: bool) -> Self {
        let counters = InterfaceCounters::open(&name).ok();
        Tun { file, name, counters, offload }
    }

    /// The meaning of an error of reading or writing.
    fn failure(&self, error: Errno) -> io::Error {
        if error == Errno::BADFD {
            let message = format!("the TUN device {} is gone: it was deleted, or its namespace was", self.name);
            return io::Error::new(io::ErrorKind::NotConnected, message);
        }
        error.into()
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

fn attach(name: &str, flags: i32) -> io::Result<(OwnedFd, String)> {
    let open_flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open("/dev/net/tun", open_flags, Mode::empty())?;
    let name = sys::tun_set_interface(file.as_fd(), names::checked(name)?, libc::IFF_TUN | libc::IFF_NO_PI | flags)?;
    Ok((file, name))
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Device for Tun {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        Ok(self.receive_frame(buffer)?.map(|(_, length)| length))
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<bool> {
        self.send_frame(&VirtioHeader::default(), &[IoSlice::new(packet)])
    }

    fn has_offload(&self) -> bool {
        self.offload
    }

    fn receive_frame(&mut self, buffer: &mut [u8]) -> io::Result<Option<(VirtioHeader, usize)>> {
        let mut header = [0; VirtioHeader::LENGTH];
        let read = if self.offload {
            rustix::io::readv(&self.file, &mut [IoSliceMut::new(&mut header), IoSliceMut::new(buffer)])
        } else {
            rustix::io::read(&self.file, buffer).map(|length| length + VirtioHeader::LENGTH)
        };
        match read {
            Ok(length) => Ok(Some((VirtioHeader::read(&header), length.saturating_sub(VirtioHeader::LENGTH)))),
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(self.failure(error)),
        }
    }

    fn send_frame(&mut self, header: &VirtioHeader, pieces: &[IoSlice<'_>]) -> io::Result<bool> {
        let written = if self.offload {
            let header = header.write();
            let mut all = [IoSlice::new(&[]); MOST_PIECES + 1];
            all[0] = IoSlice::new(&header);
            all[1..=pieces.len()].copy_from_slice(pieces);
            rustix::io::writev(&self.file, &all[..=pieces.len()])
        } else {
            assert_eq!(*header, VirtioHeader::default(), "nothing is left to a device without offload");
            rustix::io::writev(&self.file, pieces)
        };
        match written {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::NOBUFS) => Ok(false),
            // The interface is down, and the packet lost as on a cable that is not plugged in.
            Err(Errno::IO) => Ok(true),
            Err(error) => Err(self.failure(error)),
        }
    }

    fn set_carrier(&mut self, up: bool) -> io::Result<bool> {
        sys::tun_set_carrier(self.file.as_fd(), up)?;
        Ok(true)
    }

    fn queue_drops(&mut self) -> io::Result<Option<u64>> {
        self.counters.as_ref().map_or(Ok(None), InterfaceCounters::transmit_drops)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_node_is_told_from_a_missing_capability() {
        let closed = |code| Tun::is_node_closed(&io::Error::from_raw_os_error(code));
        assert!(closed(libc::EACCES) && !closed(libc::EPERM) && !closed(libc::ENOENT));
    }
}
