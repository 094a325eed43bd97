"""Options are read whatever their case, and each wrong one is refused in one sentence."""

from __future__ import annotations

from math import inf

import pytest

from rvq.errors import SparkError
from rvq.spark.options import HISTORY, LATEST, read_options


def test_what_is_not_said_has_the_defaults_of_the_kafka_source() -> None:
    batch = read_options({"path": "/j"}, streaming=False)
    assert (batch.starting, batch.ending, batch.starting_at, batch.ending_at) == ("earliest", "latest", -inf, inf)
    assert read_options({"path": "/j"}, streaming=True).starting == LATEST
    assert batch.fail_on_data_loss and not batch.include_headers and batch.min_partitions == 1


def test_names_are_read_in_any_case() -> None:
    options = read_options({"PATH": "/j", "failondataloss": "False", "ROWS": "History"}, streaming=False)
    assert not options.fail_on_data_loss
    assert options.rows == HISTORY


def test_labels_are_subscribed_by_name_or_by_pattern() -> None:
    named = read_options({"path": "/j", "subscribe": "a, b,a"}, streaming=False)
    assert named.labels == ("a", "b")
    assert named.wants("a") and not named.wants("ab")
    pattern = read_options({"path": "/j", "subscribePattern": "orders\\..*"}, streaming=False)
    assert pattern.wants("orders.eu") and not pattern.wants("orders") and not pattern.wants("my.orders.eu")


@pytest.mark.parametrize(
    ("text", "seconds"), [("1500", 1.5), ("2030-01-31T18:00:00+01:00", 1896109200.0), ("1970-01-01T00:00:01Z", 1.0)]
)
def test_a_time_is_milliseconds_or_text_with_a_zone(text: str, seconds: float) -> None:
    assert read_options({"path": "/j", "startingTimestamp": text}, streaming=False).starting_at == seconds


@pytest.mark.parametrize(
    ("options", "streaming", "words"),
    [
        ({}, False, "no path"),
        ({"path": "/j", "subscribe": "a", "subscribePattern": "b"}, False, "give one of them"),
        ({"path": "/j", "subscribe": " , "}, False, "names no label"),
        ({"path": "/j", "subscribePattern": "("}, False, "not a regular expression"),
        ({"path": "/j", "startingOffsets": "newest"}, False, "neither earliest, latest nor offsets"),
        ({"path": "/j", "startingOffsets": "[1]"}, False, "neither earliest, latest nor offsets"),
        ({"path": "/j", "endingOffsets": "earliest"}, False, "would read nothing"),
        ({"path": "/j", "endingOffsets": "latest"}, True, "a stream has no end"),
        ({"path": "/j", "endingTimestamp": "1"}, True, "a stream has no end"),
        ({"path": "/j", "startingTimestamp": "2030-01-31T18:00:00"}, False, "with its zone"),
        ({"path": "/j", "maxOffsetsPerTrigger": "0"}, True, "whole number from 1"),
        ({"path": "/j", "minPartitions": "few"}, False, "whole number from 1"),
        ({"path": "/j", "failOnDataLoss": "no"}, False, "neither true nor false"),
        ({"path": "/j", "rows": "all"}, False, "not one of messages, history, words"),
        ({"path": "/j", "topic": "a"}, False, "no option is called 'topic'"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(options: dict[str, str], streaming: bool, words: str) -> None:
    with pytest.raises(SparkError, match=words):
        read_options(options, streaming=streaming)
