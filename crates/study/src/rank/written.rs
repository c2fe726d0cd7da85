//! Condition written as a scenario: the TOML of the schema, and the traces beside it.

use super::condition::{Condition, DrawnPath, Dynamics, Family, LossKind, PageKind, Work};
#[cfg(not(target_arch = "wasm32"))]
use super::drive::Network;
use anabranch_net::trace::{LteParams, synthetic_lte};
use anabranch_policy::Catalogue;
use anabranch_scenario::Origin;
use anabranch_scenario::{Scenario, ScenarioError};
use anabranch_units::{Duration, Rate, input};
use std::fmt::Write;
use std::io::{Error, ErrorKind};
use std::path::Path;
use std::sync::Arc;

impl Family {
    /// Families whose conditions follow from seed and number alone.
    const NAMED: [Family; 2] = [Family::Drawn, Family::Drives];

    /// Prefix of the names of its conditions: `drawn/SEED/NUMBER` is accepted wherever a scenario is.
    fn prefix(self) -> &'static str {
        match self {
            Family::Drawn => "drawn/",
            Family::Drives => "drive/",
            Family::Recorded => "recorded-",
        }
    }
}

impl Condition {
    /// Returns the condition of the name `drawn/SEED/NUMBER` or `drive/SEED/NUMBER`; `None` for any other name.
    pub(crate) fn named(name: &str) -> Option<Condition> {
        let (family, numbers) =
            Family::NAMED.into_iter().find_map(|family| Some((family, name.strip_prefix(family.prefix())?)))?;
        let (seed, number) = numbers.split_once('/')?;
        let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        (plain(seed) && plain(number)).then_some(())?;
        let (seed, number) = (seed.parse().ok()?, number.parse().ok()?);
        Some(match family {
            Family::Drawn => Condition::drawn(seed, number),
            Family::Drives => Condition::drive(seed, number),
            Family::Recorded => return None,
        })
    }

    /// Returns true if the name begins like that of a drawn condition.
    pub(crate) fn is_like_a_name(name: &str) -> bool {
        Family::NAMED.iter().any(|family| name.starts_with(family.prefix()))
    }

    /// Returns the name for the command line, such as `drawn/SEED/NUMBER`, or that of its file.
    pub fn name(&self) -> String {
        match self.drawn {
            Some((Family::Recorded, ..)) | None => self.file(),
            Some((family, seed, number)) => format!("{}{seed}/{number}", family.prefix()),
        }
    }

    /// Returns the name of its file.
    pub fn file(&self) -> String {
        format!("{}.toml", self.stem)
    }

    /// Describes it in a few words.
    pub fn about(&self) -> String {
        let paths = self.paths.iter().map(|path| {
            let model = path.network.as_ref().map_or(String::new(), |network| format!("{} ", network.name()));
            format!("{model}{} Mbit/s {} ms", path.rate, path.rtt)
        });
        let loss = self
            .paths
            .iter()
            .filter(|path| path.loss > 0.0)
            .map(|path| format!("{} loses {}%", path.name, (path.loss * 1e4).round() / 100.0));
        let mut words = vec![paths.collect::<Vec<_>>().join(" + "), self.work.about()];
        words.extend(loss);
        words.extend(Some(self.dynamics.name()).filter(|name| *name != "none").map(str::to_owned));
        words.push(self.congestion.to_owned());
        words.join(", ")
    }

