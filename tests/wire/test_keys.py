"""Keys as values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvq import limits
from rvq.errors import BusError
from rvq.wire.keys import KEY_BYTES, Key, Keys

secrets = st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES)


def test_the_id_of_a_key_never_changes_between_releases() -> None:
    assert Key(bytes(range(32))).name == "c53d8955602df935"


@given(secrets, secrets)
def test_other_keys_have_other_ids_and_neither_tells_the_secret(one: bytes, other: bytes) -> None:
    assert (Key(one).id == Key(other).id) == (one == other)
    assert repr(one) not in repr(Key(one)) and one.hex() not in repr(Key(one)) + repr(Keys([Key(one)]))


@pytest.mark.parametrize("secret", [b"", bytes(31), bytes(33), "x" * 32, None])
def test_what_is_no_key_is_refused_and_not_shown(secret: object) -> None:
    with pytest.raises(BusError, match="32 random bytes") as error:
        Key(secret)  # type: ignore[arg-type]
    assert "xxx" not in str(error.value)


def test_keys_keep_their_order_and_the_first_is_in_use_unless_told() -> None:
    a, b, c = (Key(bytes([n]) * 32) for n in range(3))
    assert list(Keys([c, a, b]).live.values()) == [c, a, b]
    assert Keys([c, a, b]).in_use == c and Keys([c, a, b], b).in_use == b
    assert Keys([a, b]) == Keys([b, a], a) != Keys([a, b], b)
    with pytest.raises(BusError, match="not among the live ones"):
        Keys([a], b)


def test_there_are_not_more_of_them_than_anybody_needs() -> None:
    with pytest.raises(BusError, match="drop those that nobody uses"):
        Keys([Key(bytes([n]) * 32) for n in range(limits.KEYS_MAX + 1)])
