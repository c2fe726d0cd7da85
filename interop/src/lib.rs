//! What the tests against stock Linux share: kernel peers, counters, the engine at one end of emulated paths.
