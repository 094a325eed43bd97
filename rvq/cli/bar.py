"""A progress bar as text. Owns what is shown and what is left out where the terminal is narrow; draws nothing."""

from __future__ import annotations

BAR_COLUMNS_MIN, BAR_COLUMNS_MAX = 10, 40
"""A shorter bar says nothing that the numbers do not; a longer one says nothing more."""


def render(columns: int, sent: int, done: int, rate: float, fraction: float | None = None) -> str:
    """One line of at most `columns`: what was sent, what is done, how fast, and how far if that is known."""
    parts = [f"sent {sent:,}", f"done {done:,}", f"{rate:,.0f}/s"]
    while parts and len("  ".join(parts)) > columns:
        parts.pop()
    text = "  ".join(parts)
    room = min(columns - len(text) - 4, BAR_COLUMNS_MAX)
    if fraction is None or len(parts) < 3 or room < BAR_COLUMNS_MIN:
        return text
    filled = int(room * min(max(fraction, 0.0), 1.0))
    return f"[{'#' * filled}{'.' * (room - filled)}]  {text}"
