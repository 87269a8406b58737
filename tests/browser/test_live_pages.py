"""Pages that follow what happens: what they show, that a swap disturbs nobody, and that a pause is one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.scene import play, pulse_all
from tests.browser.served import Served, Visit, check_page, serve

PATHS = (
    "/",
    "/executions?status=failed",
    "/upcoming?cron=0+1+*+*+*",
    "/workers",
    "/workers/host-a-1",
    "/queues",
    "/queues/archive",
    "/limits",
    "/limits/reports",
    "/operations",
    "/partitions",
    "/audit",
)


@pytest.fixture(scope="module")
def busy() -> Iterator[Served]:
    """An installation in which much goes on."""
    with serve(environment="staging") as started:
        play(started)
        yield started


@pytest.fixture
def at_work(browser: Browser, busy: Served) -> Iterator[Visit]:
    """An operator's browser there."""
    made = Visit(browser, busy)
    yield made.log_in()
    made.context.close()


def text_of(page: Page) -> str:
    return page.locator("main").inner_text()


@pytest.mark.timeout(120)
def test_every_page_shows_what_is_there_to_everybody(at_work: Visit) -> None:
    page = at_work.page
    shown = {}
    for path in PATHS:
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == 200, path
        expect(page.locator("#live-state")).to_have_text("Live")
        shown[path] = text_of(page)
        check_page(at_work)
    assert "24 dead letters to look at" in shown["/"]
    assert "SmtpError" in shown["/executions?status=failed"]
    assert "busy minute: try 01:0" in shown["/upcoming?cron=0+1+*+*+*"]
    assert "cache.warm" in shown["/queues"]
    assert "paused" in shown["/queues/archive"]
    assert "the relay is back" in shown["/operations"]
    assert "owner-2" in shown["/partitions"]
    assert "the database is slow" in shown["/audit"]


def test_counts_are_links_to_what_they_count(at_work: Visit) -> None:
    page = at_work.page
    page.goto("/")
    for status, path in (
        ("completed", "**/jobs?status=completed"),
        ("running", "**/executions?status=running"),
    ):
        card = page.locator("a.card", has_text=status)
        count = int(card.locator(".figure").inner_text())
        assert count
        card.click()
        page.wait_for_url(path)
        assert page.locator("#filter").input_value() == f"status:{status}"
        assert page.locator("tbody tr").count() == min(count, 50)
        page.go_back()
    page.get_by_role("link", name="No live worker knows cache.warm.").click()
    page.wait_for_url("**/queues")
    page.goto("/executions?status=senseless")
    expect(page.get_by_role("alert")).to_contain_text("must be one of")


def test_a_bar_leads_to_its_jobs(at_work: Visit, busy: Served) -> None:
    page = at_work.page
    page.goto("/upcoming")
    bar = page.locator("svg.drawn a").last
    label, where = bar.get_attribute("aria-label"), bar.get_attribute("href")
    assert label is not None
    assert where is not None
    count = int(label.split()[1])
    bar.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs?due_from=*")
    assert page.locator("tbody tr").count() == min(count, 50)
    assert page.locator("#filter").input_value().startswith("due_from:")
    check_page(at_work)
    page.goto("/upcoming")
    page.locator("svg.drawn a").last.click()
    page.wait_for_url(f"**{where}")
    page.goto("/upcoming")
    page.locator("details.behind summary").click()
    row = page.locator("details.behind tbody a").last
    assert row.get_attribute("href") == where
    hour = page.locator(".heat td a").first
    listed = int((hour.get_attribute("aria-label") or "").split()[-2])
    hour.click()
    page.wait_for_url("**/jobs?due_from=*")
    assert page.locator("tbody tr").count() == min(listed, 50)
    page.get_by_role("link", name="Due last").click()
    page.wait_for_url("**order=-due*")
    expect(page.get_by_role("link", name="Due first")).to_be_visible()


