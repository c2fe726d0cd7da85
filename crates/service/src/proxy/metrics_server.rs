//! A small HTTP server for metrics and health, on the proxy's own thread.

use crate::http::{Found, Head, Method, PLAIN, Reply, names_this_machine, read_request, today, words};
use bytes::{Buf, Bytes};
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr};

/// Page requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Page {
    Metrics,
    Health,
}

pub(super) struct MetricsServer {
    listener: TcpListener,
    visitors: Vec<Option<Visitor>>,
    first: usize,
    /// Visitors that have come.
    arrivals: u64,
}

struct Visitor {
    socket: TcpStream,
    /// Number of its arrival.
    number: u64,
    /// Address that only this machine reaches, whose visitors must name this machine.
    loopback: Option<IpAddr>,
    head: Head,
    answer: Bytes,
    answered: bool,
    /// The body is not wanted (HEAD).
    only_head: bool,
    /// Rounds of looking after timeouts that it may still stay for.
    patience: u32,
}

/// Visitors at once, which is how many tokens are needed.
pub(super) const MOST_VISITORS: usize = 16;
const LONGEST_REQUEST: usize = 4 << 10;
const PATIENCE: u32 = 10;

impl MetricsServer {
    /// Listens; visitors get tokens from `first` upwards.
    pub(super) fn bind(address: SocketAddr, first: usize) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let visitors = (0..MOST_VISITORS).map(|_| None).collect();
        Ok(MetricsServer { listener, visitors, first, arrivals: 0 })
    }

    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut self.listener, token, Interest::READABLE)
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.visitors.iter().all(Option::is_none)
    }

    /// Visitors are waiting; one that finds no place takes that of the oldest, who has had time to ask.
    pub(super) fn accept(&mut self, registry: &Registry) {
        // Stops at any error, not only `WouldBlock`: without descriptors accepting fails too, and the next visitor
        // triggers a retry.
        let loopback = self.address().ok().map(|it| it.ip()).filter(|it| it.to_canonical().is_loopback());
        while let Ok((mut socket, _)) = self.listener.accept() {
            let number = |place: &usize| self.visitors[*place].as_ref().map(|visitor| visitor.number);
            // None is before all numbers: a free place.
            let Some(place) = (0..MOST_VISITORS).min_by_key(number) else { continue };
            self.arrivals += 1;
            // The socket of the oldest leaves the poll before the next comes in by its token.
            self.visitors[place] = None;
            let both = Interest::READABLE | Interest::WRITABLE;
            if registry.register(&mut socket, Token(self.first + place), both).is_ok() {
                let visitor = Visitor {
                    socket,
                    number: self.arrivals,
                    loopback,
                    head: Head::default(),
                    answer: Bytes::new(),
                    answered: false,
                    only_head: false,
                    patience: PATIENCE,
                };
                self.visitors[place] = Some(visitor);
            }
        }
    }

    /// A visitor's socket is ready. A page is answered if it wants one; `answer` is due then.
    pub(super) fn on_ready(&mut self, place: usize) -> Option<Page> {
        let visitor = self.visitors.get_mut(place)?.as_mut()?;
        let wish = visitor.read();
        match wish {
            Wish::Nothing => {}
            Wish::Gone => self.visitors[place] = None,
            Wish::Page(page) => return Some(page),
            Wish::Wrong(status) => self.answer(place, status, PLAIN, &words(status)),
        }
        None
    }

    pub(super) fn answer(&mut self, place: usize, status: u16, kind: &str, body: &str) {
        let Some(visitor) = self.visitors[place].as_mut() else { return };
        let mut reply = Reply::new(status, today());
        if status == 405 {
            reply.put("Allow", "GET, HEAD");
        }
        visitor.answer = reply.whole(kind, body.as_bytes(), false, visitor.only_head);
        visitor.answered = true;
        if visitor.write() {
            self.visitors[place] = None;
        }
    }

    /// Counts a second; drops visitors that are too slow.
    pub(super) fn tick(&mut self) {
        for place in &mut self.visitors {
            if let Some(visitor) = place {
                visitor.patience -= 1;
                if visitor.patience == 0 {
                    *place = None;
                }
            }
        }
    }
}

enum Wish {
    Nothing,
    Gone,
    Page(Page),
    Wrong(u16),
}

impl Visitor {
    fn read(&mut self) -> Wish {
        let mut piece = [0; 1024];
        loop {
            match self.socket.read(&mut piece) {
                Ok(0) => return Wish::Gone,
                Ok(_) if self.answered => {}
                Ok(length) => self.head.push(&piece[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Wish::Gone,
            }
            // A visitor that goes on sending may not keep us here.
            if self.head.is_longer_than(LONGEST_REQUEST) {
                return Wish::Wrong(431);
            }
        }
        if self.answered {
            return if self.write() { Wish::Gone } else { Wish::Nothing };
        }
        match self.head.take(LONGEST_REQUEST) {
            Found::Whole(head) => self.wish(&head),
            Found::TooLong => Wish::Wrong(431),
            Found::Partial if self.head.is_hopeless() => Wish::Wrong(400),
            Found::Partial => Wish::Nothing,
        }
    }

    fn wish(&mut self, head: &[u8]) -> Wish {
        let request = match read_request(head) {
            Ok(request) => request,
            Err(status) => return Wish::Wrong(status),
        };
        self.only_head = request.method == Method::Head;
        if let (Some(bound), Some(host)) = (self.loopback, &request.host)
            && !names_this_machine(host, bound)
        {
            return Wish::Wrong(421);
        }
        if !matches!(request.method, Method::Get | Method::Head) {
            return Wish::Wrong(405);
        }
        match request.target.split('?').next() {
            Some("/metrics") => Wish::Page(Page::Metrics),
            Some("/healthz") => Wish::Page(Page::Health),
            _ => Wish::Wrong(404),
        }
    }

    /// True if there is nothing left to do for this visitor. After the answer its end is awaited, for a close with
    /// unread data would be a RST, which can overtake the answer.
    fn write(&mut self) -> bool {
        while !self.answer.is_empty() {
            match self.socket.write(&self.answer) {
                Ok(length) => self.answer.advance(length),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
        }
        self.socket.shutdown(Shutdown::Write).is_err()
    }
}
