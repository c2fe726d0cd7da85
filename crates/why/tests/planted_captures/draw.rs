//! Drawn scenarios with one planted fault each.

/// A scenario with one fault.
pub struct Planted {
    pub name: &'static str,
    pub text: String,
    /// Hosts at which it is captured.
    pub hosts: &'static [&'static str],
    /// Words that the first sentence has: all of one of these lists.
    pub words: &'static [&'static [&'static str]],
}

/// Draws numbers.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        it ^ (it >> 31)
    }

    fn of(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from + 1)
    }
}

/// Two links: rates in Mbit/s, delays of one way in ms, and the name of the one with the shorter delay.
struct Links {
    rates: [u64; 2],
    delays: [u64; 2],
}

impl Links {
    fn draw(dice: &mut Dice) -> Self {
        Links { rates: [dice.of(15, 60), dice.of(10, 40)], delays: [dice.of(5, 20), dice.of(15, 40)] }
    }

    /// Bytes that both carry in the longer round trip.
    fn product(&self) -> u64 {
        (self.rates[0] + self.rates[1]) * 1_000_000 / 8 * 2 * self.delays[1].max(self.delays[0]) / 1000
    }

    /// Both paths, with further lines for each.
    fn paths(&self, more: [&str; 2]) -> String {
        let one = |n: usize| {
            let ([rate, delay], name) = ([self.rates[n], self.delays[n]], ["wlan", "lte"][n]);
            // Room for what a round trip carries.
            let queue = (rate * 2 * delay * 1000 / 8 / 1500).max(40);
            let queue = if more[n].contains("queue") { String::new() } else { format!("queue = \"{queue}p\"\n") };
            format!("[path.{name}]\nrate = \"{rate}mbit\"\ndelay = \"{delay}ms\"\n{queue}{}\n", more[n])
        };
        one(0) + &one(1)
    }
}

const BOTH: &[&str] = &["client", "server"];
const HOST: &str = "[host]\nsend-buffer = \"4MiB\"\nreceive-buffer = \"4MiB\"\n";

/// Draws one fault of each kind.
pub fn planted(seed: u64) -> Vec<Planted> {
    let kinds: [Kind; 20] = [
        ("nagle", nagle),
        ("delayed-ack", delayed_ack),
        ("receive-buffer", receive_buffer),
        ("send-buffer", send_buffer),
        ("loss", loss),
        ("bufferbloat", bufferbloat),
        ("reordering", reordering),
        ("shared-bottleneck", shared),
        ("cross-traffic", cross_traffic),
        ("ssthresh", ssthresh),
        ("first-path", first_path),
        ("backup", backup),
        ("plain-server", plain_server),
        ("stripped", stripped),
        ("join-dropped", join_dropped),
        ("mtu", mtu),
        ("path-down", path_down),
        ("application", application),
        ("scheduler", scheduler),
        ("think-time", think_time),
    ];
    let one = |(number, (name, fault)): (usize, Kind)| {
        let mut dice = Dice(seed * 1000 + number as u64);
        let links = Links::draw(&mut dice);
        let up = dice.of(0, 3) == 0;
        let hosts = match (dice.of(0, 4), up) {
            (0 | 1, _) => BOTH,
            (2 | 3, true) | (4, false) => &["client"] as &[_],
            _ => &["server"],
        };
        let (text, words) = fault(&mut dice, &links);
        let text = if up { text.replace("[[workload]]\n", "[[workload]]\ndirection = \"up\"\n") } else { text };
        Planted { name, text, hosts, words }
    };
    kinds.into_iter().enumerate().map(one).collect()
}

/// Draws transfers without any fault: large and small ones, many answers, pieces of an application. Answers go down: a
/// simulated client knows at once when an upload was read, which no packet tells, and begins the next.
pub fn clean(seed: u64) -> Vec<Planted> {
    let kinds: [Work; 4] = [
        ("large", |dice| files(dice, [3, 8])),
        ("small", |dice| format!("[[workload]]\nkind = \"files\"\nsize = \"{}kB\"\n", dice.of(20, 300))),
        ("answers", answers),
        ("pieces", pieces),
    ];
    let one = |(number, (name, work)): (usize, Work)| {
        let mut dice = Dice(seed * 1000 + 500 + number as u64);
        let links = Links::draw(&mut dice);
        let up = dice.of(0, 3) == 0 && name != "answers";
        let text = links.paths([""; 2]) + HOST + &work(&mut dice);
        let text = if up { text.replace("[[workload]]\n", "[[workload]]\ndirection = \"up\"\n") } else { text };
        Planted { name, text, hosts: BOTH, words: &[] }
    };
    kinds.into_iter().enumerate().map(one).collect()
}

