"""The wire in Rust."""

from __future__ import annotations

import json
import re
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from everforge.wire.sentences import CAUSES, QUOTED_MAX, SENTENCES

from . import wire

HEAD = "// Generated from src/everforge/wire by tools/make_contract.py; `make fix` writes it, `make check` compares.\n"
PLAIN = {str: "String", int: "i64", float: "f64", bool: "bool", Any: "Value"}
KEYWORDS = {"type", "where", "use", "match", "ref", "move", "self", "final", "do"}


def files() -> dict[str, str]:
    return {"api.rs": _api(), "entries.rs": _entries(), "errors.rs": _errors(), "sentences.rs": _sentences()}


def spelled(hint: Any, words: str = "String") -> str:
    """`words`: what a Literal without a name of its own is here."""
    if hint in PLAIN:
        return PLAIN[hint]
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return wire.choice_of(hint) or words
    if origin is list:
        return f"Vec<{spelled(args[0], words)}>"
    if origin is dict:
        return f"IndexMap<String, {spelled(args[1], words)}>"  # in the order in which they were given
    if origin in (Union, UnionType):
        rest = [arg for arg in args if arg is not NoneType]
        inner = spelled(rest[0], words) if len(rest) == 1 else "Value"
        return f"Option<{inner}>" if NoneType in args else inner
    if hasattr(hint, "__supertype__"):
        return spelled(hint.__supertype__, words)
    return hint.__name__


def _comment(text: str, indent: str = "") -> str:
    return "".join(f"{indent}/// {line}".rstrip() + "\n" for line in text.splitlines())


def _camel(word: str) -> str:
    return "".join(part.capitalize() for part in re.split(r"[._-]", word))


DEFAULTS = {"Retry"}  # of these the first word is what is meant where none is given


def _choice(choice: wire.Choice) -> str:
    first = "    #[default]\n" if choice.name in DEFAULTS else ""
    variants = first + "".join(f"    {_camel(word)},\n" for word in choice.words)
    derived = f"Debug, Clone, PartialEq, Eq, {'Default, ' if first else ''}Serialize, Deserialize"
    to = "".join(f"            Self::{_camel(word)} => {json.dumps(word)},\n" for word in choice.words)
    back = "".join(f"            {json.dumps(word)} => Self::{_camel(word)},\n" for word in choice.words)
    return (
        "/// What a younger server says is `Unknown`, with its word.\n"
        f'#[derive({derived})]\n#[serde(from = "String", into = "String")]\n'
        f"pub enum {choice.name} {{\n{variants}    Unknown(String),\n}}\n\n"
        f"impl {choice.name} {{\n    /// The words that the wire has for it.\n    pub const WORDS: &'static [&'static str] = &{json.dumps(list(choice.words))};\n\n"
        f"    /// As it is on the wire.\n    pub fn as_str(&self) -> &str {{\n        match self {{\n{to}            Self::Unknown(word) => word,\n        }}\n    }}\n}}\n\n"
        f"impl From<String> for {choice.name} {{\n    fn from(word: String) -> Self {{\n        match word.as_str() {{\n{back}            _ => Self::Unknown(word),\n        }}\n    }}\n}}\n\n"
        f"impl From<&str> for {choice.name} {{\n    fn from(word: &str) -> Self {{\n        Self::from(word.to_owned())\n    }}\n}}\n\n"
        f"impl From<{choice.name}> for String {{\n    fn from(value: {choice.name}) -> Self {{\n        value.as_str().to_owned()\n    }}\n}}\n\n"
        f"impl std::fmt::Display for {choice.name} {{\n    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {{\n        f.write_str(self.as_str())\n    }}\n}}\n"
    )


# What nobody is to find in a log: Debug leaves it out.
HIDDEN = {
    "AccountCreated": "token",
    "Invitation": "invitation",
    "LogInLink": "url",
    "LoggedIn": "token",
    "NewSecret": "value",
    "NewWebhook": "secret",
    "SignUp": "invitation",
    "SignedUp": "token",
    "TokenCreated": "token",
    "WebhookCreated": "secret",
}


