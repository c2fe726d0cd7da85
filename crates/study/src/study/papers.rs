//! Founding papers by their short names.

/// Paper whose figures are studies.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// Key in names of studies: `late`.
    pub key: &'static str,
    /// Name in texts: `LATE`.
    pub name: &'static str,
    /// Authors, title and place of publication.
    pub citation: &'static str,
    /// Our judgement of its results, in one paragraph.
    pub belief: &'static str,
}

impl Paper {
    /// Returns the paper with this short name.
    pub fn named(name: &str) -> Option<&'static Paper> {
        PAPERS.iter().find(|paper| paper.name == name)
    }
}

/// All papers.
pub const PAPERS: &[Paper] = &[
    Paper {
        key: "late",
        name: "LATE",
        citation: "W. Yang, P. Dong, L. Cai, W. Tang. Loss-Aware Throughput Estimation Scheduler for Multi-Path TCP in \
                   Heterogeneous Wireless Networks.",
        belief: include_str!("../../../../studies/late/paper.txt"),
    },
    Paper {
        key: "lowlat",
        name: "LOWLAT",
        citation: "P. Hurtig, K.-J. Grinnemo, A. Brunstrom, S. Ferlin, Ö. Alay, N. Kuhn. Low-Latency Scheduling in \
                   MPTCP. IEEE/ACM Transactions on Networking 27(1), 2019.",
        belief: include_str!("../../../../studies/lowlat/paper.txt"),
    },
    Paper {
        key: "f2p",
        name: "F2P",
        citation: "D. Ni, K. Xue, P. Hong, S. Shen. Fine-grained Forward Prediction based Dynamic Packet Scheduling \
                   Mechanism for Multipath TCP in Lossy Networks. IEEE ICCCN 2014.",
        belief: include_str!("../../../../studies/f2p/paper.txt"),
    },
    Paper {
        key: "acksp",
        name: "ACKSP",
        citation: "J. Cheng, J. Hwang, A. Tang. Acceleration of Multipath TCP by Letting ACKs Take the Shortest Path. \
                   IEEE Sarnoff Symposium 2019.",
        belief: include_str!("../../../../studies/acksp/paper.txt"),
    },
    Paper {
        key: "rbp",
        name: "RBP",
        citation: "J. Han, K. Xue, H. Yue, P. Hong, N. Yu, F. Li. Receive Buffer Pre-division Based Flow Control for \
                   MPTCP. 2017.",
        belief: include_str!("../../../../studies/rbp/paper.txt"),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Study;

    #[test]
    fn every_paper_has_a_few_headlines_and_one_paragraph() {
        for paper in PAPERS {
            let of_paper = Study::names().filter(|name| name.split('/').next() == Some(paper.key));
            let headlines: usize = of_paper
                .map(|name| {
                    let study = Study::load(name).unwrap_or_else(|error| panic!("{name}: {error}"));
                    study.claims().filter(|claim| claim.headline).count()
                })
                .sum();
            assert!((3..=7).contains(&headlines), "{} has {headlines}", paper.name);
            let belief = paper.belief.trim();
            assert!(!belief.is_empty() && !belief.contains("\n\n"), "{}", paper.name);
        }
    }
}
