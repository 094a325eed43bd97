"""The options that have `format("rvq")` record a bus. Owns where that goes, and words of refusal; knows no Spark."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final
from urllib.parse import unquote, urlparse

from rvq.bus import Bus
from rvq.errors import SparkError
from rvq.names import check_group, check_label

FOLDER: Final = "rvq-source"
"""In the checkpoint."""
ENV: Final = "env"
"""As `bus`: what the environment says."""
_SPAN: Final = re.compile(r"(\d+)\s*([smhd])")
_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_NEEDS_BUS: Final = ("port", "address", "keyFile", "group", "keep", "checkpointLocation")


@dataclass(frozen=True, slots=True)
class Live:
    """What is recorded while a query runs."""

    labels: tuple[str, ...]
    bus: dict[str, Any]
    """What the options say of it; the rest is the environment's."""
    group: str
    """Of the recorder, if the folder is no journal yet: one that is keeps the group it has."""
    is_named: bool
    """The group was asked for by its name."""
    keep: float | None
    """Seconds after which hours that were read are deleted; None: never."""

    def open_bus(self) -> Bus:
        return Bus.from_env(**self.bus)


def live_options(given: Mapping[str, str], labels: tuple[str, ...] | None, *, streaming: bool) -> Live | None:
    """What options in lower case say of a bus; None if there is none. SparkError, in one sentence."""
    where = given.get("bus")
    if where is None:
        for name in _NEEDS_BUS:
            if name.lower() in given:
                raise SparkError(f"{name} is for reading a bus: give the option bus as well, such as bus=lo")
        return None
    if not streaming:
        raise SparkError(
            "bus is for spark.readStream: a batch reads what was recorded, so give the folder of a journal"
        )
    if labels is None:
        raise SparkError("which labels of the bus? give subscribe=work, or several with commas between")
    bus: dict[str, Any] = {} if where.strip().lower() == ENV else {"interface": where}
    bus |= {name: given[option] for name, option in (("address", "address"), ("key", "keyfile")) if option in given}
    if "port" in given:
        bus["port"] = _port(given["port"])
    group = given.get("group")
    live = Live(
        labels=tuple(map(check_label, labels)),
        bus=bus,
        group=_group_of(path_of(given)) if group is None else check_group(group),
        is_named=group is not None,
        keep=_keep(given.get("keep")),
    )
    live.open_bus()  # its own checks
    return live


def path_of(given: Mapping[str, str]) -> str:
    """The folder of the journal. With a bus it may be one in the checkpoint."""
    path, checkpoint = given.get("path"), given.get("checkpointlocation")
    if path:
        return _local(path, "path")
    if "bus" not in given:
        raise SparkError("no path: give the folder of a journal, .load(folder) or .option('path', folder)")
    if not checkpoint:
        raise SparkError(
            "where is what comes from the bus recorded? Spark does not tell sources where the checkpoint is: give"
            " .option('checkpointLocation', folder) to readStream as well, or a folder of your own, .load(folder)"
        )
    return os.path.join(_local(checkpoint, "checkpointLocation"), FOLDER)


def _local(path: str, name: str) -> str:
    """As a path from the root."""
    url = urlparse(path)
    if url.scheme == "file":
        return os.path.abspath(unquote(url.path))
    if url.scheme and "://" in path:
        raise SparkError(
            f"{name}={path!r} is not a folder that processes see as such: give one, .load(folder), on a disk that the"
            " driver and all executors share"
        )
    return os.path.abspath(path)


def _group_of(path: str) -> str:
    """One for each folder and host, so that a query that is started again is who it was, and no two are one."""
    return f"spark-{blake2b(f'{socket.gethostname()} {path}'.encode(), digest_size=6).hexdigest()}"


def _port(text: str) -> int:
    if not text.strip().isdecimal():
        raise SparkError(f"port={text!r} is not a port: give a number from 1 to 65535")
    return int(text)


def _keep(text: str | None) -> float | None:
    if text is None:
        return None
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise SparkError(f"keep={text!r} is not a duration: give a whole number and a unit, such as 90s, 15m, 12h, 7d")
    return int(found[1]) * _UNITS[found[2]]
