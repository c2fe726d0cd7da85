//! Faults of the network and of others.

use super::base::{Base, log, one};
use super::{Kind, Words, words};
use anabranch_units::Stream;

/// Faults of paths, links, boxes and other traffic.
pub const KINDS: &[Kind] = &[
    ("loss", loss),
    ("bursts of losses", loss_bursts),
    ("loss that varies", vary_loss),
    ("loss of ACKs", loss_up),
    ("loss on all paths", loss_everywhere),
    ("reordering", reordering),
    ("jitter", jitter),
    ("damage", damage),
    ("duplicates", duplicates),
    ("rate that varies", vary_rate),
    ("delay that varies", vary_delay),
    ("small queue", small_queue),
    ("long queue", long_queue),
    ("UDP", udp),
    ("on-off UDP", udp_on_off),
    ("competing TCP", tcp),
    ("shared bottleneck", shared),
    ("shared link with loss", shared_loss),
    ("MTU black hole", hole),
    ("box that strips", strip),
    ("box that drops SYNs", drop_syn),
    ("box that drops segments", drop_segments),
    ("box that holds segments", coalesce),
    ("path that fails", fails),
    ("path that fails for a while", outage),
    ("path that slows down", slows),
    ("narrow way back", narrow),
    ("slow interface", nic),
];

fn any(stream: &mut Stream, base: &Base) -> usize {
    // Mostly the fastest: there it matters.
    if stream.chance(0.7) { base.fastest() } else { stream.below(base.paths.len() as u64) as usize }
}

/// Adds a line to a path, and names it.
fn on(stream: &mut Stream, base: &mut Base, line: String) -> &'static str {
    let path = any(stream, base);
    base.paths[path].more.push(line);
    base.paths[path].name
}

fn share(stream: &mut Stream, low: f64, high: f64) -> f64 {
    (log(stream, low, high) * 100.0).round() / 100.0
}

fn loss(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let loss = share(stream, 0.5, 5.0);
    let path = on(stream, base, format!("loss = \"{loss}%\""));
    Some(words(&[path, "loses|lost by chance"]))
}

fn loss_bursts(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let (begin, end) = (share(stream, 0.1, 1.0), share(stream, 10.0, 50.0));
    let line = format!(
        "loss = {{ model = \"gilbert-elliott\", p-good-bad = \"{begin}%\", p-bad-good = \"{end}%\", \
         loss-bad = \"80%\" }}"
    );
    let path = on(stream, base, line);
    Some(words(&[path, "loses|lost by chance"]))
}

fn vary_loss(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let (low, high) = (share(stream, 0.1, 1.0), share(stream, 2.0, 6.0));
    let path = on(stream, base, format!("vary = {{ loss = [\"{low}%\", \"{high}%\"] }}"));
    Some(words(&[path, "loses|loss"]))
}

fn loss_up(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let loss = share(stream, 5.0, 40.0);
    let path = on(stream, base, format!("loss = \"0%\"\nloss-up = \"{loss}%\""));
    Some(words(&[path, "loses|lost by chance"]))
}

fn loss_everywhere(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let loss = share(stream, 0.5, 4.0);
    base.paths.iter_mut().for_each(|path| path.more.push(format!("loss = \"{loss}%\"")));
    Some(words(&["loses|lost by chance"]))
}

fn reordering(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let (probability, delay) = (share(stream, 1.0, 20.0), 10 + stream.below(60));
    let path = on(stream, base, format!("reorder = {{ probability = \"{probability}%\", delay = \"{delay}ms\" }}"));
    Some(words(&[path, "reorders"]))
}

fn jitter(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let (jitter, reorders) = (log(stream, 10.0, 150.0) as u64, stream.chance(0.6));
    let path = on(stream, base, format!("jitter = \"{jitter}ms\"\njitter-reorders = {reorders}"));
    Some(words(&[path, "at random|jitter"]))
}

