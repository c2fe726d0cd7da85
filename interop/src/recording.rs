//! A device that writes down what passes it.

use anabranch_capture::{Direction, Interface, Packet, Section, WriteError, Writer};
use anabranch_host::{Clock, Device};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A device, and the capture of it. Inbound is what the device received, that is what the endpoint on it receives.
pub(crate) struct Recording<D> {
    device: D,
    clock: Clock,
    shelf: Shelf,
}

/// The capture file, for the thread that completes it.
#[derive(Clone)]
pub(crate) struct Shelf(Arc<Mutex<Option<Writer>>>);

impl<D> Recording<D> {
    pub(crate) fn start(device: D, name: &str, path: &Path) -> io::Result<(Self, Shelf)> {
        let section = Section { application: "anabranch interop".to_owned(), comment: String::new() };
        let interface = Interface { name: name.to_owned(), description: "the engine's device".to_owned() };
        let writer = Writer::create(path, &section, &[interface]).map_err(io::Error::other)?;
        let shelf = Shelf(Arc::new(Mutex::new(Some(writer))));
        Ok((Recording { device, clock: Clock::start(), shelf: shelf.clone() }, shelf))
    }

    fn note(&self, direction: Direction, bytes: &[u8]) -> io::Result<()> {
        let packet =
            Packet { interface: 0, direction, at: self.clock.now(), bytes: bytes.to_vec(), comments: Vec::new() };
        self.shelf
            .with(|writer| writer.as_mut().map_or(Ok(()), |writer| writer.packet(&packet)))
            .map_err(io::Error::other)
    }
}

impl Shelf {
    /// Completes the file.
    pub(crate) fn finish(&self) -> Result<(), WriteError> {
        self.with(|writer| writer.take().map_or(Ok(()), Writer::finish))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Option<Writer>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<D: Device> Device for Recording<D> {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let received = self.device.receive(buffer)?;
        if let Some(length) = received {
            self.note(Direction::Inbound, &buffer[..length])?;
        }
        Ok(received)
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<bool> {
        let sent = self.device.send(packet)?;
        if sent {
            self.note(Direction::Outbound, packet)?;
        }
        Ok(sent)
    }
}

impl<D: Device> AsFd for Recording<D> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
