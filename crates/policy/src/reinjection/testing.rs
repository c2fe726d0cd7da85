//! Scenes to try a policy on by hand: pieces of 1,000 bytes named by their number, times in milliseconds.

use super::{FlightView, Order, Outstanding, Piece, Repeat, SubflowSet, SubflowState, Transmission};
use crate::{SubflowView, View};
use anabranch_units::{Bytes, Dsn, Duration, Instant, SubflowId};
use std::cell::Cell;

pub const SEGMENT: u64 = 1000;

/// `ms` milliseconds after the beginning.
pub fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

pub fn dsn(number: u64) -> Dsn {
    Dsn::new(number * SEGMENT)
}

/// The member of subflow `id`.
pub fn mark(id: u16) -> SubflowSet {
    SubflowSet::from_bits(1 << id)
}

/// A connection as far as these policies see it.
pub struct Scene {
    pub una: u64,
    pub unsent: u64,
    /// Number of these that the peer's window admits; all of them if `None`.
    pub sendable: Option<u64>,
    pub subflows: Vec<SubflowView>,
    pub states: Vec<SubflowState>,
    /// Pieces in the order of the data.
    pub pieces: Vec<Piece>,
    /// Transmissions shown to policies.
    pub looks: Cell<usize>,
}

impl Outstanding for Scene {
    fn piece(&self, dsn: Dsn) -> Option<Piece> {
        self.pieces
            .iter()
            .find(|piece| piece.end().after(dsn) && piece.end().after(Dsn::new(self.una * SEGMENT)))
            .copied()
    }

    fn transmissions(&self, on: SubflowId, order: Order, visit: &mut dyn FnMut(Transmission) -> bool) {
        let mut carried: Vec<&Piece> = self.pieces.iter().filter(|piece| piece.carriers.meets(mark(on.0))).collect();
        carried.sort_by_key(|piece| piece.sent);
        if order == Order::NewestFirst {
            carried.reverse();
        }
        let _ = carried.into_iter().all(|piece| {
            self.looks.set(self.looks.get() + 1);
            visit(Transmission { piece: *piece, lost: false })
        });
    }
}

impl Scene {
    /// Subflows 0, 1, … with these SRTTs, windows of ten segments and nothing in flight.
    pub fn new(srtts_ms: &[u64]) -> Self {
        let segment = Bytes::new(SEGMENT);
        let ids = (0..).map(SubflowId);
        let subflow = |(id, &ms): (SubflowId, &u64)| {
            SubflowView::steady(id, segment, Duration::from_millis(ms), segment.times(10))
        };
        let subflows: Vec<_> = ids.zip(srtts_ms).map(subflow).collect();
        let state = |subflow: &SubflowView| SubflowState::at_rest(subflow.id, mark(subflow.id.0));
        let states = subflows.iter().map(state).collect();
        Scene { una: 0, unsent: 0, sendable: None, subflows, states, pieces: Vec::new(), looks: Cell::new(0) }
    }

    /// Piece `number` left at `ms` on subflow `on`.
    pub fn sent(&mut self, number: u64, ms: u64, on: u16) -> Piece {
        let piece = Piece { from: dsn(number), length: Bytes::new(SEGMENT), sent: at(ms), carriers: mark(on) };
        self.pieces.push(piece);
        self.pieces.sort_by_key(|piece| piece.from.get());
        piece
    }

    /// A DATA_ACK of everything before piece `number`.
    pub fn acked(&mut self, number: u64) {
        self.una = number;
        self.pieces.retain(|piece| piece.end().after(dsn(number)));
    }

    /// Applies an answer as the engine does.
    pub fn copied(&mut self, repeat: &Repeat) {
        let piece = self.pieces.iter_mut().find(|piece| piece.from == repeat.from).expect("what is repeated was sent");
        piece.carriers = piece.carriers.with(mark(repeat.on.0));
    }

    /// Asks `ask` for what it sees here.
    pub fn show<T>(&self, ask: impl FnOnce(&FlightView<'_>) -> T) -> T {
        let sent = self.pieces.last().map_or(self.una, |piece| piece.end().get() / SEGMENT);
        let view = View {
            subflows: &self.subflows,
            unsent: Bytes::new(self.unsent * SEGMENT),
            sendable: Bytes::new(self.sendable.unwrap_or(self.unsent) * SEGMENT),
            window: Bytes::new(1_000_000),
            buffer: Bytes::new(1_000_000),
            data_una: dsn(self.una),
            unsent_from: dsn(sent),
        };
        ask(&FlightView { view: &view, states: &self.states, outstanding: self, opportunity: None })
    }

    /// Asks for copies until there is none, carrying each out: piece number and subflow.
    pub fn copies(&mut self, policy: &mut dyn super::Reinjection, ms: u64) -> Vec<(u64, u16)> {
        let mut copies = Vec::new();
        while let Some(repeat) = self.show(|flight| policy.next(at(ms), flight)).repeat {
            self.copied(&repeat);
            copies.push((repeat.from.get() / SEGMENT, repeat.on.0));
            assert!(copies.len() < 1000, "the same over and over: {repeat:?}");
        }
        copies
    }

    /// Sends piece `number` and tells the policy.
    pub fn send(&mut self, policy: &mut dyn super::Reinjection, number: u64, ms: u64, on: u16) {
        let piece = self.sent(number, ms, on);
        self.show(|flight| policy.on_sent(at(ms), &piece, SubflowId(on), flight));
    }
}
