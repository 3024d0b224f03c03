use std::collections::HashMap;
struct Entry { name: String, values: Vec<i32> }
impl Entry { fn each<F: Fn(i32) -> i32>(&self, f: F) -> i32 { self.values.iter().map(|&v| f(v)).sum() } }
// The method of an enumeration without data: its debug information is within that of the enumeration.
enum Kind { Even, Odd }
impl Kind {
    #[inline(never)]
    fn name(&self, n: i32) -> String { match self { Kind::Even => format!("even{}", n), Kind::Odd => n.to_string() } }
}
fn work(n: i32) -> i32 {
    let mut all = HashMap::new();
    for i in 0..n { all.insert(i, Box::new(Entry { name: kind(i).name(i), values: vec![i; i as usize] })); }
    all.values().map(|e| e.each(|v| v * n + e.name.len() as i32)).fold(0, |a, b| a.wrapping_add(b))
}
fn kind(i: i32) -> Kind { if i % 2 == 0 { Kind::Even } else { Kind::Odd } }
fn main() { let n = std::env::args().count() as i32 * 10; println!("{}", work(n)); }
