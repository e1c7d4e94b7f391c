"""Long text, cut in the middle: how it began and how it ended say most. No I/O."""

from __future__ import annotations

from collections import deque


class Middle:
    """Takes text as it comes and keeps its beginning and its end, however much comes."""

    def __init__(self, characters_max: int) -> None:
        self.head_max = characters_max * 3 // 5
        self._tail_max = characters_max - self.head_max
        self._head: list[str] = []
        self._head_size = 0
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self.size = 0  # of all that came

    def add(self, text: str) -> None:
        self.size += len(text)
        room = self.head_max - self._head_size
        if room > 0:
            self._head.append(text[:room])
            self._head_size += len(self._head[-1])
            text = text[room:]
        if text:
            self._keep(text)

    def _keep(self, text: str) -> None:
        self._tail.append(text[-self._tail_max :] if self._tail_max else "")
        self._tail_size += len(self._tail[-1])
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_max:
            self._tail_size -= len(self._tail.popleft())

    @property
    def left_out(self) -> int:
        return max(0, self.size - self._head_size - min(self._tail_size, self._tail_max))

    def text(self, say: str) -> str:
        """`say` stands where something is missing; `{count}` and `{offset}` in it are how much and from where."""
        head, tail = "".join(self._head), "".join(self._tail)
        if not self.left_out:
            return head + tail
        gap = say.format(count=self.left_out, offset=self._head_size)
        return f"{head}\n{gap}\n{tail[-self._tail_max :] if self._tail_max else ''}"


def cut(text: str, characters_max: int, say: str) -> str:
    kept = Middle(characters_max)
    kept.add(text)
    return kept.text(say)