type Words = &'static [&'static [&'static str]];
/// A workload: its name, and its text.
type Work = (&'static str, fn(&mut Dice) -> String);
/// A fault: its name, and the scenario with what the first sentence says of it.
type Kind = (&'static str, fn(&mut Dice, &Links) -> (String, Words));

fn files(dice: &mut Dice, mb: [u64; 2]) -> String {
    format!("[[workload]]\nkind = \"files\"\nsize = \"{}kB\"\n", dice.of(mb[0] * 1000, mb[1] * 1000))
}

/// Answers of an odd number of full segments and a rest.
fn answers(dice: &mut Dice) -> String {
    let (size, count) = (1420 * (2 * dice.of(0, 2) + 1) + dice.of(100, 900), dice.of(10, 25));
    format!("[[workload]]\nkind = \"files\"\nsize = \"{size}B\"\ncount = {count}\nwarm = true\n")
}

fn nagle(dice: &mut Dice, links: &Links) -> (String, Words) {
    let host = format!("{HOST}nagle = true\ndelayed-ack = false\nscheduler = \"min-rtt\"\n");
    (links.paths([""; 2]) + &host + &answers(dice), &[&["(Nagle)"], &["TCP_NODELAY"]])
}

fn delayed_ack(dice: &mut Dice, links: &Links) -> (String, Words) {
    let delay = dice.of(100, 500);
    let host = format!("{HOST}nagle = true\nquick-acks = 0\ndelayed-ack = \"{delay}ms\"\n");
    (links.paths([""; 2]) + &host + &answers(dice), &[&["acknowledgment that the receiver delayed"]])
}

fn receive_buffer(dice: &mut Dice, links: &Links) -> (String, Words) {
    let size = links.product() * dice.of(10, 25) / 100;
    let host = format!("[host]\nsend-buffer = \"4MiB\"\nreceive-buffer = \"{size}B\"\n");
    (links.paths([""; 2]) + &host + &files(dice, [3, 10]), &[&["window, of", "was used up"]])
}

fn send_buffer(dice: &mut Dice, links: &Links) -> (String, Words) {
    let size = links.product() * dice.of(10, 25) / 100;
    let host = format!("[host]\nreceive-buffer = \"4MiB\"\nsend-buffer = \"{size}B\"\n");
    (links.paths([""; 2]) + &host + &files(dice, [3, 10]), &[&["the send buffer of", "was full"]])
}

fn loss(dice: &mut Dice, links: &Links) -> (String, Words) {
    let one = format!("loss = \"{}%\"", dice.of(10, 40) as f64 / 10.0);
    (links.paths([&one, &one]) + HOST + &files(dice, [3, 8]), &[&["after losses"], &["by chance"]])
}

fn bufferbloat(dice: &mut Dice, links: &Links) -> (String, Words) {
    let slow = Links { rates: [links.rates[0] / 5, dice.of(1, 3)], delays: links.delays };
    let queue = format!("queue = \"{}p\"", dice.of(1000, 2500));
    (slow.paths(["", &queue]) + HOST + &files(dice, [4, 8]), &[&["(bufferbloat)"]])
}

fn reordering(dice: &mut Dice, links: &Links) -> (String, Words) {
    let one = format!("reorder = {{ probability = \"{}%\", delay = \"{}ms\" }}", dice.of(3, 10), dice.of(15, 40));
    (links.paths([&one, ""]) + HOST + &files(dice, [4, 8]), &[&["overtook each other"]])
}

fn shared(dice: &mut Dice, links: &Links) -> (String, Words) {
    let rate = dice.of(5, 9);
    let link = format!("[link.home]\nrate = \"{rate}mbit\"\ndelay = \"1ms\"\nqueue = \"{}p\"\n", dice.of(40, 100));
    let via = ["via = \"home\""; 2];
    (links.paths(via) + &link + HOST + &files(dice, [4, 8]), &[&["share"]])
}

fn cross_traffic(dice: &mut Dice, links: &Links) -> (String, Words) {
    let rate = links.rates[0] * dice.of(70, 90) / 100;
    let beside = format!("[[workload]]\nkind = \"udp\"\npath = \"wlan\"\nrate = \"{rate}mbit\"\n");
    (links.paths([""; 2]) + HOST + &files(dice, [4, 8]) + &beside, &[&["other traffic"]])
}

fn ssthresh(dice: &mut Dice, links: &Links) -> (String, Words) {
    let far = Links { rates: links.rates, delays: [links.delays[0] * 4, links.delays[1] * 4] };
    let host = format!("{HOST}initial-ssthresh = {}\n", dice.of(2, 8));
    (far.paths([""; 2]) + &host + &files(dice, [2, 5]), &[&["left slow start"]])
}

fn first_path(dice: &mut Dice, links: &Links) -> (String, Words) {
    let far = Links { rates: [dice.of(2, 6), links.rates[1]], delays: [dice.of(150, 400), links.delays[0]] };
    let host = format!("{HOST}first-path = \"as-listed\"\n");
    (
        far.paths([""; 2]) + &host + &format!("[[workload]]\nkind = \"files\"\nsize = \"{}kB\"\n", dice.of(20, 200)),
        &[&["began on"]],
    )
}

fn backup(dice: &mut Dice, links: &Links) -> (String, Words) {
    (links.paths(["", "backup = true"]) + HOST + &files(dice, [4, 8]), &[&["marked as a backup"]])
}

const AS_LISTED: &str = "first-path = \"as-listed\"\n";

fn plain_server(dice: &mut Dice, links: &Links) -> (String, Words) {
    let server = "[server]\nmultipath = false\n";
    (
        links.paths([""; 2]) + HOST + AS_LISTED + server + &files(dice, [4, 8]),
        &[&["without MP_CAPABLE"], &["plain TCP"]],
    )
}

fn stripped(dice: &mut Dice, links: &Links) -> (String, Words) {
    let from = ["syn", "syn-ack"][dice.of(0, 1) as usize];
    let strip = format!("[[path.wlan.middlebox]]\nkind = \"strip\"\nfrom = \"{from}\"\n");
    (
        links.paths([""; 2]) + &strip + HOST + AS_LISTED + &files(dice, [4, 8]),
        &[&["removed"], &["removes"], &["without MP_CAPABLE"]],
    )
}

fn join_dropped(dice: &mut Dice, links: &Links) -> (String, Words) {
    let drop = "[[path.lte.middlebox]]\nkind = \"drop-syn\"\noption = \"mp-join\"\n";
    let words: Words = &[
        &["lte", "its join was never answered"],
        &["10.0.1.1", "its join was never answered"],
        &["no MP_JOIN is in the capture"],
    ];
    (links.paths([""; 2]) + drop + HOST + AS_LISTED + &files(dice, [4, 8]), words)
}

fn mtu(dice: &mut Dice, links: &Links) -> (String, Words) {
    let hole = "[[path.lte.middlebox]]\nkind = \"mtu-blackhole\"\n";
    (links.paths([""; 2]) + hole + HOST + AS_LISTED + &files(dice, [4, 8]), &[&["MTU"]])
}

fn path_down(dice: &mut Dice, links: &Links) -> (String, Words) {
    let at = dice.of(200, 500);
    let dies = format!("[[change]]\nat = \"{at}ms\"\npath = \"wlan\"\nstate = \"blackhole\"\n");
    (links.paths([""; 2]) + &dies + HOST + AS_LISTED + &files(dice, [6, 12]), &[&["as if it were down"]])
}

fn pieces(dice: &mut Dice) -> String {
    let (size, interval) = (dice.of(20, 80), dice.of(150, 400));
    format!("[[workload]]\nkind = \"bursts\"\nsize = \"{size}kB\"\ncount = 15\ninterval = \"{interval}ms\"\n")
}

fn application(dice: &mut Dice, links: &Links) -> (String, Words) {
    (links.paths([""; 2]) + HOST + &pieces(dice), &[&["the application on", "had written nothing more"]])
}

fn scheduler(dice: &mut Dice, links: &Links) -> (String, Words) {
    let host = format!("{HOST}scheduler = \"single\"\n");
    (links.paths([""; 2]) + &host + &files(dice, [4, 8]), &[&["the sender gave it nothing"], &["the scheduler of"]])
}

fn think_time(dice: &mut Dice, links: &Links) -> (String, Words) {
    let (size, think) = (dice.of(20, 100), dice.of(200, 600));
    let work = format!(
        "[[workload]]\nkind = \"files\"\nsize = \"{size}kB\"\ncount = 10\nwarm = true\nthink = \"{think}ms\"\n"
    );
    (links.paths([""; 2]) + HOST + &work, &[&["the application on", "had written nothing more"]])
}
