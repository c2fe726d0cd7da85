//! Cuts a failing input down: `minimise TARGET FILE` prints the shortest input it finds that still fails.

use anabranch_fuzzing::Target;
use std::panic::catch_unwind;

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [name, file] = &arguments[..] else {
        eprintln!("usage: minimise codec|listener|connection FILE");
        std::process::exit(2);
    };
    let target = Target::ALL.iter().find(|(_, known)| known == name).map(|(target, _)| *target);
    let (Some(target), Ok(mut input)) = (target, std::fs::read(file)) else {
        eprintln!("no target {name}, or no file {file}");
        std::process::exit(2);
    };
    std::panic::set_hook(Box::new(|_| {}));
    let fails = |input: &[u8]| catch_unwind(|| target.run(input)).is_err();
    if !fails(&input) {
        println!("{file} does not fail");
        return;
    }
    let mut length = input.len() / 2;
    while length > 0 {
        let mut at = 0;
        while at + length <= input.len() {
            let mut shorter = input.clone();
            shorter.drain(at..at + length);
            if fails(&shorter) { input = shorter } else { at += length }
        }
        length /= 2;
    }
    for at in 0..input.len() {
        let mut simpler = input.clone();
        simpler[at] = 0;
        if fails(&simpler) {
            input = simpler;
        }
    }
    let _ = std::panic::take_hook();
    println!("{input:?}");
    target.run(&input);
}
