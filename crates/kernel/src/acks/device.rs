//! Devices of the paths.

use crate::sys;
use std::io;
use std::net::UdpSocket;

/// A device as it is now. One that went and came back has another number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Device {
    pub(super) number: u32,
    /// Its address, if it has Ethernet headers.
    pub(super) mac: Option<[u8; 6]>,
}

impl Device {
    /// Looks at the device called `name`; `socket` is any.
    pub(super) fn look(socket: &UdpSocket, name: &str) -> io::Result<Self> {
        let number = rustix::net::netdevice::name_to_index(socket, name)?;
        let (kind, mac) = sys::hardware_address(socket, name)?;
        match kind {
            ETHERNET | LOOPBACK => Ok(Device { number, mac: Some(mac) }),
            NONE | RAW_IP => Ok(Device { number, mac: None }),
            other => Err(io::Error::other(format!(
                "its packets have a header of kind {other} (ARPHRD), and only Ethernet and none at all are supported"
            ))),
        }
    }
}

/// Kinds of devices (`linux/if_arp.h`): Ethernet; loopback, whose header is the same; TUN; a modem's raw IP.
const ETHERNET: u16 = 1;
const LOOPBACK: u16 = 772;
const NONE: u16 = 0xfffe;
const RAW_IP: u16 = 519;
