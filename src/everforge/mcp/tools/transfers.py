"""Files between a machine and one folder of this computer: only where whoever started the server has named that folder, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from ..answers import Answer
from ..calls import Call
from ..limits import PATH_CHARACTERS_MAX
from ..share import source, target
from .base import Arguments, Data, FilePath, MachineName, Tool, changes

LocalPath = Annotated[str, Field(min_length=1, max_length=PATH_CHARACTERS_MAX, description="Relative to the shared folder of the person's computer.")]


class Transfer(Arguments):
    local_path: LocalPath
    machine_path: Annotated[FilePath, Field(min_length=1)]
    machine: MachineName = ""


class Download(Transfer):
    overwrite: Annotated[bool, Field(description="Replace a local file that is there already.")] = False


class Transferred(Data):
    machine: str
    local_path: str
    machine_path: str
    size_bytes: int


async def upload_file(call: Call, given: Transfer) -> Answer:
    with source(call.settings.share, given.local_path) as (file, way):
        chosen = await call.machine(given.machine)
        done = await chosen.machine.files.upload(way, given.machine_path, progress=_counting(call))
    data = Transferred(
        machine=chosen.name, local_path=str(file), machine_path=done.path, size_bytes=done.size_bytes, note=chosen.note
    )  # fmt: skip
    return Answer(f"Copied {file} to {done.path} in {chosen.name}, {done.size_bytes} bytes. {chosen.note or ''}".rstrip(), data)


async def download_file(call: Call, given: Download) -> Answer:
    machine = await call.existing(given.machine)
    with target(call.settings.share, given.local_path, given.overwrite) as (file, way):
        size = await machine.files.download(given.machine_path, way, progress=_counting(call))
    data = Transferred(machine=machine.name, local_path=str(file), machine_path=given.machine_path, size_bytes=size)
    return Answer(f"Copied {given.machine_path} of {machine.name} to {file}, {size} bytes.", data)


def _counting(call: Call) -> Callable[[int, int | None], None]:
    return lambda so_far, _: call.progress.tell(so_far, f"{so_far} bytes")


UPLOAD = Tool(
    "upload_file",
    "Upload a file",
    """Copy a file from the shared folder of the person's computer into a machine. Any size; what was at machine_path is replaced.

Example: {"local_path": "sales.csv", "machine_path": "data/sales.csv"}""",
    Transfer,
    Transferred,
    changes(destructive=True, idempotent=True),
    upload_file,
)
DOWNLOAD = Tool(
    "download_file",
    "Download a file",
    """Copy a file from a machine into the shared folder of the person's computer. A local file that is there already is kept, unless overwrite is
true.

Example: {"machine_path": "report.pdf", "local_path": "report.pdf"}""",
    Download,
    Transferred,
    changes(destructive=True, idempotent=True),
    download_file,
)
