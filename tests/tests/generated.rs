//! placeholder
use pantile_tests::generate::{Choices, Program};

#[test]
fn show() {
    let seed: u64 = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    for i in 0..5 {
        println!("{}", Program::generate(i, Choices::seeded(seed + i as u64)).text);
    }
}
