"""One decoder under atheris: `python -m tests.fuzz.guided NAME FOLDER…`, with options of libFuzzer."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["rvq"]):
    from tests.fuzz.targets import TARGETS


def main(arguments: list[str]) -> None:
    name, *rest = arguments
    target = TARGETS[name]
    atheris.Setup([sys.argv[0], *rest], lambda data: target(bytes(data)))
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
