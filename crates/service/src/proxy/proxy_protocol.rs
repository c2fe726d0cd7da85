//! The PROXY protocol, version 2, as HAProxy's `proxy-protocol.txt` describes it: who the client is, in front of its
//! stream.

use bytes::{BufMut, Bytes, BytesMut};
use std::net::{IpAddr, SocketAddr};

/// The header of a connection from `client` to `local`, without TLVs. With addresses of different families, which no
/// connection has, it says UNSPEC.
pub fn header(client: SocketAddr, local: SocketAddr) -> Bytes {
    let mut bytes = BytesMut::with_capacity(SIGNATURE.len() + 4 + 36);
    bytes.put_slice(&SIGNATURE);
    bytes.put_u8(VERSION_2_PROXY);
    match (client.ip().to_canonical(), local.ip().to_canonical()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            bytes.put_u8(TCP_OVER_IPV4);
            bytes.put_u16(12);
            bytes.put_slice(&from.octets());
            bytes.put_slice(&to.octets());
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            bytes.put_u8(TCP_OVER_IPV6);
            bytes.put_u16(36);
            bytes.put_slice(&from.octets());
            bytes.put_slice(&to.octets());
        }
        _ => {
            bytes.put_u8(UNSPECIFIED);
            bytes.put_u16(0);
            return bytes.freeze();
        }
    }
    bytes.put_u16(client.port());
    bytes.put_u16(local.port());
    bytes.freeze()
}

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Version 2 in the upper half, command PROXY in the lower.
const VERSION_2_PROXY: u8 = 0x21;
const TCP_OVER_IPV4: u8 = 0x11;
const TCP_OVER_IPV6: u8 = 0x21;
const UNSPECIFIED: u8 = 0x00;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_that_of_the_specification() {
        let client = "192.0.2.7:56324".parse().expect("an address");
        let local = "203.0.113.1:443".parse().expect("an address");
        let expected = [
            &[0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a][..],
            &[0x21, 0x11, 0, 12, 192, 0, 2, 7, 203, 0, 113, 1, 0xdc, 0x04, 0x01, 0xbb],
        ];
        assert_eq!(header(client, local), expected.concat());

        let six =
            header("[2001:db8::1]:1".parse().expect("an address"), "[2001:db8::2]:2".parse().expect("an address"));
        assert_eq!((six.len(), six[13], six[15]), (16 + 36, 0x21, 36));
        assert_eq!(six[48..], [0, 1, 0, 2]);
        assert_eq!(header(client, "[::1]:1".parse().expect("an address"))[13..], [0, 0, 0]);
    }
}
