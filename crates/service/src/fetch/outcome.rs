//! Outcome of an exchange.

use anabranch_engine::OpenError;
use anabranch_events::ConnectionReport;
use anabranch_units::Duration;
use std::io;

/// Outcome of an exchange; times are from the first SYN.
#[derive(Debug)]
pub struct Outcome {
    /// Error, if it failed. An HTTP status is no failure here.
    pub error: Option<FetchError>,
    /// Status of the HTTP reply, once it has arrived.
    pub status: Option<u16>,
    /// Target of a redirect, as the reply gives it.
    pub location: Option<String>,
    /// Bytes of the body.
    pub received: u64,
    /// Bytes that the body was said to have.
    pub expected: Option<u64>,
    /// Bytes of the upload handed to the endpoint.
    pub uploaded: u64,
    /// The body was the pattern of `anabranch serve`, from its beginning.
    pub pattern: bool,
    /// MPTCP all the way.
    pub multipath: bool,
    /// Time at which the connection was established.
    pub connected: Option<Duration>,
    /// Time of the first byte of the body.
    pub first_byte: Option<Duration>,
    /// Time of the last byte, or of the failure.
    pub finished: Option<Duration>,
    /// The connection at its end.
    pub report: Option<ConnectionReport>,
    /// Sentence about a transfer that was slower than its best path alone.
    pub why: Option<String>,
}

impl Default for Outcome {
    fn default() -> Self {
        Outcome {
            error: None,
            status: None,
            location: None,
            received: 0,
            expected: None,
            uploaded: 0,
            pattern: true,
            multipath: false,
            connected: None,
            first_byte: None,
            finished: None,
            report: None,
            why: None,
        }
    }
}

impl Outcome {
    /// The body is what was asked for, not the text of a redirect or an error.
    pub fn is_content(&self) -> bool {
        self.status.is_none_or(|status| (200..300).contains(&status))
    }

    /// Returns the target, if the reply is a redirect.
    pub fn redirect(&self) -> Option<&str> {
        let followed = matches!(self.status, Some(301 | 302 | 303 | 307 | 308));
        self.location.as_deref().filter(|_| followed)
    }
}

/// Why an exchange failed.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The connection was refused, or there was no reply.
    #[error("no connection: refused, or no answer in time")]
    NotConnected,
    /// It cannot even be tried.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Reset, or given up, before the end.
    #[error("the connection was lost before the end of the transfer")]
    Broken,
    /// No progress for too long.
    #[error("no data arrived within the time allowed for a stall, or too little for longer")]
    Stalled,
    /// The time for all of it was over.
    #[error("the transfer took longer than the time allowed")]
    TooLong,
    /// The end came before what was promised.
    #[error("the peer closed the connection before the whole body had arrived")]
    Short,
    /// The reply is not HTTP/1.1.
    #[error("the reply is not valid HTTP: {0}")]
    NotHttp(String),
    /// A range was asked for and everything, or something else, came.
    #[error("the server did not send the requested range")]
    RangeIgnored,
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[source] io::Error),
    /// The upload cannot be read.
    #[error("cannot read the upload: {0}")]
    Upload(#[source] io::Error),
    /// SIGINT or SIGTERM.
    #[error("interrupted")]
    Interrupted,
}
