//! The two programs, loaded with their maps.

use super::AcksError;
use super::maps::Maps;
use crate::btf::Kind;
use crate::features::TCX;
use crate::load::{self, LoadError, Target};
use crate::object::Object;
use crate::sys;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// The programs.
#[derive(Debug)]
pub(super) struct Programs {
    egress: OwnedFd,
    ingress: OwnedFd,
}

/// The programs at one device, for as long as this lives.
#[derive(Debug)]
pub(super) struct Attached {
    _links: [OwnedFd; 2],
}

/// The object, with the word that errors use.
const OBJECT: &[u8] = include_bytes!("../../bpf/acks.bpf.o");
const NAME: &str = "acks";

impl Programs {
    pub(super) fn load(maps: &Maps) -> Result<Self, LoadError> {
        let damaged = || LoadError::Damaged(NAME);
        let bytes = load::kernel_bytes()?;
        // Verifiers of kernels without it have other reasons to refuse, which lead nowhere.
        if load::types_of_kernel(&bytes)?.find(Kind::Struct, TCX).is_none() {
            return Err(LoadError::Lacks(format!("struct `{TCX}` in its BTF")));
        }
        let object = Object::parse(OBJECT).ok_or_else(damaged)?;
        let types = load::types(&object, NAME)?;
        let program = |name: &str, attach_type| {
            let program = object.programs.iter().find(|program| program.name == name).ok_or_else(damaged)?;
            let instructions = load::resolve(program, None, |name| Some(maps.named(name)?.number()))?;
            let target =
                Target { kind: sys::BPF_PROG_TYPE_SCHED_CLS, expected_attach_type: attach_type, attach_btf_id: 0 };
            load::verify(&object, program, &instructions, &target, types.as_fd())
        };
        Ok(Programs {
            egress: program("egress", sys::BPF_TCX_EGRESS)?,
            ingress: program("ingress", sys::BPF_TCX_INGRESS)?,
        })
    }

    /// Runs the programs on the packets of a device.
    pub(super) fn attach(&self, device: u32) -> io::Result<Attached> {
        Ok(Attached {
            _links: [
                sys::link_device(self.ingress.as_fd(), device, sys::BPF_TCX_INGRESS)?,
                sys::link_device(self.egress.as_fd(), device, sys::BPF_TCX_EGRESS)?,
            ],
        })
    }
}

/// Names the device in an error.
pub(super) fn not_attached(device: &str, error: io::Error) -> AcksError {
    AcksError::Attach { device: device.to_owned(), error }
}
