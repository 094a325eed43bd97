"""The page in a real browser, with real senders and receivers as processes on a real bus."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import rvq
from rvq.aio.observer import Observer
from rvq.web.orders import Orders
from tests.cli.processes import Commands, Running
from tests.web.browser import ARTEFACTS, Browser
from tests.web.serving import served


@pytest.fixture
def commands(port: int) -> Iterator[Commands]:
    running = Commands(port)
    yield running
    running.close()


def id_of(listener: Running) -> str:
    """The first digits of its id, as it says them."""
    return listener.until_said(r"index \d+ of \d+").split(" as ")[1][:4]


def measured(what: str, since: float) -> None:
    """Printed and kept, not asserted: how long a busy machine takes is no promise of rvq's."""
    line = f"{what}: seen on the page after {time.monotonic() - since:.2f} s"
    print(line)
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    with (ARTEFACTS / "measured.txt").open("a") as file:
        file.write(f"{line}\n")


def row(id: str) -> str:
    return f'[data-id^="{id}"]'


def test_a_join_and_a_kill_are_seen(browser: Browser, commands: Commands, bus: rvq.Bus) -> None:
    with served(Observer(bus)) as page:
        browser.open(page.url)
        assert "Nobody is on this bus" in browser.text("#empty")
        first = commands.listen()
        browser.until_text(row(id_of(first)), "in")
        second = commands.listen()
        joined = time.monotonic()
        browser.until_text(row(id_of(second)), "in")
        measured("a join", joined)
        browser.until_text("#timeline-words", f"came: {id_of(second)}")
        browser.until("return document.querySelectorAll('#timeline .column').length >= 2", "two tables")
        browser.shoot("live-joined")
        killed = time.monotonic()
        second.process.kill()
        found = f"const row = document.querySelector('{row(id_of(second))}');"
        browser.until(f"{found} return !row || row.innerText.includes('silent')", "it is silent, or gone")
        measured("a kill", killed)
        browser.until(f"return !document.querySelector('{row(id_of(second))}')", "it is out of the table")
        browser.until_text("#timeline-words", f"went: {id_of(second)}")
        browser.until_text("#events", "expelled")
        measured("its expulsion", killed)
        browser.shoot("live-killed")


def test_rates_and_counts_of_real_messages_are_drawn(browser: Browser, commands: Commands, bus: rvq.Bus) -> None:
    with served(Observer(bus)) as page:
        listeners = [commands.listen() for _ in range(3)]
        browser.open(page.url)
        for listener in listeners:
            browser.until_text("#receivers", id_of(listener))
        sender = commands.start("send", "work", "--rate", "300", stdin=-1)
        sender.write(b"".join(b"%d\n" % number for number in range(900)))
        browser.until("return document.querySelectorAll('#senders tbody tr').length === 1", "the sender")
        browser.until(
            "return [...document.querySelectorAll('#receivers .rate-words')].every((one) => one.innerText !== '0/s')",
            "rates",
        )
        browser.until(
            "return document.querySelectorAll('#charts figure:nth-child(2) path[d*=L]').length >= 3", "latency"
        )
        browser.shoot("live-rates")
        sender.end_input()
        assert sender.ended() == 0
        done = "[...document.querySelectorAll('#receivers td[data-title=Done]')].map((one) => Number(one.innerText))"
        browser.until(f"return {done}.reduce((sum, one) => sum + one, 0) === 900", "all of them are counted")


def test_what_is_pressed_happens_to_real_receivers(browser: Browser, commands: Commands, bus: rvq.Bus) -> None:
    with served(Observer(bus), admin=Orders(bus)) as page:
        stays, goes = commands.listen(), commands.listen()
        browser.open(page.url)
        browser.until_text(row(id_of(goes)), "in")
        browser.run("document.querySelector(arguments[0]).value = 3", f"{row(id_of(stays))} .acts input")
        browser.click(f"{row(id_of(stays))} .acts form button")
        browser.until_text("#toast", "has weight 3")
        browser.until_text("#detail-words", "4 lanes")
        for word in ("Pause", "Resume"):
            browser.until_text("#detail-acts", word)
            browser.click("#detail-acts button")
            browser.click("#detail-acts button")
        browser.until_text("#toast", "goes on")
        browser.click(f"{row(id_of(goes))} .acts > button")
        browser.click(f"{row(id_of(goes))} .acts > button")
        browser.until_text("#toast", "leaves")
        assert goes.ended() == 0
        browser.until(f"return !document.querySelector('{row(id_of(goes))}')", "it has left")
        browser.until_text("#events", "left")
