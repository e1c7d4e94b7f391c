"""How an instruction's end is told: repr and MIME bundle of its value, or type, message and traceback of its error."""

from __future__ import annotations

import base64
import json
import math
import os
import traceback
from types import TracebackType
from typing import Any, NamedTuple

_OUR_FOLDER = os.path.dirname(__file__)  # noqa: PTH120 - compared with what the compiler wrote into code objects
SOURCE_PREFIX = "<instruction "
TRACEBACK_CHARACTERS_MAX = 200_000
MESSAGE_CHARACTERS_MAX = 20_000


class Rendered(NamedTuple):
    value: str | None
    data: dict[str, Any] | None
    note: str | None


class Failure(NamedTuple):
    name: str
    message: str
    traceback: str


# --- values ------------------------------------------------------------------------------------------------------------------------


def encoded_bytes(value: Any) -> int:
    """Of its JSON form, which is what the limits are about: a link carries that."""
    return len(json.dumps(value))


def cut_text(text: str, bytes_max: int) -> str:
    """The beginning of `text` that fits in `bytes_max` bytes of JSON."""
    text = text[:bytes_max]
    while (size := encoded_bytes(text)) > bytes_max:
        text = text[: min(len(text) - 1, len(text) * bytes_max // size)]
    return text


def plain_data(data: dict[Any, Any]) -> dict[str, Any]:
    """A MIME bundle as JSON can hold it: binary types in base64, JSON types without NaN and foreign objects."""
    return {str(mime): _plain(content) for mime, content in data.items() if content is not None}


def _plain(content: Any) -> Any:
    if isinstance(content, (bytes, bytearray)):
        return base64.b64encode(content).decode("ascii")
    if isinstance(content, str):
        return str(content)
    try:
        return json.loads(json.dumps(content, allow_nan=False))
    except (TypeError, ValueError):
        return _finite(json.loads(json.dumps(content, default=_foreign, skipkeys=True)))


def _foreign(value: Any) -> Any:
    tolist = getattr(value, "tolist", None)  # numpy's arrays and scalars
    return tolist() if callable(tolist) else str(value)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_finite(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value


def fit(value: str, data: dict[str, Any] | None, bytes_max: int) -> Rendered:
    """Value and data within the limit: rich types that do not fit are left out, then the text is cut; the note says so."""
    if len(value) * 6 <= bytes_max and data is None:
        return Rendered(value, None, None)
    notes: list[str] = []
    size = encoded_bytes(value)
    if size > bytes_max:
        notes.append(f"the value's text is {len(value)} characters long and was cut to {bytes_max} bytes")
        value = cut_text(value, bytes_max)
        data = None
    elif data is not None:
        left = bytes_max - size
        kept: dict[str, Any] = {}
        for mime, content in data.items():
            cost = encoded_bytes(content)
            if cost <= left:
                kept[mime] = content
                left -= cost
            else:
                notes.append(f"{mime} of {cost} bytes was left out: over the limit of {bytes_max}")
        data = kept or None
    return Rendered(value, data, "; ".join(notes) or None)


# --- errors ------------------------------------------------------------------------------------------------------------------------


def user_part(found: TracebackType | None) -> TracebackType | None:
    """From the first frame of the user's on; what lies before it is our own machinery."""
    while found is not None and not found.tb_frame.f_code.co_filename.startswith(SOURCE_PREFIX):
        found = found.tb_next
    return found


def describe(error: BaseException) -> Failure:
    """Whatever the exception is like: its class, its attributes and its methods are the user's, and any of them may raise."""
    try:
        return _describe(error)
    except BaseException as e:
        return Failure("Exception", f"an exception that cannot be described: looking at it raised {object.__repr__(e)}", "")


def type_name(error: BaseException) -> str:
    return str(type.__getattribute__(type(error), "__name__"))


def traceback_of(error: BaseException) -> TracebackType | None:
    """The real one, past whatever the user's class calls by that name."""
    return BaseException.__dict__["__traceback__"].__get__(error)


def _describe(error: BaseException) -> Failure:
    name = type_name(error)
    try:
        message = str(error)
    except BaseException:
        message = "<its message could not be made: str() failed>"
    if issubclass(type(error), SystemExit):
        message = "0" if getattr(error, "code", None) is None else message
    try:
        text = _format(error)
    except BaseException as e:
        text = f"{name}: {message}\n(the traceback could not be made: {type(e).__name__})"
    return Failure(name, _shorten(message, MESSAGE_CHARACTERS_MAX), _shorten(text, TRACEBACK_CHARACTERS_MAX))


def _format(error: BaseException) -> str:
    report = traceback.TracebackException(type(error), error, user_part(traceback_of(error)), compact=True)
    report.stack[:] = [frame for frame in report.stack if not frame.filename.startswith(_OUR_FOLDER)]
    return "".join(report.format()).rstrip("\n")


def _shorten(text: str, characters_max: int) -> str:
    if len(text) <= characters_max:
        return text
    half = characters_max // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"
