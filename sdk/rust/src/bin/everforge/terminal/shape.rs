//! Do lines of Python stand under one another as it wants them? No I/O.

use super::reading::Line;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Whole,
    /// Something must still follow.
    Unfinished,
    Wrong,
}

#[derive(PartialEq, Eq)]
enum Wants {
    Nothing,
    /// Behind a colon.
    Body,
    /// Behind a decorator.
    Definition,
}

struct Level {
    indent: usize,
    tries: bool, // its `try` waits for `except` or `finally`
}

pub fn shape(lines: &[Line]) -> Shape {
    let mut levels = vec![Level { indent: 0, tries: false }];
    let mut wants = Wants::Nothing;
    for (i, line) in lines.iter().enumerate() {
        let deepest = levels.last().map_or(0, |level| level.indent);
        if wants == Wants::Body {
            if line.indent <= deepest {
                return Shape::Wrong;
            }
            levels.push(Level { indent: line.indent, tries: false });
        }
        while levels.last().is_some_and(|level| line.indent < level.indent) {
            if levels.pop().is_some_and(|level| level.tries) {
                return Shape::Wrong;
            }
        }
        let Some(level) = levels.last_mut().filter(|level| level.indent == line.indent) else { return Shape::Wrong };
        let catches = line.begins_with(&["except", "finally"]);
        if level.tries != catches && (level.tries || !follows(&lines[..i], line)) {
            return Shape::Wrong;
        }
        if wants == Wants::Definition && !line.text.starts_with('@') && !line.begins_with(&["def", "class", "async"]) {
            return Shape::Wrong;
        }
        level.tries = line.begins_with(&["try"]);
        wants = match line.text.as_str() {
            text if text.ends_with(':') => Wants::Body,
            text if text.starts_with('@') => Wants::Definition,
            _ => Wants::Nothing,
        };
    }
    if wants != Wants::Nothing || levels.iter().any(|level| level.tries) { Shape::Unfinished } else { Shape::Whole }
}

/// A second `except`, or the `finally` behind one.
fn follows(before: &[Line], line: &Line) -> bool {
    let beside = before.iter().rev().find(|one| one.indent <= line.indent);
    beside.is_some_and(|one| one.indent == line.indent && one.begins_with(&["except", "else"]))
}
