"""The page in a real browser, with made-up buses: what a person sees and does. Screenshots go to .artefacts/web/."""

from __future__ import annotations

import time

import pytest

from tests.web.browser import Browser
from tests.web.pictures import HOSTILE, MadeUp, busy, crowd, id_of
from tests.web.serving import TOKEN, FakeAdmin, served

ORDERS = "#/orders.eu/default"
CONTRAST = """
const channel = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
const light = (name) => {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(--${name})`;
  const [r, g, b] = getComputedStyle(probe).color.match(/[\\d.]+/g).map(Number).map(channel);
  probe.remove();
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const [one, other] = arguments.length ? [light(arguments[0]), light(arguments[1])] : [];
return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
"""


def test_who_comes_and_who_falls_silent_is_seen_without_a_reload(browser: Browser) -> None:
    source = MadeUp()
    source.set_group("work", "default", "ada")
    with served(source) as page:
        browser.open(page.url)
        browser.until_text("#receivers", id_of("ada")[:4])
        source.set_group("work", "default", "ada", "ben")
        browser.until_text("#receivers", id_of("ben")[:4])
        browser.until_text("#timeline-words", "Version 2")
        browser.until_text("#events", f"{id_of('ben')[:4]}… joined")
        source.silent.add(id_of("ben"))
        browser.until_text(f'[data-id="{id_of("ben")}"] .chip', "silent")
        source.set_group("work", "default", "ada")
        browser.until("return document.querySelectorAll('#receivers tbody tr').length === 1", "one row")
        browser.until_text("#events", "expelled")


def test_a_label_that_is_markup_is_shown_as_text(browser: Browser) -> None:
    source = busy()
    source.tell(time.time(), HOSTILE, HOSTILE, "x", HOSTILE, HOSTILE)
    with served(source) as page:
        browser.open(page.url)
        browser.click("#cards a")
        browser.until_text("#detail-name", HOSTILE)
        browser.until_text("#cards", HOSTILE)
        browser.until_text("#events", HOSTILE)
        assert browser.run("return window.stolen ?? null") is None
        assert browser.count("main img") == 0
        browser.shoot("hostile-label")


def test_every_receiver_has_its_row_charts_and_lanes(browser: Browser) -> None:
    source = busy()
    with served(source) as page:
        browser.open(page.url + ORDERS)
        browser.until_text("#detail-name", "orders.eu · default")
        ids = source.groups["orders.eu", "default"]
        assert (
            browser.run("return [...document.querySelectorAll('#receivers tbody tr')].map((row) => row.dataset.id)")
            == ids
        )
        for chart in range(1, 4):  # from what rvq top remembers, at once
            assert browser.count(f"#charts figure:nth-child({chart}) .shapes path") == len(ids)
        assert browser.count("#timeline .column") == 6
        assert browser.count("#timeline .column:last-child .cell") == 6, "one of weight 2"
        assert "6 lanes, 5 receivers; came" in browser.text("#timeline-words")
        assert "repaired" in browser.text("#charts figure:nth-child(4)")
        assert browser.count("#senders tbody tr") == 2
        browser.shoot("light")


def test_what_one_did_who_is_gone_stays_in_the_charts(browser: Browser) -> None:
    source = MadeUp(begin=time.time() - 60)
    source.set_group("work", "default", "ada", "ben")
    areas = "#charts figure:first-child .shapes path"
    with served(source) as page:
        browser.open(page.url)
        browser.until(f"return document.querySelectorAll('{areas}').length === 2", "two areas")
        source.set_group("work", "default", "ada")
        browser.until("return document.querySelectorAll('#receivers tbody tr').length === 1", "one row")
        assert browser.count(areas) == 2


def test_the_whole_bus_is_one_glance_and_groups_are_one_press_away(browser: Browser) -> None:
    with served(busy()) as page:
        browser.open(page.url)
        words = browser.text("#cards")
        assert all(text in words for text in ("nobody listens", "paused", "1 silent"))
        browser.run("[...document.querySelectorAll('#cards a')].find((one) => one.innerText.includes('mail')).click()")
        browser.until_text("#detail-name", "mail")
        assert "Nobody listens to this label" in browser.text("#detail-words")
        assert browser.count("#charts, #timeline-panel, #receivers-panel") == 0
        assert browser.count("#senders tbody tr") == 1
        browser.driver.back()
        browser.until("return !document.getElementById('charts').hidden", "the group before")


