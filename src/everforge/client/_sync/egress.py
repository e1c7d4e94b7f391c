# Made from _async/egress.py by tools/make_sync.py; change it there.
"""The way out: of one machine, of the account's new machines, and the secrets that are put in outside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from everforge.wire import api
from everforge.wire.ids import secret_name

from .door import Door, segment

ATTEMPTS_A_PAGE = 200


class Egress:
    """Of one machine."""

    def __init__(self, door: Door, path: str) -> None:
        self._door = door
        self._path = f"{path}/egress"

    def show(self) -> api.EgressPolicy:
        return self._door.get(api.EgressPolicy, self._path)

    def set(self, policy: api.Egress) -> api.EgressPolicy:
        """none, list (what the rules allow), packages (the package index, and the rules), or public. It counts at once. none drops the rules."""
        return self._change(api.EgressChange(egress=policy))

    def allow(self, *rules: str) -> api.EgressPolicy:
        """A host (api.example.com), all below one (*.example.com), a port (example.com:8443), or plain TCP (tcp://db.example.com:5432)."""
        return self._change(api.EgressChange(allow=[*rules]))

    def deny(self, *rules: str) -> api.EgressPolicy:
        """Takes rules away again."""
        return self._change(api.EgressChange(deny=[*rules]))

    def log(self) -> Iterator[api.EgressAttempt]:
        """Everything that it has tried to reach, newest first; pages by itself."""
        before: int | None = None
        while True:
            page = self._door.get(api.EgressLog, f"{self._path}/log", {"before": before, "limit": ATTEMPTS_A_PAGE})
            for attempt in page.attempts:
                yield attempt
            if page.next is None:
                return
            before = page.next

    def _change(self, change: api.EgressChange) -> api.EgressPolicy:
        return self._door.post(api.EgressPolicy, self._path, change)


class EgressDefault:
    """Of the account's new machines."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def show(self) -> api.EgressPolicy:
        return self._door.get(api.EgressPolicy, "/egress")

    def set(self, policy: api.Egress | None = None, *, allow: Sequence[str] | None = None) -> api.EgressPolicy:
        """Without arguments: the server's own default again."""
        change = api.EgressDefault(egress=policy, egress_allow=None if allow is None else [*allow])
        return self._door.post(api.EgressPolicy, "/egress", change, again=True, method="PUT")


class Secrets:
    """Values that machines use and never see."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def set(
        self,
        name: str,
        value: str,
        *,
        hosts: Sequence[str],
        header: str | None = None,
        places: Sequence[Literal["body", "url"]] | None = None,
    ) -> api.Secret:
        """Machines have a placeholder in the environment variable `name`. In requests to these hosts, over TLS alone, the value takes its place: in
        headers, and where `places` say so. `header`, as in "Authorization: Bearer {}", is put in by itself."""
        request = api.NewSecret(value=value, hosts=[*hosts], header=header, places=None if places is None else [*places])
        return self._door.post(api.Secret, f"/secrets/{segment(secret_name(name))}", request, again=True, method="PUT")

    def list(self) -> list[api.Secret]:
        """Without their values."""
        return (self._door.get(api.SecretList, "/secrets")).secrets

    def delete(self, name: str) -> None:
        self._door.delete(f"/secrets/{segment(secret_name(name))}")
