"""Sealed datagrams: what they look like, that they come back as they were, and that no bit of them can be another."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvq import limits
from rvq.errors import BusError, WireError
from rvq.wire import seal
from rvq.wire.codec import MAGIC as PLAIN_MAGIC
from rvq.wire.keys import Key
from rvq.wire.seal import (
    COUNTER_MAX,
    HEADER,
    MAGIC,
    OVERHEAD,
    SALT,
    WAY,
    Channel,
    Proof,
    Sealer,
    SealKind,
    cipher_for,
    is_sealed,
    pack_proof,
    read_header,
    read_proof,
    unseal,
    unseal_train,
)

KEY = Key(bytes(range(32)))
OTHER = Key(bytes(32))
SALT_A = bytes(range(100, 116))
BUS = b"239.192.0.0/16 7400"
frames = st.binary(max_size=300)


def test_the_bytes_never_change_between_releases() -> None:
    datagram = Sealer(KEY, SALT_A, BUS, counter=41).seal(Channel.CONTROL, b"frame")
    assert datagram.hex(" ", -4) == (
        "72767173 c53d8955 602df935 64656667 68696a6b 6c6d6e6f 70717273 01010200 00000000 0000002a"
        " b4f33c4b 7687f91a 683593a6 1d183baa 9a9690ab 04"
    )


@given(frames, st.sampled_from(Channel), st.sampled_from(SealKind))
def test_what_is_sealed_comes_back_and_its_header_says_how(frame: bytes, channel: Channel, kind: SealKind) -> None:
    datagram = Sealer(KEY, SALT_A, BUS).seal(channel, frame, kind)
    assert unseal(cipher_for(KEY, SALT_A, BUS), datagram) == frame
    header = read_header(datagram)
    assert header == (MAGIC, KEY.id, SALT_A, 1, kind, channel, 1)
    assert is_sealed(datagram) and len(datagram) == len(frame) + OVERHEAD
    assert datagram[SALT] == SALT_A and datagram[WAY] == KEY.id + SALT_A + bytes([1, kind, channel, 0])


def test_nothing_of_a_frame_can_be_read() -> None:
    frame = b"a frame that says something " * 4
    datagram = Sealer(KEY, SALT_A, BUS).seal(Channel.DATA, frame)
    assert not any(frame[at : at + 4] in datagram for at in range(len(frame) - 4))


@given(st.binary(min_size=1, max_size=60), st.data())
def test_no_byte_can_be_another(frame: bytes, data: st.DataObject) -> None:
    datagram = Sealer(KEY, SALT_A, BUS).seal(Channel.DATA, frame)
    other = data.draw(st.integers(1, 255))
    cipher = cipher_for(KEY, SALT_A, BUS)
    for place in range(len(datagram)):
        bent = bytearray(datagram)
        bent[place] ^= other
        assert unseal(cipher, bytes(bent)) is None, place
    assert unseal(cipher, datagram + b"\0") is None
    assert all(unseal(cipher, datagram[:length]) is None for length in range(len(datagram)))


def test_the_same_datagram_under_another_key_salt_or_bus_is_nothing() -> None:
    datagram = Sealer(KEY, SALT_A, BUS).seal(Channel.DATA, b"frame")
    for key, salt, bus in ((OTHER, SALT_A, BUS), (KEY, bytes(16), BUS), (KEY, SALT_A, b"239.192.0.0/16 7401")):
        assert unseal(cipher_for(key, salt, bus), datagram) is None


def test_no_nonce_is_used_twice_whatever_is_sealed_and_with_whichever_key() -> None:
    sealer = Sealer(KEY, SALT_A, BUS)
    sealed = [sealer.seal(channel, b"", kind) for channel in Channel for kind in SealKind]
    sealer.use(OTHER)
    sealed += [sealer.seal(channel, b"") for channel in Channel]
    sealer.use(KEY)
    sealed += [sealer.seal(channel, b"") for channel in Channel]
    counters = [read_header(datagram).counter for datagram in sealed]
    assert counters == list(range(1, len(sealed) + 1))


def test_a_counter_at_its_end_refuses() -> None:
    sealer = Sealer(KEY, SALT_A, BUS, counter=COUNTER_MAX - 1)
    sealer.seal(Channel.DATA, b"the last")
    for _ in range(2):
        with pytest.raises(BusError, match="open another"):
            sealer.seal(Channel.DATA, b"one too many")


def test_a_sealer_that_was_ended_seals_nothing_whatever_the_key() -> None:
    sealer = Sealer(KEY, SALT_A, BUS)
    sealer.end()
    sealer.use(OTHER)
    with pytest.raises(BusError, match="opened before a fork: open another"):
        sealer.seal(Channel.DATA, b"x")
    with pytest.raises(BusError, match="opened before a fork: open another"):
        sealer.seal_train(Channel.DATA, b"xx", 1)


def test_after_use_the_other_key_seals_and_salt_and_counter_go_on() -> None:
    sealer = Sealer(KEY, SALT_A, BUS, counter=7)
    sealer.use(OTHER)
    datagram = sealer.seal(Channel.DATA, b"frame")
    assert read_header(datagram)[1:3] == (OTHER.id, SALT_A) and sealer.counter == 8
    assert unseal(cipher_for(OTHER, SALT_A, BUS), datagram) == b"frame"


@given(st.integers(1, 5), st.integers(1, 80), st.integers(0, 79))
def test_a_train_is_sealed_frame_by_frame_and_all_but_the_last_are_of_one_size(
    count: int, size: int, rest: int
) -> None:
    train = bytes(range(256)) * 2
    train = (train * 2)[: count * size + rest % size]
    datagram = Sealer(KEY, SALT_A, BUS).seal_train(Channel.DATA, train, size)
    step = size + OVERHEAD
    parts = [datagram[at : at + step] for at in range(0, len(datagram), step)]
    cipher = cipher_for(KEY, SALT_A, BUS)
    assert b"".join(unseal(cipher, part) or b"" for part in parts) == train
    assert {len(part) for part in parts[:-1]} <= {step}


@given(st.integers(1, 5), st.integers(1, 40), st.data())
def test_a_train_opens_as_a_whole_and_not_if_any_byte_of_it_is_another(
    count: int, size: int, data: st.DataObject
) -> None:
    train = bytes(range(200))[: count * size]
    datagram = Sealer(KEY, SALT_A, BUS, counter=9).seal_train(Channel.DATA, train, size)
    cipher, step = cipher_for(KEY, SALT_A, BUS), size + OVERHEAD
    opened = unseal_train(cipher, datagram, step, 10)
    assert opened is not None and b"".join(opened) == train
    bent = bytearray(datagram)
    bent[data.draw(st.integers(0, len(datagram) - 1))] ^= data.draw(st.integers(1, 255))
    assert unseal_train(cipher, bytes(bent), step, 10) is None
    for other in ((datagram, step, 11), (datagram[:-1], step, 10), (datagram, step - 1, 10), (b"", step, 2**70)):
        assert unseal_train(cipher, *other) in (None, [])
    swapped = datagram[step:] + datagram[:step]
    assert count == 1 or unseal_train(cipher, swapped, step, 10) is None


def test_a_train_that_does_not_fit_the_counter_is_refused_as_a_whole() -> None:
    sealer = Sealer(KEY, SALT_A, BUS, counter=COUNTER_MAX - 2)
    with pytest.raises(BusError, match="open another"):
        sealer.seal_train(Channel.DATA, bytes(30), 10)
    sealer.seal_train(Channel.DATA, bytes(20), 10)


@given(st.binary(max_size=200))
def test_any_bytes_are_no_sealed_datagram_or_have_a_header(data: bytes) -> None:
    for datagram in (data, MAGIC + data):
        try:
            header = read_header(datagram)
        except WireError:
            continue
        assert HEADER.pack(*header) == datagram[:40]
        assert unseal(cipher_for(KEY, SALT_A, BUS), datagram) is None


def test_a_plain_frame_is_not_taken_for_a_sealed_one_nor_the_other_way_round() -> None:
    plain = PLAIN_MAGIC.to_bytes(4, "big") + bytes(100)
    assert not is_sealed(plain) and plain[:4] != MAGIC
    with pytest.raises(WireError):
        read_header(plain)


@given(st.binary(min_size=16, max_size=16), st.integers(0, 2**64 - 1), st.binary(min_size=16, max_size=16))
def test_an_answer_comes_back(nonce: bytes, counter: int, asks: bytes) -> None:
    proof = Proof(nonce, counter, asks)
    assert read_proof(pack_proof(proof)) == proof
    for cut in (pack_proof(proof)[:-1], pack_proof(proof) + b"\0", b""):
        with pytest.raises(WireError):
            read_proof(cut)


def test_a_sealed_frame_fits_a_datagram() -> None:
    assert limits.FRAME_BYTES_LOOPBACK + OVERHEAD <= limits.DATAGRAM_BYTES_MAX


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    seal._tools.cache_clear()
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    try:
        with pytest.raises(BusError, match=r"pip install 'rvq\[seal\]'"):
            seal.check_tools()
    finally:
        monkeypatch.undo()
        seal._tools.cache_clear()


def test_the_package_is_not_imported_where_there_is_no_key() -> None:
    code = "import sys, rvq.cli.command, rvq.aio.sender, rvq.aio.receiver; print('cryptography' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "False"