def test_one_receiver_can_be_looked_at_alone(browser: Browser) -> None:
    with served(busy()) as page:
        browser.open(page.url + ORDERS)
        browser.until_text("#detail-name", "orders.eu")
        browser.click("#legend li:nth-child(2) button")
        assert browser.count("#charts figure:first-child .shapes path:not(.dim)") == 1
        assert browser.count('.pin[aria-pressed="true"]') == 2, "in the legend and in its row"
        browser.click("#legend li:nth-child(2) button")
        assert browser.count("#charts figure:first-child .shapes path.dim") == 0


@pytest.mark.parametrize(
    "hash", [ORDERS, "#/mail", "#/" + "%3Cimg%20src%3Dx%20onerror%3D%22window.stolen%3D1%22%3E/default"]
)
def test_a_phone_never_scrolls_sideways(browser: Browser, hash: str) -> None:
    browser.size(360, 740)
    with served(busy(), admin=FakeAdmin()) as page:
        browser.open(page.url + hash)
        browser.until("return document.querySelector('#detail-name')?.innerText", "a group")
        assert not browser.scrolls_sideways
        if hash == ORDERS:
            browser.shoot("phone")
            browser.prefer(color_scheme="dark")
            browser.shoot("phone-dark")


def test_forty_receivers_fit_a_desk_and_a_phone(browser: Browser) -> None:
    with served(crowd(40)) as page:
        browser.open(page.url)
        browser.until("return document.querySelectorAll('#receivers tbody tr').length === 40", "40 rows")
        assert browser.count("#timeline .column:last-child .cell") == 40
        assert not browser.scrolls_sideways
        browser.shoot("forty")
        browser.size(360, 740)
        browser.until("return innerWidth === 360", "narrow")
        assert not browser.scrolls_sideways
        browser.shoot("forty-phone")


def test_an_empty_bus_says_what_to_do(browser: Browser) -> None:
    source = MadeUp()
    with served(source) as page:
        browser.open(page.url)
        words = browser.text("#empty")
        assert all(text in words for text in ("rvq-listen work", "seq 1000 | rvq-send work", "rvq doctor", "7400"))
        assert browser.count("#totals, #groups, #detail") == 0
        browser.shoot("empty")
        source.set_group("work", "default", "ada")
        browser.until_text("#receivers", id_of("ada")[:4])
        assert browser.count("#empty") == 0


def test_it_is_dark_where_the_system_is_and_as_the_switch_says(browser: Browser) -> None:
    def ground() -> str:
        return str(browser.run("return getComputedStyle(document.body).backgroundColor"))

    with served(busy()) as page:
        browser.open(page.url + ORDERS)
        light = ground()
        browser.prefer(color_scheme="dark")
        dark = ground()
        assert light != dark
        browser.until_text("#detail-name", "orders.eu")
        browser.shoot("dark")
        browser.click("#theme")
        assert (ground(), browser.text("#theme")) == (light, "Light")
        browser.click("#theme")
        browser.prefer(color_scheme="light")
        assert (ground(), browser.text("#theme")) == (dark, "Dark")
        browser.open(page.url)
        assert ground() == dark, "kept"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_what_is_behind_them(browser: Browser, scheme: str) -> None:
    """As much as WCAG AA asks: 4.5 for text, 3 for shapes."""
    browser.prefer(color_scheme=scheme)
    text = [(ink, ground) for ink in ("ink", "soft") for ground in ("sheet", "ground", "raised")]
    text += [(name, f"{name}-soft") for name in ("good", "warn", "bad", "link")]
    text += [("link", "sheet"), ("soft", "link-soft"), ("bad", "sheet")]
    text += [("on-dark", f"c{n}") for n in (0, 6)] + [("on-light", f"c{n}") for n in (1, 2, 3, 4, 5, 7)]
    with served(MadeUp()) as page:
        browser.open(page.url)
        found = {pair: browser.run(CONTRAST, *pair) for pair in text}
        assert {pair: ratio for pair, ratio in found.items() if ratio < 4.5} == {}


