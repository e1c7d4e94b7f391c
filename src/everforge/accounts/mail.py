"""Mail: a seam, a real one by SMTP, and one that only remembers, for tests."""

from __future__ import annotations

import asyncio
import contextlib
import smtplib
import ssl
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Protocol
from urllib.parse import unquote, urlsplit

from everforge.wire.errors import InvalidInput, MailFailed

from .settings import AccountSettings

AT_ONCE_MAX = 4  # mails under way; a slow mail server must not take the threads of others
HERE = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Mail:
    to: str
    subject: str
    text: str


class Mailer(Protocol):
    async def send(self, mail: Mail) -> None:
        """Returns when the mail server has taken it. Raises MailFailed."""
        ...


class RecordingMailer:
    def __init__(self) -> None:
        self.sent: list[Mail] = []
        self.broken = False

    async def send(self, mail: Mail) -> None:
        if self.broken:
            raise MailFailed("the mail could not be sent")
        self.sent.append(mail)


class SmtpMailer:
    """smtp://[user:password@]host[:port] with STARTTLS (without only to this computer itself), or smtps://… with TLS from the beginning."""

    def __init__(self, url: str, sender: str, seconds: float) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise InvalidInput("smtp_url has no valid address or port") from None
        if parts.scheme not in ("smtp", "smtps") or not parts.hostname or "@" not in sender:
            raise InvalidInput("smtp_url is like smtp://user:password@host:587 or smtps://host, and mail_from an email address")
        self._tls = parts.scheme == "smtps"
        self._host = parts.hostname
        self._port = port or (465 if self._tls else 587)
        self._user, self._password = unquote(parts.username or ""), unquote(parts.password or "")
        self._sender = sender
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(AT_ONCE_MAX, "mail")

    async def send(self, mail: Mail) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                await asyncio.get_running_loop().run_in_executor(self._threads, self._send, mail)
        except TimeoutError:
            raise MailFailed("the mail server did not answer in time; try again later") from None
        except (OSError, smtplib.SMTPException, ValueError) as e:
            # What the server says may name users and hosts that are nobody else's business: it stands in the cause, for the log.
            raise MailFailed("the mail could not be sent; try again later") from e

    def _send(self, mail: Mail) -> None:
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = self._sender, mail.to, mail.subject
        message.set_content(mail.text)
        server = self._connect()
        try:
            if self._user:
                server.login(self._user, self._password)
            server.send_message(message)
            with contextlib.suppress(OSError, smtplib.SMTPException):  # it has the mail, however it says goodbye
                server.quit()
        finally:
            server.close()

    def _connect(self) -> smtplib.SMTP:
        context = ssl.create_default_context()
        if self._tls:
            return smtplib.SMTP_SSL(self._host, self._port, timeout=self._seconds, context=context)
        server = smtplib.SMTP(self._host, self._port, timeout=self._seconds)
        try:
            server.ehlo()
            if server.has_extn("starttls") or self._host not in HERE:
                server.starttls(context=context)
        except BaseException:
            server.close()
            raise
        return server


def mailer_of(settings: AccountSettings) -> Mailer | None:
    """As the settings say; None without a mail server."""
    return SmtpMailer(settings.smtp_url, settings.mail_from, settings.mail_seconds) if settings.smtp_url else None
