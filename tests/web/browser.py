"""Debian's chromium, headless, driven by selenium: what a person would see of the page."""

from __future__ import annotations

import os
import shutil
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ARTEFACTS = Path(__file__).parents[2] / ".artefacts" / "web"
"""Where screenshots are kept: git knows nothing of it."""

PATIENCE_S = 60.0
"""For what must come to pass in a browser, on a busy machine."""

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--disable-default-apps", "--no-default-browser-check", "--no-proxy-server",
)  # fmt: skip


def missing() -> str | None:
    """Why there is no browser here; None if there is one."""
    for command, package in (("chromium", "chromium"), ("chromedriver", "chromium-driver")):
        if not shutil.which(command):
            return f"needs {command} (apt-get install {package})"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "needs selenium (pip install selenium)"
    return None


@contextmanager
def browsing(width: int = 1360, height: int = 1000) -> Iterator[Any]:
    """A browser with an empty profile, and a log of what pages say to the console."""
    from selenium.webdriver import Chrome
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = shutil.which("chromium") or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with TemporaryDirectory() as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
            options.add_argument(flag)
        # Selenium asks the driver by HTTP, which must not go through a proxy of this machine.
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        service = Service(shutil.which("chromedriver"), env=environment)
        driver = Chrome(options, service)
        try:
            driver.set_page_load_timeout(PATIENCE_S)
            driver.set_script_timeout(PATIENCE_S)
            yield driver
        finally:
            driver.quit()


class Browser:
    """What tests do with it, and what they see."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self._width = 0

    def calm(self) -> None:
        """As if it was just started."""
        self.driver.get("about:blank")
        self.driver.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": "*", "storageTypes": "all"})
        self.size(1360)
        self.prefer(color_scheme="light", reduced_motion="no-preference")
        self.errors()

    def open(self, url: str) -> Browser:
        """Until pictures come."""
        self.driver.get(url)
        return self.live()

    def live(self) -> Browser:
        self.until("return document.getElementById('live')?.dataset.state === 'live'", "live")
        return self

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def until(self, script: str, what: str) -> Any:
        """What the script returns, as soon as that is something."""
        from selenium.common.exceptions import TimeoutException
        from selenium.webdriver.support.ui import WebDriverWait

        try:
            return WebDriverWait(self.driver, PATIENCE_S, poll_frequency=0.02).until(lambda _: self.run(script))
        except TimeoutException:
            text = self.run("return document.body.innerText")
            raise AssertionError(f"not within {PATIENCE_S:g} s: {what}\n{text}\n{self.errors()}") from None

    def until_text(self, selector: str, text: str) -> None:
        """Until the element of this selector can be seen, and has this in it."""
        found = f"document.querySelector({selector!r})"
        self.until(
            f"return {found}?.checkVisibility() && {found}.innerText.includes({text!r})", f"{text} in {selector}"
        )

    def text(self, selector: str) -> str:
        """Of what can be seen: of other elements, innerText is what nobody reads."""
        assert self.count(selector), f"{selector} cannot be seen"
        words: str = self.run("return document.querySelector(arguments[0]).innerText", selector)
        return words

    def count(self, selector: str) -> int:
        """Of those that can be seen."""
        seen: int = self.run(
            "return [...document.querySelectorAll(arguments[0])].filter((one) => one.checkVisibility()).length",
            selector,
        )
        return seen

    def click(self, selector: str) -> None:
        self.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)
        self.driver.find_element("css selector", selector).click()

    def press(self, *keys: str) -> None:
        """Where the focus is."""
        from selenium.webdriver import ActionChains, Keys

        chain = ActionChains(self.driver)
        for key in keys:
            chain.send_keys(getattr(Keys, key, key))
        chain.perform()

    def size(self, width: int, height: int = 1000) -> None:
        """The page's own width, as on a phone: below what a window may be."""
        self._width = width
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def prefer(self, **features: str) -> None:
        """What the system prefers: color_scheme, reduced_motion."""
        told = [{"name": f"prefers-{name.replace('_', '-')}", "value": value} for name, value in features.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": told})

    def shoot(self, name: str) -> Path:
        """The whole page as an image."""
        ARTEFACTS.mkdir(parents=True, exist_ok=True)
        path = ARTEFACTS / f"{name}.png"
        told = {"captureBeyondViewport": True, "format": "png"}
        path.write_bytes(b64decode(self.driver.execute_cdp_cmd("Page.captureScreenshot", told)["data"]))
        return path

    def errors(self) -> list[str]:
        """What was said to the console since it was asked last, and is worse than a remark."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    @property
    def scrolls_sideways(self) -> bool:
        # Not than innerWidth, which on a phone grows with what is too wide.
        return bool(self.run("return document.documentElement.scrollWidth > arguments[0]", self._width))
