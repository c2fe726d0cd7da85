//! Elements of a link: its queue, and of a shared one its rate.

use super::{Add, listed};
use crate::Kind;
use anabranch_net::{LinkConfig, QueueLimit};
use anabranch_paths::{PathSpec, SharedLink};
use anabranch_sim::Spec;
use anabranch_units::{Bytes, Duration, Rate};

/// Time that a full queue may hold a packet before a shorter one is tried, and the same in round trips.
const LONG_QUEUE: (Duration, f64) = (Duration::from_millis(50), 4.0);
/// Time that packets waited in a queue from which on it is named although the transfer took no longer for it.
const STANDING: Duration = Duration::from_millis(500);
/// Packets of the shortest queue that is tried.
const LEAST_QUEUE: u64 = 16;
/// Bytes of a packet, where a queue counts packets.
const PACKET: u64 = 1500;

/// Shortest round trip of a path, with the links that it shares.
pub(super) fn round_trip(spec: &Spec, path: &PathSpec) -> Duration {
    let shared = spec.network.shared.iter().filter(|link| path.via.as_ref() == Some(&link.name));
    let links = shared.flat_map(|link| [&link.down, &link.up]).chain([&path.down, &path.up]);
    links.fold(Duration::ZERO, |sum, link| sum + link.delay)
}

/// Tells whether a queue of so many bytes holds packets for too long, in time alone.
pub(crate) fn is_long(link: &LinkConfig, queued: Bytes) -> bool {
    let rate = link.service.mean_rate();
    !rate.is_zero() && rate.time_for(queued) > STANDING
}

/// A queue that holds packets for many round trips, or is too short to keep its link busy.
pub(super) fn queue(table: &str, name: &str, link: &LinkConfig, round_trip: Duration, add: &mut Add<'_>) {
    let rate = link.service.mean_rate();
    let bytes = match link.queue {
        QueueLimit::Packets(packets) => u64::from(packets) * PACKET,
        QueueLimit::Bytes(bytes) => bytes.get(),
        QueueLimit::Time(time) => rate.bytes_in(time).get(),
        // It fits by its definition, unless the factor is large.
        QueueLimit::Bdp { factor, round_trip } => (factor * rate.bytes_in(round_trip).get() as f64) as u64,
    };
    if rate.is_zero() || link.queue_counts_delay {
        return;
    }
    let (holds, fits) = (rate.time_for(Bytes::new(bytes)), rate.bytes_in(round_trip).get().div_ceil(PACKET));
    let packets = fits.max(LEAST_QUEUE);
    let sets = vec![format!("{table}.{name}.queue=\"{packets}p\"")];
    let what = format!("a queue of {packets} packets on {name}");
    if holds > LONG_QUEUE.0.max(round_trip.mul_f64(LONG_QUEUE.1)) && packets * PACKET < bytes {
        let cause = format!(
            "{name} has a queue that holds packets for up to {:.2} s (bufferbloat), with a round trip of {round_trip}",
            holds.as_secs_f64()
        );
        add(Kind::ShorterQueue, what, cause, sets);
    } else if bytes < fits.min(2 * LEAST_QUEUE) * PACKET / 2 {
        let cause = format!("{name} has a queue of {} packets only, and drops what comes in bursts", bytes / PACKET);
        add(Kind::LongerQueue, what, cause, sets);
    }
}

/// A link that several paths share, and that carries less than they do together.
pub(super) fn of_shared(spec: &Spec, link: &SharedLink, add: &mut Add<'_>) {
    let users: Vec<&PathSpec> = spec.network.paths.iter().filter(|it| it.via.as_ref() == Some(&link.name)).collect();
    let Some(longest) = users.iter().map(|path| round_trip(spec, path)).max() else { return };
    queue("link", &link.name, &link.down, longest, add);
    let together = |pick: &dyn Fn(&PathSpec) -> Rate| {
        Rate::from_bps(users.iter().map(|path| pick(path).as_bps()).fold(0, u64::saturating_add))
    };
    let (down, up) = (together(&|it| it.down.service.mean_rate()), together(&|it| it.up.service.mean_rate()));
    let (own_down, own_up) = (link.down.service.mean_rate(), link.up.service.mean_rate());
    if users.len() < 2 || (own_down >= down && own_up >= up) {
        return;
    }
    let name = &link.name;
    let names: Vec<String> = users.iter().map(|path| path.name.clone()).collect();
    let cause = format!(
        "{} share the bottleneck {name} of {own_down}, which is less than their {down} together",
        listed(&names)
    );
    let sets =
        vec![format!("link.{name}.down=\"{}\"", down.max(own_down)), format!("link.{name}.up=\"{}\"", up.max(own_up))];
    add(Kind::FasterLink, format!("{name} as fast as its paths together"), cause, sets);
}
