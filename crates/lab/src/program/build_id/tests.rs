//! Files of each kind, made here, and the file of this program.

use super::*;
use std::fs::File;
use std::io::Cursor;

const ID: [u8; 20] = [0x9e, 0xe8, 0x4d, 0x7f, 0x36, 0x2d, 0xec, 0xa0, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19];

fn id_in(file: &[u8]) -> Option<Vec<u8>> {
    read(&mut Cursor::new(file)).expect("memory can be read")
}

fn word(layout: Layout, number: u64, width: usize) -> Vec<u8> {
    if layout.big { number.to_be_bytes()[8 - width..].to_vec() } else { number.to_le_bytes()[..width].to_vec() }
}

fn note(layout: Layout, owner: &[u8], kind: u64, contents: &[u8], alignment: usize) -> Vec<u8> {
    let mut note: Vec<u8> =
        [owner.len() as u64, contents.len() as u64, kind].iter().flat_map(|it| word(layout, *it, 4)).collect();
    for part in [owner, contents] {
        note.extend(part);
        note.resize(note.len().next_multiple_of(alignment), 0);
    }
    note
}

/// Returns an ELF file with a segment of code and one of notes for each alignment.
fn elf(layout: Layout, segments: &[(usize, Vec<u8>)]) -> Vec<u8> {
    let (width, head, entry) = if layout.wide { (8, 64, 56) } else { (4, 52, 32) };
    let mut file = vec![0x7f, b'E', b'L', b'F', 1 + u8::from(layout.wide), 1 + u8::from(layout.big)];
    file.resize(head, 0);
    let count = 1 + segments.len();
    let at = if layout.wide { [0x20, 0x36, 0x38] } else { [0x1c, 0x2a, 0x2c] };
    for (at, number, width) in [(at[0], head, width), (at[1], entry, 2), (at[2], count, 2)] {
        file[at..at + width].copy_from_slice(&word(layout, number as u64, width));
    }
    let mut contents: Vec<u8> = Vec::new();
    let code = (1, 4096, vec![0x90; 40]);
    let notes = segments.iter().map(|(alignment, notes)| (PT_NOTE, *alignment, notes.clone()));
    for (kind, alignment, bytes) in [code].into_iter().chain(notes) {
        let mut header = vec![0; entry];
        let offset = head + count * entry + contents.len();
        let places = if layout.wide { [8, 0x20, 0x30] } else { [4, 0x10, 0x1c] };
        header[..4].copy_from_slice(&word(layout, kind, 4));
        for (at, number) in places.into_iter().zip([offset, bytes.len(), alignment]) {
            header[at..at + width].copy_from_slice(&word(layout, number as u64, width));
        }
        file.extend(header);
        contents.extend(bytes);
    }
    [file, contents].concat()
}

#[test]
fn elf_files_of_each_layout_have_it_in_their_notes() {
    for (wide, big) in [(false, false), (false, true), (true, false), (true, true)] {
        let layout = Layout { wide, big };
        let id = note(layout, b"GNU\0", NT_GNU_BUILD_ID, &ID, 4);
        let abi = note(layout, b"GNU\0", 1, &[7; 16], 4);
        let foreign = note(layout, b"Go\0\0", NT_GNU_BUILD_ID, &[1; 20], 4);
        let property = note(layout, b"GNU\0", 5, &[3; 12], 8);
        let file = elf(layout, &[(8, property.clone()), (4, [abi, foreign.clone(), id].concat())]);
        assert_eq!(id_in(&file).as_deref(), Some(&ID[..]), "wide {wide}, big {big}");
        assert_eq!(id_in(&elf(layout, &[(8, property), (4, foreign)])), None, "wide {wide}, big {big}: it has none");
        let short = note(layout, b"GNU\0", NT_GNU_BUILD_ID, &ID[..4], 4);
        assert_eq!(id_in(&elf(layout, &[(4, short)])), None, "four bytes are too few");
    }
}

#[test]
fn mach_o_files_have_it_among_their_load_commands() {
    let layout = Layout { wide: true, big: false };
    let command = |kind: u64, contents: &[u8]| {
        [word(layout, kind, 4), word(layout, 8 + contents.len() as u64, 4), contents.to_vec()].concat()
    };
    let of = |commands: &[u8]| {
        let mut file = vec![0xcf, 0xfa, 0xed, 0xfe];
        file.resize(32, 0);
        file[20..24].copy_from_slice(&word(layout, commands.len() as u64, 4));
        file.extend(commands);
        file.resize(4096, 0);
        file
    };
    let file = of(&[command(0x19, &[0; 64]), command(LC_UUID, &ID[..16])].concat());
    assert_eq!(id_in(&file).as_deref(), Some(&ID[..16]));
    assert_eq!(id_in(&of(&command(0x19, &[0; 64]))), None);
}

/// Each byte of the headers in turn becomes 0 or 255, and the file ends at each place: no answer but the id, a part of
/// another note, or none; no panic, and no read of more than the longest table.
#[test]
fn damaged_files_do_no_harm() {
    let layout = Layout { wide: true, big: false };
    let whole = elf(layout, &[(4, note(layout, b"GNU\0", NT_GNU_BUILD_ID, &ID, 4))]);
    for at in 0..whole.len() {
        id_in(&whole[..at]);
        for byte in [0, 0x7f, 0xff] {
            let mut file = whole.clone();
            file[at] = byte;
            id_in(&file);
        }
    }
    let mut far = whole.clone();
    far[0x20..0x28].fill(0xff);
    assert_eq!(id_in(&far), None, "the table is where no file can be read");
    for other in [&b""[..], b"MZ", &[0xca, 0xfe, 0xba, 0xbe], &[0xcf, 0xfa, 0xed, 0xfe]] {
        assert_eq!(id_in(other), None, "{other:?}");
    }
}

/// Counts bytes that are read.
struct Counting(File, usize);

impl Read for Counting {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(into)?;
        self.1 += read;
        Ok(read)
    }
}

impl Seek for Counting {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

#[test]
fn little_of_a_program_is_read() {
    let program = std::env::current_exe().and_then(File::open).expect("a test can read itself");
    let mut program = Counting(program, 0);
    if read(&mut program).expect("a test can read itself").is_none() {
        eprintln!("skipped: the linker here writes no build id into tests");
    }
    assert!(program.1 <= 8 << 10, "{} bytes of the program were read", program.1);
}
