//! Faults of hosts and of the application.

use super::base::{Base, log, one};
use super::{Kind, Words, words};
use anabranch_units::Stream;

/// Faults of settings, policies and applications.
pub const KINDS: &[Kind] = &[
    ("Nagle", nagle),
    ("delayed ACKs", delayed_acks),
    ("think time", think),
    ("bursts with pauses", pauses),
    ("initial ssthresh", ssthresh),
    ("initial window", initial_window),
    ("small receive buffer", receive_buffer),
    ("receive buffer that begins small", tuned_buffer),
    ("small send buffer", send_buffer),
    ("offered share of the buffer", win_scale),
    ("wrong first path", primary),
    ("backup", backup),
    ("few subflows", subflows),
    ("plain TCP", plain),
    ("scheduler", scheduler),
    ("scheduler that repeats", redundant),
    ("min-rto", min_rto),
    ("initial-rto", initial_rto),
    ("no SACK", sack),
    ("no window scaling", scaling),
    ("small segments", mss),
    ("no rejoin", rejoin),
    ("cautious recovery", recovery),
    ("ACKs of data in order", coupled),
    ("window policy", window),
    ("ACK path", ack_path),
    ("congestion control", congestion),
];

fn nagle(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    base.small(stream);
    base.host.push("quick-acks = 0".to_owned());
    if stream.chance(0.6) {
        base.host.push(format!("delayed-ack = \"{}ms\"", one(stream, &[40, 100, 200, 400])));
    }
    base.is_clean();
    base.host.push("nagle = true".to_owned());
    Some(words(&["Nagle"]))
}

fn delayed_acks(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    base.small(stream);
    base.server.push("nagle = true".to_owned());
    let prompt = base.clone();
    base.client.push("delayed-ack = \"5ms\"".to_owned());
    base.is_clean();
    base.client = prompt.client;
    base.client.push(format!("quick-acks = 0\ndelayed-ack = \"{}ms\"", log(stream, 100.0, 1000.0) as u64));
    Some(words(&["delays"]))
}

fn think(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let (size, think) = (10 + stream.below(90), 200 + stream.below(1500));
    base.work = vec![format!("kind = \"files\"\nsize = \"{size}kB\"\ncount = 5\nthink = \"{think}ms\"\n")];
    base.is_rhythm = true;
    Some(words(&["application had nothing to send", "thinks"]))
}

fn pauses(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let interval = 200 + stream.below(800);
    let size = (base.sum() / 8.0 * interval as f64 * (0.02 + 0.1 * stream.unit())) as u64;
    base.work =
        vec![format!("kind = \"bursts\"\nsize = \"{}kB\"\ncount = 12\ninterval = \"{interval}ms\"\n", size.max(1))];
    base.is_rhythm = true;
    Some(words(&["application had nothing to send", "bursts"]))
}

fn ssthresh(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    base.file(stream, 0.5, 2.5);
    base.is_clean();
    base.host.push(format!("initial-ssthresh = {}", 2 + stream.below(8)));
    Some(words(&["initial ssthresh"]))
}

fn initial_window(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    base.requests(stream);
    base.is_clean();
    base.host.push(format!("initial-window = {}", 1 + stream.below(3)));
    Some(words(&["begins with a window"]))
}

fn receive_buffer(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let size = one(stream, &[16, 32, 48, 64, 96]);
    base.client.push(format!("receive-buffer = \"{size}KiB\""));
    Some(words(&["receiver's window|receive buffer"]))
}

fn tuned_buffer(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let size = one(stream, &[8, 16, 32]);
    base.client.push(format!("receive-buffer = {{ initial = \"{size}KiB\", max = \"{}KiB\" }}", 2 * size));
    Some(words(&["receiver's window|receive buffer"]))
}

fn send_buffer(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    base.server.push(format!("send-buffer = \"{}KiB\"", one(stream, &[16, 32, 48, 64, 96])));
    Some(words(&["send buffer"]))
}

fn win_scale(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let bdp: f64 = base.paths.iter().map(|path| path.rate * path.rtt as f64 / 8.0).sum();
    base.host = vec![format!("receive-buffer = \"{}KiB\"", (2.0 * bdp).max(32.0) as u64)];
    base.is_clean();
    base.client.push(format!("adv-win-scale = -{}", 2 + stream.below(3)));
    Some(words(&["adv-win-scale"]))
}

fn primary(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let fast = base.fastest();
    let slow = (0..base.paths.len()).min_by(|a, b| base.paths[*a].rate.total_cmp(&base.paths[*b].rate))?;
    base.paths[slow].rtt = base.paths[slow].rtt.max(150 + stream.below(300));
    base.requests(stream);
    base.client.push("first-path = \"as-listed\"".to_owned());
    base.run.push(format!("primary = \"{}\"", base.paths[fast].name));
    base.is_clean();
    base.run = vec![format!("primary = \"{}\"", base.paths[slow].name)];
    Some(words(&["begins on", base.paths[slow].name]))
}