def test_everything_can_be_reached_by_keys_and_says_what_it_is(browser: Browser) -> None:
    with served(busy(), admin=FakeAdmin()) as page:
        browser.open(page.url + ORDERS)
        browser.until_text("#detail-name", "orders.eu")
        browser.press("TAB")
        assert browser.run("return document.activeElement.className") == "skip"
        seen = []
        for _ in range(60):
            browser.press("TAB")
            seen.append(
                browser.run(
                    """const one = document.activeElement; const style = getComputedStyle(one);
                    const name = one.getAttribute("aria-label") || one.innerText || one.labels?.[0]?.innerText
                      || document.getElementById(one.getAttribute("aria-labelledby"))?.innerText;
                    return [one.id || one.className || one.tagName, Boolean(name), style.outlineStyle !== "none"]"""
                )
            )
            if seen[-1][0] == "events":
                break
        assert seen[0][0] == "theme" and seen[-1][0] == "events"
        assert [one for one in seen if not one[1]] == [], "no name"
        assert [one for one in seen if not one[2]] == [], "focus cannot be seen"


def test_charts_and_the_timeline_are_read_with_arrow_keys(browser: Browser) -> None:
    with served(busy()) as page:
        browser.open(page.url + ORDERS)
        browser.until_text("#detail-name", "orders.eu")
        browser.run("document.querySelector('#charts svg').focus()")
        browser.press("ARROW_LEFT", "ARROW_LEFT")
        assert "2 s ago" in browser.text("#charts .tip")
        assert browser.count("#charts .tip .swatch") == 5
        browser.press("ESCAPE")
        assert browser.count("#charts .tip") == 0
        browser.run("document.querySelector('#timeline svg').focus()")
        browser.press("ARROW_LEFT")
        assert "Version 5" in browser.text("#timeline-words") and "went" in browser.text("#timeline-words")
        browser.press("HOME")
        assert "Version 1" in browser.text("#timeline-words")


def test_nothing_moves_for_those_who_want_it_still(browser: Browser) -> None:
    browser.prefer(reduced_motion="reduce")
    with served(busy()) as page:
        browser.open(page.url)
        assert browser.run("return document.getAnimations().length") == 0


def test_a_broken_stream_is_said_and_mended_by_itself(browser: Browser) -> None:
    with served(busy()) as page:
        browser.open(page.url)
        page.stop()
        browser.until("return document.getElementById('broken').checkVisibility()", "a banner")
        assert "Trying again" in browser.text("#broken") and "What you see is from" in browser.text("#broken")
        browser.shoot("broken")
        page.start()
        browser.live()
        assert browser.count("#broken") == 0
        assert all("ERR_" in text for text in browser.errors()), "of the network only"


def test_without_admin_there_is_nothing_to_press(browser: Browser) -> None:
    with served(busy()) as page:
        browser.open(page.url + ORDERS)
        browser.until_text("#detail-name", "orders.eu")
        assert browser.count(".acts button, .acts input") == 0


def test_with_admin_a_receiver_is_drained_weighed_and_a_group_paused(browser: Browser) -> None:
    admin = FakeAdmin()
    with served(busy(), admin=admin) as page:
        browser.open(page.url + ORDERS)
        browser.until_text("#detail-name", "orders.eu")
        ada = f'[data-id="{id_of("ada")}"]'
        browser.click(f"{ada} .acts > button")
        assert browser.text(f"{ada} .acts > button") == "Sure?" and not admin.asked
        browser.click(f"{ada} .acts > button")
        browser.until_text("#toast", "done: drain")
        browser.run("document.querySelector(arguments[0]).value = 3", f"{ada} .acts input")
        browser.click(f"{ada} .acts form button")
        browser.until_text("#toast", "done: weight")
        browser.click("#detail-acts button")
        browser.click("#detail-acts button")
        browser.until_text("#toast", "done: pause")
        id, label = id_of("ada"), "orders.eu"
        assert admin.asked == [("drain", id, label), ("weight", id, label, 3), ("pause", label, "default")]
        admin.error = rvq_error("nobody with this id is there")
        browser.click(f"{ada} .acts > button")
        browser.click(f"{ada} .acts > button")
        browser.until_text("#toast", "Not done: nobody with this id is there")
        assert all("409" in text for text in browser.errors())


def rvq_error(words: str) -> Exception:
    from rvq.errors import BusError

    return BusError(words)


def test_the_token_is_asked_for_and_opens_the_page(browser: Browser) -> None:
    with served(busy(), token=TOKEN) as page:
        browser.driver.get(page.url)
        browser.until("return document.activeElement.id === 'token'", "the question")
        assert browser.count("#wrong") == 0
        browser.press("not the token at all", "ENTER")
        browser.until("return document.getElementById('wrong')?.checkVisibility()", "no")
        browser.shoot("login")
        browser.click("#token")
        browser.press(TOKEN, "ENTER")
        browser.live()
        assert browser.run("return document.cookie") == "", "not for scripts"
