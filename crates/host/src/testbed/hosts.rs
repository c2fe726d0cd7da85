//! The names of the hosts: an `/etc/hosts` that only the testbed sees.

use super::layout::Layout;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

/// Mount point of our file system until the file is in its place; visible in this mount namespace only.
const MOMENTARILY: &str = "/tmp";
const HOSTS: &str = "/etc/hosts";

/// The text of the testbed's `/etc/hosts`.
pub fn hosts_file(layout: &Layout) -> String {
    let mut lines = String::from("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n");
    let mut line = |address: &dyn std::fmt::Display, names: &str| {
        writeln!(lines, "{address} {names}").expect("writing to a String cannot fail");
    };
    for (n, address) in layout.server().enumerate() {
        match n {
            0 => (line(&address.v4, "server server4"), line(&address.v6, "server6")),
            n => (line(&address.v4, &format!("server-{}", n + 1)), line(&address.v6, &format!("server6-{}", n + 1))),
        };
    }
    let primary = layout.primary().client();
    line(&primary.v4, "client client4");
    line(&primary.v6, "client6");
    for path in &layout.paths {
        line(&path.client().v4, &format!("client-{}", path.device));
        line(&path.client().v6, &format!("client6-{}", path.device));
        line(&path.server_side().v4, &format!("server-{}", path.device));
        line(&path.server_side().v6, &format!("server6-{}", path.device));
    }
    if let Some(engine) = layout.server_engine().next() {
        line(&engine.v4, "engine engine4");
        line(&engine.v6, "engine6");
    }
    lines
}

/// Mounts it over `/etc/hosts` in the caller's mount namespace, which is private. Nothing is written to disk.
pub fn show_hosts(layout: &Layout) -> io::Result<()> {
    if !Path::new(HOSTS).exists() {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no {HOSTS}")));
    }
    mount("tmpfs", MOMENTARILY, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(c"mode=0755"))?;
    let file = Path::new(MOMENTARILY).join("hosts");
    let shown = fs::write(&file, hosts_file(layout)).and_then(|()| Ok(mount_bind(&file, HOSTS)?));
    unmount(MOMENTARILY, UnmountFlags::DETACH)?;
    shown
}

#[cfg(test)]
mod tests {
    use super::super::layout::PathLayout;
    use super::*;

    #[test]
    fn every_host_has_a_name_in_both_families() {
        let path = |number, name: &str| PathLayout { number, name: name.into(), device: name.into(), backup: false };
        let layout = Layout { paths: vec![path(1, "wlan"), path(2, "lte")], primary: 1, server_addresses: 2 };
        let text = hosts_file(&layout);
        for line in [
            "10.77.0.1 server server4",
            "fd77::1 server6",
            "10.77.0.2 server-2",
            "10.77.2.2 client client4",
            "fd77:0:0:1::2 client6-wlan",
            "10.77.2.1 server-lte",
            "10.78.0.1 engine engine4",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
        }
    }
}
