"""Spans from senders to handlers, with OpenTelemetry's own exporter: also through retries, dead letters and replay."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import rvq
from rvq.aio.sender import Sender
from rvq.aio.tracing import carried, in_use
from tests.aio.ends import soon, taken, until


class Spans:
    """Those that have ended, by name."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self.provider.get_tracer("test")

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if span.name == name]


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Spans:
    """A provider for this test only: the others are without."""
    spans = Spans()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: spans.provider)
    return spans


def is_child(child: ReadableSpan, parent: ReadableSpan) -> bool:
    return child.parent is not None and child.parent.span_id == parent.context.span_id


@asynccontextmanager
async def consuming(bus: rvq.Bus, handler: Any, label: str = "work", **options: Any) -> AsyncIterator[None]:
    task = asyncio.create_task(rvq.consume(label, handler, bus=bus, **options))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("plain", [False, True], ids=["coroutine", "thread"])
async def test_a_handlers_span_is_a_child_of_its_senders(bus: rvq.Bus, spans: Spans, plain: bool) -> None:
    inside: list[int] = []

    async def handle(message: rvq.Message) -> None:
        inside.append(trace.get_current_span().get_span_context().span_id)

    def handle_plainly(message: rvq.Message) -> None:
        inside.append(trace.get_current_span().get_span_context().span_id)

    async with consuming(bus, handle_plainly if plain else handle), rvq.Sender("work", bus=bus) as sender:
        with spans.tracer.start_as_current_span("request"):
            await sender.send({"job": 1}, headers={"mine": 1})
        await sender.flush(20)
    (request,), (sent,), (handled,) = spans.named("request"), spans.named("send work"), spans.named("process work")
    assert is_child(sent, request) and is_child(handled, sent)
    assert (sent.kind, handled.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert inside == [handled.context.span_id], "what the handler does is inside of its span"
    assert handled.attributes is not None
    assert handled.attributes["messaging.message.id"] == f"{sender.id:016x}-1"
    assert handled.attributes["messaging.consumer.group.name"] == "default"


async def test_headers_carry_the_context_beside_ones_own(bus: rvq.Bus, spans: Spans) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus, ack="manual") as receiver:
        with spans.tracer.start_as_current_span("request"):
            await sender.send("one", headers={"mine": 1})
            await sender.send("two", key="k", ttl=60.0, headers={"traceparent": "my own"})
            await sender.send_many(["three", "four"])
        await sender.send("five")
        await sender.send_many(["six"])
        one, two, three, four, five, six = await taken(receiver, 6)
    assert one.headers is not None and one.headers["mine"] == 1
    assert one.headers["traceparent"] == parent_of(spans.named("send work")[0])
    assert two.headers == {"traceparent": "my own"}
    assert three.headers == four.headers == {"traceparent": parent_of(spans.named("send work")[2])}
    assert five.headers is None and six.headers is None, "no span was recording"
    many = spans.named("send work")[2].attributes
    assert many is not None and many["messaging.batch.message_count"] == 2


def parent_of(span: ReadableSpan) -> str:
    return f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-{span.context.trace_flags:02x}"


async def test_a_handler_that_fails_says_so_in_its_span_and_each_try_has_one(bus: rvq.Bus, spans: Spans) -> None:
    async def handle(message: rvq.Message) -> None:
        if message.attempt == 1:
            raise ValueError("on purpose")

    async with consuming(bus, handle, attempts=3), rvq.Sender("work", bus=bus) as sender:
        with spans.tracer.start_as_current_span("request"):
            await sender.send("one")
        await sender.flush(20)
    first, second = spans.named("process work")
    assert (first.status.status_code, second.status.status_code) == (StatusCode.ERROR, StatusCode.UNSET)
    assert [span.attributes["rvq.attempt"] for span in (first, second) if span.attributes] == [1, 2]


async def test_a_dead_letter_belongs_to_the_trace_of_its_message(bus: rvq.Bus, spans: Spans) -> None:
    letters: list[rvq.DeadLetter] = []

    async def refuse(message: rvq.Message) -> None:
        raise ValueError("on purpose")

    async def read(message: rvq.Message) -> None:
        letters.append(rvq.DeadLetter.from_body(message.body))

    async with consuming(bus, refuse, attempts=1), consuming(bus, read, "work.dead"):
        async with rvq.Sender("work", bus=bus) as sender:
            with spans.tracer.start_as_current_span("request"):
                await sender.send("one")
            await sender.flush(20)
        await until(lambda: letters)
        await until(lambda: spans.named("process work.dead"))
    (sent,), (buried,) = spans.named("send work"), spans.named("process work.dead")
    assert is_child(buried, sent)
    assert letters[0].headers == {"traceparent": parent_of(sent)}, "so it is the same when it is sent again"


async def test_what_is_replayed_belongs_to_the_trace_of_then(bus: rvq.Bus, spans: Spans, tmp_path: Path) -> None:
    async with rvq.Recorder(tmp_path, "work", bus=bus), rvq.Sender("work", bus=bus) as sender:
        await until(lambda: sender.tables)
        with spans.tracer.start_as_current_span("request"):
            await sender.send("one")
        await sender.flush(20)
    handled = asyncio.Event()

    async def handle(message: rvq.Message) -> None:
        handled.set()

    async with consuming(bus, handle):
        await soon(rvq.replay(tmp_path, "work", group="default", bus=bus))
        await soon(handled.wait())
        await until(lambda: spans.named("process work"))
    assert is_child(spans.named("process work")[0], spans.named("send work")[0])


@pytest.mark.parametrize("header", ["", "00-xyz", 7, b"00", ["00"], "00-" + "0" * 32 + "-" + "0" * 16 + "-01"])
async def test_what_is_no_context_makes_no_span(bus: rvq.Bus, spans: Spans, header: Any) -> None:
    seen: list[Any] = []

    async def handle(message: rvq.Message) -> None:
        seen.append(message.body)

    async with consuming(bus, handle), rvq.Sender("work", bus=bus) as sender:
        await sender.send("one", headers={"traceparent": header, "tracestate": header})
        await sender.flush(20)
    assert seen == ["one"] and not spans.named("process work")


def test_only_the_context_goes_along_with_what_a_message_leads_to() -> None:
    assert carried(None) is None and carried({"mine": 1}) is None
    assert carried({"mine": 1, "traceparent": "a", "tracestate": "b"}) == {"traceparent": "a", "tracestate": "b"}


def test_who_does_not_use_it_does_not_load_it_and_gathers_as_before() -> None:
    ask = (
        "import sys, rvq.aio.sender, rvq.aio.consume; from rvq.aio.tracing import in_use;"
        "print(in_use(), [name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout == "None []\n"


async def test_with_spans_nothing_is_gathered_unlooked_at_and_without_it_is(bus: rvq.Bus, spans: Spans) -> None:
    async with Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus):
        await sender.send(1)
        assert sender._tracing is not None and sender._quick == 0
        sender.end()


async def test_a_program_that_has_it_and_has_not_set_it_up_gathers(bus: rvq.Bus) -> None:
    assert in_use() is None
    async with Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus):
        await sender.send(1)
        assert sender._tracing is None and sender._quick > 0
        sender.end()