fn backup(_stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let path = base.fastest();
    base.paths[path].more.push("backup = true".to_owned());
    Some(words(&[base.paths[path].name, "backup"]))
}

fn subflows(_stream: &mut Stream, base: &mut Base) -> Option<Words> {
    base.host.push("max-subflows = 1".to_owned());
    Some(words(&["max-subflows"]))
}

fn plain(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let host = if stream.chance(0.5) { &mut base.client } else { &mut base.server };
    host.push("multipath = false".to_owned());
    Some(words(&["plain TCP|without MP_CAPABLE"]))
}

fn replace(base: &mut Base, key: &str, value: &str) {
    base.host.retain(|line| !line.starts_with(key));
    base.host.push(format!("{key} = {value}"));
}

fn scheduler(_stream: &mut Stream, base: &mut Base) -> Option<Words> {
    replace(base, "scheduler", "\"single\"");
    Some(words(&["scheduler"]))
}

fn redundant(_stream: &mut Stream, base: &mut Base) -> Option<Words> {
    replace(base, "scheduler", "\"redundant\"");
    Some(words(&["scheduler"]))
}

fn min_rto(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    // Tails are lost, which only a timeout repairs.
    base.requests(stream);
    base.host.push("tlp = false\nreinjection = \"none\"".to_owned());
    base.paths.iter_mut().for_each(|path| path.more.push("loss = \"2%\"".to_owned()));
    base.is_clean();
    base.host.push(format!("min-rto = \"{}ms\"", log(stream, 1000.0, 4000.0) as u64));
    Some(words(&["min-rto|lost by chance|loses"]))
}

fn initial_rto(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    base.file(stream, 0.3, 1.0);
    let path = base.paths[0].name;
    base.client.push("first-path = \"as-listed\"".to_owned());
    base.run.push(format!("primary = \"{path}\""));
    base.paths[0].more.push("middlebox = [{ kind = \"faults\", drop = [0], direction = \"up\" }]".to_owned());
    base.is_clean();
    base.host.push(format!("initial-rto = \"{}ms\"", 3000 + stream.below(5000)));
    Some(words(&["initial-rto|single packets"]))
}

fn sack(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let loss = log(stream, 0.3, 2.0);
    base.paths.iter_mut().for_each(|path| path.more.push(format!("loss = \"{loss:.2}%\"")));
    base.is_clean();
    base.host.push("sack = false".to_owned());
    Some(words(&["SACK"]))
}

fn scaling(_stream: &mut Stream, base: &mut Base) -> Option<Words> {
    base.paths.iter_mut().for_each(|path| {
        path.rtt *= 3;
        path.queue *= 3;
    });
    base.is_clean();
    base.host.push("window-scaling = false".to_owned());
    Some(words(&["window scaling"]))
}

fn mss(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    base.host.push(format!("mss = {}", 80 + stream.below(200)));
    Some(words(&["mss"]))
}

/// A path that comes back, to a host that does not try it again.
fn rejoin(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let path = base.paths[base.fastest()].name;
    base.file(stream, 3.0, 4.0);
    base.host.push("max-consecutive-rtos = 1".to_owned());
    for (at, state) in [(200, "down"), (500, "up")] {
        base.changes.push(format!("at = \"{at}ms\"\npath = \"{path}\"\nstate = \"{state}\"\n"));
    }
    base.is_clean();
    base.host.push("rejoin = false".to_owned());
    Some(words(&["rejoin|goes down"]))
}

fn recovery(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    base.paths.iter_mut().for_each(|path| path.more.push("loss = \"0.5%\"".to_owned()));
    base.is_clean();
    let line = *one(stream, &["rack = false\ntlp = false\nsack = false", "single-repair = true\nsack = false"]);
    base.host.push(line.to_owned());
    Some(words(&["SACK|rack|tlp|single-repair"]))
}

fn coupled(_stream: &mut Stream, base: &mut Base) -> Option<Words> {
    base.host.push("coupled-acks = true".to_owned());
    Some(words(&["coupled-acks"]))
}

fn window(_stream: &mut Stream, base: &mut Base) -> Option<Words> {
    base.host = vec!["receive-buffer = \"96KiB\"".to_owned()];
    base.is_clean();
    replace(base, "window", "\"even\"");
    Some(words(&["window"]))
}

fn ack_path(_stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let slow = base.paths.iter().enumerate().max_by_key(|(_, path)| path.rtt)?.0;
    base.paths[slow].rtt += 200;
    base.host.push("ack-rewrite = true".to_owned());
    base.is_clean();
    replace(base, "ack-path", &format!("{{ name = \"fixed\", path = \"{}\" }}", base.paths[slow].name));
    Some(words(&["ack-path|ACK path"]))
}

fn congestion(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    replace(base, "congestion", &format!("\"{}\"", one(stream, &["wvegas", "vegas", "reno", "veno"])));
    Some(words(&["congestion control|`congestion`"]))
}
