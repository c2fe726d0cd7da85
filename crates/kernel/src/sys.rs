//! The `bpf(2)` system call, the memory that it shares, and one call of `ioctl(2)`: the only place with `unsafe`.
//!
//! Attributes are laid out by hand, as `union bpf_attr` of `linux/bpf.h` has them: 144 bytes, of which the kernel takes
//! those beyond what it knows only if they are zero.

use anabranch_units::Duration;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

mod ring;

pub(crate) use ring::Ring;

/// The clock that programs read.
pub(crate) fn monotonic() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// A command and its attributes.
struct Attributes<'a> {
    bytes: [u8; 144],
    /// Holds what the attributes point to.
    buffers: std::marker::PhantomData<&'a [u8]>,
}

impl<'a> Attributes<'a> {
    fn new() -> Self {
        Attributes { bytes: [0; 144], buffers: std::marker::PhantomData }
    }

    fn number(mut self, at: usize, value: u32) -> Self {
        self.bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn fd(self, at: usize, fd: BorrowedFd<'a>) -> Self {
        self.number(at, fd.as_raw_fd() as u32)
    }

    fn buffer(mut self, at: usize, buffer: &'a [u8]) -> Self {
        self.bytes[at..at + 8].copy_from_slice(&(buffer.as_ptr() as u64).to_ne_bytes());
        self
    }

    fn output(mut self, at: usize, buffer: &'a mut [u8]) -> Self {
        self.bytes[at..at + 8].copy_from_slice(&(buffer.as_mut_ptr() as u64).to_ne_bytes());
        self
    }

    fn name(mut self, at: usize, name: &str) -> Self {
        let length = name.len().min(15);
        self.bytes[at..at + length].copy_from_slice(&name.as_bytes()[..length]);
        self
    }

    fn call(mut self, command: u32) -> io::Result<i32> {
        // SAFETY: the attributes are 144 bytes that outlive the call. Each pointer in them was made by `buffer` from a
        // slice, which the lifetime holds, for a command that reads no more than the length beside it; or by `output`
        // from a slice borrowed mutably, for a command that writes no more than the length beside it.
        let result = unsafe { libc::syscall(libc::SYS_bpf, command, self.bytes.as_mut_ptr(), self.bytes.len()) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
    }

    fn open(self, command: u32) -> io::Result<OwnedFd> {
        let fd = self.call(command)?;
        // SAFETY: these commands return a new file descriptor, which belongs to nobody else.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

/// A program to load.
pub(crate) struct Program<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: u32,
    pub(crate) instructions: &'a [u8],
    /// NUL-terminated.
    pub(crate) license: &'a [u8],
    pub(crate) expected_attach_type: u32,
    pub(crate) attach_btf_id: u32,
    pub(crate) btf: Option<BorrowedFd<'a>>,
    /// Records of [`FUNCTION_RECORD`] bytes.
    pub(crate) functions: &'a [u8],
    /// Records of [`LINE_RECORD`] bytes.
    pub(crate) lines: &'a [u8],
    /// Records of [`RELOCATION_RECORD`] bytes.
    pub(crate) relocations: &'a [u8],
}

/// `struct bpf_func_info`, `struct bpf_line_info` and `struct bpf_core_relo`.
pub(crate) const FUNCTION_RECORD: usize = 8;
pub(crate) const LINE_RECORD: usize = 16;
pub(crate) const RELOCATION_RECORD: usize = 16;

/// `BPF_PROG_LOAD`. With `log`, the verifier writes there what it thinks.
pub(crate) fn load_program(program: &Program<'_>, log: Option<&mut [u8]>) -> io::Result<OwnedFd> {
    let count = |bytes: &[u8], record: usize| (bytes.len() / record) as u32;
    let mut attributes = Attributes::new()
        .number(0, program.kind)
        .number(4, count(program.instructions, 8))
        .buffer(8, program.instructions)
        .buffer(16, program.license)
        .name(48, program.name)
        .number(68, program.expected_attach_type)
        .number(108, program.attach_btf_id);
    if let Some(btf) = program.btf {
        attributes = attributes
            .fd(72, btf)
            .number(76, FUNCTION_RECORD as u32)
            .buffer(80, program.functions)
            .number(88, count(program.functions, FUNCTION_RECORD))
            .number(92, LINE_RECORD as u32)
            .buffer(96, program.lines)
            .number(104, count(program.lines, LINE_RECORD))
            .number(116, count(program.relocations, RELOCATION_RECORD))
            .buffer(128, program.relocations)
            .number(136, RELOCATION_RECORD as u32);
    }
    if let Some(log) = log {
        attributes = attributes.number(24, 1).number(28, log.len() as u32).output(32, log);
    }
    attributes.open(BPF_PROG_LOAD)
}

/// `BPF_BTF_LOAD`. With `log`, the kernel writes there what it dislikes.
pub(crate) fn load_btf(btf: &[u8], log: Option<&mut [u8]>) -> io::Result<OwnedFd> {
    let mut attributes = Attributes::new().buffer(0, btf).number(16, btf.len() as u32);
    if let Some(log) = log {
        attributes = attributes.number(20, log.len() as u32).number(24, 1).output(8, log);
    }
    attributes.open(BPF_BTF_LOAD)
}

/// Makes a map for a struct of operations: `value_type` in the kernel's BTF, `size` bytes; registered by a link.
pub(crate) fn create_operations(name: &str, value_type: u32, size: u32, btf: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    Attributes::new()
        .number(0, BPF_MAP_TYPE_STRUCT_OPS)
        .number(4, 4)
        .number(8, size)
        .number(12, 1)
        .number(16, BPF_F_LINK)
        .name(28, name)
        .fd(48, btf)
        .number(60, value_type)
        .open(BPF_MAP_CREATE)
}

/// Makes a map with a value of `size` bytes for each socket. `key` and `value` are types of `btf`.
pub(crate) fn create_storage(name: &str, btf: BorrowedFd<'_>, key: u32, value: u32, size: u32) -> io::Result<OwnedFd> {
    Attributes::new()
        .number(0, BPF_MAP_TYPE_SK_STORAGE)
        .number(4, 4)
        .number(8, size)
        .number(16, BPF_F_NO_PREALLOC)
        .name(28, name)
        .fd(48, btf)
        .number(52, key)
        .number(56, value)
        .open(BPF_MAP_CREATE)
}

/// Writes the struct of operations into its map. `value` must have the size that the map was made with.
pub(crate) fn fill_operations(map: BorrowedFd<'_>, value: &[u8]) -> io::Result<()> {
    update(map, &0u32.to_ne_bytes(), value)
}

/// Registers the struct of operations for as long as the link is open or pinned.
pub(crate) fn link_operations(map: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    Attributes::new().fd(0, map).number(8, BPF_STRUCT_OPS).open(BPF_LINK_CREATE)
}

/// A map's kind and sizes \[bytes\].
pub(crate) struct MapShape {
    pub(crate) name: &'static str,
    pub(crate) kind: u32,
    pub(crate) key: u32,
    pub(crate) value: u32,
    pub(crate) entries: u32,
}

/// A map whose keys and values have a known size, which every call checks: the kernel reads and writes that much.
#[derive(Debug)]
pub(crate) struct Map {
    fd: OwnedFd,
    key: usize,
    value: usize,
}

impl Map {
    pub(crate) fn create(shape: &MapShape) -> io::Result<Self> {
        let fd = Attributes::new()
            .number(0, shape.kind)
            .number(4, shape.key)
            .number(8, shape.value)
            .number(12, shape.entries)
            .name(28, shape.name)
            .open(BPF_MAP_CREATE)?;
        Ok(Map { fd, key: shape.key as usize, value: shape.value as usize })
    }

    /// The number of its file descriptor, by which programs name it.
    pub(crate) fn number(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// Sets the value of a key.
    pub(crate) fn set(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        assert!(key.len() == self.key && value.len() == self.value, "sizes of key and value are the map's");
        update(self.fd.as_fd(), key, value)
    }

    /// Reads the value of a key; `None` if there is none.
    pub(crate) fn get(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        assert_eq!(key.len(), self.key, "the size of the key is the map's");
        let mut value = vec![0; self.value];
        let attributes = Attributes::new().fd(0, self.fd.as_fd()).buffer(8, key).output(16, &mut value);
        found(attributes.call(BPF_MAP_LOOKUP_ELEM)).map(|there| there.then_some(value))
    }

    /// Removes a key, if it is there.
    pub(crate) fn remove(&self, key: &[u8]) -> io::Result<()> {
        assert_eq!(key.len(), self.key, "the size of the key is the map's");
        found(Attributes::new().fd(0, self.fd.as_fd()).buffer(8, key).call(BPF_MAP_DELETE_ELEM)).map(drop)
    }

    /// Reads the key after `key`, or the first; `None` if there is none.
    pub(crate) fn next(&self, key: Option<&[u8]>) -> io::Result<Option<Vec<u8>>> {
        assert!(key.is_none_or(|key| key.len() == self.key), "the size of the key is the map's");
        let mut next = vec![0; self.key];
        let mut attributes = Attributes::new().fd(0, self.fd.as_fd()).output(16, &mut next);
        if let Some(key) = key {
            attributes = attributes.buffer(8, key);
        }
        found(attributes.call(BPF_MAP_GET_NEXT_KEY)).map(|there| there.then_some(next))
    }
}

fn update(map: BorrowedFd<'_>, key: &[u8], value: &[u8]) -> io::Result<()> {
    Attributes::new().fd(0, map).buffer(8, key).buffer(16, value).call(BPF_MAP_UPDATE_ELEM).map(drop)
}

/// Tells a key that is not there from an error.
fn found(result: io::Result<i32>) -> io::Result<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Runs a program on the packets of a device for as long as the link is open.
pub(crate) fn link_device(program: BorrowedFd<'_>, device: u32, attach_type: u32) -> io::Result<OwnedFd> {
    Attributes::new().fd(0, program).number(4, device).number(8, attach_type).open(BPF_LINK_CREATE)
}

/// Runs a program on the sockets of a control group for as long as the link is open or pinned.
pub(crate) fn link_group(program: BorrowedFd<'_>, group: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    Attributes::new().fd(0, program).fd(4, group).number(8, BPF_CGROUP_SOCK_OPS).open(BPF_LINK_CREATE)
}

/// Runs a program at its tracepoint for as long as the link is open.
pub(crate) fn link_tracing(program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    Attributes::new().fd(8, program).open(BPF_RAW_TRACEPOINT_OPEN)
}

/// The kind of a device's hardware address (ARPHRD), and the first six bytes of the address (`netdevice(7)`).
pub(crate) fn hardware_address(socket: impl AsFd, name: &str) -> io::Result<(u16, [u8; 6])> {
    // `struct ifreq`: a name, and here a `struct sockaddr` with the kind as its family.
    let mut request = [0u8; 40];
    if name.len() > 15 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    request[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: the request is as large as `struct ifreq`, which the kernel reads and writes, and outlives the call.
    let result = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCGIFHWADDR as _, request.as_mut_ptr()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut address = [0; 6];
    address.copy_from_slice(&request[18..24]);
    Ok((u16::from_ne_bytes([request[16], request[17]]), address))
}

/// Pins a file descriptor of BPF to a path in bpffs.
pub(crate) fn pin(fd: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let mut name = path.as_os_str().as_bytes().to_vec();
    name.push(0);
    Attributes::new().buffer(0, &name).fd(8, fd).call(BPF_OBJ_PIN).map(drop)
}

/// `enum bpf_cmd`.
const BPF_MAP_CREATE: u32 = 0;
const BPF_MAP_LOOKUP_ELEM: u32 = 1;
const BPF_MAP_UPDATE_ELEM: u32 = 2;
const BPF_MAP_DELETE_ELEM: u32 = 3;
const BPF_MAP_GET_NEXT_KEY: u32 = 4;
const BPF_PROG_LOAD: u32 = 5;
const BPF_OBJ_PIN: u32 = 6;
const BPF_RAW_TRACEPOINT_OPEN: u32 = 17;
const BPF_BTF_LOAD: u32 = 18;
const BPF_LINK_CREATE: u32 = 28;
/// `enum bpf_map_type`, `enum bpf_attach_type`, flags of maps, `enum bpf_prog_type`.
pub(crate) const BPF_MAP_TYPE_HASH: u32 = 1;
pub(crate) const BPF_MAP_TYPE_ARRAY: u32 = 2;
pub(crate) const BPF_MAP_TYPE_LRU_HASH: u32 = 9;
const BPF_MAP_TYPE_SK_STORAGE: u32 = 24;
const BPF_MAP_TYPE_STRUCT_OPS: u32 = 26;
pub(crate) const BPF_CGROUP_SOCK_OPS: u32 = 3;
pub(crate) const BPF_TCX_INGRESS: u32 = 46;
pub(crate) const BPF_TCX_EGRESS: u32 = 47;
const BPF_MAP_TYPE_RINGBUF: u32 = 27;
pub(crate) const BPF_TRACE_RAW_TP: u32 = 23;
const BPF_STRUCT_OPS: u32 = 44;
const BPF_F_NO_PREALLOC: u32 = 1;
const BPF_F_LINK: u32 = 1 << 13;
pub(crate) const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
pub(crate) const BPF_PROG_TYPE_SOCK_OPS: u32 = 13;
pub(crate) const BPF_PROG_TYPE_TRACING: u32 = 26;
pub(crate) const BPF_PROG_TYPE_STRUCT_OPS: u32 = 27;
