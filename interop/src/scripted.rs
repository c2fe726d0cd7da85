//! The application on the engine's side: each connection follows its plan.

use crate::engine::Connection;
use crate::{Close, Plan, Role, Transfer};
use anabranch_engine::{ConnectionId, Event};
use anabranch_host::{Application, Context};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// The application.
#[derive(Default)]
pub struct Scripted {
    listening: BTreeMap<u16, Plan>,
    dialogues: BTreeMap<ConnectionId, Dialogue>,
    /// In the order in which they began.
    order: Vec<ConnectionId>,
}

struct Dialogue {
    role: Role,
    plan: Plan,
    transfer: Transfer,
    multipath: Option<bool>,
    events: Vec<Event>,
    reading: bool,
    closed: bool,
}

impl Scripted {
    pub(crate) fn listen(&mut self, cx: &mut Context<'_>, port: u16, plan: Plan) {
        cx.endpoint.listen(port);
        self.listening.insert(port, plan);
    }

    pub(crate) fn connect(
        &mut self,
        cx: &mut Context<'_>,
        local: IpAddr,
        remote: SocketAddr,
        plan: Plan,
    ) -> ConnectionId {
        let id = cx.endpoint.open(cx.now, local, remote).expect("this address is ours, and ports are free");
        self.begin(id, Role::Client, plan);
        id
    }

    pub(crate) fn set_plan(&mut self, cx: &mut Context<'_>, id: ConnectionId, plan: Plan) {
        if let Some(dialogue) = self.dialogues.get_mut(&id) {
            dialogue.plan = plan;
            dialogue.step(cx, id);
        }
    }

    pub(crate) fn set_reading(&mut self, cx: &mut Context<'_>, id: ConnectionId, reading: bool) {
        if let Some(dialogue) = self.dialogues.get_mut(&id) {
            dialogue.reading = reading;
            dialogue.step(cx, id);
        }
    }

    pub(crate) fn connections(&self) -> Vec<ConnectionId> {
        self.order.clone()
    }

    pub(crate) fn connection(&self, cx: &mut Context<'_>, id: ConnectionId) -> Connection {
        let Some(dialogue) = self.dialogues.get(&id) else { return Connection::default() };
        Connection {
            transfer: dialogue.transfer.clone(),
            multipath: dialogue.multipath,
            events: dialogue.events.clone(),
            stats: cx.endpoint.connection_stats(id).unwrap_or_default(),
            subflows: cx.endpoint.subflow_stats(id),
        }
    }

    fn begin(&mut self, id: ConnectionId, role: Role, plan: Plan) {
        let dialogue = Dialogue {
            role,
            plan,
            transfer: Transfer::default(),
            multipath: None,
            events: Vec::new(),
            reading: true,
            closed: false,
        };
        self.dialogues.insert(id, dialogue);
        self.order.push(id);
    }
}

impl Application for Scripted {
    fn on_event(&mut self, cx: &mut Context<'_>, id: ConnectionId, event: Event) {
        if let Event::Accepted { .. } = event {
            let subflows = cx.endpoint.subflow_stats(id);
            let port = subflows.first().map_or(0, |subflow| subflow.local.port());
            let Some(plan) = self.listening.get(&port).copied() else { return };
            self.begin(id, Role::Server, plan);
        }
        if let Some(dialogue) = self.dialogues.get_mut(&id) {
            dialogue.on_event(event);
            dialogue.step(cx, id);
        }
    }
}

impl Dialogue {
    fn on_event(&mut self, event: Event) {
        match event {
            Event::Readable | Event::Writable => return,
            Event::Connected { multipath } | Event::Accepted { multipath } => self.multipath = Some(multipath),
            Event::PeerFinished => self.transfer.peer_finished = true,
            Event::Reset => self.transfer.failure = Some("reset".to_owned()),
            _ => {}
        }
        self.events.push(event);
    }

    /// Whatever the plan says that can be done now.
    fn step(&mut self, cx: &mut Context<'_>, id: ConnectionId) {
        if self.reading {
            self.read(cx, id);
        }
        if self.multipath.is_some() {
            self.write(cx, id);
            self.close(cx, id);
        }
    }

    fn read(&mut self, cx: &mut Context<'_>, id: ConnectionId) {
        while let Ok(anabranch_engine::Read::Data(chunk)) = cx.endpoint.read(id) {
            let transfer = &mut self.transfer;
            if transfer.wrong.is_none() {
                transfer.wrong = self.role.peer().first_difference(transfer.received, &chunk);
            }
            transfer.received += chunk.len() as u64;
        }
    }

    fn write(&mut self, cx: &mut Context<'_>, id: ConnectionId) {
        while self.transfer.sent < self.plan.send {
            let piece = self.role.slice(self.transfer.sent, self.plan.send - self.transfer.sent);
            let taken = cx.endpoint.write(id, &piece).unwrap_or(0);
            self.transfer.sent += taken as u64;
            if taken < piece.len() {
                return;
            }
        }
    }

    fn close(&mut self, cx: &mut Context<'_>, id: ConnectionId) {
        let written = self.transfer.sent == self.plan.send;
        let due = match self.plan.close {
            Close::AfterSending => written,
            Close::AfterPeer => written && self.transfer.peer_finished,
            Close::AbortAfter(bytes) => self.transfer.received >= bytes,
            Close::Never => false,
        };
        if !due || self.closed {
            return;
        }
        self.closed = true;
        match self.plan.close {
            Close::AbortAfter(_) => cx.endpoint.abort(cx.now, id),
            _ => cx.endpoint.shutdown(id),
        }
    }
}
