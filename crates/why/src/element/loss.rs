//! Loss by chance: of each link, as written or drawn for each run, and of all.

use super::{Add, listed, percent};
use crate::Kind;
use anabranch_net::{LinkConfig, LossModel};
use anabranch_paths::Affected;
use anabranch_scenario::Scenario;

/// A link that loses packets by chance.
struct Lossy<'a> {
    name: &'a str,
    /// Share of packets, as a clause that follows "loses".
    share: String,
    sets: Vec<String>,
}

/// Loss of each link and of all.
pub(super) fn losses(scenario: &Scenario, add: &mut Add<'_>) {
    let network = &scenario.written().network;
    let paths = network.paths.iter().map(|path| ("path", path.name.as_str(), [&path.down, &path.up]));
    let links = network.shared.iter().map(|link| ("link", link.name.as_str(), [&link.down, &link.up]));
    let lossy: Vec<Lossy<'_>> =
        paths.chain(links).filter_map(|(table, name, both)| lossy(scenario, table, name, both)).collect();
    let clause = |it: &Lossy<'_>| format!("{} loses {} by chance", it.name, it.share);
    match lossy.as_slice() {
        [] => {}
        [one] => add(Kind::NoLoss, "no random loss".to_owned(), clause(one), one.sets.clone()),
        several => {
            let names: Vec<String> = several.iter().map(|it| format!("{} ({})", it.name, it.share)).collect();
            let cause = format!("Packets are lost by chance on {}", listed(&names));
            let all = several.iter().flat_map(|it| it.sets.clone()).collect();
            add(Kind::NoLoss, "no random loss".to_owned(), cause, all);
            for it in several {
                add(Kind::NoLoss, format!("no random loss on {}", it.name), clause(it), it.sets.clone());
            }
        }
    }
}

fn lossy<'a>(scenario: &Scenario, table: &str, name: &'a str, [down, up]: [&LinkConfig; 2]) -> Option<Lossy<'a>> {
    let (down, up) = (mean_loss(&down.loss), mean_loss(&up.loss));
    let drawn = scenario.varies().iter().find(|it| table == "path" && it.path == name);
    let drawn = drawn.and_then(|it| Some((it.loss.filter(|[_, most]| *most > 0.0)?, it.lossy)));
    let none = |key: &str| format!("{table}.{name}.{key}=\"0%\"");
    if let Some(([least, most], affected)) = drawn {
        let mut sets = vec![format!("path.{name}.vary.loss=[\"0%\", \"0%\"]")];
        if affected != Affected::Both && up > 0.0 {
            sets.push(none("loss-up"));
        }
        let share = format!("{} to {} of its packets, drawn for each run,", percent(least), percent(most));
        return Some(Lossy { name, share, sets });
    }
    let (share, keys): (String, &[&str]) = match (down > 0.0, up > 0.0) {
        (false, false) => return None,
        (true, true) if (down - up).abs() < 1e-9 => (format!("{} of its packets", percent(down)), &["loss", "loss-up"]),
        (true, true) => {
            let share =
                format!("{} of its packets from server to client and {} of those back", percent(down), percent(up));
            (share, &["loss", "loss-up"])
        }
        (true, false) => (format!("{} of its packets from server to client", percent(down)), &["loss"]),
        (false, true) => (format!("{} of its packets from client to server", percent(up)), &["loss-up"]),
    };
    Some(Lossy { name, share, sets: keys.iter().map(|key| none(key)).collect() })
}

/// Share of packets that a model loses in the long run.
pub(super) fn mean_loss(model: &LossModel) -> f64 {
    match model {
        LossModel::None => 0.0,
        LossModel::Bernoulli { p } => *p,
        LossModel::GilbertElliott { p_good_bad, p_bad_good, loss_good, loss_bad } => {
            let bad = p_good_bad / (p_good_bad + p_bad_good).max(f64::MIN_POSITIVE);
            loss_good * (1.0 - bad) + loss_bad * bad
        }
        // Single packets, or whatever else there is: more than none.
        _ => f64::MIN_POSITIVE,
    }
}
