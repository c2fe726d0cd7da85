//! The seed of what a runner draws.

use anabranch_units::Seed;

/// `ANABRANCH_SEED` from the environment; without it a fresh one. It is printed, so that a failure can be met again:
/// the links are then the same, though what the machine makes of them is not.
///
/// # Errors
/// If the variable holds no number.
pub fn seed(runner: &str) -> Result<Seed, String> {
    let seed = match std::env::var("ANABRANCH_SEED") {
        Ok(text) => {
            text.parse().map_err(|_| format!("ANABRANCH_SEED is `{text}`; a whole number from 0 is accepted"))?
        }
        Err(_) => {
            let mut bytes = [0; 4];
            getrandom::fill(&mut bytes).map_err(|error| format!("no random numbers: {error}"))?;
            u64::from(u32::from_ne_bytes(bytes))
        }
    };
    eprintln!("{runner}: ANABRANCH_SEED={seed}");
    Ok(Seed(seed))
}
