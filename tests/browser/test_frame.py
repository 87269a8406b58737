"""What all pages have in common: the way in, keys, colours, faults; nothing that axe finds."""

from __future__ import annotations

from tests.browser.served import Visit, check_page


def test_the_way_in_and_out(visit: Visit) -> None:
    page = visit.page
    page.goto("/login")
    check_page(visit)
    page.get_by_label("API key").fill("nobody's key")
    page.get_by_role("button", name="Log in").click()
    assert "No such key" in page.get_by_role("alert").inner_text()
    check_page(visit)
    visit.log_in("key-viewer")
    assert "acme viewer" in page.locator(".who").inner_text()
    assert page.locator(".environment").inner_text() == "staging"
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url("**/login")


def test_keys_help_and_theme(visit: Visit) -> None:
    page = visit.log_in().page
    page.keyboard.press("?")
    help_box = page.get_by_role("dialog", name="Help")
    assert help_box.is_visible()
    page.keyboard.press("Escape")
    assert not help_box.is_visible()
    theme = page.get_by_role("button", name="Theme")
    shown = []
    for _ in range(3):
        theme.click()
        shown.append(
            page.evaluate(
                "[document.documentElement.dataset.theme || '', getComputedStyle(document.body).backgroundColor].join()"
            )
        )
        page.reload()
        assert shown[-1] == page.evaluate(
            "[document.documentElement.dataset.theme || '', getComputedStyle(document.body).backgroundColor].join()"
        )
    assert [item.split(",")[0] for item in shown] == ["light", "dark", ""]
    assert len(set(shown)) == 3
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"


def test_faults_are_pages(visit: Visit) -> None:
    page = visit.log_in().page
    answer = page.goto("/nowhere")
    assert answer is not None
    assert answer.status == 404
    assert page.get_by_role("heading", level=1).inner_text() == "Not found"
    check_page(visit)
    page.get_by_role("link", name="not-found").click()
    check_page(visit)


def test_while_the_view_reads_the_log_the_page_tries_again(visit: Visit) -> None:
    page = visit.log_in().page
    visit.served.world.ready.reason = "partition 3 is at 17 of 90"
    try:
        answer = page.goto("/jobs")
        assert answer is not None
        assert answer.status == 503
        assert "partition 3 is at 17 of 90" in page.locator("main").inner_text()
    finally:
        visit.served.world.ready.reason = ""
    page.get_by_role("heading", name="Jobs", level=1).wait_for()
