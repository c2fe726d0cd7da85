#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| anabranch_fuzzing::connection(input));