    /// Returns the text of the scenario file.
    pub fn toml(&self) -> String {
        let mut text = String::new();
        let about = match self.drawn {
            Some((Family::Drawn, seed, number)) => format!("condition {number} of seed {seed}"),
            Some((Family::Drives, seed, number)) => format!("drive {number} of seed {seed}"),
            Some((Family::Recorded, seed, number)) => format!("recorded drive {number} of seed {seed}"),
            None => format!("condition {}", self.stem),
        };
        line(&mut text, format_args!("about = \"{about}: {}\"", self.about()));
        for (n, path) in self.paths.iter().enumerate() {
            self.path(&mut text, n, path);
        }
        if let Dynamics::Shared { rate, queue } = self.dynamics {
            line(&mut text, format_args!("\n[link.bottleneck]\nrate = \"{rate}mbit\"\nqueue = \"{queue}p\""));
        }
        line(&mut text, format_args!("\n[host]\ncongestion = \"{}\"", self.congestion));
        line(&mut text, format_args!("send-buffer = \"{}B\"", self.send_buffer));
        match self.receive_buffer {
            Some(bytes) => line(&mut text, format_args!("receive-buffer = \"{bytes}B\"")),
            None => {
                let most = if self.family() == Family::Drawn { 6 } else { 32 };
                line(&mut text, format_args!("receive-buffer = {{ initial = \"64KiB\", max = \"{most}MiB\" }}"));
            }
        }
        line(&mut text, format_args!("max-subflows = 4\n\n[[workload]]"));
        self.work.write(&mut text);
        self.cross(&mut text);
        self.failure(&mut text);
        line(&mut text, format_args!("\n[run]\nstop = \"{}s\"", self.stop()));
        if matches!(self.dynamics, Dynamics::Cellular { .. }) {
            line(&mut text, format_args!("spread = \"{SPREAD}s\""));
        }
        text
    }

    fn path(&self, text: &mut String, n: usize, path: &DrawnPath) {
        let vary = match &self.dynamics {
            Dynamics::Vary { path, every, rate, rtt } if *path == n => Some((every, rate, rtt)),
            _ => None,
        };
        line(text, format_args!("\n[path.{}]", path.name));
        if let Some(network) = &path.network {
            line(text, format_args!("{}", network.entries(path.rate, path.rtt, &self.recording_name(path))));
            line(text, format_args!("up = \"{}mbit\"\nqueue = \"{}p\"", path.up, path.queue));
            return;
        }
        match &self.dynamics {
            Dynamics::Cellular { path, .. } if *path == n => {
                let [down, up] = self.trace_names();
                line(text, format_args!("down = \"{down}\"\nup = \"{up}\""));
            }
            // Rates that vary are alike in both directions.
            _ if vary.is_some() || path.up == path.rate => line(text, format_args!("rate = \"{}mbit\"", path.rate)),
            _ => line(text, format_args!("down = \"{}mbit\"\nup = \"{}mbit\"", path.rate, path.up)),
        }
        line(text, format_args!("rtt = \"{}ms\"", path.rtt));
        if let Some((jitter, reorders)) = path.jitter {
            line(text, format_args!("jitter = \"{jitter}ms\""));
            if reorders {
                line(text, format_args!("jitter-reorders = true"));
            }
        }
        line(text, format_args!("queue = \"{}p\"", path.queue));
        if let Some(length) = path.burst {
            let back = 1.0 / length;
            let (good_bad, bad_good) = (100.0 * path.loss * back / (1.0 - path.loss), 100.0 * back);
            line(
                text,
                format_args!(
                    "loss = {{ model = \"gilbert-elliott\", p-good-bad = \"{good_bad:.6}%\", \
                     p-bad-good = \"{bad_good:.4}%\", loss-good = \"0%\", loss-bad = \"100%\" }}"
                ),
            );
        } else if path.loss > 0.0 {
            line(text, format_args!("loss = \"{:.5}%\"", 100.0 * path.loss));
        }
        if path.loss > 0.0 && !self.loss_both_ways {
            line(text, format_args!("loss-up = \"0%\""));
        }
        if let Some((every, [slow, fast], [near, far])) = vary {
            line(
                text,
                format_args!(
                    "vary = {{ every = \"{every}ms\", rate = [\"{slow}mbit\", \"{fast}mbit\"], \
                     rtt = [\"{near}ms\", \"{far}ms\"] }}"
                ),
            );
        }
        if matches!(self.dynamics, Dynamics::Shared { .. }) {
            line(text, format_args!("via = \"bottleneck\""));
        }
    }