def _hidden(shape: wire.Shape) -> str | None:
    found = HIDDEN.get(shape.name)
    missed = [field.name for field in shape.fields if field.about.startswith("shown once") and field.name != found]
    assert not missed, f"{shape.name}.{missed[0]} is a secret: name it in HIDDEN"
    assert found is None or found in {field.name for field in shape.fields}, f"{shape.name} has no {found} to hide"
    return found


def _debug(shape: wire.Shape, hidden: str) -> str:
    shown = "".join(f'.field("{field.name}", &self.{field.name})' for field in shape.fields if field.name != hidden)
    return (
        f"\nimpl std::fmt::Debug for {shape.name} {{\n    /// Without its {hidden}, which is a secret.\n"
        "    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {\n"
        f'        f.debug_struct("{shape.name}"){shown}.finish_non_exhaustive()\n    }}\n}}\n'
    )


def _struct(shape: wire.Shape) -> str:
    lines: list[str] = []
    hidden = _hidden(shape)
    defaults = all(not field.required for field in shape.fields)
    for field in shape.fields:
        hint = spelled(field.hint)
        if shape.is_request and hint == "Value":
            hint = "Option<Value>"  # what is not given is left out
        notes = _comment(field.about, "    ")
        attributes: list[str] = []
        if shape.is_request and not field.required:
            attributes.append('skip_serializing_if = "Option::is_none"')
        elif not field.required or hint.startswith("Option<"):
            attributes.append("default")
        name = f"r#{field.name}" if field.name in KEYWORDS else field.name
        serde = f"    #[serde({', '.join(attributes)})]\n" if attributes and not (attributes == ["default"] and field.required) else ""
        lines.append(f"{notes}{serde}    pub {name}: {hint},\n")
    derived = ["Debug", "Clone", "PartialEq", *(["Default"] if defaults else []), "Serialize", *([] if shape.is_request else ["Deserialize"])]
    made = f"{_comment(shape.about)}#[derive({', '.join(derived[bool(hidden) :])})]\npub struct {shape.name} {{\n{''.join(lines)}}}\n"
    made += _debug(shape, hidden) if hidden else ""
    needed = ", ".join(f'"{field.name}"' for field in shape.fields if field.required)
    if shape.is_request:
        return made
    return f"{made}\nimpl super::Shape for {shape.name} {{\n    const NEEDED: &'static [&'static str] = &[{needed}];\n}}\n"


def _uses(text: str, *more: str) -> str:
    found = ["use indexmap::IndexMap;\n"] if "IndexMap" in text else []
    found.append("use serde::{Deserialize, Serialize};\n")
    if "Value" in re.sub(r"///.*", "", text):
        found.append("use serde_json::Value;\n")
    return "".join((*found, *more))


def _api() -> str:
    body = "\n".join((*(_choice(choice) for choice in wire.choices()), *(_struct(shape) for shape in wire.shapes())))
    return f"{HEAD}//! Bodies of requests and answers over HTTP.\n\n{_uses(body)}\n{body}"


