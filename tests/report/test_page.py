"""The page is one whole file: nothing is loaded, nothing foreign runs, everything is said in words too."""

import base64
import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from scrimp.core.plan import Rejected
from scrimp.report.page import render_report, write_report

LOADING_ATTRIBUTES = {"src", "href", "srcset", "data", "action", "poster", "background", "ping", "cite", "formaction"}
LOADING_CODE = r"\bfetch\(|XMLHttpRequest|WebSocket|importScripts|\bimport\(|EventSource|sendBeacon"
MAX_BYTES = 200_000


class Page(HTMLParser):
    """Tags with their attributes, and the text of each script."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.scripts, self.text, self._script = [], [], [], None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self._script = dict(attrs)
            self.scripts.append([self._script, ""])

    def handle_endtag(self, tag):
        if tag == "script":
            self._script = None

    def handle_data(self, data):
        if self._script is not None:
            self.scripts[-1][1] += data
        else:
            self.text.append(data)

    def of(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.fixture
def page(make_source):
    return Page(render_report(make_source()))


def test_nothing_is_loaded_from_anywhere(make_source):
    html = render_report(make_source())
    page = Page(html)
    for tag, attrs in page.tags:
        assert not (attrs.keys() & LOADING_ATTRIBUTES), tag
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "video", "audio", "source"}
    styles = "".join(re.findall(r"<style>(.*?)</style>", html, re.DOTALL))
    assert "url(" not in styles
    assert "@import" not in styles
    for attrs, script in page.scripts:
        if attrs.get("type") != "application/json":
            assert not re.search(
                r"\bfetch\(|XMLHttpRequest|WebSocket|importScripts|\bimport\(|EventSource|sendBeacon", script
            )


def test_the_policy_forbids_loading_and_lets_only_the_pages_own_scripts_run(page):
    policy = next(meta["content"] for meta in page.of("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    script_rule = policy.split("script-src")[1]
    assert "unsafe" not in script_rule
    allowed = set(re.findall(r"'(sha256-[^']+)'", script_rule))
    running = [script for attrs, script in page.scripts if attrs.get("type") != "application/json"]
    hashes = {"sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in running}
    assert hashes == allowed
    assert len(running) == 2
    handlers = [name for _, attrs in page.tags for name in attrs if name.startswith("on")]
    assert handlers == []


HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)>\"' {{ 7 * 7 }} </style> & é ☂"


def test_what_came_from_outside_is_shown_and_never_run(make_source, nouns, plans, sampled):
    point = replace(plans.make_points(2)[0], label=HOSTILE)
    events = [*nouns.make_events(steps=3), sampled(HOSTILE, HOSTILE, "before"), sampled(HOSTILE, HOSTILE, "after")]
    hostile = make_source(
        events,
        record={"name": HOSTILE, "model": HOSTILE, "folder": HOSTILE, "state": "failed"},
        plan=plans.make_plan(alternatives=(point, *plans.make_points(3))),
        environment={HOSTILE: HOSTILE},
        rejected=(Rejected(kind="memory", subject=HOSTILE, reason=HOSTILE, offers=3),),
    )
    page = Page(render_report(replace(hostile, history=replace(hostile.history, failure=HOSTILE))))
    assert len(page.of("script")) == 3
    assert page.of("img") == []
    assert "".join(page.text).count(HOSTILE) >= 10
    data = json.loads(next(script for attrs, script in page.scripts if attrs.get("type") == "application/json"))
    assert any(HOSTILE in name for figure in data for name in figure["names"])


def test_every_figure_is_also_a_sentence_and_a_table_and_can_be_reached_by_keys(page):
    boxes = [attrs for attrs in page.of("div") if attrs.get("class") == "plot"]
    assert [attrs["data-figure"] for attrs in boxes] == ["loss", "spend", "rate", "speed", "plans", "lengths"]
    assert all(attrs["role"] == "img" and attrs["tabindex"] == "0" and len(attrs["aria-label"]) > 60 for attrs in boxes)
    assert len(page.of("figure")) == len(page.of("figcaption")) == len(boxes)
    assert len(page.of("table")) >= len(boxes)
    data = json.loads(next(script for attrs, script in page.scripts if attrs.get("type") == "application/json"))
    assert {figure["name"] for figure in data} == {attrs["data-figure"] for attrs in boxes}


def test_headings_go_down_one_level_at_a_time(page):
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_the_page_answers_what_was_bought(make_source, sampled, nouns):
    events = [
        sampled("Define: MONEY", "a means", "before"),
        *nouns.make_events(steps=6),
        sampled("Define: MONEY", "a blessing", "after"),
    ]
    text = " ".join(" ".join(Page(render_report(make_source(events))).text).split())
    assert "the held-out loss fell from 4.000 to 3.500." in text
    for words in ("Define: MONEY", "a means", "a blessing", "memory at its peak", "outside the interval", "1.96 GiB",
                  "lora on", "attempt 1", "the spec", "475 g/kWh, as the spec states it", "2.13.0",
                  "step"):  # fmt: skip
        assert words in text, words


def test_it_is_small_and_opens_as_utf8(make_source, tmp_path):
    path = write_report(make_source(), path=tmp_path / "new" / "report.html")
    assert path.stat().st_size < MAX_BYTES
    assert path.read_text(encoding="utf-8").lstrip().startswith("<!doctype html>")
    before = path.stat().st_ino
    write_report(make_source(), path=path)
    assert path.stat().st_ino != before, "replaced as a whole"
    assert [item.name for item in path.parent.iterdir()] == ["report.html"]


def test_a_long_run_does_not_make_a_large_page(make_source, nouns):
    html = render_report(make_source(nouns.make_events(steps=20_000)))
    assert len(html) < 4 * MAX_BYTES
    data = json.loads(next(script for attrs, script in Page(html).scripts if attrs.get("type") == "application/json"))
    assert all(len(figure["x"]) <= 602 for figure in data)


@pytest.mark.parametrize("state", ["planned", "running", "interrupted", "stopped_at_cap", "finished", "failed"])
def test_a_run_of_which_little_is_known(make_source, state):
    bare = {"state": state, "eval_loss_before": None, "eval_loss_after": None, "forecast_usd": None}
    source = make_source([], record=bare, plan=None)
    html = render_report(replace(source, record=replace(source.record, graded=())))
    assert "No entries yet." in html
    assert "price unknown" in html
    assert "data-figure" not in html


def test_a_run_whose_price_is_not_known_and_whose_loss_is_no_number(make_source, nouns, plans):
    events = nouns.make_events(steps=3, price=None)
    events = [replace(event, values={**event.values, "loss": None, "spent_usd": None}) for event in events]
    chosen = replace(plans.make_candidate(), money=None)
    html = render_report(make_source(events, plan=plans.make_plan(chosen=chosen, alternatives=())))
    shown = [attrs["data-figure"] for attrs in Page(html).of("div") if attrs.get("class") == "plot"]
    assert shown == ["loss", "rate", "speed", "lengths"]


def test_the_drawing_library_is_the_released_one():
    from scrimp.report import page

    digest = hashlib.sha256((page._ASSETS / "uplot.js").read_bytes()).hexdigest()
    assert digest == "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs a browser: apt-get install chromium")
def test_a_browser_draws_every_figure_and_complains_of_nothing(make_source, tmp_path):
    path = write_report(make_source(), path=tmp_path / "report.html")
    done = subprocess.run(
        ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
         "--virtual-time-budget=5000", "--dump-dom", path.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stdout.count("<canvas") == 6
    assert "CONSOLE" not in done.stderr
