"""The page in a real browser: what it lays out, asks for, shows to a keyboard and a reader, and prints.

Run by `tox -e browser`, which needs Chromium or Chrome on the path; without one nothing is looked at, and that is said.
`python -m lanes.unit.reports.browser_page FOLDER` takes the three pictures of the documents anew.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import pytest
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from lanes.unit.reports.boards import HOSTILE, hostile_board, whole_board
from lanes.unit.reports.conftest import Evidence
from reports.render.html import render_html

Scheme = Literal["light", "dark"]
WIDTHS = (360, 768, 1280)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ALARM = "no Chromium on the path: NOTHING was looked at (Debian: apt-get install chromium)"

# What lies where: every stretch of a text node that is painted. The hidden copy of a table's head is left out.
TEXTS = """() => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const owner = node.parentElement;
    if (!node.textContent.trim() || !owner.checkVisibility() || owner.closest("script, style, .skip, option")) continue;
    const head = owner.closest("thead");
    if (head && head.getBoundingClientRect().width < 2) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (box.width < 1 || box.height < 1) continue;
      found.push({text: node.textContent.trim().slice(0, 40), left: box.left, right: box.right,
                  top: box.top + scrollY, bottom: box.bottom + scrollY, sticky: Boolean(head)});
    }
  }
  return found;
}"""
CONTRASTS = """() => {
  const channel = (value) => { const s = value / 255; return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4; };
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const ground = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(each).backgroundColor);
      if (a === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const owner = node.parentElement;
    if (!node.textContent.trim() || !owner.checkVisibility() || owner.closest("script, style")) continue;
    const style = getComputedStyle(owner);
    const pair = [light(parse(style.color)), light(ground(owner))].sort((one, other) => other - one);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
    if (ratio < (large ? 3 : 4.5)) found.push(`${node.textContent.trim().slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  return found;
}"""
OUTLINE = """() => {
  const each = document.activeElement;
  const style = getComputedStyle(each);
  const box = each.getBoundingClientRect();
  return {name: each.tagName.toLowerCase(), text: each.textContent.trim().slice(0, 40), outline: style.outlineStyle,
          width: parseFloat(style.outlineWidth), shown: box.width > 0 && box.bottom > 0 && box.top < innerHeight};
}"""


def executable() -> str | None:
    """Where a browser is; None when there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@dataclass
class Watched:
    """One page with everything it said and asked for."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def texts(self) -> list[dict[str, Any]]:
        """Every stretch of text that is painted, with its box on the page."""
        found: list[dict[str, Any]] = self.page.evaluate(TEXTS)
        return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    path = executable()
    if path is None:
        if os.environ.get("CI"):
            pytest.fail(ALARM)
        pytest.skip(ALARM)
    with sync_playwright() as driver:
        # A container runs as root, whose browser has no sandbox; the page is our own and asks for nothing.
        started = driver.chromium.launch(executable_path=path, args=["--no-sandbox"] if os.geteuid() == 0 else [])
        yield started
        started.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, evidence: Evidence) -> dict[str, Path]:
    """The two boards as files."""
    folder = tmp_path_factory.mktemp("pages")
    boards = {"whole": whole_board(evidence, folder / "proofs"), "hostile": hostile_board(evidence)}
    for name, board in boards.items():
        (folder / f"{name}.html").write_text(render_html(board), "utf-8")
    return {name: folder / f"{name}.html" for name in boards}


def watch(context: BrowserContext, path: Path) -> Watched:
    """Open a file in a fresh page and note what it says and asks for."""
    watched = Watched(context.new_page())
    watched.page.on("console", lambda message: watched.said.append(message.text))
    watched.page.on("pageerror", lambda error: watched.said.append(str(error)))
    watched.page.on("dialog", lambda dialog: (watched.said.append(dialog.message), dialog.dismiss()))
    watched.page.on("request", lambda request: watched.asked.append(request.url))
    watched.page.goto(path.as_uri())
    return watched


def opened(
    browser: Browser, path: Path, width: int = 1280, scheme: Scheme = "light", *, script: bool = True
) -> Watched:
    """A page of that width."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=script
    )
    context.set_default_timeout(20_000)
    return watch(context, path)


def overlaps(texts: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Texts that lie on one another, a hair's breadth apart from touching."""
    found = []
    ordered = sorted((each for each in texts if not each["sticky"]), key=lambda each: each["top"])
    for number, one in enumerate(ordered):
        for other in ordered[number + 1 :]:
            if other["top"] >= one["bottom"] - 2:
                break
            if min(one["right"], other["right"]) - max(one["left"], other["left"]) > 2:
                found.append((one["text"], other["text"]))
    return found


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["whole", "hostile"])
def test_at_every_width_no_text_is_cut_off_or_lies_on_another(
    browser: Browser, pages: dict[str, Path], name: str, width: int
) -> None:
    watched = opened(browser, pages[name], width)
    watched.page.evaluate("() => { for (const each of document.querySelectorAll('details')) each.open = true; }")
    texts = watched.texts()

    assert len(texts) > 50
    assert [each["text"] for each in texts if each["left"] < -0.5 or each["right"] > width + 0.5] == []
    assert overlaps(texts) == []
    assert watched.page.evaluate("() => document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("name", ["whole", "hostile"])
def test_nothing_is_asked_of_any_network_and_nothing_is_complained_of(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    watched = opened(browser, pages[name])
    watched.page.wait_for_load_state("networkidle")

    assert (watched.asked, watched.said) == ([pages[name].as_uri()], [])


def test_edge68_hostile_texts_are_texts_and_nothing_of_them_runs(browser: Browser, pages: dict[str, Path]) -> None:
    watched = opened(browser, pages["hostile"])
    page = watched.page
    page.evaluate("() => { for (const each of document.querySelectorAll('details')) each.open = true; }")

    assert (page.title(), watched.said) == ("Evidence board, 4f0c2a1", [])
    assert (
        page.evaluate("() => document.querySelectorAll('img, iframe, object, svg:not(.bar, .strip), script').length")
        == 1
    )
    shown = str(page.evaluate("() => document.body.innerText"))
    plain = [text for text in HOSTILE if text.isprintable() and len(text) < 100]
    assert [text for text in plain if text not in shown] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["whole", "hostile"])
def test_every_text_stands_out_from_its_ground(
    browser: Browser, pages: dict[str, Path], name: str, scheme: Scheme
) -> None:
    page = opened(browser, pages[name], scheme=scheme).page
    page.evaluate("() => { for (const each of document.querySelectorAll('details')) each.open = true; }")

    assert page.evaluate(CONTRASTS) == []


def test_dark_and_light_are_two_grounds(browser: Browser, pages: dict[str, Path]) -> None:
    grounds = {
        opened(browser, pages["whole"], scheme=scheme).page.evaluate(
            "() => getComputedStyle(document.body).backgroundColor"
        )
        for scheme in ("light", "dark")
    }

    assert len(grounds) == 2


def test_the_keyboard_reaches_everything_and_shows_where_it_is(browser: Browser, pages: dict[str, Path]) -> None:
    page = opened(browser, pages["whole"]).page
    page.keyboard.press("Tab")
    first = page.evaluate(OUTLINE)
    page.keyboard.press("Enter")
    jumped = page.evaluate("() => location.hash")
    seen = []
    for _ in range(120):
        page.keyboard.press("Tab")
        at = page.evaluate(OUTLINE)
        if at["name"] == "body":
            break
        seen.append(at)

    assert (first["text"], first["shown"], jumped) == ("Skip to the claims", True, "#claims")
    assert [each for each in seen if each["outline"] == "none" or each["width"] < 2 or not each["shown"]] == []
    assert {"input", "select", "a", "button", "summary"} <= {each["name"] for each in seen}


def test_a_fold_opens_by_keyboard(browser: Browser, pages: dict[str, Path]) -> None:
    page = opened(browser, pages["whole"]).page
    fold = page.locator("details:not([open]) summary").first
    fold.focus()
    handle = fold.element_handle()
    assert handle is not None
    page.keyboard.press("Space")

    assert handle.evaluate("(each) => each.parentElement.open") is True


@pytest.mark.parametrize("width", [360, 1280])
def test_a_screen_reader_finds_landmarks_and_a_table_with_headings_at_every_width(
    browser: Browser, pages: dict[str, Path], width: int
) -> None:
    page = opened(browser, pages["whole"], width).page
    table = page.get_by_role("table", name="8 claims by 5 columns")

    roles = [page.get_by_role(role).count() for role in ("banner", "navigation", "main", "contentinfo")]  # type: ignore[arg-type]
    assert roles == [1, 1, 1, 1]
    assert (table.get_by_role("rowheader").count(), table.get_by_role("columnheader").count()) == (8, 6)
    assert table.get_by_role("cell").count() == 40


def test_the_filter_keeps_what_fits_and_says_how_many(browser: Browser, pages: dict[str, Path]) -> None:
    page = opened(browser, pages["whole"]).page
    rows = page.locator(".board tbody tr:visible")
    page.get_by_role("searchbox").fill("LOOP model")
    by_words = (rows.count(), page.locator("#found").inner_text())
    page.get_by_role("searchbox").fill("")
    page.get_by_label("failed", exact=True).check()
    by_status = (rows.count(), page.locator("#details .claim:visible").count())
    page.locator("#column").select_option(label="Unit")

    assert (by_words, by_status, rows.count()) == ((2, "2 of 8 claims"), (1, 1), 0)


def test_a_link_to_a_claim_opens_what_lies_below_it(browser: Browser, pages: dict[str, Path]) -> None:
    page = opened(browser, pages["whole"]).page
    page.get_by_role("link", name="loop.turns").first.click()

    closed = page.locator("[id='claim-loop.turns'] details:not([open])")
    closed.first.wait_for(state="detached")
    assert (closed.count(), page.locator("[id='claim-loop.turns'] details[open]").count()) == (0, 5)


def test_without_a_script_everything_is_there_and_nothing_dead_is_shown(
    browser: Browser, pages: dict[str, Path]
) -> None:
    page = opened(browser, pages["whole"], script=False).page
    folds = page.locator("details")
    page.locator("details:not([open]) summary").first.click()

    assert (page.locator("#filters").is_visible(), page.locator("#open-all").is_visible()) == (False, False)
    assert (folds.count() > 40, page.locator("details").first.get_attribute("open")) == (True, "")


def test_on_paper_the_folds_are_open_and_what_only_a_screen_needs_is_gone(
    browser: Browser, pages: dict[str, Path]
) -> None:
    page = opened(browser, pages["whole"], script=False).page
    page.emulate_media(media="print")

    hidden = [page.locator(each).is_visible() for each in ("nav", ".skip", "#filters")]
    heights = [box["height"] for each in page.locator(".inside").all() if (box := each.bounding_box()) is not None]
    assert (hidden, len(heights), min(heights) > 10) == ([False, False, False], page.locator("details").count(), True)
    assert page.pdf().startswith(b"%PDF-")


def main(folder: Path) -> None:
    """Take the three pictures anew: narrow and dark, middle, and wide."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as driver:
        path = Path(place) / "board.html"
        path.write_text(render_html(whole_board(Evidence(), Path(place) / "proofs")), "utf-8")
        browser = driver.chromium.launch(executable_path=executable(), args=["--no-sandbox"])
        looks: tuple[tuple[str, int, int, Scheme, str], ...] = (
            ("board-wide", 1280, 800, "light", "columns"),
            ("board-claims", 1024, 720, "light", "claims"),
            ("board-narrow-dark", 360, 720, "dark", "claims"),
        )
        for name, width, height, scheme, anchor in looks:
            context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
            page = context.new_page()
            page.goto(f"{path.as_uri()}{'' if anchor == 'columns' else f'#{anchor}'}")
            shot = Image.open(BytesIO(page.screenshot()))
            shot.convert("RGB").quantize(96).save(folder / f"{name}.png", optimize=True)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
