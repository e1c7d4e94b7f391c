"""One HTTP request passed on, and its answer passed back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

import h11

from .bytestream import Cut
from .http import HttpSide, check_framing, onward

REASON_SECONDS = 1.0  # for a server that refuses a body to say why
EARLY_SECONDS = 30.0  # for the rest of a request that was answered already


class Passing(Protocol):
    """What becomes of a message on its way."""

    def changed(self, event: Any) -> Sequence[Any]:
        """At its end whatever was held back comes first."""
        ...


class Unchanged:
    """A Passing."""

    def changed(self, event: Any) -> Sequence[Any]:
        return [event]


UNCHANGED = Unchanged()


async def exchange(inside: HttpSide, outside: HttpSide, request: h11.Request, body: bytes | None = None, answer: Passing = UNCHANGED) -> bool:
    """`request` is as it shall be sent, and so is its `body` where it was read already. True when both ends speak something else from here on.

    Raises Malformed and Cut, of either side.
    """
    await outside.send(request)
    sending = asyncio.ensure_future(_pass_body(inside, outside) if body is None else _send_body(outside, body))
    receiving = asyncio.ensure_future(_receive(inside, outside, answer))
    try:
        await asyncio.wait([sending, receiving], return_when=asyncio.FIRST_COMPLETED)
        if sending.done() and (error := sending.exception()):
            await asyncio.wait([receiving], timeout=REASON_SECONDS)
            if not receiving.done():
                raise error
        switched = await receiving
        await asyncio.wait([sending], timeout=EARLY_SECONDS)
        return switched
    finally:
        for way in (sending, receiving):
            way.cancel()
        await asyncio.gather(sending, receiving, return_exceptions=True)


async def _send_body(outside: HttpSide, body: bytes) -> None:
    if body:
        await outside.send(h11.Data(data=body))
    await outside.send(h11.EndOfMessage())


async def _pass_body(inside: HttpSide, outside: HttpSide) -> None:
    while True:
        event = await inside.next()
        if event is h11.PAUSED:  # it waits for what we answer to its wish for another protocol
            await outside.send(h11.EndOfMessage())
            return
        if isinstance(event, h11.ConnectionClosed):
            raise Cut("the machine has cut its request")
        await outside.send(_without_trailers(event))
        if isinstance(event, h11.EndOfMessage):
            return


def _without_trailers(event: Any) -> Any:
    """Headers that come behind a body are left out, as a proxy may: what they would mean to whom is a matter of taste."""
    return h11.EndOfMessage() if isinstance(event, h11.EndOfMessage) else event


async def _receive(inside: HttpSide, outside: HttpSide, answer: Passing) -> bool:
    while True:
        event = await outside.next()
        if isinstance(event, h11.ConnectionClosed):
            raise Cut("the server has cut its answer")
        if isinstance(event, h11.InformationalResponse):
            switched = event.status_code == 101
            headers = onward(event.headers, upgrade=switched)
            for one in answer.changed(h11.InformationalResponse(status_code=event.status_code, headers=headers, reason=event.reason)):
                await inside.send(one)
            if switched:
                return True
            continue
        if isinstance(event, h11.Response):
            check_framing(event.headers)
            event = h11.Response(status_code=event.status_code, headers=onward(event.headers), reason=event.reason)
        for one in answer.changed(_without_trailers(event)):
            await inside.send(one)
        if isinstance(event, h11.EndOfMessage):
            return False
