//! The `bpf(2)` system call: the only place with `unsafe`.
//!
//! Attributes are laid out by hand, as `union bpf_attr` of `linux/bpf.h` has them: 144 bytes, of which the kernel takes
//! those beyond what it knows only if they are zero.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

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

/// Writes the struct of operations into its map. `value` must have the size that the map was made with.
pub(crate) fn fill_operations(map: BorrowedFd<'_>, value: &[u8]) -> io::Result<()> {
    let key = 0u32.to_ne_bytes();
    Attributes::new().fd(0, map).buffer(8, &key).buffer(16, value).call(BPF_MAP_UPDATE_ELEM).map(drop)
}

/// Registers the struct of operations for as long as the link is open or pinned.
pub(crate) fn link_operations(map: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    Attributes::new().fd(0, map).number(8, BPF_STRUCT_OPS).open(BPF_LINK_CREATE)
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
const BPF_MAP_UPDATE_ELEM: u32 = 2;
const BPF_PROG_LOAD: u32 = 5;
const BPF_OBJ_PIN: u32 = 6;
const BPF_BTF_LOAD: u32 = 18;
const BPF_LINK_CREATE: u32 = 28;
/// `enum bpf_map_type`, `enum bpf_attach_type`, flags of maps, `enum bpf_prog_type`.
const BPF_MAP_TYPE_STRUCT_OPS: u32 = 26;
const BPF_STRUCT_OPS: u32 = 44;
const BPF_F_LINK: u32 = 1 << 13;
pub(crate) const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
pub(crate) const BPF_PROG_TYPE_STRUCT_OPS: u32 = 27;
