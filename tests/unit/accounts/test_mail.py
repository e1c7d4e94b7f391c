"""Mail by SMTP, against a mail server of a few lines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from everforge.accounts.mail import Mail, SmtpMailer, mailer_of
from everforge.accounts.settings import AccountSettings
from everforge.wire.errors import InvalidInput, MailFailed

MAIL = Mail("ann@example.org", "Your token", "t123.abc\n.a line that begins with a dot\n")


class MailServer:
    def __init__(self) -> None:
        self.heard: list[str] = []
        self.mails: list[str] = []
        self.answers: dict[str, str] = {}
        self.silent = False

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._talk(reader, writer)
        finally:
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.silent:
            await reader.read()
            return
        writer.write(b"220 here\r\n")
        while line := (await reader.readline()).decode():
            word = line.split()[0].upper()
            self.heard.append(line.strip())
            writer.write(f"{self.answers.get(word, '250 fine' if word != 'DATA' else '354 go on')}\r\n".encode())
            if word == "DATA" and word not in self.answers:
                self.mails.append((await reader.readuntil(b"\r\n.\r\n")).decode())
                writer.write(b"250 taken\r\n")
            if word == "QUIT":
                return


@pytest.fixture
async def mails() -> AsyncIterator[tuple[MailServer, str]]:
    here = MailServer()
    server = await asyncio.start_server(here.talk, "127.0.0.1", 0)
    yield here, f"smtp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()


async def test_a_mail_arrives_as_it_was_given(mails: tuple[MailServer, str]) -> None:
    here, url = mails
    await SmtpMailer(url, "forge@example.org", 10).send(MAIL)
    [mail] = here.mails
    assert "To: ann@example.org" in mail
    assert "From: forge@example.org" in mail
    assert "t123.abc\r\n..a line" in mail
    assert any(line.lower().startswith("rcpt to:<ann@example.org>") for line in here.heard)


@pytest.mark.parametrize("word", ["MAIL", "RCPT", "DATA"])
async def test_a_server_that_refuses_is_told_without_its_words(mails: tuple[MailServer, str], word: str) -> None:
    here, url = mails
    here.answers[word] = "550 no such user at internal-host"
    with pytest.raises(MailFailed) as error:
        await SmtpMailer(url, "forge@example.org", 10).send(MAIL)
    assert "internal-host" not in error.value.message
    assert error.value.retry == "later"


async def test_a_server_that_says_nothing_is_waited_for_only_so_long(mails: tuple[MailServer, str]) -> None:
    here, url = mails
    here.silent = True
    with pytest.raises(MailFailed):
        await SmtpMailer(url, "forge@example.org", 0.2).send(MAIL)


async def test_a_server_that_is_not_there_is_said_so() -> None:
    with pytest.raises(MailFailed):
        await SmtpMailer("smtp://127.0.0.1:1", "forge@example.org", 5).send(MAIL)


async def test_a_token_leaves_this_computer_only_encrypted(mails: tuple[MailServer, str], monkeypatch: pytest.MonkeyPatch) -> None:
    here, url = mails
    monkeypatch.setattr("everforge.accounts.mail.HERE", frozenset[str]())  # as if it were elsewhere; it knows no STARTTLS
    with pytest.raises(MailFailed):
        await SmtpMailer(url, "forge@example.org", 10).send(MAIL)
    assert here.mails == []


@pytest.mark.parametrize("url", ["http://x", "smtp://", "smtp://x:99999", "nonsense", "smtp://[x"])
def test_an_address_that_is_none_is_refused_at_once(url: Any) -> None:
    with pytest.raises(InvalidInput):
        mailer_of(AccountSettings(smtp_url=url, mail_from="forge@example.org"))


def test_without_settings_there_is_no_mailer() -> None:
    assert mailer_of(AccountSettings()) is None
