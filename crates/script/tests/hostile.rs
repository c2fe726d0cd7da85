//! Scripts with words exchanged, doubled and spoiled: refused or failed, never a panic.

use anabranch_script::run_text;
use anabranch_units::Seed;
use std::path::Path;

#[test]
fn spoiled_scripts_do_not_panic() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let server = std::fs::read_to_string(root.join("setup/server.inc")).expect("the setup is there");
    let mut words: Vec<String> = Vec::new();
    let mut texts = Vec::new();
    for folder in ["dss", "fin", "close", "fallback", "addr"] {
        let mut files: Vec<_> = std::fs::read_dir(root.join(folder)).expect("scripts").flatten().collect();
        files.sort_by_key(std::fs::DirEntry::path);
        for file in files {
            let text = std::fs::read_to_string(file.path()).expect("a script");
            let text = text.replace("include ../setup/server.inc", &server);
            if !text.contains("include") && !text.contains("repeat") {
                words.extend(
                    text.lines().skip(1).flat_map(|line| line.split([' ', '=', ',', '(', ')'])).map(str::to_owned),
                );
                texts.push(text);
            }
        }
    }
    words.extend(
        ["18446744073709551615", "-1", "abs:0", "0xffffffffffffffff", "9999999h", "1:65536", "*", ""]
            .map(str::to_owned),
    );
    words.extend(
        ["-9223372036854775808:-9223372036854775000", "4294967295", "65535", "{1/0}", "256k"].map(str::to_owned),
    );
    let mut chance = Seed(5).stream("spoiled scripts");
    let (mut run, mut held) = (0, 0);
    for text in texts.iter().cycle().take(1500) {
        let mut text = text.clone();
        for _ in 0..=chance.below(3) {
            let cuts: Vec<usize> = text.match_indices([' ', '=', ',', '(', ':']).map(|(at, _)| at).collect();
            if cuts.is_empty() {
                break;
            }
            let at = cuts[chance.below(cuts.len() as u64) as usize] + 1;
            let end = text[at..].find([' ', '=', ',', ')', '\n', ':']).map_or(text.len(), |end| at + end);
            let word = &words[chance.below(words.len() as u64) as usize];
            text.replace_range(at..end, word);
        }
        run += 1;
        held += u32::from(run_text("spoiled", &text).is_ok());
    }
    assert!(
        run == 1500 && held > 50 && held < 1400,
        "{held} of {run} hold: the spoiling spoils nothing, or everything"
    );
}
