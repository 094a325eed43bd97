"""Debian's chromium, headless, driven by selenium: what a person would see of the page."""

from __future__ import annotations

import os
import shutil
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


def size(driver: Any, width: int, height: int = 1000) -> None:
    """The page's own width, as on a phone: below what a window may be."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def prefer(driver: Any, **features: str) -> None:
    """What the system prefers: color_scheme, reduced_motion."""
    told = [{"name": f"prefers-{name.replace('_', '-')}", "value": value} for name, value in features.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": told})


def shoot(driver: Any, name: str) -> Path:
    """The whole page as an image."""
    import base64

    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    path = ARTEFACTS / f"{name}.png"
    shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "format": "png"})
    path.write_bytes(base64.b64decode(shot["data"]))
    return path


def until(driver: Any, script: str, what: str) -> Any:
    """What the script returns, as soon as that is something."""
    from selenium.common.exceptions import TimeoutException
    from selenium.webdriver.support.ui import WebDriverWait

    try:
        return WebDriverWait(driver, PATIENCE_S, poll_frequency=0.02).until(lambda one: one.execute_script(script))
    except TimeoutException:
        text = driver.execute_script("return document.body.innerText")
        raise AssertionError(f"not within {PATIENCE_S:g} s: {what}\n{text}\n{driver.get_log('browser')}") from None


def errors(driver: Any) -> list[str]:
    """What the console complains of."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
