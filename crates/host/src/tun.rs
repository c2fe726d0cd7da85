//! A TUN device: what the kernel routes to it we read, what we write the kernel takes for received.

use crate::interface::InterfaceCounters;
use crate::{Device, sys};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// An open TUN device. It is not persistent: when this is dropped, or the process killed, the interface is gone.
#[derive(Debug)]
pub struct Tun {
    file: OwnedFd,
    name: String,
    /// `None` where there is no `/proc`.
    counters: Option<InterfaceCounters>,
}

impl Tun {
    /// Creates the interface `name` in the caller's network namespace (see [`Namespace::run`](crate::Namespace::run)), or
    /// attaches to a persistent one that has this name. It is down and has no address.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_NET_ADMIN in the namespace or without access to `/dev/net/tun`; `NotFound` where the
    /// kernel has no TUN.
    pub fn open(name: &str) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open("/dev/net/tun", flags, Mode::empty())?;
        let name = sys::tun_set_interface(file.as_fd(), name, libc::IFF_TUN | libc::IFF_NO_PI)?;
        let counters = InterfaceCounters::open(&name).ok();
        Ok(Tun { file, name, counters })
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Device for Tun {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.file, buffer) {
            Ok(length) => Ok(Some(length)),
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<bool> {
        match rustix::io::write(&self.file, packet) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::NOBUFS) => Ok(false),
            Err(error) => Err(error.into()),
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