    fn cross(&self, text: &mut String) {
        match &self.dynamics {
            Dynamics::CrossTcp { path, duration, congestion } => {
                let path = self.paths[*path].name;
                line(text, format_args!("\n[[workload]]\nkind = \"tcp\"\npath = \"{path}\""));
                line(text, format_args!("duration = \"{duration}s\"\ncongestion = \"{congestion}\""));
            }
            Dynamics::CrossUdp { path, rate, on, off } => {
                let path = self.paths[*path].name;
                line(text, format_args!("\n[[workload]]\nkind = \"udp\"\npath = \"{path}\"\nrate = \"{rate}mbit\""));
                line(text, format_args!("on = \"{on}ms\"\noff = \"{off}ms\"\nstop = \"60s\""));
            }
            _ => {}
        }
    }

    fn failure(&self, text: &mut String) {
        let Dynamics::Failure { path, at, silent, back } = &self.dynamics else { return };
        let path = self.paths[*path].name;
        let (dies, lives) = if *silent { ("blackhole", "restore") } else { ("down", "up") };
        line(text, format_args!("\n[[change]]\nat = \"{at}s\"\npath = \"{path}\"\nstate = \"{dies}\""));
        if let Some(back) = back {
            line(text, format_args!("\n[[change]]\nat = \"{back}s\"\npath = \"{path}\"\nstate = \"{lives}\""));
        }
    }

    fn trace_names(&self) -> [String; 2] {
        [format!("{}.down", self.stem), format!("{}.up", self.stem)]
    }

    /// Returns the name of the file with the recording that a path follows.
    fn recording_name(&self, path: &DrawnPath) -> String {
        format!("{}.{}.csv", self.stem, path.name)
    }

    /// Returns the recordings that its paths follow, by the names of their files.
    #[cfg(not(target_arch = "wasm32"))]
    fn recordings(&self) -> Vec<(String, String)> {
        let followed = self.paths.iter().filter_map(|path| match &path.network {
            Some(Network::Recorded(recorded)) => Some((self.recording_name(path), recorded.text.clone())),
            _ => None,
        });
        followed.collect()
    }

    #[cfg(target_arch = "wasm32")]
    fn recordings(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Returns the traces that the scenario file names, each with its text.
    pub fn traces(&self) -> Vec<(String, String)> {
        let Dynamics::Cellular { path, seed, handover } = self.dynamics else { return self.recordings() };
        let rates = [self.paths[path].rate, self.paths[path].up];
        let one = |(n, (name, rate)): (usize, (String, f64))| {
            (name, synthetic_lte(2 * seed + n as u64, &cellular(rate, handover)))
        };
        self.trace_names().into_iter().zip(rates).enumerate().map(one).collect()
    }

    /// Returns the scenario, overridden by each `KEY=VALUE` of `sets`.
    ///
    /// # Errors
    ///
    /// If an override is not valid.
    pub fn scenario(&self, catalogue: &Arc<Catalogue>, sets: &[String]) -> Result<Scenario, ScenarioError> {
        let origin = Origin { scenario: self.name(), sets: sets.to_vec() };
        let is_own = |name: &str| name.strip_prefix(&*self.stem).is_some_and(|rest| rest.starts_with('.'));
        let read = |name: &str, from_set: bool| match is_own(name) && !from_set {
            true => {
                let found = self.traces().into_iter().find(|(own, _)| own == name);
                found.map(|(_, text)| text).ok_or_else(|| Error::from(ErrorKind::NotFound))
            }
            false => input::text(Path::new(name), input::RECORDED),
        };
        Scenario::read(catalogue, &self.name(), &self.file(), &self.toml(), origin, &read)
    }
}

/// Period after which traces repeat; repetitions begin within the first [`SPREAD`] seconds.
const PERIOD: Duration = Duration::from_secs(120);
const SPREAD: u64 = 60;

/// Returns the parameters of a car's LTE link: rates deviate by three quarters of their mean and return within seconds;
/// handovers interrupt it.
fn cellular(mean: f64, handover: f64) -> LteParams {
    let rate = |mbps: f64| Rate::from_bps((mbps * 1e6).round() as u64);
    LteParams {
        period: PERIOD,
        mean: rate(mean),
        spread: rate(0.75 * mean),
        floor: rate(0.02 * mean),
        ceiling: rate(5.0 * mean),
        memory: Duration::from_secs(2),
        handover_every: Duration::from_secs_f64(handover),
        handover: (Duration::from_millis(100), Duration::from_millis(1500)),
    }
}

impl Work {
    /// Returns the name of its class in tables.
    pub fn name(&self) -> &'static str {
        use super::condition::Class;
        match self {
            Work::File { class: Class::Short, .. } => "short",
            Work::File { class: Class::Medium, .. } => "medium",
            Work::File { class: Class::Long, .. } => "long",
            Work::Bursts { .. } => "warm",
            Work::Bulk => "bulk",
            Work::Page { .. } => "web",
            Work::Interactive { .. } => "interactive",
        }
    }

