//! Names to addresses, by the system's resolver, which blocks: in threads of its own, with a bounded queue before them.

use mio::unix::pipe;
use mio::{Interest, Registry, Token};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, mpsc};

/// Resolver threads and their channels. They end when this is dropped, each after its current query.
pub(super) struct Resolver {
    questions: SyncSender<Question>,
    answers: Receiver<Answer>,
    bell: pipe::Receiver,
}

struct Question {
    who: u64,
    name: String,
    port: u16,
}

/// Addresses of a name.
pub(super) struct Answer {
    /// Session that asked.
    pub(super) who: u64,
    /// Its addresses, or the system's word for why there are none.
    pub(super) addresses: io::Result<Vec<SocketAddr>>,
}

/// Names looked up at the same time. A name server that does not answer holds one for some ten seconds.
const THREADS: usize = 4;
/// Names that wait for a thread.
const QUEUE: usize = 128;

impl Resolver {
    /// Starts the threads; `token` becomes readable when there are answers.
    pub(super) fn start(registry: &Registry, token: Token) -> io::Result<Self> {
        let (questions, inbox) = sync_channel(QUEUE);
        let (outbox, answers) = mpsc::channel();
        let (ring, mut bell) = pipe::new()?;
        registry.register(&mut bell, token, Interest::READABLE)?;
        let (inbox, ring) = (Arc::new(Mutex::new(inbox)), Arc::new(Mutex::new(ring)));
        for number in 0..THREADS {
            let (inbox, outbox, ring) = (Arc::clone(&inbox), outbox.clone(), Arc::clone(&ring));
            let thread = std::thread::Builder::new().name(format!("resolver-{number}"));
            thread.spawn(move || work(&inbox, &outbox, &ring))?;
        }
        Ok(Resolver { questions, answers, bell })
    }

    /// Puts a name into the queue; false if that is full.
    pub(super) fn ask(&self, who: u64, name: &str, port: u16) -> bool {
        self.questions.try_send(Question { who, name: name.to_owned(), port }).is_ok()
    }

    /// The bell has rung: one answer after the other, until there is none.
    pub(super) fn next_answer(&mut self) -> Option<Answer> {
        match self.answers.try_recv() {
            Ok(answer) => Some(answer),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => {
                // Rings that come after this are for answers that come after it.
                while self.bell.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
                self.answers.try_recv().ok()
            }
        }
    }
}

fn work(inbox: &Mutex<Receiver<Question>>, outbox: &Sender<Answer>, ring: &Mutex<pipe::Sender>) {
    loop {
        // A lock is only poisoned by a panic of another thread here, and what it guards is whole at any time.
        let question = inbox.lock().unwrap_or_else(std::sync::PoisonError::into_inner).recv();
        let Ok(Question { who, name, port }) = question else { return };
        let addresses = (name.as_str(), port).to_socket_addrs().map(|found| found.collect::<Vec<_>>());
        if outbox.send(Answer { who, addresses }).is_err() {
            return;
        }
        // A full pipe has rung already.
        let _ = ring.lock().unwrap_or_else(std::sync::PoisonError::into_inner).write(&[0]);
    }
}
