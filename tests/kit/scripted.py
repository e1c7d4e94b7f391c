"""Something that answers every request in the same words: a server of another version, a proxy, a page of somebody else's."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from kit.loopback import Quiet, listening


@contextlib.contextmanager
def answering(answer: Mapping[str, Any]) -> Iterator[str]:
    """Its address. `answer` has `status`, `headers`, and `body`, which is JSON, or `text`; where it is `cut`, more is promised than comes."""
    content = (answer["text"] if "text" in answer else json.dumps(answer["body"])).encode()

    class Handler(Quiet):
        def parse_request(self) -> bool:
            """Whatever is asked for. All of a request is read before it is answered: who is cut off while he sends does not read the answer."""
            if not super().parse_request():
                return False
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Transfer-Encoding") == "chunked":
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    self.rfile.read(size + 2)
                self.rfile.readline()
            self.send_response(answer["status"])
            for name, value in {**answer["headers"], "content-length": str(len(content) + bool(answer.get("cut")))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)
            self.close_connection = bool(answer.get("cut"))
            return False

    with listening(Handler) as url:
        yield url
