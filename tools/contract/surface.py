"""The public classes of the three SDKs and what each has, read from their sources. What a package does not export it does not have."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from . import exports

Surface = dict[str, set[str]]  # names of members, by class; functions are members of ""

CLASSES = (
    "Everforge", "Machine", "Instruction", "Repl", "Files", "Egress", "EgressDefault", "Secrets", "Tokens", "Accounts", "Audit", "Webhooks", "Result",
    "Display", "Line", "Access",
)  # fmt: skip
FUNCTIONS = ("sign_up", "log_in", "find_access", "write_config", "delete_config", "config_path", "local_url")
NODE_ALONE = {"Access", *FUNCTIONS}  # what TypeScript has for Node, and not for browsers

# What else Python's client has, and why it is not compared.
INNER = {
    "EverforgeError": "the tree of errors is made for all languages by tools/make_contract.py",
    "errors": "the same",
    "Listener": "what Repl.listen gives; each language has its own way to read on",
    "Entries": "what a stream of entries must be able to do",
    "Watch": "what a caller wants to hear of while it waits",
    "Call": "a call of the code to a function of the program",
    "Gathering": "a result while it comes together",
    "Answers": "answers to such calls",
    "NewFile": "a download before it is whole",
    "TapeReader": "how streams are read",
    "Door": "how requests are asked",
    "Transport": "how requests are sent",
    "Answer": "of a transport",
    "Socket": "how a WebSocket is spoken",
    "Channel": "the connection of a Repl",
    "Unreached": "a failure before it is an error of the tree",
    "Cut": "the same",
    "Closed": "the same",
    "Refusal": "the same",
    "Patience": "how long is waited before it is tried again",
    "Deadline": "how long is waited at all",
    "check_url": "looked at by whatever takes an address",
    "check_token": "looked at by whatever takes a token",
}


def python(repo: Path) -> Surface:
    found: Surface = defaultdict(set)
    for name, node in _python_names(repo):
        if isinstance(node, ast.ClassDef) and name in CLASSES:
            found[name] |= _members(node)
        elif name in FUNCTIONS:
            found[""].add(name)
    return found


def unexplained(repo: Path) -> list[str]:
    """Public names of Python's client of which nobody has said whether the others must have them, and names that it has no more."""
    init = ast.parse((repo / "src/everforge/__init__.py").read_text())
    [exported] = [ast.literal_eval(one.value) for one in init.body if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "__all__"]
    public = {name for name, _ in _python_names(repo)} | {name.removeprefix("Async") for name in exported if not name.startswith("_")}
    told = {*CLASSES, *FUNCTIONS, *INNER}
    return [
        *(f"Python has {name}, of which nothing is said: name it in CLASSES, FUNCTIONS or INNER" for name in sorted(public - told)),
        *(f"Python has no {name} any more: do not name it" for name in sorted(told - public)),
        *(f"{name} is compared, and so there is nothing to explain: take it out of INNER" for name in sorted({*CLASSES, *FUNCTIONS} & {*INNER})),
    ]


def _python_names(repo: Path) -> Iterator[tuple[str, ast.stmt]]:
    """Classes, wherever they stand, and the functions of the two files that are there for others."""
    client = repo / "src/everforge/client"
    for path in (*sorted((client / "_async").glob("*.py")), *sorted(client.glob("*.py"))):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) or (isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and path.stem in ("config", "signup")):
                name = node.name.removeprefix("Async")
                if not name.startswith("_"):
                    yield name, node


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
    everywhere = exports.typescript(repo, "index") & exports.typescript(repo, "browser")
    return _exported(found, everywhere | {name for name in exports.typescript(repo, "node") if _snake(name) in NODE_ALONE or name in NODE_ALONE})


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
    return _exported(found, exports.rust(repo))


def _exported(found: Surface, names: set[str]) -> Surface:
    functions = {_snake(name) for name in names}
    return {name: members & functions if name == "" else members for name, members in found.items() if name == "" or name in names}


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: f"_{match[1].lower()}", name)
