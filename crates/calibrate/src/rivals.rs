//! Competing TCP beside a bulk transfer: in real time connections of the kernel, whoever carries the bulk.

use crate::engine_run::PORT;
use crate::kernel_peer::{self, KernelSockets};
use crate::transfer::{Plan, Times, Transfer, TransferError};
use anabranch_host::testbed::Testbed;
use anabranch_sim::{Extent, Workload};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

/// A competing TCP connection. Times count from the beginning of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rival {
    /// Index of its path.
    pub(crate) path: usize,
    pub(crate) start: Duration,
    /// Its own end, or that of the bulk if this comes first.
    pub(crate) end: Duration,
    /// Name of its congestion control.
    pub(crate) congestion: String,
}

/// The competing connections among these workloads beside a transfer, with the names of their congestion controls in
/// the same order; `None` if one cannot be had in real time.
pub(crate) fn rivals(
    transfer: &Transfer,
    workloads: &[Workload],
    paths: &[String],
    congestion: &[String],
) -> Option<Vec<Rival>> {
    let tcp = workloads.iter().filter(|workload| matches!(workload, Workload::Tcp { .. }));
    let rival = |(workload, congestion): (&Workload, &String)| match (workload, &transfer.plan) {
        (Workload::Tcp { path, direction, start, extent: Extent::For(time), .. }, Plan::Bulk(duration))
            if *direction == transfer.direction =>
        {
            let wall = |duration: anabranch_units::Duration| Duration::from_nanos(duration.as_nanos());
            let path = paths.iter().position(|known| known == path)?;
            let (start, end) = (wall(*start), wall(*start + *time).min(*duration));
            Some(Rival { path, start, end, congestion: congestion.clone() })
        }
        _ => None,
    };
    tcp.zip(congestion).map(rival).collect()
}

/// Makes a transfer beside these connections, each with its sockets, in a run that began at `epoch`. Answers the times
/// of all.
pub(crate) fn beside(
    testbed: &Testbed,
    epoch: Instant,
    rivals: &[(Rival, KernelSockets)],
    transfer: &Transfer,
    main: &dyn Fn() -> Result<Times, TransferError>,
) -> Result<(Times, Vec<Times>), TransferError> {
    let Testbed { layout, client, server, .. } = testbed;
    let compete = |(number, (rival, sockets)): (usize, &(Rival, KernelSockets))| {
        thread::sleep(rival.start.saturating_sub(epoch.elapsed()));
        let plan = Plan::Bulk(rival.end.saturating_sub(epoch.elapsed()));
        let local = layout.paths[rival.path].client().v4.into();
        let address = layout.server().next().expect("a server has at least one address");
        let remote = SocketAddr::new(address.v4.into(), PORT + 1 + number as u16);
        kernel_peer::transfer(client, server, sockets, local, remote, &Transfer { plan, ..transfer.clone() })
    };
    thread::scope(|scope| {
        let threads: Vec<_> = rivals.iter().enumerate().map(|it| scope.spawn(move || compete(it))).collect();
        let times = main();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        // All are joined, whatever became of the first.
        let others: Vec<Result<Times, TransferError>> = threads.into_iter().map(join).collect();
        Ok((times?, others.into_iter().collect::<Result<_, _>>()?))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use anabranch_policy::Catalogue;
    use anabranch_scenario::{Origin, Scenario};
    use std::sync::Arc;

    /// The competing connections beside 20 s of bulk, of a scenario with these workloads.
    fn beside_bulk(workloads: &str) -> Option<Vec<Rival>> {
        let paths = "[path.a]\nrate = \"9mbit\"\nrtt = \"9ms\"\n[path.b]\nrate = \"9mbit\"\nrtt = \"9ms\"\n";
        let text = format!("{paths}[[workload]]\nkind = \"bulk\"\nduration = \"20s\"\n{workloads}");
        let catalogue = Arc::new(Catalogue::default());
        let scenario = Scenario::read(&catalogue, "x", "x.toml", &text, Origin::default(), &|_, _| Ok(String::new()));
        let scenario = scenario.unwrap();
        let (plan, direction) = (Plan::Bulk(Duration::from_secs(20)), anabranch_paths::Direction::Down);
        let transfer = Transfer { direction, plan, patience: Duration::from_secs(60) };
        rivals(&transfer, &scenario.spec(1).workloads, &scenario.paths(), scenario.competing())
    }

    #[test]
    fn a_rival_has_its_path_its_time_and_its_congestion_control() {
        assert_eq!(beside_bulk(""), Some(Vec::new()));
        let tcp = "[[workload]]\nkind = \"tcp\"\npath = \"b\"\n";
        let rival = |start, end, congestion: &str| Rival {
            path: 1,
            start: Duration::from_secs(start),
            end: Duration::from_secs(end),
            congestion: congestion.to_owned(),
        };
        let two = format!("{tcp}start = \"4s\"\nduration = \"8s\"\ncongestion = \"reno\"\n{tcp}duration = \"30s\"\n");
        assert_eq!(
            beside_bulk(&two),
            Some(vec![rival(4, 12, "reno"), rival(0, 20, "cubic")]),
            "none outlasts the bulk"
        );
    }

    #[test]
    fn files_and_the_other_direction_are_refused() {
        let tcp = "[[workload]]\nkind = \"tcp\"\npath = \"b\"\n";
        assert_eq!(beside_bulk(&format!("{tcp}size = \"9MB\"\n")), None);
        assert_eq!(beside_bulk(&format!("{tcp}duration = \"9s\"\ndirection = \"up\"\n")), None);
    }
}
