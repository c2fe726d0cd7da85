//! TCP options, in the order and with the padding that Linux writes: MSS, timestamps (SACK-permitted in their padding
//! on a SYN), window scale, SACK, MPTCP; then unknown options.

use super::mptcp::{self, Read};
use super::writer::Writer;
use crate::error::EmitError;
use crate::{Handshake, MpOption, Options, SackBlock, Timestamps};
use anabranch_units::SubflowSeq;

/// Reads the options of a header into `options`. With `cut`, the header goes on beyond `bytes`, and an option that does
/// the same is not taken for a broken one.
#[inline]
pub(super) fn read(bytes: &[u8], cut: bool, options: &mut Options) {
    let mut rest = bytes;
    while let [kind, after_kind @ ..] = rest {
        match *kind {
            END => break,
            NOP => {
                rest = after_kind;
                continue;
            }
            _ => {}
        }
        let length = after_kind.first().map_or(0, |&length| usize::from(length));
        if length < 2 || length > rest.len() {
            if !cut || (length < 2 && rest.len() > 1) {
                options.set_broken(rest);
            }
            break;
        }
        let (option, behind) = rest.split_at(length);
        if !understand(option, options) {
            options.push_unknown(*kind, &option[2..]);
        }
        rest = behind;
    }
}

/// Takes one option in; false if it is unknown, malformed, or there already.
#[inline]
fn understand(option: &[u8], options: &mut Options) -> bool {
    match *option {
        [TIMESTAMPS, 10, v0, v1, v2, v3, e0, e1, e2, e3] if options.timestamps().is_none() => {
            let (value, echo) = (u32::from_be_bytes([v0, v1, v2, v3]), u32::from_be_bytes([e0, e1, e2, e3]));
            options.set_timestamps(Some(Timestamps { value, echo }));
        }
        [mptcp::KIND, ..] => match mptcp::read(option) {
            Some(Read::Dss(dss)) if !options.has_dss() => options.set_dss(Some(dss)),
            Some(Read::Other(other)) => options.push_mptcp(other),
            _ => return false,
        },
        [SACK, 10 | 18 | 26 | 34, ref blocks @ ..] if !options.has_sack() => {
            for block in blocks.chunks_exact(8) {
                let edge = |at: usize| {
                    SubflowSeq::new(u32::from_be_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]))
                };
                options.push_sack(SackBlock { start: edge(0), end: edge(4) });
            }
        }
        [MSS, 4, high, low] if options.handshake().mss.is_none() => {
            options.handshake_mut().mss = Some(u16::from_be_bytes([high, low]));
        }
        [WINDOW_SCALE, 3, shift] if options.handshake().window_scale.is_none() => {
            options.handshake_mut().window_scale = Some(shift);
        }
        [SACK_PERMITTED, 2] if !options.handshake().sack_permitted => {
            options.handshake_mut().sack_permitted = true;
        }
        _ => return false,
    }
    true
}

/// Writes the options and pads the header to a multiple of four. The caller has checked that they fit.
#[inline]
pub(super) fn write(options: &Options, out: &mut Writer) -> Result<(), EmitError> {
    let Handshake { mss, window_scale, sack_permitted } = options.handshake();
    let timestamps = options.timestamps();
    if let Some(mss) = mss {
        out.put(&[MSS, 4]);
        out.put(&mss.to_be_bytes());
    }
    if sack_permitted {
        out.nops(if timestamps.is_some() { 0 } else { 2 });
        out.put(&[SACK_PERMITTED, 2]);
    }
    if let Some(timestamps) = timestamps {
        out.nops(if sack_permitted { 0 } else { 2 });
        let mut option = [TIMESTAMPS, 10, 0, 0, 0, 0, 0, 0, 0, 0];
        option[2..6].copy_from_slice(&timestamps.value.to_be_bytes());
        option[6..].copy_from_slice(&timestamps.echo.to_be_bytes());
        out.put(&option);
    }
    if let Some(shift) = window_scale {
        out.nops(1);
        out.put(&[WINDOW_SCALE, 3, shift]);
    }
    if options.has_sack() {
        let blocks = options.sack();
        out.nops(2);
        out.put(&[SACK, 2 + 8 * blocks.as_slice().len() as u8]);
        for block in blocks.as_slice() {
            out.put(&block.start.get().to_be_bytes());
            out.put(&block.end.get().to_be_bytes());
        }
    }
    // Linux puts MP_FAIL before DSS and everything else after it.
    let others = options.mptcp();
    let fails = others.iter().take_while(|option| matches!(option, MpOption::Fail { .. })).count();
    for option in &others[..fails] {
        mptcp::write(option, out)?;
    }
    if let Some(dss) = &options.dss() {
        mptcp::write_dss(dss, out);
        out.align();
    }
    for option in &others[fails..] {
        mptcp::write(option, out)?;
        out.align();
    }
    for unknown in options.unknown() {
        if matches!(unknown.kind, END | NOP) {
            return Err(EmitError::NoLayout("end-of-options and NOP have no length"));
        }
        out.put(&[unknown.kind, 2 + unknown.data.len() as u8]);
        out.put(&unknown.data);
        out.align();
    }
    // A broken option ends where the header ends, or it would not be broken in the same way.
    out.align_to(options.broken().len());
    out.put(options.broken());
    Ok(())
}

/// Option kinds (RFC 9293 §3.1, RFC 7323 §2 and §3, RFC 2018 §2 and §3).
const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
