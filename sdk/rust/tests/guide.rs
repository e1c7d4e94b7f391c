//! The guide for people is a program that runs: what docs/rust.md shows is what examples/guide.rs does.

use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("a file of the repository")
}

#[test]
fn every_block_of_the_guide_is_a_part_of_its_program_in_the_same_order() {
    let guide = read("../../docs/rust.md");
    let blocks: Vec<&str> = guide.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default()).collect();
    assert!(blocks.len() > 4, "only {} blocks are there", blocks.len());
    let program = read("examples/guide.rs");
    let flat = program.lines().map(|line| line.strip_prefix("    ").unwrap_or(line)).collect::<Vec<_>>().join("\n");
    let mut rest = flat.as_str();
    for block in blocks {
        rest = rest.split_once(block).unwrap_or_else(|| panic!("the program does not have this, or not here:\n{block}")).1;
    }
}
