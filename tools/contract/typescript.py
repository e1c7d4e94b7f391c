"""The wire in TypeScript."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from everforge import __version__
from everforge.wire.sentences import CAUSES, QUOTED_MAX, SENTENCES

from . import wire

HEAD = "// Generated from src/everforge/wire by tools/make_contract.py; `make fix` writes it, `make check` compares.\n"
PLAIN = {str: "string", int: "number", float: "number", bool: "boolean", NoneType: "null", Any: "unknown"}


def files() -> dict[str, str]:
    return {"api.ts": _api(), "entries.ts": _entries(), "errors.ts": _errors(), "sentences.ts": _sentences(), "version.ts": _version()}


def spelled(hint: Any) -> str:
    if hint in PLAIN:
        return PLAIN[hint]
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return wire.choice_of(hint) or " | ".join(json.dumps(word) for word in args)
    if origin is list:
        inner = spelled(args[0])
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    if origin is dict:
        return f"Record<string, {spelled(args[1])}>"
    if origin in (Union, UnionType):
        return " | ".join(dict.fromkeys(spelled(arg) for arg in args))
    if hasattr(hint, "__supertype__"):
        return spelled(hint.__supertype__)
    return hint.__name__


def _comment(text: str, indent: str = "") -> str:
    lines = [line.rstrip() for line in text.splitlines()]
    if not lines:
        return ""
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */\n"
    return f"{indent}/**\n" + "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines) + f"{indent} */\n"


def _interface(shape: wire.Shape, first: Iterable[str] = ()) -> str:
    lines = [*first]
    for field in shape.fields:
        hint = spelled(field.hint)
        if not field.required and shape.is_request:
            hint = hint.removesuffix(" | null")
        about = _comment(field.about, "  ")
        lines.append(f"{about}  {field.name}{'' if field.required else '?'}: {hint};\n")
    return f"{_comment(shape.about)}export interface {shape.name} {{\n{''.join(lines)}}}\n"


def _api() -> str:
    words = "".join(f"export type {c.name} = {' | '.join(json.dumps(w) for w in c.words)};\n" for c in wire.choices())
    lists = "".join(f"  {c.name}: {json.dumps(list(c.words))},\n" for c in wire.choices())
    shapes = wire.shapes()
    answers = [shape for shape in shapes if not shape.is_request]
    return "\n".join(
        (
            HEAD,
            words,
            f"/** The same words, for whoever checks what was given. */\nexport const CHOICES = {{\n{lists}}} as const;\n",
            *(_interface(shape) for shape in shapes),
            "/** Of answers: what must be there, and what of it is another answer (`[]`: a list of them). */\n"
            "export const SHAPES = {\n" + "".join(_needs(shape, answers) for shape in answers) + "} as const;\n",
        )
    )


def _needs(shape: wire.Shape, answers: list[wire.Shape]) -> str:
    names = {one.name for one in answers}
    needs = [f.name for f in shape.fields if f.required]
    inner: dict[str, str] = {}
    for field in shape.fields:
        found = re.sub(r" \| null$", "", spelled(field.hint))
        if found.removesuffix("[]") in names:
            inner[field.name] = found
    return f"  {shape.name}: {{ needs: {json.dumps(needs)}, inner: {json.dumps(inner)} }},\n"


def _entries() -> str:
    found = wire.entries()
    used = sorted(c.name for c in wire.choices() if any(re.search(rf"\b{c.name}\b", spelled(f.hint)) for e in found for f in e.fields))
    names = " | ".join(entry.name for entry in found)
    return "\n".join(
        (
            HEAD,
            f'import type {{ {", ".join(used)} }} from "./api.js";\n',
            *(_interface(entry, [f'  type: "{wire.kind_of(entry)}";\n']) for entry in found),
            "/** An entry of a machine's tape. */\n" + f"export type Entry = {names};\n",
        )
    )


def _errors() -> str:
    first, *others = wire.mistakes()
    classes = [
        f"{_comment(m.about)}export class {m.name} extends {m.parent} {{\n"
        f"  static override readonly code: string = {json.dumps(m.code)};\n"
        f"  static override readonly httpStatus: number = {m.http_status};\n"
        f"  static override readonly retry: Retry = {json.dumps(m.retry)};\n}}\n"
        for m in others
    ]
    table = "".join(f"  {m.code}: {m.name},\n" for m in (first, *others))
    return "\n".join(
        (
            HEAD,
            'import { EverforgeError } from "../error.js";\nimport type { Retry } from "./api.js";\n\nexport { EverforgeError } from "../error.js";\n',
            *classes,
            f"/** By the code that the wire has for them. */\nexport const KNOWN: Readonly<Record<string, typeof EverforgeError>> = {{\n{table}}};\n",
        )
    )


def _sentences() -> str:
    def table(name: str, values: dict[str, str]) -> str:
        return f"export const {name} = {{\n" + "".join(f"  {key}: {json.dumps(text)},\n" for key, text in values.items()) + "} as const;\n"

    return "\n".join((HEAD, f"export const QUOTED_MAX = {QUOTED_MAX};\n", table("CAUSES", CAUSES), table("SENTENCES", SENTENCES)))


def _version() -> str:
    return f"{HEAD}\nexport const VERSION = {json.dumps(__version__)};\n"
