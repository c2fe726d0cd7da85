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
    completion_p50_s: float | None
    """Median of completion times; percentiles are the times that so many transfers do not exceed [s]."""
    completion_p90_s: float | None
    """Percentile 90 of completion times [s]."""
    completion_p95_s: float | None
    """Percentile 95 of completion times [s]."""
    completion_p99_s: float | None
    """Percentile 99 of completion times [s]."""
    completion_p999_s: float | None
    """Percentile 99.9 of completion times [s]."""
    page_load_s: float | None
    """Page load time [s]."""
    object_download_s: float | None
    """Mean object download time [s]."""
    goodput_bps: float | None
    """Goodput of all transfers together [bit/s]."""
    mean_goodput_bps: float | None
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
    """Decisions of policies that were not followed."""
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
    """Fallbacks to plain TCP by reason."""
    reset_reasons: dict[str, int]
    """Resets sent by reason (MP_TCPRST)."""
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
    written_bytes: int
    """Bytes that the application wrote [B]."""
    sent_bytes: int
    """Bytes sent for the first time [B]."""
    data_acked_bytes: int
    """Bytes acknowledged at the data level [B]."""
    delivered_bytes: int
    """Bytes that the application read [B]."""
    received_bytes: int
    """Bytes received in order at the data level [B]."""
    segments_received: int
    """Data segments received [segments]."""
    autotuned_buffer_bytes: int | None
    """Receive buffer as grown by auto-tuning [B]."""
    ofo_held_s: float
    """Time that segments were held out of order, added up over them [s]."""
    overruled_kinds: dict[str, int]
    """Decisions of policies that were not followed, by kind."""
    acks_restored: int
    """Pure ACKs of the peer that came on the path of another subflow."""
    bytes_first_sent: int
    """Bytes first sent on the subflow [B]."""
    bytes_sent: int
    """Payload bytes sent, repeated ones included [B]."""
    fast_recoveries: int
    """Fast recoveries."""
    bytes_received: int
    """Payload bytes received in order on their subflow [B]."""
    marks_received: int
    """Packets that arrived marked (ECN) [packets]."""
    marks_reported: int
    """Packets that the peer reports as marked (ECN) [packets]."""
    mark_reductions: int
    """Reductions of the congestion window for marks (ECN)."""
    timestamps_missing: int
    """Segments received without the timestamps agreed on [segments]."""
    resets_received: int
    """RSTs accepted."""
    reset_reasons_received: dict[str, int]
    """RSTs accepted by reason (MP_TCPRST)."""
    conflicting_add_addr: int
    """ADD_ADDRs whose identifier stands for another address."""
    reopened: int
    """Connections begun anew on another path."""
    joins_refused: int
    """MP_JOINs refused: token, HMAC or limit."""
    cookies_sent: int
    """SYNs answered with a SYN cookie."""
    cookies_received: int
    """Connections made of the answer to a SYN cookie."""
    cookies_invalid: int
    """Segments that answered no SYN cookie of ours."""
    half_open_dropped: int
    """SYNs not answered: no SYN cookie for them."""
    joins_deferred: int
    """MP_JOINs answered without a subflow."""
    deferred_joins_received: int
    """Subflows made when a deferred MP_JOIN was completed."""
    half_open_joins_dropped: int
    """Deferred MP_JOINs forgotten for others."""
    unknown_flow: int
    """Segments of no connection [segments]."""
    unacceptable: int
    """Segments outside the window or failing PAWS [segments]."""
    too_big: int
    """Reports of packets too big that were believed."""
    too_big_ignored: int
    """Reports of packets too big that were not believed."""
    black_holes: int
    """Paths found to swallow large packets."""
    refused_data_bytes: int
    """Data beyond the window or memory limits [B]."""
    fails_received: int
    """MP_FAILs received."""
    bad_add_addr: int
    """ADD_ADDRs with a wrong HMAC."""
    shares: list[float]
    """Share of the bytes first sent on the path, for each path."""
    path_bytes: list[int]
    """Bytes first sent on the path, for each path [B]."""
    path_segments: list[int]
    """Data segments sent on the path, for each path [segments]."""
    path_goodput_bps: list[float | None]
    """Goodput by the bytes first sent on the path, for each path [bit/s]."""
    links: list[dict[str, Any]]
    """Times in the queue of each link, what it dropped and marked, and that of its flows."""
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
