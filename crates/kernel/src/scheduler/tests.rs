use super::*;

/// BTF of a kernel: structs with their members, and functions.
fn kernel(structs: &[(&str, &[&str])], functions: &[&str]) -> Vec<u8> {
    let (mut strings, mut types) = (vec![0], Vec::new());
    let mut word = |name: &str| {
        let at = strings.len() as u32;
        strings.extend(name.bytes().chain([0]));
        at
    };
    let mut put = |numbers: &[u32]| types.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    // The first type is an integer of eight bytes, which all members have.
    put(&[word("u64"), 1 << 24, 8, 64]);
    for (name, members) in structs {
        put(&[word(name), 4 << 24 | members.len() as u32, 8 * members.len() as u32]);
        for (index, member) in members.iter().enumerate() {
            put(&[word(member), 1, 64 * index as u32]);
        }
    }
    for name in functions {
        put(&[word(name), 12 << 24, 0]);
    }
    let length = types.len() as u32;
    let header = [0x0001_eb9f, 24, 0, length, length, strings.len() as u32];
    let mut bytes: Vec<u8> = header.iter().flat_map(|number| number.to_le_bytes()).collect();
    bytes.extend(types);
    bytes.extend(strings);
    bytes
}

fn lacks(structs: &[(&str, &[&str])], functions: &[&str]) -> Option<String> {
    waits_for(&Btf::parse(&kernel(structs, functions)).expect("BTF of the test"))
}

const SCHED_OPS: &str = "mptcp_sched_ops";
const MEMBERS: &[&str] = &["get_send", "get_retrans", "name"];
const FUNCTIONS: &[&str] = &[
    "bpf_iter_mptcp_subflow_new",
    "bpf_iter_mptcp_subflow_next",
    "bpf_iter_mptcp_subflow_destroy",
    "bpf_rdonly_cast",
    "mptcp_set_timeout",
    "mptcp_subflow_active",
    "mptcp_subflow_set_scheduled",
];

#[test]
fn a_kernel_with_the_interface_of_the_developers_tree_takes_schedulers() {
    let around = ("bpf_struct_ops_mptcp_sched_ops", &["common", "data"][..]);
    assert_eq!(lacks(&[(SCHED_OPS, MEMBERS), around], FUNCTIONS), None);
}

#[test]
fn says_what_a_kernel_lacks_each_thing_once() {
    let around = ("bpf_struct_ops_mptcp_sched_ops", &["common", "data"][..]);
    assert_eq!(
        lacks(&[(SCHED_OPS, MEMBERS)], &FUNCTIONS[2..]).as_deref(),
        Some(
            "no struct `bpf_struct_ops_mptcp_sched_ops`, no function `bpf_iter_mptcp_subflow_new`, \
             `bpf_iter_mptcp_subflow_next`"
        )
    );
    // As older states of the developers' tree have it.
    assert_eq!(
        lacks(&[(SCHED_OPS, &["get_subflow", "name"]), around], FUNCTIONS).as_deref(),
        Some("no member `get_send` in `mptcp_sched_ops`, no member `get_retrans` in `mptcp_sched_ops`")
    );
}

#[test]
fn every_object_parses_and_has_both_programs_and_the_memory() {
    for scheduler in SCHEDULERS {
        let object = scheduler.parsed().expect(scheduler.name);
        let programs: Vec<&str> = object.programs.iter().map(|program| program.name).collect();
        assert_eq!(programs, ["get_send", "get_retrans"], "{}", scheduler.name);
        let memory = object.btf.find(Kind::Struct, "memory").expect(scheduler.name);
        assert_eq!(object.btf.size(memory), Some(24), "{}", scheduler.name);
        assert!(scheduler.kernel_name.len() < 16, "MPTCP_SCHED_NAME_MAX is 16, with the NUL");
    }
}