fn damage(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let part = share(stream, 0.5, 5.0);
    let path = on(stream, base, format!("corrupt = \"{part}%\""));
    Some(words(&[path, "damages"]))
}

fn duplicates(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let part = share(stream, 5.0, 50.0);
    let path = on(stream, base, format!("duplicate = \"{part}%\""));
    Some(words(&[path, "duplicates"]))
}

fn vary_rate(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let path = base.fastest();
    let most = base.paths[path].rate;
    let least = (most * (0.05 + 0.3 * stream.unit()) * 10.0).round() / 10.0;
    let every = 50 + stream.below(400);
    let line = format!("vary = {{ rate = [\"{least}mbit\", \"{most}mbit\"], every = \"{every}ms\" }}");
    base.paths[path].more.push(line);
    Some(words(&[base.paths[path].name, "varies|changes"]))
}

fn vary_delay(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let path = base.fastest();
    let least = base.paths[path].rtt;
    let (most, every) = (least + 50 + stream.below(250), 50 + stream.below(400));
    let line = format!("vary = {{ rtt = [\"{least}ms\", \"{most}ms\"], every = \"{every}ms\" }}");
    base.paths[path].more.push(line);
    Some(words(&[base.paths[path].name, "varies|changes"]))
}

fn small_queue(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let path = base.fastest();
    base.paths[path].queue = 2 + stream.below(8);
    Some(words(&[base.paths[path].name, "queue"]))
}

/// A long queue that somebody else fills, while requests wait behind.
fn long_queue(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let path = any(stream, base);
    let name = base.paths[path].name;
    base.requests(stream);
    base.work.push("kind = \"bulk\"\nduration = \"6s\"\n".to_owned());
    base.is_clean();
    base.paths[path].queue *= 8 + stream.below(20);
    Some(words(&[name, "queue"]))
}

fn udp(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let path = base.fastest();
    let rate = base.paths[path].rate * (0.5 + 0.45 * stream.unit());
    let name = base.paths[path].name;
    base.work.push(format!("kind = \"udp\"\npath = \"{name}\"\nrate = \"{rate:.1}mbit\"\n"));
    Some(words(&[name, "Cross traffic"]))
}

fn udp_on_off(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let path = base.fastest();
    let (rate, name) = (base.paths[path].rate * (0.9 + 0.4 * stream.unit()), base.paths[path].name);
    base.work.push(format!(
        "kind = \"udp\"\npath = \"{name}\"\nrate = \"{rate:.1}mbit\"\non = \"{}ms\"\noff = \"{}ms\"\n",
        100 + stream.below(500),
        50 + stream.below(200)
    ));
    Some(words(&[name, "Cross traffic"]))
}

fn tcp(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let name = base.paths[base.fastest()].name;
    for _ in 0..1 + stream.below(3) {
        let congestion = one(stream, &["reno", "cubic"]);
        base.work.push(format!("kind = \"tcp\"\npath = \"{name}\"\nsize = \"100MB\"\ncongestion = \"{congestion}\"\n"));
    }
    base.run.push("stop = \"30s\"".to_owned());
    Some(words(&[name, "Cross traffic"]))
}

/// A link that all paths cross; without the fault it carries them all.
fn shared(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let sum = base.sum();
    base.paths.iter_mut().for_each(|path| path.more.push("via = \"home\"".to_owned()));
    let link = |rate: f64| format!("[link.home]\nrate = \"{rate:.1}mbit\"\ndelay = \"1ms\"\nqueue = \"100p\"\n");
    base.links = vec![link(2.0 * sum)];
    base.is_clean();
    base.links = vec![link(sum * (0.2 + 0.5 * stream.unit()))];
    Some(words(&["home", "share"]))
}

