use std::collections::HashMap;
struct Entry { name: String, values: Vec<i32> }
impl Entry { fn each<F: Fn(i32) -> i32>(&self, f: F) -> i32 { self.values.iter().map(|&v| f(v)).sum() } }
fn work(n: i32) -> i32 {
    let mut all = HashMap::new();
    for i in 0..n { all.insert(i, Box::new(Entry { name: format!("entry{}", i), values: vec![i; i as usize] })); }
    all.values().map(|e| e.each(|v| v * n + e.name.len() as i32)).fold(0, |a, b| a.wrapping_add(b))
}
fn main() { let n = std::env::args().count() as i32 * 10; println!("{}", work(n)); }
