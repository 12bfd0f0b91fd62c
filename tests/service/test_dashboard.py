"""The dashboard, in a real browser."""

from __future__ import annotations

import gzip
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_kit import (
    CHROMIUM,
    WebServer,
    chromium,
    make_policies,
    number,
    populate,
    serving,
)
from live_server import wait_for

from fairshield.service.store import open_database
from fairshield.service.web.access import new_key

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to look with"),
]
expect = sync_api.expect
expect.set_options(timeout=30_000)  # 5 s are not enough on a busy machine

DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 375, "height": 812}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_policies(tmp_path_factory.mktemp("policies"))


@pytest.fixture(scope="module")
def server(
    policies: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebServer]:
    folder = tmp_path_factory.mktemp("dashboard")
    with serving(folder, "--db", str(folder / "s.db")) as running:
        populate(running, policies)
        yield running


@pytest.fixture(scope="module")
def plain(server: WebServer) -> str:
    """The policy of the plain streams."""
    digest: str = server.get("/v1/streams/credit")["policy"]
    return digest


class Eyes:
    """Opens pages, and notes everything that a browser complains about."""

    def __init__(self, browser: Any) -> None:
        self._browser, self._contexts = browser, []
        self.complaints: list[str] = []

    def open(self, address: str, **options: Any) -> Any:
        context = self._browser.new_context(**{"viewport": DESKTOP, **options})
        self._contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("pageerror", lambda error: self._note("error", str(error)))
        page.goto(address)
        return page

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(text)

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@pytest.fixture
def eyes(browser: Any) -> Iterator[Eyes]:
    found = Eyes(browser)
    yield found
    found.close()
    assert found.complaints == []


def decided(page: Any) -> int:
    """Decisions so far, as the page of a stream says."""
    return number(page.get_by_text("decided so far").inner_text())


def wait_live(page: Any) -> None:
    """Until the page has heard from the service."""
    expect(page.locator("#live")).to_have_text("Live")
    if page.locator("#plot").count():
        expect(page.locator("#plot")).to_have_attribute("data-points", re.compile(r"\d"))


# Every page ---------------------------------------------------------------------------------

