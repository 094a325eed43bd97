"""The checksum of the journal: CRC32, that of zlib. Owns who computes it: isal, if installed, is ten times as fast."""

from __future__ import annotations

try:
    from isal.isal_zlib import crc32
except ImportError:
    from zlib import crc32

__all__ = ["crc32"]
