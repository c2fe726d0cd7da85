//! Networks of the papers, for the claims that a kernel of today can witness as it is: with its own scheduler (which
//! takes the subflow that would drain its queue first, among equals that of lowest RTT), its own receiver, and each ACK
//! on the path of its data.

use crate::suite::{Case, scenario};
use anabranch_policy::Catalogue;
use anabranch_scenario::ScenarioError;
use std::sync::Arc;

/// One comparison.
struct Witness {
    /// Paper, figure and workload.
    name: &'static str,
    network: &'static str,
    text: &'static str,
    /// Workload, and settings of the network.
    settings: &'static [&'static str],
    /// A sentence; TCP has the first path alone.
    claim: &'static str,
}

const LATE: &str = include_str!("../scenarios/witness-late.toml");
const BURSTS: &str = include_str!("../scenarios/witness-lowlat-bursts.toml");
const PAGE: &str = include_str!("../scenarios/witness-lowlat-page.toml");
const F2P: &str = include_str!("../scenarios/witness-f2p.toml");
const ACKSP: &str = include_str!("../scenarios/witness-acksp.toml");
const RBP: &str = include_str!("../scenarios/witness-rbp.toml");

const LATE_SHORT_CLAIM: &str = "\
    LATE: on warm connections the default scheduler takes longer than necessary for tens of kilobytes, \
    because part of them takes the path of 100 ms. Plain TCP on the path of 10 ms is the comparison. One flow \
    at a time here, 20 at once in the paper.";
const LATE_LONG_CLAIM: &str = "\
    LATE: with a window of 64 KiB for both paths the default scheduler reaches a fifth less than the paths could \
    carry. Plain TCP on the path of 10 ms is the lower bound. One flow here, 20 at once in the paper.";
const LOWLAT_BURSTS_CLAIM: &str = "\
    LOWLAT: with lowest RTT first a burst takes 50 ms or more, whatever its size, because part of it takes \
    the path of 100 ms; plain TCP on the path of 10 ms is faster.";
const LOWLAT_PAGE_CLAIM: &str = "\
    LOWLAT: lowest RTT first sends about 60 % of a page over WLAN, and the page's objects arrive later. TCP \
    uses WLAN alone.";
const F2P_LOSS_CLAIM: &str = "\
    F2P: throughput falls with the loss rate of subflow 0 (compare 0.1 and 3 %), and with a buffer of 64 KiB the \
    slow subflow delays the fast one (compare TCP).";
const ACKSP_RATIO_CLAIM: &str = "\
    ACKSP: with each ACK on the path of its data, the throughput of a subflow limited by loss falls with its \
    round trip (compare ratios 2 and 10); ACKs on the shorter path raise it. Start-up included.";
const RBP_DELAY_CLAIM: &str = "\
    RBP: throughput over a shared receive buffer falls with the delay of subflow 0 (compare 10 and 50 ms).";

