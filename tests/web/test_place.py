"""Where the page is served."""

from __future__ import annotations

import pytest

from rvq.errors import BadArgument
from rvq.web.place import DEFAULT_PORT, Place, name_of


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("7480", "127.0.0.1", 7480),
        (":8080", "127.0.0.1", 8080),
        ("localhost:8080", "127.0.0.1", 8080),
        ("127.0.0.1:0", "127.0.0.1", 0),
        ("[::1]:8080", "::1", 8080),
        ("192.168.1.5:8080", "192.168.1.5", 8080),
        ("0.0.0.0:8080", "0.0.0.0", 8080),
    ],
)
def test_a_place_is_a_port_or_an_address_and_a_port(text: str, host: str, port: int) -> None:
    assert Place.parse(text) == Place(host, port)


@pytest.mark.parametrize("text", ["", "here", "65536", "-1", "host:", "::1:80", "a b:80", "1.2.3.4", "example.org:80"])
def test_anything_else_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(BadArgument, match="--web"):
        Place.parse(text)


def test_nobody_else_can_see_it_unless_told() -> None:
    assert Place() == Place("127.0.0.1", DEFAULT_PORT)
    assert Place().is_loopback and Place("127.9.9.9").is_loopback and Place("::1").is_loopback
    assert not Place("0.0.0.0").is_loopback and not Place("::").is_loopback and not Place("10.0.0.1").is_loopback


def test_the_url_is_one_that_a_browser_on_this_machine_finds() -> None:
    assert Place(port=80).url == "http://127.0.0.1:80/"
    assert Place("0.0.0.0", 80).url == "http://127.0.0.1:80/"
    assert Place("::1", 80).url == "http://[::1]:80/"
    assert Place("10.0.0.1").at(81).url == "http://10.0.0.1:81/"


@pytest.mark.parametrize("host", ["localhost:7480", "127.0.0.1:7480", "LOCALHOST", "[::1]:7480", "localhost:9"])
def test_on_loopback_our_own_names_are_meant_through_any_tunnel(host: str) -> None:
    assert Place().is_meant(host)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:7480", "", "127.0.0.1.evil.example", "localhost.evil", "[::2]"]
)
def test_on_loopback_a_strangers_name_that_leads_here_is_not_meant(host: str) -> None:
    assert not Place().is_meant(host)


def test_elsewhere_the_token_decides_and_not_the_name() -> None:
    assert Place("0.0.0.0").is_meant("page.example")


def test_the_name_of_a_host_header_is_without_its_port() -> None:
    assert [name_of(text) for text in ("a:1", "A", "[::1]:1", "[::1", "")] == ["a", "a", "::1", "::1", ""]
