//! The founding papers by their short names.

/// A paper whose figures are studies.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// In study names: `late`.
    pub key: &'static str,
    /// In text: `LATE`.
    pub name: &'static str,
    /// Authors, title, where it was published.
    pub citation: &'static str,
}

/// All of them.
pub const PAPERS: &[Paper] = &[
    Paper {
        key: "late",
        name: "LATE",
        citation: "W. Yang, P. Dong, L. Cai, W. Tang. Loss-Aware Throughput Estimation Scheduler for Multi-Path TCP in \
                   Heterogeneous Wireless Networks.",
    },
    Paper {
        key: "lowlat",
        name: "LOWLAT",
        citation: "P. Hurtig, K.-J. Grinnemo, A. Brunstrom, S. Ferlin, Ö. Alay, N. Kuhn. Low-Latency Scheduling in MPTCP. \
                   IEEE/ACM Transactions on Networking 27(1), 2019.",
    },
    Paper {
        key: "f2p",
        name: "F2P",
        citation: "D. Ni, K. Xue, P. Hong, S. Shen. Fine-grained Forward Prediction based Dynamic Packet Scheduling \
                   Mechanism for Multipath TCP in Lossy Networks. IEEE ICCCN 2014.",
    },
    Paper {
        key: "acksp",
        name: "ACKSP",
        citation: "J. Cheng, J. Hwang, A. Tang. Acceleration of Multipath TCP by Letting ACKs Take the Shortest Path. IEEE \
                   Sarnoff Symposium 2019.",
    },
    Paper {
        key: "rbp",
        name: "RBP",
        citation: "J. Han, K. Xue, H. Yue, P. Hong, N. Yu, F. Li. Receive Buffer Pre-division Based Flow Control for MPTCP. \
                   2017.",
    },
];

/// The citation of the paper with this short name.
pub(super) fn citation(name: &str) -> Option<&'static str> {
    PAPERS.iter().find(|paper| paper.name == name).map(|paper| paper.citation)
}
