"""The built site in a real browser, on a phone and on a desk, in the light and in the dark.

Runs after ``make doc`` where Chromium or Chrome is installed, and says so where it is not. One page
of our own shows every page of the site in a frame, measures it, and hands the result back in its
DOM: no driver, no package.
"""

import functools
import http.server
import json
import re
import shutil
import subprocess
import threading
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

SITE = Path(__file__).resolve().parent.parent / "doc" / "_build" / "html"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
_FOUND = (path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
PAGES = sorted(page for page in _FOUND if not page.startswith("_static/"))
# Pages that a person reads; those of the API are alike, so a few of them stand for all.
OF_API = [page for page in PAGES if page.startswith("generated/dpcd")]
READ = [
    page for page in PAGES if not page.startswith(("generated/dpcd", "genindex", "search"))
] + OF_API[:: max(1, len(OF_API) // 6)]

pytestmark = [
    pytest.mark.skipif(not PAGES, reason="the site is not built: `make doc` first"),
    pytest.mark.skipif(BROWSER is None, reason=f"no browser is here: none of {BROWSERS}"),
]

HARNESS = """<!DOCTYPE html><meta charset="utf-8"><body><script>
const pages = %s, widths = [390, 1300], found = [];
async function look(page, width) {
  const frame = document.createElement("iframe");
  frame.style = `width: ${width}px; height: 900px; border: 0`;
  frame.src = "/" + page;
  document.body.append(frame);
  await new Promise(done => { frame.onload = done; setTimeout(done, 8000); });
  const root = frame.contentDocument.documentElement, inside = frame.contentWindow;
  const foreign = inside.performance.getEntriesByType("resource").map(entry => entry.name)
    .filter(name => !name.startsWith(location.origin) && !name.startsWith("data:"));
  const broken = [...frame.contentDocument.images].filter(i => i.complete && !i.naturalWidth);
  let wide = [];
  if (root.scrollWidth > width + 1)
    wide = [...root.querySelectorAll("main *")]
      .filter(e => e.getBoundingClientRect().right > width + 1).slice(0, 3)
      .map(e => e.tagName + "." + e.className);
  const cut = [...frame.contentDocument.querySelectorAll(".bd-article table")]
    .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.trim().slice(0, 40));
  const small = [...frame.contentDocument.querySelectorAll(".sphx-glr-thumbcontainer img")]
    .filter(i => i.getBoundingClientRect().width < 140).length;
  const text = inside.getComputedStyle(frame.contentDocument.body);
  found.push({page, width, overflow: root.scrollWidth - width, wide, cut, foreign, small,
    broken: broken.map(i => i.src), theme: root.dataset.theme, ink: text.color,
    paper: text.backgroundColor, math: frame.contentDocument.querySelectorAll("math").length});
  frame.remove();
}
(async () => {
  for (const page of pages) for (const width of widths) await look(page, width);
  const pre = document.createElement("pre");
  pre.id = "found";
  pre.textContent = JSON.stringify(found);
  document.body.replaceChildren(pre);
})();
</script>"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """The site, the harness, and a list of what was asked for in vain."""

    def do_GET(self):
        if self.path.startswith("/look-at-all"):
            body = (HARNESS % json.dumps(self.server.pages)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(body)
        else:
            super().do_GET()

    def send_error(self, code, *rest, **more):
        self.server.in_vain.append(self.path)
        super().send_error(code, *rest, **more)

    def log_message(self, *_):
        pass


def seen_by_browser(pages, folder, *arguments):
    """The harness's finds, the console's words, and pages that the server had not."""
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE))
    )
    server.pages, server.in_vain = pages, []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        done = subprocess.run(
            [
                *(BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"),
                *("--disable-dev-shm-usage", f"--user-data-dir={folder}", "--dump-dom"),
                *("--enable-logging=stderr", "--virtual-time-budget=600000", *arguments),
                f"http://127.0.0.1:{server.server_port}/look-at-all",
            ],
            capture_output=True,
            encoding="utf-8",
            timeout=900,
        )
    finally:
        server.shutdown()
        server.server_close()
    dom = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, flags=re.DOTALL)
    assert dom, f"the browser gave no result: {done.stderr[-2000:]}"
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(unescape(dom[1])), console, server.in_vain


@pytest.mark.slow
def test_every_page_fits_a_phone_and_a_desk_and_asks_nobody_else(tmp_path):
    found, console, in_vain = seen_by_browser(READ, tmp_path)
    assert {(each["page"], each["width"]) for each in found} == {
        (page, width) for page in READ for width in (390, 1300)
    }
    faults = [
        f"{each['page']} at {each['width']}: {name} {each[name]}"
        for each in found
        for name in ("foreign", "broken", "small", "cut")
        if each[name]
    ]
    faults += [
        f"{each['page']} at {each['width']} is {each['overflow']} pixels too wide: {each['wide']}"
        for each in found
        if each["overflow"] > 1
    ]
    faults += [line for line in console if re.search(r"Uncaught|Refused|Failed|[Ee]rror", line)]
    assert faults + sorted({path for path in in_vain if "favicon.ico" not in path}) == []
    assert sum(each["math"] for each in found) > 20, "no page shows a formula"


def brightness(colour):
    return sum(map(float, re.findall(r"[\d.]+", colour)[:3])) / 3


@pytest.mark.parametrize("dark", [False, True])
def test_ink_and_paper_follow_the_reader(dark, tmp_path):
    arguments = ["--blink-settings=preferredColorScheme=0"] if dark else []
    found, _, _ = seen_by_browser(["index.html", "guide/recipes.html"], tmp_path, *arguments)
    for each in found:
        paper, ink = brightness(each["paper"]), brightness(each["ink"])
        assert (paper < 60 and ink > 160) if dark else (paper > 240 and ink < 90), each


class Links(HTMLParser):
    """Links of a page, and what can be linked to in it."""

    def __init__(self):
        super().__init__()
        self.links, self.names = [], set()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.names |= {attributes.get("id"), attributes.get("name")}
        for name in ("href", "src"):
            if attributes.get(name):
                self.links.append(attributes[name])


def test_no_link_is_dead():
    pages = {}
    for page in PAGES:
        pages[page] = Links()
        pages[page].feed((SITE / page).read_text(encoding="utf-8"))
    dead = set()
    for page, found in pages.items():
        for link in found.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            path = (SITE / page).parent / unquote(parts.path) if parts.path else SITE / page
            if path.is_dir():
                path = path / "index.html"
            if not path.exists():
                dead.add(f"{page}: {escape(link)}")
            elif parts.fragment and path.suffix == ".html":
                target = pages.get(path.resolve().relative_to(SITE.resolve()).as_posix())
                if target and unquote(parts.fragment) not in target.names:
                    dead.add(f"{page}: {escape(link)}")
    assert sorted(dead) == []
