//! Capture files as others write them: each byte by hand, from the layouts of the drafts.
#![allow(clippy::unwrap_used)]

use anabranch_capture::{LinkType, ReadError, Reader, Record};
use anabranch_units::Instant;
use proptest::prelude::*;
use std::io::{Cursor, Write};

/// Writes integers in one byte order.
#[derive(Clone, Copy)]
struct Order {
    big: bool,
}

impl Order {
    fn half(self, n: u16) -> Vec<u8> {
        if self.big { n.to_be_bytes().into() } else { n.to_le_bytes().into() }
    }

    fn word(self, n: u32) -> Vec<u8> {
        if self.big { n.to_be_bytes().into() } else { n.to_le_bytes().into() }
    }

    fn double(self, n: u64) -> Vec<u8> {
        if self.big { n.to_be_bytes().into() } else { n.to_le_bytes().into() }
    }

    fn pcap(self, magic: u32, link: u32, records: &[(u32, u32, &[u8], u32)]) -> Vec<u8> {
        let mut file = [self.word(magic), self.half(2), self.half(4), self.word(0), self.word(0)].concat();
        file.extend([self.word(65_535), self.word(link)].concat());
        for (seconds, fraction, bytes, original) in records {
            let fields = [*seconds, *fraction, bytes.len() as u32, *original];
            file.extend(fields.map(|field| self.word(field)).concat());
            file.extend(*bytes);
        }
        file
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let length = self.word(body.len() as u32 + 12);
        [self.word(kind), length.clone(), body, length].concat()
    }

    fn section(self) -> Vec<u8> {
        let body = [self.word(0x1a2b_3c4d), self.half(1), self.half(0), self.double(u64::MAX)].concat();
        self.block(0x0a0d_0d0a, &body)
    }

    fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut option = [self.half(code), self.half(value.len() as u16), value.to_vec()].concat();
        option.resize(option.len().next_multiple_of(4), 0);
        option
    }

    fn interface(self, link: u16, snap: u32, options: &[u8]) -> Vec<u8> {
        self.block(1, &[self.half(link), self.half(0), self.word(snap), options.to_vec()].concat())
    }

    fn enhanced(self, interface: u32, time: u64, bytes: &[u8], original: u32) -> Vec<u8> {
        let fields = [interface, (time >> 32) as u32, time as u32, bytes.len() as u32, original];
        let comment = [self.option(1, b"a comment"), self.option(0, b"")].concat();
        let mut data = bytes.to_vec();
        data.resize(bytes.len().next_multiple_of(4), 0);
        self.block(6, &[fields.map(|field| self.word(field)).concat(), data, comment].concat())
    }
}

const ORDERS: [Order; 2] = [Order { big: false }, Order { big: true }];

/// All records, and what stopped the reading.
fn read(file: &[u8]) -> (Vec<Record>, Option<ReadError>) {
    let mut reader = match Reader::new(Cursor::new(file.to_vec())) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut records = Vec::new();
    loop {
        match reader.next_record() {
            Ok(Some(record)) => records.push(record),
            Ok(None) => return (records, None),
            Err(error) => {
                assert!(matches!(reader.next_record(), Ok(None)), "an error is said once");
                return (records, Some(error));
            }
        }
    }
}

fn whole(file: &[u8]) -> Vec<Record> {
    let (records, error) = read(file);
    assert!(error.is_none(), "{error:?}");
    records
}

#[test]
fn pcap_in_both_byte_orders_and_resolutions() {
    for order in ORDERS {
        for (magic, nanos) in [(0xa1b2_c3d4, 5_000_007_000), (0xa1b2_3c4d, 5_000_000_007)] {
            let file = order.pcap(magic, 101, &[(5, 7, b"abc", 60), (6, 0, b"", 0)]);
            let records = whole(&file);
            assert_eq!(records.len(), 2);
            assert_eq!(records[0].at, Some(Instant::from_nanos(nanos)));
            assert_eq!((&records[0].bytes[..], records[0].original_length), (&b"abc"[..], 60));
        }
    }
}

