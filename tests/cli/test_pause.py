"""`rvq pause` takes what it needs. What it does is in test_ordering."""

from __future__ import annotations

import argparse

from rvq.cli import pause


def test_it_takes_what_it_needs() -> None:
    parser = argparse.ArgumentParser()
    pause.add_arguments(parser)
    assert parser.parse_args(["work"]).group == "default"
    assert parser.parse_args(["work", "other"]).group == "other"
