"""Bounds, each with its reason."""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise

import pytest

from rvq import limits

UNITS = {"KIB", "MIB"}
CONSTANTS = {name: value for name, value in vars(limits).items() if name.isupper() and name not in UNITS}


@pytest.mark.parametrize("name", sorted(CONSTANTS))
def test_every_bound_is_a_positive_number(name: str) -> None:
    assert isinstance(CONSTANTS[name], int) and CONSTANTS[name] > 0


def test_every_bound_has_its_reason_beside_it() -> None:
    body = ast.parse(inspect.getsource(limits)).body
    documented = {
        before.targets[0].id
        for before, after in pairwise(body)
        if isinstance(before, ast.Assign) and isinstance(before.targets[0], ast.Name) and _is_text(after)
    }
    assert documented >= CONSTANTS.keys(), "put a docstring below it"


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def test_the_largest_frame_fits_a_datagram() -> None:
    assert limits.FRAME_BYTES_MIN < limits.FRAME_BYTES_LOOPBACK <= limits.DATAGRAM_BYTES_MAX == 65_535 - 28


def test_the_count_of_a_frame_fits_its_field() -> None:
    assert limits.FRAME_MESSAGES_MAX <= 0xFFFF


def test_the_largest_message_can_be_cut_into_the_smallest_frames() -> None:
    assert limits.FRAGMENTS_MAX * limits.FRAME_BYTES_MIN >= limits.MESSAGE_BYTES_MAX


def test_the_largest_message_fits_every_window() -> None:
    assert limits.MESSAGE_BYTES_MAX < limits.RETAINED_BYTES <= limits.RECEIVED_BYTES


def test_a_full_table_has_room_for_each_member() -> None:
    assert limits.WEIGHT_MAX <= limits.SLOTS_MAX
    assert limits.MEMBERS_MAX <= limits.SLOTS_MAX


def test_an_answer_to_one_nak_fits_the_askers_socket_buffer() -> None:
    assert limits.REPAIR_BYTES_MAX <= limits.RECEIVE_BUFFER_BYTES // 2, "half of it is what is advertised"
