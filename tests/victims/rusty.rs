// SPDX-License-Identifier: MIT OR Apache-2.0
// Threads use vectors, strings and maps until stdin ends.  Checks its sums and prints "ok".
use std::collections::HashMap;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};

static RUNNING: AtomicBool = AtomicBool::new(true);

#[inline(never)]
fn work(seed: u64) -> u64 {
    let mut map: HashMap<String, Vec<u64>> = HashMap::new();
    for i in 0..500u64 {
        map.entry(format!("key {}", i % 50)).or_default().push(i + seed);
    }
    map.values().flatten().sum()
}

fn main() {
    let threads: Vec<_> = (0..3u64)
        .map(|t| {
            std::thread::spawn(move || {
                while RUNNING.load(Ordering::Relaxed) {
                    assert_eq!(work(t), 499 * 500 / 2 + 500 * t);
                }
            })
        })
        .collect();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    RUNNING.store(false, Ordering::Relaxed);
    for t in threads {
        t.join().unwrap();
    }
    println!("ok");
}
