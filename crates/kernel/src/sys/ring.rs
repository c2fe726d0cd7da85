//! The ring buffer through which programs hand records over (`Documentation/bpf/ringbuf.rst`).
//!
//! The kernel maps three parts: a page with the position of the reader, which we write; a page with the position of the
//! writers; and the data, twice in a row, so that no record is broken at the end.

use super::{Attributes, BPF_MAP_CREATE, BPF_MAP_TYPE_RINGBUF};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A ring buffer with one reader.
#[derive(Debug)]
pub(crate) struct Ring {
    fd: OwnedFd,
    reader: Mapping,
    writers: Mapping,
    page: usize,
    size: usize,
}

impl Ring {
    /// `size` \[bytes\] is a power of two, and at least a page.
    pub(crate) fn create(name: &str, size: usize) -> io::Result<Self> {
        // SAFETY: reads a constant.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        if !size.is_power_of_two() || size < page || u32::try_from(size).is_err() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let fd = Attributes::new()
            .number(0, BPF_MAP_TYPE_RINGBUF)
            .number(12, size as u32)
            .name(28, name)
            .open(BPF_MAP_CREATE)?;
        let reader = Mapping::new(&fd, 0, page, libc::PROT_READ | libc::PROT_WRITE)?;
        let writers = Mapping::new(&fd, page, page + 2 * size, libc::PROT_READ)?;
        Ok(Ring { fd, reader, writers, page, size })
    }

    /// The number of its file descriptor, by which programs name it.
    pub(crate) fn number(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// Reads the records that are there now, in the order in which programs began to write them.
    pub(crate) fn drain(&mut self, mut take: impl FnMut(&[u8])) {
        // SAFETY: both pages begin with a position of 64 bits, are mapped for as long as `self` lives, and are written
        // elsewhere only by the kernel, atomically.
        let (reader, writers) = unsafe {
            (
                &*self.reader.at(0).cast::<AtomicU64>().cast_const(),
                &*self.writers.at(0).cast::<AtomicU64>().cast_const(),
            )
        };
        let mut position = reader.load(Ordering::Relaxed);
        // Programs that write faster than this reads must not keep it here.
        let end = writers.load(Ordering::Acquire);
        while position < end {
            let at = self.page + (position as usize & (self.size - 1));
            // SAFETY: the place lies within the data, which are aligned to 8 bytes as all positions are; a record's
            // first word is its length, which its writer sets atomically.
            let head = unsafe { &*self.writers.at(at).cast::<AtomicU32>().cast_const() }.load(Ordering::Acquire);
            if head & BUSY != 0 {
                break;
            }
            let length = (head & !(BUSY | DISCARDED)) as usize;
            if length > self.size - HEAD {
                break; // No kernel writes that.
            }
            if head & DISCARDED == 0 {
                // SAFETY: the record is complete, lies within the data, which follow themselves once more, and nobody
                // writes there before the reader's position is beyond it.
                take(unsafe { std::slice::from_raw_parts(self.writers.at(at + HEAD), length) });
            }
            position += (length + HEAD).next_multiple_of(8) as u64;
            reader.store(position, Ordering::Release);
        }
    }
}

/// Bytes before a record, and flags in its length: being written; given up.
const HEAD: usize = 8;
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;

/// Mapped memory.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

impl Mapping {
    fn new(fd: &OwnedFd, offset: usize, length: usize, protection: i32) -> io::Result<Self> {
        // SAFETY: the kernel chooses a place where nothing is mapped.
        let start = unsafe {
            libc::mmap(ptr::null_mut(), length, protection, libc::MAP_SHARED, fd.as_raw_fd(), offset as libc::off_t)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, length })
    }

    fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.length, "the offset is within the mapping");
        self.start.as_ptr().wrapping_add(offset)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and what refers to it borrows the ring.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}