    fn about(&self) -> String {
        match self {
            Work::File { size, .. } => format!("{} kB", (*size as f64 / 1e3).round()),
            Work::Bursts { size, count, .. } => format!("{count} bursts of {} kB", (*size as f64 / 1e3).round()),
            Work::Bulk => "bulk".to_owned(),
            Work::Page { page: PageKind::Site(name), protocol } => format!("page {name} over {protocol}"),
            Work::Page { page: PageKind::Generated { objects, total, .. }, protocol } => {
                format!("page of {objects} objects, {} kB over {protocol}", (*total as f64 / 1e3).round())
            }
            Work::Interactive { .. } => "interactive".to_owned(),
        }
    }

    fn write(&self, text: &mut String) {
        match self {
            Work::File { size, .. } => line(text, format_args!("kind = \"files\"\nsize = \"{size}B\"")),
            Work::Bursts { size, count, interval } => {
                line(text, format_args!("kind = \"bursts\"\nsize = \"{size}B\"\ncount = {count}"));
                line(text, format_args!("interval = \"{interval}ms\"\nwarm-up = \"200000B\""));
            }
            Work::Bulk => {
                line(text, format_args!("kind = \"bulk\"\nduration = \"{}s\"", super::condition::BULK_SECONDS));
            }
            Work::Page { page, protocol } => {
                match page {
                    PageKind::Site(name) => line(text, format_args!("kind = \"web\"\npage = \"{name}\"")),
                    PageKind::Generated { objects, total, seed } => line(
                        text,
                        format_args!(
                            "kind = \"web\"\npage = {{ objects = {objects}, total = \"{total}B\", seed = {seed} }}"
                        ),
                    ),
                }
                line(text, format_args!("protocol = \"{protocol}\""));
            }
            Work::Interactive { session } => {
                line(text, format_args!("kind = \"interactive\"\nduration = \"20s\"\ntrace-seed = {session}"));
            }
        }
    }
}

impl Dynamics {
    /// Returns the name of its class in tables.
    pub fn name(&self) -> &'static str {
        match self {
            Dynamics::None => "none",
            Dynamics::Cellular { .. } => "cellular",
            Dynamics::Vary { .. } => "varying",
            Dynamics::Failure { .. } => "failure",
            Dynamics::Shared { .. } => "shared bottleneck",
            Dynamics::CrossTcp { .. } | Dynamics::CrossUdp { .. } => "cross traffic",
        }
    }
}

impl LossKind {
    /// Returns the name of its class in tables.
    pub fn name(self) -> &'static str {
        match self {
            LossKind::None => "none",
            LossKind::All => "all paths",
            LossKind::Some => "some paths",
            LossKind::Burst => "bursts on one",
        }
    }
}

fn line(text: &mut String, words: std::fmt::Arguments<'_>) {
    writeln!(text, "{words}").expect("writing to a String cannot fail");
}
