//! Words that are near a mistyped one, judged as Python's difflib does: both command lines suggest the same.

use std::collections::HashMap;

const CUTOFF: f64 = 0.6;
const MOST: usize = 3;
const POPULAR_FROM: usize = 200; // from this length on difflib leaves out letters that are everywhere

/// The nearest of those known, the best first.
pub fn near<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let second: Vec<char> = word.chars().collect();
    let mut found: Vec<(f64, &str)> =
        known.into_iter().map(|one| (ratio(&one.chars().collect::<Vec<_>>(), &second), one)).filter(|(ratio, _)| *ratio >= CUTOFF).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| b.1.cmp(a.1)));
    found.truncate(MOST);
    found.into_iter().map(|(_, one)| one).collect()
}

/// Twice the letters that match, of all letters of both.
fn ratio(first: &[char], second: &[char]) -> f64 {
    let both = first.len() + second.len();
    if both == 0 {
        return 1.0;
    }
    let mut places: HashMap<char, Vec<usize>> = HashMap::new();
    for (at, letter) in second.iter().enumerate() {
        places.entry(*letter).or_default().push(at);
    }
    if second.len() >= POPULAR_FROM {
        places.retain(|_, at| at.len() <= second.len() / 100 + 1);
    }
    2.0 * matching(first, second, &places, (0, first.len()), (0, second.len())) as f64 / both as f64
}

/// Letters in the longest block that both have, and in those before and behind it.
fn matching(first: &[char], second: &[char], places: &HashMap<char, Vec<usize>>, a: (usize, usize), b: (usize, usize)) -> usize {
    let (at_a, at_b, size) = longest(first, second, places, a, b);
    if size == 0 {
        return 0;
    }
    size + matching(first, second, places, (a.0, at_a), (b.0, at_b)) + matching(first, second, places, (at_a + size, a.1), (at_b + size, b.1))
}

fn longest(first: &[char], second: &[char], places: &HashMap<char, Vec<usize>>, a: (usize, usize), b: (usize, usize)) -> (usize, usize, usize) {
    let mut best = (a.0, b.0, 0);
    let mut lengths: HashMap<usize, usize> = HashMap::new();
    for (i, letter) in first.iter().enumerate().take(a.1).skip(a.0) {
        let mut next = HashMap::new();
        for &j in places.get(letter).map_or(&[][..], Vec::as_slice) {
            if j < b.0 {
                continue;
            }
            if j >= b.1 {
                break;
            }
            let length = 1 + j.checked_sub(1).and_then(|before| lengths.get(&before)).unwrap_or(&0);
            next.insert(j, length);
            if length > best.2 {
                best = (i + 1 - length, j + 1 - length, length);
            }
        }
        lengths = next;
    }
    widened(first, second, a, b, best)
}

/// Popular letters that were left out still belong to a block that they touch.
fn widened(first: &[char], second: &[char], a: (usize, usize), b: (usize, usize), found: (usize, usize, usize)) -> (usize, usize, usize) {
    let (mut i, mut j, mut size) = found;
    while i > a.0 && j > b.0 && first[i - 1] == second[j - 1] {
        (i, j, size) = (i - 1, j - 1, size + 1);
    }
    while i + size < a.1 && j + size < b.1 && first[i + size] == second[j + size] {
        size += 1;
    }
    (i, j, size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_comes_first_and_what_is_far_does_not_come() {
        assert_eq!(near("shw", ["new", "show", "list", "snapshot"]), ["show"]);
        assert_eq!(near("--nam", ["--env", "--name", "--tag", "--json"]), ["--name", "--tag", "--env"]);
        assert!(near("nonsense", ["new", "list"]).is_empty());
    }

    #[test]
    fn ratios_are_those_of_difflib() {
        let of = |a: &str, b: &str| ratio(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>());
        assert!((of("abcd", "bcde") - 0.75).abs() < 1e-12);
        assert!((of("", "") - 1.0).abs() < 1e-12);
        assert!((of("tide", "diet") - 0.25).abs() < 1e-12);
    }
}
