"""Numbers of a run, one attribute each: written by tests/test_numbers.py from `anabranch.statistics()`."""

from __future__ import annotations

from typing import Any


class Numbers:
    """Statistics of a run by name. Those of which there are several are lists in the order of the paths."""

    seed: int
    """Seed of the run."""
    finished: bool
    """All transfers completed."""
    unfinished: int
    """Transfers that did not complete."""
    censored: bool
    """Times are lower bounds: something did not complete."""
    completion_s: float | None
    """Completion time [s]."""
    completion_sd_s: float | None
    """Standard deviation of completion times [s]."""
    page_load_s: float | None
    """Page load time [s]."""
    object_download_s: float | None
    """Mean object download time [s]."""
    goodput_bps: float
    """Goodput of all transfers together [bit/s]."""
    mean_goodput_bps: float
    """Mean goodput of the transfers [bit/s]."""
    ofo_count: int
    """Segments that arrived out of order [segments]."""
    ofo_peak: int
    """Most segments out of order at once [segments]."""
    ofo_mean: float
    """Segments out of order, time average [segments]."""
    ofo_wait_s: float
    """Mean wait of an out-of-order segment [s]."""
    hol_blocked_s: float
    """Time that arrived data waited behind missing data [s]."""
    rtos: int
    """Retransmission timeouts."""
    segments_sent: int
    """Data segments sent, repeated ones included [segments]."""
    rto_rate: float
    """Timeouts per data segment sent."""
    retransmitted: int
    """Segments retransmitted on their own subflow [segments]."""
    reinjected_bytes: int
    """Bytes sent again on another subflow [B]."""
    duplicate_bytes: int
    """Bytes that arrived more than once [B]."""
    blocked_cwnd_s: float
    """Time the sender waited for congestion windows [s]."""
    blocked_window_s: float
    """Time the sender waited for the receive window [s]."""
    blocked_scheduler_s: float
    """Time the sender waited for its scheduler [s]."""
    blocked_application_s: float
    """Time the sender waited for its application [s]."""
    overruled: int
    """Scheduler decisions that the engine overruled."""
    acks_detoured: int
    """Pure ACKs that took the path of another subflow."""
    acks_kept: int
    """Pure ACKs that kept their own path instead."""
    ack_fallbacks: int
    """Subflows whose ACKs fell back to their own path."""
    probes_sent: int
    """Probes of the receiver for the path of its ACKs."""
    fallbacks: int
    """Connections that fell back to plain TCP."""
    fallback_reasons: dict[str, int]
    """Fallbacks of both hosts by reason."""
    reset_reasons: dict[str, int]
    """Resets of both hosts by reason (MP_TCPRST)."""
    checksum_failures: int
    """DSS checksums that failed."""
    altered_bytes: int
    """Bytes read otherwise than written [B]."""
    buffer_mean_segments: float | None
    """Occupied receive buffer, mean [segments]."""
    buffer_sd_segments: float | None
    """Occupied receive buffer, standard deviation [segments]."""
    suspension_s: float | None
    """Longest silence of the surviving subflows, lone segments apart [s]."""
    events_digest: str
    """Digest of everything that happened."""
    shares: list[float]
    """Share of the bytes first sent on the path, for each path."""
    path_bytes: list[int]
    """Bytes first sent on the path, for each path [B]."""
    path_segments: list[int]
    """Data segments sent on the path, for each path [segments]."""
    path_goodput_bps: list[float | None]
    """Goodput by the bytes first sent on the path, for each path [bit/s]."""
    middleboxes: list[dict[str, Any]]
    """Segments that each middlebox altered, dropped and made."""
    version: str
    """Version of Anabranch."""
    build: str
    """Digest of the build."""
    scenario: str
    """Name of the scenario."""
    digest: str
    """Digest of the scenario."""
    windows: list[dict[str, Any]]
    """The windows of `run.windows`, with goodput of all and of each path."""
