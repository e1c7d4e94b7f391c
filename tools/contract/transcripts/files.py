"""Files of a machine."""

from __future__ import annotations

from everforge.wire import api, errors

from .words import VERSION, Json, M, ask, fails, lost, refused, script, told, transcript


def _file(name: str) -> api.File:
    return api.File(name=name, path=f"data/{name}", kind="file", size_bytes=3, modified_at="2030-01-31T12:00:00Z", mode=0o644, target=None)


@transcript
def files_of_a_machine() -> dict[str, Json]:
    path = "/machine/m/files/data/a b/%é?.txt"
    listing = {"path": "data", "limit": "1000"}
    return script(
        "written, read, listed in pages, looked for and deleted, under a name that must be quoted",
        [
            M,
            {"do": "file_write", "on": "m", "with": {"path": "data/a b/%é?.txt", "text": "zwölf\n"}, "gives": {"path": "data/a b/%é?.txt", "size_bytes": 7}},
            {"do": "file_read", "on": "m", "with": {"path": "data/a b/%é?.txt"}, "gives": {"text": "zwölf\n"}},
            {"do": "file_list", "on": "m", "with": {"path": "data"}, "gives": ["a", "b"]},
            {"do": "file_exists", "on": "m", "with": {"path": "gone"}, "gives": {"exists": False}},
            {"do": "file_delete", "on": "m", "with": {"path": "data", "recursive": True}, "gives": None},
            {"do": "file_delete", "on": "m", "with": {"path": "a"}, "gives": None},
            fails({"do": "file_delete", "on": "m", "with": {"path": "../a"}}, "InvalidInput", "'../a' is not deleted: it has . or .. in it; give the path without them"),
            fails({"do": "file_read", "on": "m", "with": {"path": "none"}}, "FileNotFound", "there is no file none"),
        ],
        [
            lost(ask("PUT", path, text="zwölf\n")),
            told(ask("PUT", path, text="zwölf\n"), api.FileWritten(path="data/a b/%é?.txt", size_bytes=7)),
            {"request": ask("GET", path), "answer": {"status": 200, "headers": VERSION, "text": "zwölf\n"}},
            told(ask("GET", "/machine/m/files", query=listing), api.FileList(path="data", files=[_file("a")], next="a")),
            told(ask("GET", "/machine/m/files", query={**listing, "after": "a"}), api.FileList(path="data", files=[_file("b")], next=None)),
            refused(ask("GET", "/machine/m/files/gone"), errors.FileNotFound("there is no file gone")),
            told(ask("DELETE", "/machine/m/files/data", query={"recursive": "true"}), api.Deleted(deleted=True)),
            told(ask("DELETE", "/machine/m/files/a"), api.Deleted(deleted=True)),
            refused(ask("GET", "/machine/m/files/none"), errors.FileNotFound("there is no file none")),
        ],
    )  # fmt: skip
