//! Sockets of TCP and MPTCP as the kernel tells of them, for commands that follow live connections.

use crate::failure::Failure;
use crate::output;
use anabranch_host::SockDiag;
use anabranch_why::{Protocol, Socket};
use miette::miette;

/// Tables of the network namespace.
pub(crate) struct SocketTables {
    diag: SockDiag,
    /// It knows of MPTCP.
    mptcp: bool,
}

fn failed(error: std::io::Error) -> Failure {
    Failure::Failed(miette!("cannot ask the kernel about its sockets: {error}"))
}

impl SocketTables {
    pub(crate) fn open() -> Result<Self, Failure> {
        Ok(SocketTables { diag: SockDiag::open().map_err(failed)?, mptcp: true })
    }

    /// All TCP and MPTCP sockets of the network namespace.
    pub(crate) fn sockets(&mut self) -> Result<Vec<Socket>, Failure> {
        let mut sockets = Vec::new();
        for (protocol, v6) in
            [(Protocol::Mptcp, false), (Protocol::Mptcp, true), (Protocol::Tcp, false), (Protocol::Tcp, true)]
        {
            if protocol == Protocol::Mptcp && !self.mptcp {
                continue;
            }
            match self.diag.dump(&protocol.request(v6)) {
                Ok(payloads) => sockets.extend(payloads.iter().filter_map(|payload| protocol.read(payload))),
                Err(error) if protocol == Protocol::Mptcp => {
                    self.mptcp = false;
                    output::remark(&format!(
                        "this kernel tells nothing of MPTCP ({error}): subflows stand alone; `modprobe mptcp_diag` may \
                         help"
                    ));
                }
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(sockets)
    }
}
