"""The public classes of the three SDKs and what each has, read from their sources."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

Surface = dict[str, set[str]]  # names of members, by class; functions are members of ""

CLASSES = (
    "Everforge", "Machine", "Instruction", "Repl", "Files", "Egress", "EgressDefault", "Secrets", "Tokens", "Accounts", "Audit", "Webhooks", "Result",
    "Display", "Line",
)  # fmt: skip
FUNCTIONS = ("sign_up", "log_in", "find_access", "write_config", "delete_config", "config_path")


def python(repo: Path) -> Surface:
    found: Surface = defaultdict(set)
    client = repo / "src/everforge/client"
    for path in (*(client / "_async").glob("*.py"), client / "results.py", client / "config.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and (name := node.name.removeprefix("Async")) in CLASSES:
                found[name] |= _members(node)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in FUNCTIONS:
                found[""].add(node.name)
    return found


def _members(node: ast.ClassDef) -> set[str]:
    """Methods, properties and fields, and what the constructor sets for all to see."""
    names: set[str] = set()
    for one in node.body:
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(one.name)
            if one.name == "__init__":
                names |= {n.attr for n in ast.walk(one) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and _is_self(n.value)}
        elif isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            names.add(one.target.id)
    return {name for name in names if not name.startswith("_")}


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


_TS_CLASS = re.compile(r"^export (?:abstract )?(?:class|interface) (\w+)\b[^{]*\{$(.*?)^\}", re.MULTILINE | re.DOTALL)
_TS_MEMBER = re.compile(
    r"^  (?!private |protected |static |#|constructor)(?:public |override |readonly |declare |async |get |\*)*(\w+)[?!]?\s*[(:=<;]", re.MULTILINE
)
_TS_PARAMETERS = re.compile(r"^  (?:public )?constructor\(\n(.*?)^  \)", re.MULTILINE | re.DOTALL)
# A parameter with one of these words is a field, too.
_TS_PROPERTY = re.compile(r"^    (?:public |override |readonly )+(\w+)\??\s*[:=]", re.MULTILINE)
_TS_FUNCTION = re.compile(r"^export (?:async )?function (\w+)", re.MULTILINE)


def typescript(repo: Path) -> Surface:
    found: Surface = defaultdict(set)
    for path in (repo / "sdk/typescript/src").rglob("*.ts"):
        if {"cli", "generated"} & set(path.parts):
            continue
        text = path.read_text()
        for name, body in _TS_CLASS.findall(text):
            if name in CLASSES:
                members = [*_TS_MEMBER.findall(body), *(one for given in _TS_PARAMETERS.findall(body) for one in _TS_PROPERTY.findall(given))]
                found[name] |= {_snake(member) for member in members}
        found[""] |= {_snake(name) for name in _TS_FUNCTION.findall(text)} & set(FUNCTIONS)
    return found


_RUST_IMPL = re.compile(r"^impl(?:<[^>]*>)? (\w+)(?:<[^>]*>)? \{$(.*?)^\}", re.MULTILINE | re.DOTALL)
_RUST_STRUCT = re.compile(r"^pub struct (\w+)(?:<[^>]*>)? \{$(.*?)^\}", re.MULTILINE | re.DOTALL)
_RUST_METHOD = re.compile(r"^    pub (?:async )?(?:const )?fn (\w+)", re.MULTILINE)
_RUST_FIELD = re.compile(r"^    pub (\w+):", re.MULTILINE)
_RUST_FUNCTION = re.compile(r"^pub (?:async )?fn (\w+)", re.MULTILINE)


def rust(repo: Path) -> Surface:
    found: Surface = defaultdict(set)
    for path in (repo / "sdk/rust/src").rglob("*.rs"):
        if {"bin", "generated"} & set(path.parts):
            continue
        text = path.read_text()
        for name, body in _RUST_IMPL.findall(text):
            if name in CLASSES:
                found[name] |= set(_RUST_METHOD.findall(body))
        for name, body in _RUST_STRUCT.findall(text):
            if name in CLASSES:
                found[name] |= set(_RUST_FIELD.findall(body))
        found[""] |= set(_RUST_FUNCTION.findall(text)) & set(FUNCTIONS)
    return found


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: f"_{match[1].lower()}", name)