fn shared_loss(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    base.paths.iter_mut().for_each(|path| path.more.push("via = \"home\"".to_owned()));
    let link = format!("[link.home]\nrate = \"{:.1}mbit\"\ndelay = \"1ms\"\nqueue = \"100p\"\n", 2.0 * base.sum());
    base.links = vec![link.clone()];
    base.is_clean();
    base.links = vec![format!("{link}loss = \"{}%\"\n", share(stream, 0.5, 4.0))];
    Some(words(&["home", "loses|lost by chance"]))
}

fn hole(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let size = 600 + stream.below(850);
    let line = format!("middlebox = [{{ kind = \"mtu-blackhole\", size = \"{size}B\" }}]");
    let path = on(stream, base, line);
    Some(words(&[path, "black hole"]))
}

fn strip(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let from = one(stream, &["syn", "syn-ack", "third-ack", "all", "after-handshake"]);
    // Beside one that does no harm.
    let harmless = if stream.chance(0.5) { "{ kind = \"rewrite-sequence\" }, " } else { "" };
    let path = on(stream, base, format!("middlebox = [{harmless}{{ kind = \"strip\", from = \"{from}\" }}]"));
    Some(words(&[path, "removes MPTCP options"]))
}

fn drop_syn(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let option = one(stream, &["mp-capable", "mp-join"]);
    let path = on(stream, base, format!("middlebox = [{{ kind = \"drop-syn\", option = \"{option}\" }}]"));
    Some(words(&[path, "drops SYNs|join was never completed"]))
}

fn drop_segments(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    base.requests(stream);
    base.is_clean();
    let first = stream.below(12);
    let all: Vec<String> = (0..4 + stream.below(6)).map(|n| (first + n).to_string()).collect();
    let line = format!("middlebox = [{{ kind = \"faults\", drop = [{}], direction = \"down\" }}]", all.join(", "));
    let path = on(stream, base, line);
    Some(words(&[path, "single packets"]))
}

fn coalesce(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let wait = 20 + stream.below(200);
    let path = on(stream, base, format!("middlebox = [{{ kind = \"coalesce\", wait = \"{wait}ms\" }}]"));
    Some(words(&[path, "merges segments"]))
}

fn change(base: &mut Base, at: u64, path: &str, what: &str) {
    base.changes.push(format!("at = \"{at}ms\"\npath = \"{path}\"\n{what}\n"));
}

fn fails(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let (path, at) = (base.paths[base.fastest()].name, 100 + stream.below(800));
    let state = one(stream, &["down", "blackhole"]);
    change(base, at, path, &format!("state = \"{state}\""));
    Some(words(&[path, "goes down|black hole|was down"]))
}

fn outage(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let (path, at) = (base.paths[base.fastest()].name, 100 + stream.below(800));
    let (state, back) = *one(stream, &[("down", "up"), ("blackhole", "restore")]);
    change(base, at, path, &format!("state = \"{state}\""));
    change(base, at + 300 + stream.below(1500), path, &format!("state = \"{back}\""));
    Some(words(&[path, "goes down|black hole|was down"]))
}

fn slows(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let (fastest, at) = (base.fastest(), 100 + stream.below(800));
    let (path, rate) = (base.paths[fastest].name, base.paths[fastest].rate * (0.05 + 0.3 * stream.unit()));
    change(base, at, path, &format!("rate = \"{rate:.1}mbit\""));
    Some(words(&[path, "changes its rate"]))
}

/// A way back that ACKs fill.
fn narrow(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let path = base.fastest();
    base.paths[path].up = Some((base.paths[path].rate * 1000.0 / (80.0 + stream.below(200) as f64)).round() / 1000.0);
    Some(words(&[base.paths[path].name, "ACKs|way back"]))
}

fn nic(stream: &mut Stream, base: &mut Base) -> Option<Words> {
    let path = base.fastest();
    let rate = base.paths[path].rate * (0.1 + 0.3 * stream.unit());
    base.paths[path].more.push(format!("nic = \"{rate:.1}mbit\""));
    Some(words(&[base.paths[path].name, "interface"]))
}