#[test]
fn pcapng_with_sections_interfaces_and_clocks() {
    for order in ORDERS {
        let offset = order.option(14, &order.double(100));
        let file = [
            order.section(),
            order.interface(101, 0, &[order.option(2, b"wlan0"), order.option(9, &[9])].concat()),
            order.interface(1, 0, &order.option(9, &[0x80 | 10])),
            order.interface(113, 4, &offset),
            order.block(0x0bad, b"unknown blocks are passed over"),
            order.enhanced(0, 1 << 33, b"nano", 4),
            order.enhanced(1, 3 << 9, b"1.5 s", 90),
            order.block(
                2,
                &[order.half(2), order.half(9), [0, 7, 4, 4].map(|n| order.word(n)).concat(), b"old ".to_vec()]
                    .concat(),
            ),
            order.block(3, &[order.word(5), b"short".to_vec()].concat()),
            order.block(5, &[order.word(2), order.word(0), order.word(0), order.option(5, &order.double(12))].concat()),
            // A second section, in the other byte order, whose interfaces count from 0 again.
            Order { big: !order.big }.section(),
            Order { big: !order.big }.interface(276, 0, &[]),
            Order { big: !order.big }.enhanced(0, 5, b"x", 1),
        ]
        .concat();
        let mut reader = Reader::new(Cursor::new(file)).unwrap();
        let mut records = Vec::new();
        while let Some(record) = reader.next_record().unwrap() {
            records.push((record.at.map(Instant::as_nanos), record.interface, record.original_length, record.bytes));
        }
        let expected: [(Option<u64>, u32, u32, &[u8]); 5] = [
            (Some(1 << 33), 0, 4, b"nano"),
            (Some(1_500_000_000), 1, 90, b"1.5 s"),
            (Some(100_000_007_000), 2, 4, b"old "),
            (None, 0, 5, b"short"),
            (Some(5_000), 3, 1, b"x"),
        ];
        assert_eq!(records.len(), expected.len());
        for (record, expected) in records.iter().zip(expected) {
            assert_eq!((record.0, record.1, record.2, &record.3[..]), expected);
        }
        let links: Vec<u16> = reader.interfaces().iter().map(|interface| interface.link.0).collect();
        assert_eq!(links, [101, 1, 113, 276]);
        assert_eq!(reader.interfaces()[0].name.as_deref(), Some("wlan0"));
        assert_eq!(reader.interfaces()[2].dropped, 12);
    }
}

#[test]
fn gzip_is_looked_through() {
    let file = ORDERS[0].pcap(0xa1b2_c3d4, 101, &[(5, 7, b"abc", 3)]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&file).unwrap();
    let gzip = gzip.finish().unwrap();
    assert_eq!(whole(&gzip).len(), 1);
    let (_, error) = read(&gzip[..gzip.len() - 12]);
    assert!(error.is_some(), "a cut gzip file is not whole");
}

