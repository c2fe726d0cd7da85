//! Workloads and changes of scenario files.

use super::*;

#[test]
fn workloads_and_changes_are_what_they_say() {
    let text = r#"
        [[workload]]
        kind = "files"
        sizes = ["1MiB", "2MiB"]
        concurrent = true
        start = "1s"
        [[workload]]
        kind = "bursts"
        size = "20kB"
        count = 5
        interval = "500ms"
        warm-up = "1MB"
        [[workload]]
        kind = "udp"
        path = "lte"
        rate = "2mbit"
        on = "1s"
        off = "2s"
        phases = "exponential"
        [[workload]]
        kind = "tcp"
        path = "wlan"
        size = "1MB"
        repeat = true
        [[change]]
        at = "2s"
        path = "wlan"
        direction = "down"
        rate = "1mbit"
        loss = "5%"
        [[change]]
        at = "3s"
        path = "lte"
        state = "down"
        notify = false
    "#;
    let spec = read(&format!("{PATHS}{text}")).unwrap().spec(1);
    let [Workload::Files { sizes, order: FileOrder::AtOnce(_), start, .. }, bursts, udp, tcp] =
        spec.workloads.as_slice()
    else {
        panic!("other workloads than asked for");
    };
    assert_eq!((sizes.as_slice(), *start), (&[Bytes::new(1 << 20), Bytes::new(2 << 20)][..], Duration::from_secs(1)));
    assert!(matches!(bursts, Workload::Bursts { count: 5, warm_up, .. } if *warm_up == Bytes::new(1_000_000)));
    assert!(matches!(udp, Workload::Udp { packet, stop, .. } if packet.get() == 1500 && *stop == spec.stop));
    assert!(matches!(udp, Workload::Udp { spacing: Spacing::Even, phases: Spacing::Exponential, .. }));
    assert!(matches!(tcp, Workload::Tcp { extent: Extent::Repeat(size), .. } if size.get() == 1_000_000));
    let changes: Vec<String> =
        spec.network.changes.iter().map(|c| format!("{} {:?} {:?} {}", c.at, c.affected, c.change, c.notify)).collect();
    assert_eq!(changes.len(), 3);
    assert_eq!((spec.network.changes[0].affected, spec.network.changes[2].affected), (Affected::Down, Affected::Both));
    assert!(changes[0].contains("Rate(1mbit) false") && changes[2].contains("Down false"), "{changes:?}");
}

#[test]
fn clients_are_as_many_as_the_file_says() {
    let text = format!("{PATHS}\n[[workload]]\nkind = \"files\"\nsize = \"100kB\"\n");
    assert_eq!(read(&text).unwrap().spec(1).clients, 1);
    let scenario = read_with(&text, &["clients=3"]).unwrap();
    assert_eq!(scenario.spec(1).clients, 3);
    assert_ne!(scenario.digest, read(&text).unwrap().digest, "another scenario");

    let refused = |sets: &[&str]| read_with(&text, sets).err().unwrap().to_string();
    assert!(refused(&["clients=0"]).contains("`clients` is 0"));
    assert!(refused(&["clients=12673"]).contains("`clients` is 12673"));
    let named = refused(&["clients=2", "host.ack-path={name=\"fixed\",path=\"wlan\"}"]);
    assert!(named.contains("`ack-path` names a path, but there are 2 clients"), "{named}");
}
