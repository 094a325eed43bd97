"""The options of `format("rvq")`. Owns their names, defaults and words of refusal; knows no Spark.

Names are those of Spark's Kafka source where it has them. Spark hands options over in any case, so they are looked up
without regard to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Any, Final

from rvq.errors import SparkError
from rvq.spark.bus import Live, live_options, path_of

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
MESSAGES: Final = "messages"
HISTORY: Final = "history"
WORDS: Final = "words"
"""The history without what is said of messages."""

Ends = str | dict[str, Any]
"""`earliest`, `latest`, or offsets as a query's progress shows them."""

READ_OPTIONS: Final = (
    "path",
    "subscribe",
    "subscribePattern",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "maxOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "minPartitions",
    "failOnDataLoss",
    "includeHeaders",
    "rows",
    "checksums",
    "bus",
    "port",
    "address",
    "keyFile",
    "group",
    "keep",
    "checkpointLocation",
)
_SPARKS_OWN: Final = frozenset({"paths", "schema", "inferschema", "header", "mergeschema"})
"""What Spark or its callers may add by themselves: taken and not looked at."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What is to be read, and in what portions."""

    path: str
    """From the root: an executor need not run in the folder of the driver."""
    labels: tuple[str, ...] | None
    """None: all, or those that match `pattern`."""
    pattern: str | None
    starting: Ends
    ending: Ends
    starting_at: float
    """Only what was heard from this time on, in seconds since 1970."""
    ending_at: float
    """Only what was heard before this time."""
    max_rows: int | None
    max_bytes: int | None
    min_partitions: int
    fail_on_data_loss: bool
    include_headers: bool
    rows: str
    checksums: bool
    live: Live | None = None
    """A bus that is recorded while the query runs; None: a journal that somebody else writes."""

    def wants(self, label: str) -> bool:
        if self.labels is not None:
            return label in self.labels
        return self.pattern is None or re.fullmatch(self.pattern, label) is not None


def read_options(options: Mapping[str, str], *, streaming: bool) -> ReadOptions:
    """What the options ask for. SparkError, in one sentence, if that cannot be."""
    given = {name.lower(): value for name, value in options.items()}
    _refuse_strangers(given)
    labels = _labels(given.get("subscribe"))
    live = live_options(given, labels, streaming=streaming)
    path = path_of(given)
    pattern = given.get("subscribepattern")
    if labels is not None and pattern is not None:
        raise SparkError("subscribe and subscribePattern both say which labels: give one of them")
    if streaming:
        for name in ("endingOffsets", "endingTimestamp"):
            if name.lower() in given:
                raise SparkError(f"{name} is for spark.read: a stream has no end, use trigger(availableNow=True)")
    return ReadOptions(
        path=path,
        labels=labels,
        pattern=_pattern(pattern),
        starting=_ends("startingOffsets", given, LATEST if streaming and live is None else EARLIEST),
        ending=_ends("endingOffsets", given, LATEST),
        starting_at=_moment("startingTimestamp", given, -inf),
        ending_at=_moment("endingTimestamp", given, inf),
        max_rows=_count("maxOffsetsPerTrigger", given),
        max_bytes=_count("maxBytesPerTrigger", given),
        min_partitions=_count("minPartitions", given) or 1,
        fail_on_data_loss=_flag("failOnDataLoss", given, True),
        include_headers=_flag("includeHeaders", given, False),
        rows=_choice("rows", given, (MESSAGES, HISTORY, WORDS)),
        checksums=_flag("checksums", given, True),
        live=live,
    )


def _refuse_strangers(given: Mapping[str, str]) -> None:
    known = {name.lower() for name in READ_OPTIONS} | _SPARKS_OWN
    for name in given:
        if name not in known:
            raise SparkError(f"no option is called {name!r}: there are {', '.join(READ_OPTIONS)}")


def _labels(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    labels = tuple(dict.fromkeys(label.strip() for label in text.split(",") if label.strip()))
    if not labels:
        raise SparkError("subscribe names no label: give one, or several with commas between")
    return labels


def _pattern(text: str | None) -> str | None:
    if text is not None:
        try:
            re.compile(text)
        except re.error as error:
            raise SparkError(f"subscribePattern={text!r} is not a regular expression ({error})") from None
    return text


def _ends(name: str, given: Mapping[str, str], default: str) -> Ends:
    text = given.get(name.lower(), default).strip()
    if text.lower() in (EARLIEST, LATEST):
        if name == "endingOffsets" and text.lower() == EARLIEST:
            raise SparkError("endingOffsets=earliest would read nothing: give latest or offsets")
        return text.lower()
    try:
        offsets = json.loads(text)
    except ValueError:
        offsets = None
    if not isinstance(offsets, dict):
        raise SparkError(
            f"{name}={text!r:.80} is neither earliest, latest nor offsets as a query's progress shows them"
        )
    return offsets


def _moment(name: str, given: Mapping[str, str], default: float) -> float:
    text = given.get(name.lower())
    if text is None:
        return default
    if text.strip().isdecimal():
        return int(text) / 1000
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        when = None
    if when is None or when.tzinfo is None:
        raise SparkError(
            f"{name}={text!r} is not a time: give milliseconds since 1970, or a time with its zone such as"
            " 2030-01-31T17:00:00Z"
        )
    return when.timestamp()


def _count(name: str, given: Mapping[str, str]) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) < 1:
        raise SparkError(f"{name}={text!r} is not a whole number from 1")
    return int(text)


def _flag(name: str, given: Mapping[str, str], default: bool) -> bool:
    text = given.get(name.lower(), str(default)).strip().lower()
    if text not in ("true", "false"):
        raise SparkError(f"{name}={text!r} is neither true nor false")
    return text == "true"


def _choice(name: str, given: Mapping[str, str], choices: tuple[str, ...]) -> str:
    text = given.get(name.lower(), choices[0]).strip().lower()
    if text not in choices:
        raise SparkError(f"{name}={text!r} is not one of {', '.join(choices)}")
    return text
