"""Whatever was sent becomes bytes that any tool reads, by the rule of `rvq-listen`."""

from __future__ import annotations

from typing import Any

import pytest

from rvq.cli.bodies import json_of, line_of
from rvq.spark.plain import as_bytes, as_json

VALUES = [
    b"\xff\x00",
    "täxt",
    "\ud800",
    None,
    True,
    17,
    1.5,
    float("nan"),
    [1, float("inf")],
    {"a": b"\x00"},
    {1: 2, (3, 4): 5},
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_bytes_stay_text_is_utf8_and_all_else_is_json(value: Any) -> None:
    assert as_bytes(value) == line_of(value)


def test_json_is_that_of_the_command() -> None:
    value = {"b": [b"\x01", float("nan")], "ü": {2: None}}
    assert as_json(value) == json_of(value) == '{"b":["AQ==",null],"ü":{"2":null}}'
