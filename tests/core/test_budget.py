"""What strangers may cost."""

from __future__ import annotations

from rvq import limits
from rvq.core.budget import Budget


def test_one_source_gets_its_burst_and_then_its_pace() -> None:
    budget = Budget(b"secret", 100.0)
    assert sum(budget.take(100.0, "x") for _ in range(10_000)) == limits.UNKNOWN_SALTS_BURST
    assert sum(budget.take(101.0, "x") for _ in range(10_000)) == limits.UNKNOWN_SALTS_PER_S
    assert sum(budget.take(1000.0, "x") for _ in range(10_000)) == limits.UNKNOWN_SALTS_BURST


def test_one_who_floods_leaves_nearly_all_others_alone() -> None:
    budget = Budget(b"secret", 0.0)
    while budget.take(0.0, ("10.0.0.5", 1)):
        pass
    served = sum(budget.take(0.0, ("10.0.0.6", port)) for port in range(1000))
    assert served > 900


def test_all_sources_together_get_no_more_than_all_buckets() -> None:
    budget = Budget(b"secret", 0.0)
    took = sum(budget.take(0.0, ("10.0.0.5", port)) for port in range(50_000))
    assert took == limits.UNKNOWN_SALTS_BURST * limits.UNKNOWN_SALT_BUCKETS


def test_which_sources_share_a_bucket_depends_on_the_secret() -> None:
    def neighbours(secret: bytes) -> set[int]:
        budget = Budget(secret, 0.0)
        while budget.take(0.0, "x"):
            pass
        return {name for name in range(2000) if not budget.take(0.0, name)}

    assert neighbours(b"one") != neighbours(b"two")


def test_a_clock_that_stands_still_or_goes_back_gives_nothing() -> None:
    budget = Budget(b"secret", 50.0)
    while budget.take(50.0, "x"):
        pass
    assert not budget.take(50.0, "x") and not budget.take(10.0, "x")
