"""Files of a machine: look, read, write."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from everforge.wire.errors import InvalidInput

from ..answers import Answer
from ..calls import Call
from ..limits import LISTED_MAX, PICTURE_CHARACTERS_MAX, READ_BYTES, READ_BYTES_MAX, WRITE_CHARACTERS_MAX
from ..pictures import BEGINNINGS, image_of
from ..reading import Part, closing, read_part
from ..visible import line
from .base import Arguments, Data, FilePath, MachineName, Tool, changes, reads

PICTURE_BYTES_MAX = PICTURE_CHARACTERS_MAX * 3 // 4


class ListFiles(Arguments):
    path: FilePath = ""
    machine: MachineName = ""


class OneFile(BaseModel):
    name: str
    kind: str = Field(description="file, folder, link or other.")
    size_bytes: int
    modified_at: str


class FileList(Data):
    machine: str
    path: str
    files: list[OneFile]


async def list_files(call: Call, given: ListFiles) -> Answer:
    machine = await call.existing(given.machine)
    found: list[OneFile] = []
    note = None
    async with closing(machine.files.list(given.path)) as files:
        async for one in files:
            if len(found) == LISTED_MAX:
                note = f"There are more than {LISTED_MAX}: list the rest with run_python (os.scandir)."
                break
            found.append(OneFile(name=one.name, kind=one.kind, size_bytes=one.size_bytes, modified_at=one.modified_at))
    lines = [f"{line(one.name)}{'/' if one.kind == 'folder' else ''}  {one.size_bytes} bytes  {one.modified_at}" for one in found]
    text = "\n".join([*(lines or ["This folder is empty."]), *([note] if note else [])])
    return Answer(text, FileList(machine=machine.name, path=given.path, files=found, note=note))


class ReadFile(Arguments):
    path: Annotated[FilePath, Field(min_length=1)]
    machine: MachineName = ""
    offset: Annotated[int, Field(ge=0, description="From which byte on.")] = 0
    max_bytes: Annotated[int, Field(ge=1, le=READ_BYTES_MAX)] = READ_BYTES


class FileRead(Data):
    machine: str
    path: str
    encoding: Literal["utf-8", "base64", "image"] = Field(description="Of `content`. With image the picture itself is image content of the answer.")
    content: str
    offset: int
    next_offset: int | None = Field(default=None, description="Where to read on; null: this is the end of the file.")


async def read_file(call: Call, given: ReadFile) -> Answer:
    machine = await call.existing(given.machine)
    part = await read_part(machine, given.path, given.offset, given.max_bytes)
    if given.offset == 0 and part.raw.startswith(tuple(BEGINNINGS.values())):
        part = await read_part(machine, given.path, 0, PICTURE_BYTES_MAX) if part.more else part
        picture = None if part.more else image_of(part.raw)
        if picture is not None:
            data = FileRead(machine=machine.name, path=given.path, encoding="image", content="", offset=0)
            return Answer(f"[{given.path}: a picture of {len(part.raw)} bytes]", data, [picture])
        part = Part(part.raw[: given.max_bytes], more=part.more or len(part.raw) > given.max_bytes)
    return _answer(machine.name, given, part)


def _answer(machine: str, given: ReadFile, part: Part) -> Answer:
    text = part.text()
    content, size = text if text is not None else (part.base64(), len(part.raw))
    following = given.offset + size if part.more else None
    encoding = "base64" if text is None else "utf-8"
    data = FileRead(machine=machine, path=given.path, encoding=encoding, content=content, offset=given.offset, next_offset=following)
    where = f"bytes {given.offset} to {given.offset + size} of {given.path}"
    more = f"; read on with offset={following}" if following is not None else ""
    kind = ", in base64: it is no text" if text is None else ""
    return Answer(content if following is None and text is not None and given.offset == 0 else f"{content}\n[{where}{kind}{more}]", data)


class WriteFile(Arguments):
    path: Annotated[FilePath, Field(min_length=1)]
    content: Annotated[str, Field(max_length=WRITE_CHARACTERS_MAX)]
    encoding: Annotated[Literal["utf-8", "base64"], Field(description="Of `content`: base64 is for what is no text.")] = "utf-8"
    machine: MachineName = ""


class FileWritten(Data):
    machine: str
    path: str
    size_bytes: int


async def write_file(call: Call, given: WriteFile) -> Answer:
    content = given.content if given.encoding == "utf-8" else _decoded(given.content)
    chosen = await call.machine(given.machine)
    done = await chosen.machine.files.write(given.path, content)
    text = f"Wrote {done.size_bytes} bytes to {done.path} in {chosen.name}. {chosen.note or ''}".rstrip()
    return Answer(text, FileWritten(machine=chosen.name, path=done.path, size_bytes=done.size_bytes, note=chosen.note))


def _decoded(content: str) -> bytes:
    try:
        return base64.b64decode("".join(content.split()), validate=True)
    except (binascii.Error, ValueError) as e:
        raise InvalidInput("content is not base64: encode the bytes with base64, or say encoding=utf-8 for text") from e


LIST = Tool(
    "list_files",
    "List files",
    """List what lies in a folder of a machine; without a path, its home folder.

Example: {"path": "data"}""",
    ListFiles,
    FileList,
    reads(),
    list_files,
)
READ = Tool(
    "read_file",
    "Read a file",
    """Read a file of a machine: text as it is, pictures (PNG, JPEG) as images that you can see, everything else in base64. Long files come in parts.

Use it for what code has written: reports, logs, saved figures. To compute with a file, use run_python instead of reading it here.

Examples: {"path": "report.md"}; {"path": "figure.png"}; {"path": "big.log", "offset": 50000}""",
    ReadFile,
    FileRead,
    reads(),
    read_file,
)
WRITE = Tool(
    "write_file",
    "Write a file",
    """Write a whole file into a machine; what was there is replaced, folders above it are made.

Use it to give code its data, or to make modules that run_python imports.

Example: {"path": "data/prices.csv", "content": "day,price\\n1,3.5\\n"}""",
    WriteFile,
    FileWritten,
    changes(destructive=True, idempotent=True),
    write_file,
)
