//! Data of the peers: both directions are cut from one pattern at different offsets, so that bytes of the wrong
//! direction are detected as well as bytes of the wrong place.

use anabranch_wire::pattern;
use bytes::Bytes;

/// End of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// It connects.
    Client,
    /// It listens.
    Server,
}

impl Role {
    /// The role at the other end.
    pub fn peer(self) -> Role {
        match self {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
        }
    }

    /// At most `length` bytes of what this role sends, from `offset` on; never none unless `length` is 0.
    pub fn slice(self, offset: u64, length: u64) -> Bytes {
        pattern::slice(self.begin() + offset, length)
    }

    /// Returns the offset in its stream of the first byte of `data` that this role did not send; `data` begins at
    /// `offset`.
    pub fn first_difference(self, offset: u64, data: &[u8]) -> Option<u64> {
        let begin = self.begin() + offset;
        if pattern::matches(begin, data) {
            return None;
        }
        let wrong = data.iter().zip(begin..).position(|(byte, at)| pattern::slice(at, 1)[0] != *byte)?;
        Some(offset + wrong as u64)
    }

    fn begin(self) -> u64 {
        match self {
            Role::Client => 0,
            Role::Server => 314_159,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wrong_byte_is_found() {
        let mut data = Role::Server.slice(1000, 100).to_vec();
        assert_eq!(Role::Server.first_difference(1000, &data), None);
        data[42] ^= 1;
        assert_eq!(Role::Server.first_difference(1000, &data), Some(1042));
        assert_eq!(Role::Server.first_difference(0, &Role::Client.slice(0, 100)), Some(0), "the other direction's");
    }
}
