"""What ends say of the process that they live in."""

from __future__ import annotations

import os
import socket

import pytest

from rvq.aio.home import here


def test_it_is_this_host_and_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "host-a")
    assert here() == ("host-a", os.getpid())


def test_a_name_that_would_not_fit_a_frame_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "a\n\udcff" + "ü" * 200)
    host = here().host
    assert host.startswith("a") and host.isprintable() and len(host.encode()) <= 255