def _entries() -> str:
    found = wire.entries()
    used = sorted(c.name for c in wire.choices() if any(re.search(rf"\b{c.name}\b", spelled(f.hint)) for e in found for f in e.fields))
    variants = "".join(f"    {e.name}({e.name}),\n" for e in found)
    kinds = "".join(f'            Some("{wire.kind_of(e)}") => serde_json::from_value(value).map(Self::{e.name}),\n' for e in found)
    places = "".join(f"            Self::{e.name}(entry) => (entry.position, entry.cursor),\n" for e in found)
    body = "\n".join(
        (
            *(_struct(entry) for entry in found),
            f"/// An entry of a machine's tape.\n#[derive(Debug, Clone, PartialEq)]\npub enum Entry {{\n{variants}}}\n",
            "impl Entry {\n    /// Of an object of the wire; None for a type that this client is too young for.\n"
            "    pub fn read(value: Value) -> Result<Option<Self>, serde_json::Error> {\n"
            f'        match value.get("type").and_then(Value::as_str) {{\n{kinds}            _ => return Ok(None),\n        }}\n        .map(Some)\n    }}\n\n'
            "    fn place(&self) -> (i64, i64) {\n        match self {\n"
            f"{places}        }}\n    }}\n\n"
            "    /// Of its first line, or of itself.\n    pub fn position(&self) -> i64 {\n        self.place().0\n    }\n\n"
            "    /// Give it as `after` to go on behind this entry.\n    pub fn cursor(&self) -> i64 {\n        self.place().1\n    }\n}\n",
        )
    )
    return f"{HEAD}//! Entries of a machine's tape.\n\nuse super::api::{{{', '.join(used)}}};\n{_uses(body)}\n{body}"


def _errors() -> str:
    found = list(wire.mistakes())
    name = {m.name: "Internal" if m.parent is None else m.name for m in found}
    variants = "".join(f"{_comment(m.about, '    ')}    {name[m.name]},\n" for m in found)

    def arms(value: str) -> str:
        return "".join(f"            Self::{name[m.name]} => {eval(value, {'m': m, 'json': json, 'name': name})},\n" for m in found)

    codes = "".join(f"            {json.dumps(m.code)} => Self::{name[m.name]},\n" for m in found)
    return (
        f"{HEAD}//! The one error tree.\n\n"
        "/// What kind of thing went wrong. Ask with [`Kind::is_a`]: a kind is also every kind above it.\n"
        "#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]\n#[non_exhaustive]\n"
        f"pub enum Kind {{\n{variants}}}\n\n"
        "impl Kind {\n"
        f"    /// Its name on the wire.\n    pub fn code(self) -> &'static str {{\n        match self {{\n{arms('json.dumps(m.code)')}        }}\n    }}\n\n"
        f"    /// The kind above it.\n    pub fn parent(self) -> Option<Self> {{\n        match self {{\n"
        + "".join(f"            Self::{name[m.name]} => {'None' if m.parent is None else f'Some(Self::{name[m.parent]})'},\n" for m in found)
        + "        }\n    }\n\n"
        f"    /// What a server answers with.\n    pub fn http_status(self) -> u16 {{\n        match self {{\n{arms('m.http_status')}        }}\n    }}\n\n"
        "    /// never, later or now.\n    pub fn retry(self) -> &'static str {\n        match self {\n"
        f"{arms('json.dumps(m.retry)')}        }}\n    }}\n\n"
        "    /// By its name on the wire. None for one that this client is too young for.\n"
        f"    pub fn from_code(code: &str) -> Option<Self> {{\n        Some(match code {{\n{codes}            _ => return None,\n        }})\n    }}\n\n"
        "    /// Is it this kind, or one below it?\n    pub fn is_a(self, kind: Self) -> bool {\n"
        "        self == kind || self.parent().is_some_and(|above| above.is_a(kind))\n    }\n}\n"
    )


def _sentences() -> str:
    def table(about: str, name: str, values: dict[str, str]) -> str:
        rows = "".join(f"pub const {key.upper()}: &str = {json.dumps(text)};\n" for key, text in values.items())
        return f"/// {about}\npub mod {name} {{\n" + "".join(f"    {row}\n" for row in rows.splitlines()) + "}\n"

    return "\n".join(
        (
            f"{HEAD}//! What a client says when something goes wrong around a request: the same in three languages.\n",
            f"pub const QUOTED_MAX: usize = {QUOTED_MAX};\n",
            table("Why nobody could be reached.", "causes", CAUSES),
            table("`{name}` is filled in by whoever says it.", "sentences", SENTENCES),
        )
    )