def test_a_change_is_shown_and_disturbs_nobody(at_work: Visit, busy: Served) -> None:
    page = at_work.page
    page.goto("/upcoming")
    table = page.locator("details.behind summary")
    table.click()
    busy.api("POST", "/v1/jobs", json={"id": "soon", "task": "report.build", "delay": "PT2M"})
    expect(page.locator("details.behind tbody")).to_contain_text("00:02:00")
    assert page.locator("details.behind").get_attribute("open") is not None
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    bar = page.locator("svg.drawn a").last
    name = bar.get_attribute("id")
    assert name is not None
    bar.focus()
    page.evaluate("document.activeElement.wasThere = true")
    busy.api("POST", "/v1/jobs", json={"id": "sooner", "task": "report.build", "delay": "PT4M"})
    page.wait_for_function("name => !document.getElementById(name).wasThere", arg=name)
    assert page.evaluate("document.activeElement.id") == name
    page.goto("/queues")
    page.locator("#live a").first.focus()
    busy.api("POST", "/v1/queues", json={"name": "zebra"})
    expect(page.locator("#live")).to_contain_text("zebra")
    assert page.evaluate("document.activeElement.textContent") == "archive"
    assert not at_work.complaints


def test_a_paused_page_asks_for_nothing_not_even_on_focus(
    at_work: Visit, busy: Served, browser: Browser
) -> None:
    page = at_work.page
    page.goto("/queues")
    expect(page.locator("#live-state")).to_have_text("Live")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#live-state")).to_have_text("Paused")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    other = Visit(browser, busy).log_in()
    other.page.goto("/queues")
    expect(other.page.locator("#live-state")).to_have_text("Live")
    for name in ("yak", "xerus"):
        busy.api("POST", "/v1/queues", json={"name": name})
        page.evaluate(
            "for (const e of ['focus', 'pageshow', 'online']) window.dispatchEvent(new Event(e));"
            "document.dispatchEvent(new Event('visibilitychange'))"
        )
        expect(other.page.locator("#live")).to_contain_text(name)
    other.context.close()
    assert not asked
    assert "yak" not in text_of(page)
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#live")).to_contain_text("xerus")
    assert any("/stream" in url for url in asked)


def test_actions_are_done_with_a_reason_or_refused_where_they_were_asked(
    at_work: Visit, busy: Served
) -> None:
    page = at_work.page
    page.goto("/queues/reports")
    page.locator("summary", has_text="Pause").click()
    panel = page.locator("details.action[open]")
    panel.get_by_label("Reason").fill("<b>\u00fcbung</b>")
    panel.get_by_role("button").click()
    expect(page.locator(".word")).to_contain_text("Paused")
    expect(page.locator("#live")).to_contain_text("paused")
    page.goto("/limits/mail.example")
    page.locator("summary", has_text="Pause").click()
    panel.get_by_label("For how long").fill("soon")
    panel.get_by_label("Reason").fill("429")
    panel.get_by_role("button").click()
    expect(page.get_by_role("alert")).to_contain_text("give a duration such as 30s")
    assert panel.get_by_label("Reason").input_value() == "429"
    check_page(at_work)
    panel.get_by_label("For how long").fill("10m")
    panel.get_by_role("button").click()
    expect(page.locator("#live")).to_contain_text("2026-01-01 00:10:12")
    busy.do(pulse_all)
    page.goto("/workers/host-a-1")
    page.locator("summary", has_text="Drain and stop").click()
    panel.get_by_label("It will not come back by itself").check()
    panel.get_by_role("button").click()
    expect(page.locator(".word")).to_contain_text("Asked to leave")
    page.goto("/operations")
    page.get_by_role("link", name="redrive").click()
    page.locator("summary", has_text="Cancel").click()
    panel.get_by_label("What is done stays done").check()
    panel.get_by_role("button").click()
    expect(page.locator("#live")).to_contain_text("stopping")
    assert not at_work.complaints