#[test]
fn what_cannot_be_read_is_said_and_what_was_before_it_stays() {
    let order = ORDERS[0];
    let pcap = order.pcap(0xa1b2_c3d4, 101, &[(5, 7, b"abc", 3), (6, 7, b"defg", 4)]);
    let ng = [order.section(), order.interface(101, 0, &[]), order.enhanced(0, 1, b"abcd", 4)].concat();
    let message = |file: &[u8]| {
        let (records, error) = read(file);
        (records.len(), error.map(|error| error.to_string()).unwrap_or_default())
    };
    assert_eq!(message(b""), (0, "the file is empty".into()));
    let text = "this is neither pcap nor pcapng: it begins with the text \"#!/bin/sh echo h\"";
    assert_eq!(message(b"#!/bin/sh echo hello"), (0, text.into()));
    assert_eq!(
        message(&pcap[..20]),
        (0, "the file ends within the file header, at byte 0: 20 of 24 bytes are there".into())
    );
    let cut = "the file ends within a packet, at byte 43: 18 of 20 bytes are there";
    assert_eq!(message(&pcap[..pcap.len() - 2]), (1, cut.into()));
    let cut = "the file ends within a record's header, at byte 43: 9 of 16 bytes are there";
    assert_eq!(message(&pcap[..52]), (1, cut.into()));
    let mut damaged = pcap.clone();
    damaged[43 + 8..43 + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    damaged[43 + 16..].fill(0xee);
    assert_eq!(message(&damaged), (1, "damaged at byte 43: a packet of 4294967295 bytes".into()));

    let garbage = [&ng[..], &[0xff; 40]].concat();
    let at = ng.len();
    let said = format!("damaged at byte {at}: a block of type 0xffffffff and 4294967295 bytes");
    assert_eq!(message(&garbage), (1, said));
    let mut end = ng.clone();
    *end.last_mut().unwrap() = 9;
    assert_eq!(message(&end).0, 0);
    assert!(message(&end).1.contains("that ends as one of"), "{}", message(&end).1);
    // A packet of an undeclared interface is skipped.
    let stray = [ng.clone(), order.enhanced(7, 1, b"abcd", 4), order.enhanced(0, 1, b"abcd", 4)].concat();
    assert_eq!(message(&stray), (2, String::new()));
}

#[test]
fn reading_goes_on_behind_damage() {
    for order in ORDERS {
        let records: Vec<(u32, u32, &[u8], u32)> = vec![(5, 7, b"abc", 3), (6, 7, b"defg", 4), (7, 8, b"hi", 90)];
        let pcap = order.pcap(0xa1b2_c3d4, 101, &records);
        let [first, rest] = [&pcap[..24 + 19], &pcap[24 + 19..]];
        let head = [order.section(), order.interface(101, 0, &[]), order.enhanced(0, 1, b"abcd", 4)].concat();
        let tail = [order.enhanced(0, 2, b"efgh", 4), order.enhanced(0, 3, b"i", 1)].concat();
        for (before, behind) in [(first, rest), (&head, &tail)] {
            for garbage in [&[0xff; 41][..], &[0xde, 0xad, 0xbe, 0xef].repeat(30)] {
                let file = [before, garbage, behind].concat();
                let mut reader = Reader::new(Cursor::new(file)).unwrap();
                let mut records = 0;
                while reader.next_record().unwrap().is_some() {
                    records += 1;
                }
                let damages = reader.damages();
                assert_eq!((records, damages.count, damages.bytes), (3, 1, garbage.len() as u64));
                let said = damages.first.as_ref().unwrap();
                assert!(said.starts_with(&format!("at byte {}: ", before.len())), "{said}");
            }
        }
    }
}

#[test]
fn lengths_that_the_file_does_not_hold_cost_no_memory() {
    let order = ORDERS[0];
    let mut file = order.pcap(0xa1b2_c3d4, 101, &[]);
    file.extend([1, 2, 1 << 18, 1 << 18].map(|n| order.word(n)).concat());
    assert!(matches!(read(&file), (records, Some(ReadError::Cut { .. })) if records.is_empty()));
    let block = [order.section(), [order.word(0x0bad), order.word(0xffff_fff0)].concat()].concat();
    assert!(matches!(read(&block).1, Some(ReadError::Cut { have: 8, .. })));
}

#[test]
fn link_types_have_their_low_half() {
    // The upper half of the field says that frames end with a check sequence of four bytes.
    let file = ORDERS[1].pcap(0xa1b2_c3d4, 0x4000_0001, &[]);
    let reader = Reader::new(Cursor::new(file)).unwrap();
    assert_eq!(reader.interfaces()[0].link, LinkType(1));
}

proptest! {
    #[test]
    fn garbage_ends_and_never_panics(
        start in 0usize..4, cut in 0usize..400, noise in proptest::collection::vec((0usize..400, any::<u8>()), 0..20),
        tail in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let order = ORDERS[start % 2];
        let mut file = if start < 2 {
            order.pcap(0xa1b2_c3d4, 1, &[(5, 7, b"abc", 3), (6, 7, b"defg", 4)])
        } else {
            let interface = order.interface(1, 0, &order.option(9, &[0xff]));
            let packets = [order.enhanced(0, u64::MAX, b"abcd", 4), order.enhanced(0, 2, b"e", 9)];
            [order.section(), interface, packets.concat()].concat()
        };
        file.truncate(cut);
        file.extend(tail);
        for (at, byte) in noise {
            if let Some(place) = file.get_mut(at) {
                *place = byte;
            }
        }
        let (records, _) = read(&file);
        let bytes: usize = records.iter().map(|record| record.bytes.len()).sum();
        prop_assert!(bytes <= file.len());
        for record in records {
            for link in [0, 1, 9, 50, 51, 101, 104, 108, 113, 228, 258, 276, 999] {
                let _ = LinkType(link).ip_packet(&record.bytes);
            }
        }
    }
}
