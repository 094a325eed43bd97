"""The judgement at the end of the demo."""

from __future__ import annotations

from rvq.cli.tally import judge, table_of


def test_each_once_is_good() -> None:
    verdict = judge(4, {"A": [1, 3], "B": [2], "C": [4]}, killed="B")
    assert verdict.is_good
    assert str(verdict) == "4 sent, 4 handled, 0 lost; each exactly once."


def test_what_the_killed_one_did_last_may_be_done_again() -> None:
    verdict = judge(3, {"A": [1, 2], "B": [2], "C": [3]}, killed="B")
    assert verdict.is_good and verdict.repeated == 1
    assert (
        str(verdict)
        == "3 sent, 3 handled, 0 lost; 1 of them twice: B had handled them and was killed before it said so."
    )


def test_a_lost_message_is_bad() -> None:
    verdict = judge(3, {"A": [1], "B": [2]}, killed="B")
    assert not verdict.is_good and verdict.lost == 1
    assert str(verdict).startswith("3 sent, 2 handled, 1 lost; none twice")


def test_a_repeat_between_two_that_live_is_bad() -> None:
    verdict = judge(2, {"A": [1, 2], "C": [2]}, killed="B")
    assert not verdict.is_good and verdict.unexplained == 1


def test_the_killed_one_explains_one_repeat_of_a_message_and_not_two() -> None:
    assert judge(1, {"A": [1], "B": [1], "C": [1]}, killed="B").unexplained == 1
    assert not judge(1, {"B": [1, 1]}, killed="B").is_good


def test_what_nobody_sent_is_bad() -> None:
    verdict = judge(1, {"A": [1, 2]}, killed="B")
    assert not verdict.is_good and "1 handled that nobody sent" in str(verdict)


def test_the_table_has_a_line_for_each_and_the_sum() -> None:
    assert table_of({"A": list(range(1, 1001)), "B": [5], "C": [1001]}, killed="B").splitlines() == [
        "  receiver      handled   again",
        "  A               1,000       1",
        "  B (killed)          1       0",
        "  C                   1       0",
        "  together        1,002       1",
    ]
