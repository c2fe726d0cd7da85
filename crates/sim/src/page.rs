//! A web page as what has to happen until it is there: downloads and computations that wait for each other.

use anabranch_units::{Bytes, Duration};

/// A page: its activities in any order. It is loaded when all of them are through.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// Activities, of which at least one is a download.
    pub activities: Vec<Activity>,
}

/// Something that happens while a page is loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct Activity {
    /// Earliest begin, as time since the page was asked for.
    pub begin: Duration,
    /// Conditions that must all be met before.
    pub after: Vec<After>,
    /// Work of the activity.
    pub work: Work,
}

/// Condition of an activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct After {
    /// Index of the other activity.
    pub activity: usize,
    /// Moment of that activity.
    pub moment: Moment,
    /// Delay after that moment.
    pub delay: Duration,
}

/// A moment of an activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Beginning: a request is ready to be sent.
    Begin,
    /// The first byte of what it downloads is there; for a computation the same as its end.
    FirstByte,
    /// End of the activity.
    End,
}

/// Kinds of activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// An object is requested and comes.
    Download(Object),
    /// The client is busy for so long.
    Compute(Duration),
}

/// An object of a page. Headers are those of HTTP/1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its body as it is transferred.
    pub size: Bytes,
    /// The whole request.
    pub request: Bytes,
    /// The header of the response.
    pub header: Bytes,
}

/// Protocol that fetches objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1: persistent connections, opened on demand, with one request at a time on each.
    Http1 {
        /// Limit on connections; browsers have six per origin.
        connections: usize,
    },
    /// HTTP/2 (RFC 9113): one connection, whose answers are interleaved frame by frame.
    Http2,
}

/// Bytes of a request unless it is known better. The requests in recordings without cookies have 280 to 330 bytes
/// (Firebug, 2015); cookies and longer `Accept` headers add about a hundred.
pub const REQUEST: Bytes = Bytes::new(400);
/// Bytes of a response's header unless it is known better: the median of the same recordings.
pub const HEADER: Bytes = Bytes::new(350);

impl Object {
    /// Makes an object of this size with a usual request and header.
    pub const fn of_size(size: Bytes) -> Self {
        Object { size, request: REQUEST, header: HEADER }
    }
}

impl Page {
    /// Checks the page. Returns a description of the first error and its activity.
    pub fn check(&self) -> Result<(), String> {
        if !self.activities.iter().any(|activity| matches!(activity.work, Work::Download(_))) {
            return Err("nothing is downloaded".to_owned());
        }
        if self.activities.len() > MOST {
            return Err(format!("there are {} activities; accepted are up to {MOST}", self.activities.len()));
        }
        let mut unmet: Vec<usize> = self.activities.iter().map(|activity| activity.after.len()).collect();
        let mut freed = vec![Vec::new(); self.activities.len()];
        for (index, activity) in self.activities.iter().enumerate() {
            if let Work::Download(object) = activity.work
                && object.request.is_zero()
            {
                return Err(format!("activity {index} asks with an empty request"));
            }
            for after in &activity.after {
                let Some(others) = freed.get_mut(after.activity) else {
                    return Err(format!("activity {index} waits for activity {}, which is not there", after.activity));
                };
                others.push(index);
            }
        }
        let mut ready: Vec<usize> = (0..unmet.len()).filter(|&index| unmet[index] == 0).collect();
        let mut met = 0;
        while let Some(index) = ready.pop() {
            met += 1;
            for &other in &freed[index] {
                unmet[other] -= 1;
                if unmet[other] == 0 {
                    ready.push(other);
                }
            }
        }
        match unmet.iter().position(|&count| count > 0) {
            Some(index) if met < unmet.len() => Err(format!("activity {index} waits for itself, by way of others")),
            _ => Ok(()),
        }
    }

    /// The bodies of all objects together.
    pub fn total(&self) -> Bytes {
        let size = |activity: &Activity| match activity.work {
            Work::Download(object) => object.size,
            Work::Compute(_) => Bytes::ZERO,
        };
        self.activities.iter().map(size).sum()
    }
}

impl Activity {
    /// The download of an object that waits for nothing.
    pub const fn download(object: Object) -> Self {
        Activity { begin: Duration::ZERO, after: Vec::new(), work: Work::Download(object) }
    }
}

/// More is no page.
const MOST: usize = 100_000;

/// Sizes of HTTP/2 on the wire (RFC 9113), in bytes.
pub mod http2 {
    use super::Object;

    /// The header block of a request in HEADERS.
    pub fn request_block(object: &Object) -> u64 {
        block(object.request.get(), REQUEST_BLOCK)
    }

    /// The header block of a response in HEADERS.
    pub fn response_block(object: &Object) -> u64 {
        block(object.header.get(), RESPONSE_BLOCK)
    }

    /// Returns the size of a header block that compression leaves of `header` bytes.
    fn block(header: u64, percent: u64) -> u64 {
        (header * percent / 100).max(LEAST_BLOCK)
    }

    /// The header of a frame (RFC 9113 §4.1).
    pub const FRAME: u64 = 9;
    /// SETTINGS_MAX_FRAME_SIZE unless agreed otherwise (RFC 9113 §4.2).
    pub const MAX_FRAME: u64 = 16_384;
    /// The client's magic octets (RFC 9113 §3.4).
    pub const PREFACE: u64 = 24;
    /// A SETTINGS frame with two parameters of six bytes (RFC 9113 §6.5.1).
    pub const SETTINGS: u64 = FRAME + 2 * 6;
    /// Per cent of a request's header that HPACK leaves: Cloudflare saw 76 % saved on average (V. Krasnov: HPACK: the
    /// silent killer (feature) of HTTP/2, 2016).
    const REQUEST_BLOCK: u64 = 24;
    /// The same for responses: 69 % saved.
    const RESPONSE_BLOCK: u64 = 31;
    /// A few indexed fields (RFC 7541 §6.1) and a path that is new.
    const LEAST_BLOCK: u64 = 10;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(after: &[&[usize]]) -> Page {
        let wait = |&activity: &usize| After { activity, moment: Moment::End, delay: Duration::ZERO };
        let one = |after: &&[usize]| Activity {
            after: after.iter().map(wait).collect(),
            ..Activity::download(Object::of_size(Bytes::new(1)))
        };
        Page { activities: after.iter().map(one).collect() }
    }

    #[test]
    fn a_page_that_can_never_be_there_is_refused() {
        assert_eq!(page(&[&[], &[0], &[0, 1]]).check(), Ok(()));
        for (after, said) in [
            (&[][..], "nothing is downloaded"),
            (&[&[][..], &[2], &[1]], "activity 1 waits for itself, by way of others"),
            (&[&[0][..]], "activity 0 waits for itself, by way of others"),
            (&[&[7][..]], "activity 0 waits for activity 7, which is not there"),
        ] {
            assert_eq!(page(after).check(), Err(said.to_owned()));
        }
        assert_eq!(page(&[&[], &[0]]).total(), Bytes::new(2));
    }
}
