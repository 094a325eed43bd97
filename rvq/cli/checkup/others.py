"""Who else is on the bus, and who is there that cannot be understood. Owns those findings, and that of nobody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from rvq.aio.checkup.bystanders import Bystanders
from rvq.cli.checkup.finding import Finding, fail, ok, warn

HOSTS_SHOWN_MAX = 5


def bystander_findings(heard: Bystanders) -> Iterator[Finding]:
    """Those who send and receive now. If all of them are strangers it is we who are wrong."""
    facts = {"receivers": heard.receivers, "senders": heard.senders, "hosts": heard.hosts}
    if heard.ends:
        several = "" if len(heard.hosts) <= HOSTS_SHOWN_MAX else f" and {len(heard.hosts) - HOSTS_SHOWN_MAX} more"
        counts = f"{_number(heard.receivers, 'receiver')} and {_number(heard.senders, 'sender')}"
        yield ok("others", f"{counts} heard, on {', '.join(heard.hosts[:HOSTS_SHOWN_MAX])}{several}", **facts)
    elif not heard.strangers:
        yield ok("others", "nobody else is heard on this bus", **facts)
    yield from stranger_findings(heard.strangers, broken=not heard.ends)


def stranger_findings(strangers: Mapping[str, str], *, broken: bool) -> Iterator[Finding]:
    """One for each address that speaks with another key, or with none. broken: nobody else was understood."""
    for address, fault in sorted(strangers.items()):
        text, _, change = fault.partition(": ")
        finding = fail("key", text, change) if broken else warn("key", text, change)
        yield replace(finding, peer=address)


def nobody_finding(seconds: float, named: str | None) -> Finding:
    if named is not None:
        text = f"no doctor at {named} answered within {seconds:g} s, by multicast or unicast"
        change = "start `rvq doctor --answer` there with the same --port, --address and key, and see both firewalls"
        return fail("peer", text, change)
    text = f"no other doctor was heard within {seconds:g} s"
    change = "start `rvq doctor --peer` on another host of this network; if it runs there, name it: --peer ADDRESS"
    return fail("peer", text, change)


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"