PAGES = (
    "/",
    "/streams/credit",
    "/streams/credit?show=all&rows=50",
    "/streams/labelled",
    "/streams/empty",
    "/streams/over",
    "/streams/periods",
    "/streams/credit/decisions/4",
    "/streams/periods/decisions/9",
    "/streams/rare",
    "/streams/never",
    "/policies/never",
    "/problems",
    "/problems/key-reused",
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_quiet_accessible_and_fits(
    eyes: Eyes, server: WebServer, path: str, scheme: str
) -> None:
    if path == "/policies/never":
        path = f"/policies/{server.get('/v1/streams/never')['policy']}"
    page = eyes.open(server.address + path, color_scheme=scheme)
    if page.locator("#live").count():
        wait_live(page)
    for viewport in (DESKTOP, PHONE):
        page.set_viewport_size(viewport)
        found = axe.Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


def test_pages_that_cannot_be_made_say_why(server: WebServer) -> None:
    with server.client() as client:
        for path, status, words in (
            ("/streams/nowhere", 404, "no stream"),
            ("/streams/credit/decisions/999", 404, "no decision 999"),
            ("/streams/credit?rows=many", 422, "rows"),
            ("/problems/nothing", 404, "no problem"),
        ):
            answer = client.get(path)
            assert answer.status_code == status
            assert "text/html" in answer.headers["content-type"]
            assert words in answer.text


def test_an_address_of_nothing_is_a_page_for_browsers_and_json_for_others(
    eyes: Eyes, server: WebServer
) -> None:
    with server.client() as client:
        seen = client.get("/nope", headers={"accept": "text/html,*/*"})
        told = client.get("/nope", headers={"accept": "application/json"})
        icon = client.get("/favicon.ico", follow_redirects=True)
    assert (seen.status_code, told.status_code, icon.status_code) == (404, 404, 200)
    assert "There is nothing at /nope" in seen.text
    assert "text/html" in seen.headers["content-type"]
    assert told.json()["type"] == "/problems/not-found"
    assert icon.headers["content-type"] == "image/svg+xml"
    eyes.open(f"{server.address}/openapi.json")


def test_what_people_write_is_shown_as_text(server: WebServer) -> None:
    with server.client() as client:
        answer = client.get("/streams/credit", params={"reason": '"><script>alert(1)</script>'})
    assert "<script>alert" not in answer.text


def test_files_are_small_and_kept_for_good(eyes: Eyes, server: WebServer) -> None:
    with server.client() as client:
        page = client.get("/streams/credit").text
        names = re.findall(r'(?:src|href)="(/static/[^"]+)"', page)
        answers = [client.get(name) for name in dict.fromkeys(names)]
        assert len(answers) == 6
        assert all("immutable" in answer.headers["cache-control"] for answer in answers)
        assert client.get("/static/fairshield.js").headers["cache-control"] == "no-cache"
        assert client.get("/static/../pages.py").status_code == 404
    wire = sum(len(gzip.compress(answer.content, 9)) for answer in answers)
    assert wire < 50_000


# Live ---------------------------------------------------------------------------------------


def test_a_decision_appears_without_reload(eyes: Eyes, server: WebServer) -> None:
    page = eyes.open(f"{server.address}/streams/credit?show=all")
    wait_live(page)
    page.evaluate("window.same = true")
    before, points = decided(page), int(page.locator("#plot").get_attribute("data-points"))
    made = server.decide("credit", "beta", proposed=True)
    expect(page.locator(f"table.decisions tr#decision-{made['n']}")).to_be_visible()
    assert decided(page) == before + 1
    expect(page.locator("#plot")).to_have_attribute("data-points", str(points + 1))
    assert page.evaluate("window.same")


def test_the_overview_follows_its_streams(eyes: Eyes, server: WebServer) -> None:
    page = eyes.open(server.address)
    wait_live(page)
    card = page.locator("#stream-periods")
    before = number(card.locator("dd").nth(3).inner_text())
    server.decide("periods", "alpha", proposed=False)
    expect(card.locator("dd").nth(3)).to_have_text(str(before + 1))
    assert page.locator("#stream-over").get_by_text("Finished").is_visible()


def test_a_page_survives_the_death_of_its_server(
    browser: Any, policies: dict[str, Path], tmp_path: Path
) -> None:
    eyes = Eyes(browser)  # failed connections are told on the console, by the browser itself
    with serving(tmp_path, "--db", str(tmp_path / "s.db")) as server:
        page = eyes.open(server.address)
        expect(page.get_by_text("No streams yet")).to_be_visible()
        populate(server, policies, ("credit",))
        expect(page.get_by_role("link", name="credit")).to_be_visible()
        page.get_by_role("link", name="credit").click()
        wait_live(page)
        page.evaluate("window.same = true")
        before, lost = decided(page), page.locator("#lost")
        expect(lost).to_be_hidden()

        server.stop(signal.SIGKILL)
        expect(lost).to_be_visible()
        expect(lost).to_contain_text("Connection lost, reconnecting")
        server.start()
        for _ in range(3):
            server.decide("credit", "alpha", proposed=False)

        expect(lost).to_be_hidden()
        wait_for(
            lambda: decided(page) == before + 3 or page.wait_for_timeout(50), "never caught up"
        )
        expect(page.locator("#plot")).to_have_attribute("data-points", str(before + 3))
        assert page.evaluate("window.same")
    eyes.close()
    assert [c for c in eyes.complaints if "ERR_" not in c] == []


# What is said when ------------------------------------------------------------------------


def card(page: Any, name: str) -> Any:
    return page.locator(f".card#stream-{name}")


def test_the_overview_compares_ends_of_windows(eyes: Eyes, server: WebServer) -> None:
    page = eyes.open(server.address)
    expect(card(page, "over").locator(".scale")).to_have_text(
        "At the end of the last window. Allowed: 0.25."
    )
    expect(card(page, "periods").locator(".scale")).to_contain_text("the last period")
    empty = card(page, "empty")
    expect(empty.locator(".scale")).to_contain_text("the window has just begun")
    expect(empty.locator(".bars")).to_have_class(re.compile("early"))
    expect(empty.get_by_text("none yet")).to_be_visible()
    (end,) = server.get("/v1/streams/over/windows")["windows"]
    shown = card(page, "over").locator(".bars b")
    expect(shown).to_have_text([f"{end['bias']:.3f}", f"{end['bias_unshielded']:.3f}"])


def test_a_classifier_that_is_fair_alone_is_no_alarm(
    eyes: Eyes, server: WebServer, plain: str
) -> None:
    server.post("/v1/streams", {"name": "calm", "policy": plain, "windows": 1})
    people = [{"group": ("alpha", "beta")[i % 2], "proposed": True} for i in range(12)]
    server.post("/v1/streams/calm/decisions:batch", {"decisions": people}, key="calm")
    page = eyes.open(f"{server.address}/streams/calm")
    alarmed = page.locator(".without:not(.fair)")
    expect(page.locator("#window-ends .without.fair")).to_have_count(1)
    expect(alarmed).to_have_count(0)
    page.goto(f"{server.address}/streams/over")
    expect(page.locator("#window-ends .without:not(.fair)")).to_have_count(1)


def test_windows_that_bound_nothing_are_not_green(eyes: Eyes, server: WebServer) -> None:
    state = server.get("/v1/streams/rare/state")
    page = eyes.open(f"{server.address}/streams/rare")
    ends = server.get("/v1/streams/rare/windows?first=15")["windows"][::-1]
    assert {end["verdict"] for end in ends} == {"fair", "exempt"}
    marks = page.locator("#window-ends .mark")
    expect(marks).to_have_text([end["verdict"] for end in ends])
    expect(page.locator("#window-ends .mark.fair")).to_have_count(sum(e["fair"] for e in ends))
    tiles = page.locator('[data-live="tiles"]')
    bound = state["windows_completed"] - state["windows_exempt"]
    expect(tiles).to_contain_text(f"of {bound} that bound")
    expect(tiles).to_contain_text(f"{state['windows_exempt']} windows exempt: nothing bound")


def test_a_property_that_can_never_bind_is_neutral(eyes: Eyes, server: WebServer) -> None:
    page = eyes.open(server.address)
    expect(card(page, "never").locator(".light")).to_have_text("Never binds")
    expect(card(page, "never")).not_to_contain_text("Certain")
    expect(card(page, "never")).to_contain_text("none bound")
    page.goto(f"{server.address}/streams/never")
    expect(page.locator(".light, .mark")).to_have_text(["Never binds", "exempt"])
    expect(page.locator(".callout")).to_contain_text("This property can never bind")
    page.get_by_role("link", name="More").click()
    expect(page.locator(".title .light")).to_have_text("Never binds")
    expect(page.locator(".callout")).to_contain_text("Nothing is promised")


def test_alarms_of_the_monitor_are_told_with_time_and_place(eyes: Eyes, server: WebServer) -> None:
    alarms = server.get("/v1/streams/rare")["alarms"]
    assert {alarm["kind"] for alarm in alarms} == {"bias", "model"}
    page = eyes.open(f"{server.address}/streams/rare")
    shown = page.locator('[data-live="alarms"] .callout')
    expect(shown).to_have_count(2)
    for i, alarm in enumerate(alarms):
        expect(shown.nth(i)).to_contain_text(alarm["words"])
        expect(shown.nth(i)).to_contain_text(f"since decision {alarm['n']}")
    assert any("impact ratio" in alarm["words"] for alarm in alarms)
    page.goto(server.address)
    expect(card(page, "rare")).to_contain_text("unfair classifier")
    expect(card(page, "empty")).not_to_contain_text("Alarms")


def test_rates_of_the_whole_stream_stand_beside_those_of_the_window(
    eyes: Eyes, server: WebServer
) -> None:
    state = server.get("/v1/streams/rare/state")
    page = eyes.open(f"{server.address}/streams/rare")
    parts = page.locator("table.rates tbody")
    expect(parts).to_have_count(2)
    for part, scope in ((parts.nth(0), "in_progress"), (parts.nth(1), "whole_stream")):
        for row, group in enumerate(state[scope]["groups"], 1):
            expect(part.locator("tr").nth(row)).to_contain_text(f"{100 * group['rate']:.1f}")
    page.goto(f"{server.address}/streams/periods")
    expect(page.locator("table.rates tbody")).to_have_count(1)


def test_reasons_are_for_those_who_know_nothing_of_shields(eyes: Eyes, server: WebServer) -> None:
    page = eyes.open(f"{server.address}/streams/credit?rows=50")
    reasons = page.locator('td[data-label="Because"]').all_inner_texts()
    assert reasons
    assert all(reason.startswith("Overruled: ") for reason in reasons)
    assert not any("guaranteed" in reason or "counters" in reason for reason in reasons)
    assert any("could not have been balanced in the" in reason for reason in reasons)
    page.get_by_label("Reason contains").fill("could not have been balanced")
    shown = page.locator("table.decisions tbody tr")
    expect(shown).to_have_count(sum("could not have been balanced" in text for text in reasons))


def test_a_closed_stream_promises_nothing(eyes: Eyes, server: WebServer, plain: str) -> None:
    server.post("/v1/streams", {"name": "shut", "policy": plain})
    server.decide("shut", "alpha", proposed=True)
    server.post("/v1/streams/shut/close", {}, key="shut")
    page = eyes.open(server.address)
    expect(card(page, "shut").locator(".scale")).to_have_text("Closed.")
    expect(card(page, "shut")).not_to_contain_text("Certain")
    page.goto(f"{server.address}/streams/shut")
    expect(page.locator('[data-live="what-if"]')).to_have_text("No more decisions will be made.")
    expect(page.locator('[data-live="guarantee"]')).to_contain_text("Closed after 1 decisions")


def test_nothing_is_being_computed_of_a_violated_stream_that_is_over(
    eyes: Eyes, server: WebServer, plain: str
) -> None:
    settings = {"name": "lost", "policy": plain, "windows": 1, "human": True}
    server.post("/v1/streams", settings)
    for i in range(12):
        group = ("alpha", "beta")[i % 2]
        made = server.decide("lost", group, proposed=group == "beta")
        if made["accepted"] != (group == "beta"):
            path = f"/v1/streams/lost/decisions/{made['n']}/override"
            server.post(path, {"accepted": group == "beta", "note": ""}, key=f"lost{i}")
    page = eyes.open(f"{server.address}/streams/lost")
    expect(page.locator(".title .light")).to_have_text("Violated")
    expect(page.locator('[data-live="what-if"]')).to_have_text("No more decisions will be made.")
    expect(page.locator('[data-live="tiles"]')).not_to_contain_text("computed")
    wait_live(page)
    (end,) = server.get("/v1/streams/lost/windows")["windows"]
    assert float(page.locator("#plot").get_attribute("data-top")) > end["bias"] == 1.0


def test_on_a_phone_five_windows_are_shown_at_first(
    eyes: Eyes, server: WebServer, plain: str
) -> None:
    server.post("/v1/streams", {"name": "long", "policy": plain})
    people = [{"group": ("alpha", "beta")[i % 2], "proposed": True} for i in range(96)]
    server.post("/v1/streams/long/decisions:batch", {"decisions": people}, key="long")
    page = eyes.open(f"{server.address}/streams/long", viewport=PHONE)
    rows = page.locator("#window-ends tbody tr:visible")
    expect(rows).to_have_count(5)
    page.get_by_label("Show all").check()
    expect(rows).to_have_count(8)
    page.set_viewport_size(DESKTOP)
    expect(page.get_by_label("Show all")).to_be_hidden()


# Use ----------------------------------------------------------------------------------------


def test_everything_can_be_reached_by_keyboard(eyes: Eyes, server: WebServer) -> None:
    page = eyes.open(server.address)
    first = page.locator(".card h2").first.inner_text()
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(first)

    wait_live(page)  # until then what needs the script is hidden, and cannot be focused
    page.locator("#span input").first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#span input").nth(1)).to_be_checked()
    page.get_by_text("Latest points as a table").focus()
    page.keyboard.press("Enter")
    expect(page.locator("details table")).to_be_visible()


def test_focus_and_open_parts_stay_through_updates(eyes: Eyes, server: WebServer) -> None:
    page = eyes.open(f"{server.address}/streams/credit?show=all")
    wait_live(page)
    page.get_by_text("Latest points as a table").click()
    last = page.locator("table.decisions tbody tr").first.get_attribute("id")
    link = page.locator(f"table.decisions tr#{last} a")
    link.focus()
    made = server.decide("credit", "alpha", proposed=True)
    expect(page.locator(f"table.decisions tr#decision-{made['n']}")).to_be_visible()
    expect(link).to_be_focused()
    expect(page.locator("details table")).to_be_visible()


def within_a_window(server: WebServer) -> None:
    """Decide until the next decisions do not end a window: then the page is shorter."""
    while server.get("/v1/streams/credit/state")["remaining"] < 3:
        server.decide("credit", "alpha", proposed=True)


def test_selected_text_and_scrolling_stay_through_updates(eyes: Eyes, server: WebServer) -> None:
    within_a_window(server)
    page = eyes.open(f"{server.address}/streams/credit?show=all")
    wait_live(page)
    row = page.locator("table.decisions tbody tr").first
    page.evaluate("row => getSelection().selectAllChildren(row.cells[2])", row.element_handle())
    selected = page.evaluate("String(getSelection())")
    row.evaluate("row => { row.kept = true; row.scrollIntoView(); }")
    place, known = page.evaluate("scrollY"), f"#{row.get_attribute('id')}"
    made = server.decide("credit", "alpha", proposed=True)
    expect(page.locator(f"#decision-{made['n']}")).to_be_visible()
    assert selected == page.evaluate("String(getSelection())") != ""
    assert page.evaluate("name => document.querySelector(name).kept", known)
    # What is in view stays in view: the browser makes up for the row that came above it.
    assert page.evaluate("scrollY") >= place > 0


def test_ids_are_unique_after_a_person_has_decided(eyes: Eyes, server: WebServer) -> None:
    within_a_window(server)
    made = server.decide("credit", "beta", proposed=True)
    path = f"/v1/streams/credit/decisions/{made['n']}/override"
    server.post(path, {"accepted": not made["accepted"], "note": ""}, key=f"unique{made['n']}")
    page = eyes.open(f"{server.address}/streams/credit?show=all")
    wait_live(page)
    following = server.decide("credit", "beta", proposed=True)
    expect(page.locator(f"#decision-{following['n']}")).to_be_visible()
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((element) => element.id)")
    assert len(ids) == len(set(ids))


def test_what_screen_readers_announce_is_never_replaced(eyes: Eyes, server: WebServer) -> None:
    page = eyes.open(f"{server.address}/streams/credit")
    wait_live(page)
    parts = "[...document.querySelectorAll('[role=status], [data-live]')]"
    page.evaluate(f"for (const part of {parts}) part.kept = true")
    before = decided(page)
    server.decide("credit", "alpha", proposed=True)
    expect(page.get_by_text("decided so far")).to_contain_text(f"{before + 1}")
    assert page.evaluate(f"{parts}.every((part) => part.kept)")


def test_a_person_overrides_from_the_page(eyes: Eyes, server: WebServer) -> None:
    made = server.decide("credit", "beta", proposed=True)
    if not made["remaining"]:  # the last of a window is reported, and stays as it is
        made = server.decide("credit", "beta", proposed=True)
    page = eyes.open(f"{server.address}/streams/credit?show=all")
    wait_live(page)
    row = page.locator(f"table.decisions tr#decision-{made['n']}")
    row.get_by_role("button", name="Override").press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    assert axe.Axe().run(page).violations_count == 0
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()

    row.get_by_role("button", name="Override").click()
    dialog.get_by_label("Note for the log").fill("seen in person")
    dialog.get_by_role("button", name="Override").click()
    expect(dialog).to_be_hidden()
    final = "reject" if made["accepted"] else "accept"
    expect(row).to_contain_text(f"by a person: {final} (seen in person)")
    last = server.get(f"/v1/streams/credit/log?after={made['seq']}")["entries"][-1]["line"]
    assert (last["kind"], last["n"], last["note"]) == ("override", made["n"], "seen in person")
    page.get_by_role("link", name=f"Why decision {made['n']}", exact=True).click()
    expect(page.locator("main")).to_contain_text(f"A person decided to {final}")
    expect(page.locator(".title")).to_contain_text("changed by a person")


def test_what_if_answers_for_the_cost_that_is_given(eyes: Eyes, server: WebServer) -> None:
    page = eyes.open(f"{server.address}/streams/credit")
    wait_live(page)
    cases = page.locator("table.what-if tbody tr")
    expect(cases).to_have_count(4)
    expect(page.get_by_label("Cost of overruling")).to_have_value("1")
    page.get_by_label("Cost of overruling").fill("0.01")
    expect(page).to_have_url(re.compile("cost=0.01"))
    wanted = server.get("/v1/streams/credit/outlook?cost=0.01")
    for i, case in enumerate(wanted["what_if"]):
        words = ("accept" if case["accepted"] else "reject") + ", overruling" * case["overruled"]
        expect(cases.nth(i).locator(".verdict")).to_have_text(words)


def test_what_if_begins_at_a_cost_that_the_input_model_knows(eyes: Eyes, server: WebServer) -> None:
    page = eyes.open(f"{server.address}/streams/rare")
    expect(page.get_by_label("Cost of overruling")).to_have_value("0.25")


def test_decisions_are_filtered_and_more_are_loaded(eyes: Eyes, server: WebServer) -> None:
    page = eyes.open(f"{server.address}/streams/credit")
    wait_live(page)
    rows = page.locator("table.decisions tbody tr")
    page.locator('[name="show"]').select_option("all")
    expect(rows).to_have_count(12)
    page.get_by_role("link", name="Load more").click()
    expect(rows).to_have_count(24)

    page.locator('[name="group"]').select_option("beta")
    expect(rows.locator('td[data-label="Group"]').filter(has_text="alpha")).to_have_count(0)
    page.get_by_label("Cost at least").fill("0.75")
    expect(rows.locator('td[data-label="Cost"]').filter(has_text="0.25")).to_have_count(0)
    page.get_by_label("Reason contains").fill("no such reason")
    expect(page.get_by_text("No decision matches.")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Reason contains")).to_have_value("no such reason")
    expect(page.get_by_text("No decision matches.")).to_be_visible()


@pytest.mark.parametrize(("label", "start"), [("Export CSV", "seq,kind,at"), ("Export JSONL", "{")])
def test_the_log_is_exported(eyes: Eyes, server: WebServer, label: str, start: str) -> None:
    page = eyes.open(f"{server.address}/streams/periods")
    with page.expect_download() as download:
        page.get_by_role("link", name=label).click()
    text = Path(download.value.path()).read_text("utf-8")
    assert text.startswith(start)
    assert len(text.splitlines()) > 20


def test_an_outcome_that_is_awaited_is_named(eyes: Eyes, server: WebServer) -> None:
    made = server.decide("labelled", "alpha", proposed=True)
    page = eyes.open(f"{server.address}/streams/labelled")
    expect(page.locator('[data-live="tiles"]')).to_contain_text(f"decision {made['n']} awaits")
    wait_live(page)
    body = {"decision": made["n"], "outcome": True}
    server.post("/v1/streams/labelled/outcomes", body, key=f"o{made['n']}")
    expect(page.locator('[data-live="tiles"]')).not_to_contain_text("awaits")


# Without script -----------------------------------------------------------------------------


def test_pages_say_the_same_without_script(eyes: Eyes, server: WebServer) -> None:
    page = eyes.open(server.address, java_script_enabled=False)
    expect(page.locator(".card")).to_have_count(len(server.get("/v1/streams")["streams"]))
    page.get_by_role("link", name="credit").click()
    state = server.get("/v1/streams/credit/state")
    assert decided(page) == state["decisions"]
    expect(page.locator("#plot")).to_be_hidden()
    expect(page.locator("table.rates tbody tr")).to_have_count(6)
    expect(page.locator("#window-ends tbody tr")).to_have_count(state["windows_completed"])
    page.locator('[name="show"]').select_option("all")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("table.decisions tbody tr")).to_have_count(12)
    page.get_by_role("link", name="Load more").click()
    expect(page.locator("table.decisions tbody tr")).to_have_count(24)
    page.get_by_text("Latest points as a table").click()
    expect(page.locator("details tbody tr").first).to_be_visible()


# Keys ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keyed(
    policies: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[WebServer, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("keyed")
    database = open_database(str(folder / "s.db"))
    connection = database.connect()
    connection.migrate(database.migrations())
    tokens = {}
    for name, scope, stream in (
        ("admin", "admin", None), ("reader", "read", None), ("one", "read", "credit")
    ):  # fmt: skip
        tokens[name], row = new_key(name, [scope], stream, "2026-01-01T00:00:00Z")
        connection.begin()
        connection.put_key(row)
        connection.commit()
    connection.close()
    database.close()
    with serving(folder, "--db", str(folder / "s.db"), token=tokens["admin"]) as running:
        populate(running, policies, ("credit", "periods"))
        yield running, tokens


def test_whoever_has_a_key_signs_in(browser: Any, keyed: tuple[WebServer, dict[str, str]]) -> None:
    server, tokens = keyed
    eyes = Eyes(browser)  # a refused key is an answer 401, which the browser tells on the console
    page = eyes.open(f"{server.address}/streams/credit")
    expect(page).to_have_url(re.compile("/login"))
    assert axe.Axe().run(page).violations_count == 0
    page.get_by_label("Access key").fill("fsk_wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("unknown, or has been revoked")
    page.get_by_label("Access key").fill(tokens["reader"])
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(f"{server.address}/streams/credit")
    wait_live(page)
    expect(page.get_by_role("button", name="Override")).to_have_count(0)
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
    page.set_viewport_size(PHONE)
    assert page.get_by_role("button", name="Sign out").bounding_box()["height"] < 30
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(f"{server.address}/login")
    assert page.context.cookies() == []
    eyes.close()
    assert [c for c in eyes.complaints if "401" not in c] == []


def test_a_key_for_one_stream_shows_that_stream(
    eyes: Eyes, keyed: tuple[WebServer, dict[str, str]]
) -> None:
    server, tokens = keyed
    page = eyes.open(f"{server.address}/login")
    page.get_by_label("Access key").fill(tokens["one"])
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{server.address}/streams/credit")
    with server.client() as client:
        cookie = {"cookie": f"fairshield_key={tokens['one']}", "authorization": ""}
        assert client.get("/streams/periods", headers=cookie).status_code == 403


def test_signing_in_leads_to_this_service_only(keyed: tuple[WebServer, dict[str, str]]) -> None:
    server, tokens = keyed
    with server.client() as client:
        for elsewhere in (
            "//evil.example/",
            "https://evil.example/",
            "/\\evil.example",
            "\r\nx: y",
        ):
            form = {"key": tokens["reader"], "next": elsewhere}
            answer = client.post("/login", data=form, headers={"authorization": ""})
            assert (answer.status_code, answer.headers["location"]) == (303, "/")
        foreign = {"origin": "https://evil.example", "authorization": ""}
        answer = client.post("/login", data={"key": tokens["reader"]}, headers=foreign)
        assert answer.status_code == 403