const WITNESSES: &[Witness] = &[
    Witness {
        name: "LATE Fig. 10, short flows",
        network: "witness-late",
        text: LATE,
        settings: &["workload=[{kind=\"bursts\",size=\"50kB\",count=10,interval=\"1s\",warm-up=\"200kB\"}]"],
        claim: LATE_SHORT_CLAIM,
    },
    Witness {
        name: "LATE Fig. 10, long flow",
        network: "witness-late",
        text: LATE,
        settings: &["workload=[{kind=\"files\",size=\"5MB\"}]"],
        claim: LATE_LONG_CLAIM,
    },
    Witness {
        name: "LOWLAT Fig. 8, 10 segments",
        network: "witness-lowlat-bursts",
        text: BURSTS,
        settings: &["workload=[{kind=\"bursts\",size=\"14200B\",count=3,interval=\"5s\",warm-up=\"100kB\"}]"],
        claim: LOWLAT_BURSTS_CLAIM,
    },
    Witness {
        name: "LOWLAT Fig. 8, 30 segments",
        network: "witness-lowlat-bursts",
        text: BURSTS,
        settings: &["workload=[{kind=\"bursts\",size=\"42600B\",count=3,interval=\"5s\",warm-up=\"100kB\"}]"],
        claim: LOWLAT_BURSTS_CLAIM,
    },
    Witness {
        name: "LOWLAT Fig. 10, Amazon",
        network: "witness-lowlat-page",
        text: PAGE,
        settings: &[
            "workload=[{kind=\"web\",protocol=\"http2\"}]",
            "workload.0.page={objects=59,total=\"1234kB\",wave=6,computation=\"50ms\"}",
        ],
        claim: LOWLAT_PAGE_CLAIM,
    },
    Witness {
        name: "F2P Fig. 5, 0.1 % loss",
        network: "witness-f2p",
        text: F2P,
        settings: &["workload=[{kind=\"files\",size=\"2MB\"}]", "path.subflow0.loss=0.1%"],
        claim: F2P_LOSS_CLAIM,
    },
    Witness {
        name: "F2P Fig. 5, 3 % loss",
        network: "witness-f2p",
        text: F2P,
        settings: &["workload=[{kind=\"files\",size=\"2MB\"}]", "path.subflow0.loss=3%"],
        claim: F2P_LOSS_CLAIM,
    },
    Witness {
        name: "ACKSP Fig. 4, ratio 2",
        network: "witness-acksp",
        text: ACKSP,
        settings: &["workload=[{kind=\"files\",size=\"20MB\"}]", "path.path1.delay=20ms"],
        claim: ACKSP_RATIO_CLAIM,
    },
    Witness {
        name: "ACKSP Fig. 4, ratio 10",
        network: "witness-acksp",
        text: ACKSP,
        settings: &["workload=[{kind=\"files\",size=\"20MB\"}]", "path.path1.delay=100ms"],
        claim: ACKSP_RATIO_CLAIM,
    },
    Witness {
        name: "RBP Fig. 4, 10 ms",
        network: "witness-rbp",
        text: RBP,
        settings: &["workload=[{kind=\"files\",size=\"5MB\"}]", "path.subflow0.delay=10ms"],
        claim: RBP_DELAY_CLAIM,
    },
    Witness {
        name: "RBP Fig. 4, 50 ms",
        network: "witness-rbp",
        text: RBP,
        settings: &["workload=[{kind=\"files\",size=\"5MB\"}]", "path.subflow0.delay=50ms"],
        claim: RBP_DELAY_CLAIM,
    },
];

/// The cases.
pub fn witnesses(catalogue: &Arc<Catalogue>) -> Result<Vec<Case>, ScenarioError> {
    let case = |witness: &Witness| {
        let settings: Vec<&str> = witness.settings.iter().copied().chain(["run.stop=\"300s\""]).collect();
        let scenario = scenario(catalogue, witness.network, witness.text, &settings)?;
        Ok(Case { name: witness.name.to_owned(), scenario, claim: Some(witness.claim) })
    };
    WITNESSES.iter().map(case).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_paper_has_a_witness_over_two_paths() {
        let cases = witnesses(&Arc::new(Catalogue::default())).unwrap();
        for paper in ["LATE", "LOWLAT", "F2P", "ACKSP", "RBP"] {
            assert!(cases.iter().any(|case| case.name.starts_with(paper)), "{paper}");
        }
        for case in &cases {
            let spec = case.scenario.spec(1);
            assert_eq!((spec.network.paths.len(), spec.workloads.len()), (2, 1), "{}", case.name);
            assert_eq!(case.scenario.policies().scheduler.name, "linux-burst", "{}", case.name);
            // Those of the first path in the file are plain TCP's.
            assert_eq!(spec.network.primary, 0, "{}", case.name);
        }
        let settings = |name: &str| cases.iter().find(|case| case.name == name).unwrap().scenario.spec(1);
        let f2p = settings("F2P Fig. 5, 3 % loss");
        assert_eq!(f2p.client.config.receive_buffer.get(), 65_536);
        assert_eq!(settings("RBP Fig. 4, 50 ms").client.config.receive_buffer.get(), 131_072);
    }
}
