//! A BPF object of ours: programs for the members of a struct of operations, for the packets of a device, for
//! tracepoints, or for the sockets of a control group.
//!
//! The section `struct_ops/MEMBER` is the program of that member, `gate/MEMBER` that of a congestion control with a
//! gate ([`crate::gate`]), `tcx/DIRECTION` that of a direction, `tp_btf/NAME` that of a tracepoint, `sockops/EVENT`
//! that of a control group. Calls of kernel functions and loads of maps refer to symbols by name; of maps the object
//! says no more. There are no global variables and no functions of a section's own.

use crate::btf::Btf;
use crate::elf::{Elf, u32_at};
use crate::sys::{FUNCTION_RECORD, LINE_RECORD, RELOCATION_RECORD};

/// A parsed object.
pub(crate) struct Object<'a> {
    pub(crate) btf: Btf<'a>,
    /// NUL-terminated.
    pub(crate) license: &'a [u8],
    pub(crate) programs: Vec<Program<'a>>,
}

/// One program.
pub(crate) struct Program<'a> {
    /// The member of the struct of operations, the direction, or the tracepoint.
    pub(crate) name: &'a str,
    /// It comes with a gate only, in place of one for the same member.
    pub(crate) of_gate: bool,
    /// Instructions; a call of a kernel function has no number yet, nor has a map.
    pub(crate) instructions: Vec<u8>,
    /// Places of instructions \[bytes\] that refer to a function of the kernel or to a map, with its name.
    pub(crate) references: Vec<(usize, &'a str)>,
    /// As the kernel wants them.
    pub(crate) functions: Vec<u8>,
    pub(crate) lines: Vec<u8>,
    pub(crate) relocations: Vec<u8>,
}

impl<'a> Object<'a> {
    /// Parses an object; `None` if it is none of ours.
    pub(crate) fn parse(file: &'a [u8]) -> Option<Self> {
        let elf = Elf::parse(file)?;
        let btf = elf.section(".BTF")?;
        let extra = Extra { bytes: elf.section(".BTF.ext")?, btf };
        let mut programs = Vec::new();
        for section in elf.sections() {
            let kinds = ["struct_ops/", GATE, "tcx/", "tp_btf/", "sockops/"];
            let Some(name) = kinds.iter().find_map(|kind| section.name.strip_prefix(kind)) else { continue };
            programs.push(Program {
                name,
                of_gate: section.name.starts_with(GATE),
                instructions: section.bytes.to_vec(),
                references: elf.references(section.name)?,
                functions: extra.records(8, section.name, FUNCTION_RECORD, true)?,
                lines: extra.records(16, section.name, LINE_RECORD, true)?,
                relocations: extra.records(24, section.name, RELOCATION_RECORD, false)?,
            });
        }
        Some(Object { btf: Btf::parse(btf)?, license: elf.section("license")?, programs })
    }
}

/// Begin of the names of sections with programs of a gate.
const GATE: &str = "gate/";

impl Program<'_> {
    /// The field whose place the kernel puts into this instruction.
    pub(crate) fn field_at(&self, instruction: usize, btf: &Btf<'_>) -> Option<String> {
        let at = instruction.checked_mul(8)?;
        let record = self.relocations.chunks_exact(RELOCATION_RECORD).find(|r| u32_at(r, 0) == Some(at as u32))?;
        let (of, path) = (u32_at(record, 4)?, btf.text(u32_at(record, 8)? as usize)?);
        // The first number is an index of the pointer, the second the field's.
        let member = btf.members(of)?.into_iter().nth(path.split(':').nth(1)?.parse().ok()?)?;
        Some(format!("`{}` of `{}`", member.name, btf.name(of)?))
    }
}

/// The section `.BTF.ext`.
struct Extra<'a> {
    bytes: &'a [u8],
    btf: &'a [u8],
}

impl Extra<'_> {
    /// The records about a section, from the table whose place and length are at `field` of the header. With `counted`,
    /// bytes from the section's beginning become instructions, as the kernel counts them.
    fn records(&self, field: usize, section: &str, record: usize, counted: bool) -> Option<Vec<u8>> {
        let header = u32_at(self.bytes, 4)? as usize;
        let (from, length) = (header + u32_at(self.bytes, field)? as usize, u32_at(self.bytes, field + 4)? as usize);
        let table = self.bytes.get(from..from.checked_add(length)?)?;
        if table.is_empty() {
            return Some(Vec::new());
        }
        if u32_at(table, 0)? as usize != record {
            return None;
        }
        let strings = u32_at(self.btf, 4)? as usize + u32_at(self.btf, 16)? as usize;
        let mut at = 4;
        while at < table.len() {
            let (name, count) = (u32_at(table, at)? as usize, u32_at(table, at + 4)? as usize);
            let records = table.get(at + 8..)?.get(..count.checked_mul(record)?)?;
            if crate::elf::text_at(self.btf, strings + name)? == section {
                let mut records = records.to_vec();
                if counted {
                    for record in records.chunks_exact_mut(record) {
                        let place = u32_at(record, 0)? / 8;
                        record[..4].copy_from_slice(&place.to_le_bytes());
                    }
                }
                return Some(records);
            }
            at += 8 + count * record;
        }
        Some(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name of a field that does not fit, where the verifier names only the instruction.
    #[test]
    fn a_field_that_does_not_fit_is_named() {
        let object = Object::parse(crate::watch::OBJECT).expect("it is one of ours");
        let program =
            object.programs.iter().find(|program| program.name == "mptcp_subflow_get_send").expect("it is there");
        let fields: Vec<String> = (0..program.instructions.len() / 8)
            .filter_map(|instruction| program.field_at(instruction, &object.btf))
            .collect();
        assert!(fields.contains(&"`stale` of `mptcp_subflow_context`".into()), "{fields:?}");
        assert!(fields.contains(&"`srtt_us` of `tcp_sock`".into()), "{fields:?}");
    }

    /// Records of a field's place, and of how far its bits are shifted (`enum bpf_core_relo_kind`).
    const PLACE: u32 = 0;
    const SHIFT: u32 = 4;

    /// A field that is bits here may be bytes in another kernel. Linux makes such a record fit an instruction that sets
    /// a register; it refuses one that loads (Linux 7.2 with `stale` of a subflow, bits until then).
    #[test]
    fn places_of_bits_are_not_in_loads() {
        let schedulers = crate::SCHEDULERS.iter().map(|scheduler| (scheduler.name, scheduler.object));
        let objects = crate::ALGORITHMS.iter().map(|algorithm| (algorithm.name, algorithm.object)).chain(schedulers);
        let mut seen = 0;
        for (name, object) in objects.chain([("watch", crate::watch::OBJECT)]) {
            for program in Object::parse(object).expect("it is one of ours").programs {
                let records: Vec<[u32; 4]> = program
                    .relocations
                    .chunks_exact(RELOCATION_RECORD)
                    .map(|record| [0, 4, 8, 12].map(|at| u32_at(record, at).expect("records are whole")))
                    .collect();
                let bits = |field: [u32; 2]| records.iter().any(|r| r[3] == SHIFT && [r[1], r[2]] == field);
                for &[at, of, path, kind] in &records {
                    if kind == PLACE && bits([of, path]) {
                        seen += 1;
                        // Classes 1 to 3 read or write memory.
                        let class = program.instructions[at as usize] & 7;
                        assert!(!(1..=3).contains(&class), "{name}, {}: a load at byte {at}", program.name);
                    }
                }
            }
        }
        assert!(seen > 20, "{seen}");
    }
}
