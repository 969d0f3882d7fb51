"""The gallery as somebody with a browser uses it; `open_page` fails on console errors and foreign requests."""

from __future__ import annotations

import functools
import http.server
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from playwright.sync_api import Page, expect

from tests.browser import OpenPage
from tests.report.gallery_data import HOSTILE, PLAIN, Looked
from vgbench_gen.core.types import Item


def address(site: Path, state: str = "", page: str = "index.html") -> str:
    return (site / "gallery" / page).as_uri() + (f"#{state}" if state else "")


def item_state(item: Item) -> str:
    return f"item={quote(item.id, safe='')}"


def shown_ids(page: Page) -> list[str]:
    links = [str(card.get_attribute("href")) for card in page.locator("#cards .card").all()]
    return [link.rpartition("item=")[2] for link in links]


def count(page: Page, n: int, total: int) -> None:
    expect(page.locator("#count")).to_have_text(f"{n} of {total} items")


def test_filters_search_and_paging(site: Path, looked: Looked, open_page: OpenPage) -> None:
    page = open_page(address(site)).page
    total = len(looked.items)
    count(page, total, total)
    expect(page.locator("#cards .card")).to_have_count(24)
    assert page.locator("#cards .card img").first.get_attribute("loading") == "lazy"

    page.select_option("#f-task", "plain_task")
    count(page, PLAIN, total)
    scene = sum(i.task == "plain_task" and i.scene_id == "scene1" for i in looked.items)
    page.select_option("#f-scene", "scannet/scene1")
    count(page, scene, total)
    # Choices say how many items have them.
    assert f"plain task ({PLAIN})" in page.inner_text("#f-task")
    assert page.locator("#f-task option").count() == 1 + len({item.task for item in looked.items})
    assert page.url.endswith("#task=plain_task&scene=scannet%2Fscene1")
    page.reload()
    count(page, scene, total)
    page.get_by_role("button", name="Next page").click()
    expect(page.locator("#pager")).to_contain_text("page 2 of")
    plain = [i.id for i in looked.items if i.task == "plain_task" and i.scene_id == "scene1"]
    assert shown_ids(page) == plain[24:48]
    page.go_back()
    expect(page.locator("#pager")).to_contain_text("page 1 of")
    page.click("#clear")
    count(page, total, total)

    wanted = looked.items[-5]  # of three digits: no other row ends in them
    page.fill("#q", f"REGION {wanted.index}?")
    count(page, 1, total)
    assert shown_ids(page) == [wanted.id]
    page.fill("#q", wanted.id.upper())
    count(page, 1, total)
    page.fill("#q", "no such words")
    count(page, 0, total)


def test_an_item(site: Path, looked: Looked, open_page: OpenPage) -> None:
    item = looked.first("metric_depth", "multi-choice")
    page = open_page(address(site, item_state(item))).page
    expect(page.locator("#item-title")).to_have_text("metric depth · multiple choice")
    assert page.inner_text(".question") == item.question
    assert page.inner_text(".context") == item.context
    assert [o.inner_text() for o in page.locator(".options .body").all()] == list(item.options)
    image = page.locator(".picture img")
    scene = f"{item.source}/{item.scene_id}"
    expect(image).to_have_attribute("alt", f"Image 1 of 1 of item {item.id}: metric depth, scene {scene}")
    assert image.evaluate("i => i.naturalWidth") > 0

    answer = page.locator("#answer")
    expect(answer).to_be_hidden()
    assert page.locator(".is-right").count() == 0
    page.click("#answer-button")
    expect(answer).to_contain_text(f"Answer: {item.answer}")
    assert page.locator(".is-right").get_attribute("data-letter") == item.answer
    page.keyboard.press("a")
    expect(answer).to_be_hidden()

    overlay = page.locator(".picture svg")
    expect(overlay).to_be_hidden()
    page.click("#overlay-button")
    expect(overlay).to_be_visible()
    # The other options are depths of other images: nothing to outline here.
    drawn = [list(map(float, p.split(","))) for p in str(
        overlay.locator("polyline.right").get_attribute("points")).split()]  # fmt: skip
    x1, y1, x2, y2 = item.evidence["truth"]["show"]["rect"]
    assert drawn == [[x1, y1], [x2, y1], [x2, y2], [x1, y2], [x1, y1]]
    assert overlay.locator("polyline.decoy").count() == 0
    width, height = image.evaluate("i => [i.naturalWidth, i.naturalHeight]")
    assert overlay.get_attribute("viewBox") == f"-0.5 -0.5 {width} {height}"
    page.keyboard.press("o")
    expect(overlay).to_be_hidden()

    page.get_by_text("Numbers behind the answer").click()
    expect(page.locator("#numbers")).to_contain_text(f"{item.answer_value[0]:g} m")
    expect(page.locator("#numbers")).to_contain_text("set_first")
    page.get_by_text("All evidence").click()
    expect(page.locator("pre.raw")).to_contain_text('"second_value"')
    page.get_by_text("Where it comes from").click()
    expect(page.locator(".rest")).to_contain_text(item.template_id)

    page.click(".picture button")
    expect(page.locator("#zoom")).to_be_visible()
    page.click("[data-zoom='2']")
    assert page.locator("#zoom img").evaluate("i => i.clientWidth") == 2 * width
    page.keyboard.press("Escape")
    expect(page.locator("#zoom")).to_be_hidden()
    expect(page.locator("#item-title")).to_be_visible()


def test_the_overlay_outlines_decoys_unlike_the_truth(site: Path, looked: Looked, open_page: OpenPage) -> None:
    item = looked.first("relative_depth", "multi-choice")
    page = open_page(address(site, item_state(item))).page
    page.click("#overlay-button")
    overlay = page.locator(".picture svg")
    expect(overlay).to_be_visible()
    drawn = {
        kind: sorted(str(line.get_attribute("points")).split()[0] for line in overlay.locator(f"polyline.{kind}").all())
        for kind in ("right", "decoy")
    }
    corners = {option["key"]: ",".join(map(str, option["show"]["rect"][:2])) for option in item.evidence["options"]}
    assert drawn["right"] == [corners.pop(item.evidence["truth"]["key"])]
    assert drawn["decoy"] == sorted(corners.values())


def test_links_between_items(site: Path, looked: Looked, open_page: OpenPage) -> None:
    item = looked.first("metric_depth", "judgment")
    twin = next(i for i in looked.items if i.twin_id == item.twin_id and i.id != item.id)
    page = open_page(address(site, item_state(item))).page
    page.click("[data-link='twin']")
    expect(page.locator(".sub .mono")).to_have_text(twin.id)
    page.get_by_text("List all 2").first.click()
    count(page, 2, len(looked.items))
    assert sorted(shown_ids(page)) == sorted([item.id, twin.id])
    page.get_by_role("button", name="Clear all").click()
    count(page, len(looked.items), len(looked.items))
    page.go_back()
    page.locator("#cards .card").first.click()
    page.click("[data-link='scene']")
    expect(page.locator("h1")).to_have_text(f"Scene {item.source}/{item.scene_id}")
    assert page.locator(".frames img").first.evaluate("i => i.naturalWidth") > 0
    poses = {f for i in looked.items[: looked.real] for f in i.evidence["fact"].get("world_from_camera", {})}
    assert page.locator(".plan .camera").count() >= len(poses) > 1
    page.get_by_role("link", name="All items of this scene").click()
    count(page, sum(i.scene_id == item.scene_id for i in looked.items), len(looked.items))


def test_from_the_audit_to_questions_and_back(site: Path, looked: Looked, open_page: OpenPage) -> None:
    ids = [i.id for i in looked.items]
    page = open_page(address(site, f"ids={ids[4]},{ids[9]},gone")).page
    count(page, 2, len(ids))
    assert shown_ids(page) == [ids[4], ids[9]]
    page.goto(address(site, "verdict=flagged"))
    count(page, 3, len(ids))
    page.select_option("#f-verdict", "person: invalid")
    assert shown_ids(page) == [ids[0]]
    page.locator("#cards .card").click()
    said = page.locator("#said")
    failed = "accuracy of the best fixed rule (medoid/odd name) 41.2 %, chance 25, at most 28"
    expect(said.get_by_role("listitem").first).to_have_text(f"failed {failed}")
    expect(said).to_contain_text(f"invalid by ann (occluded): {HOSTILE[:60]}")
    said.get_by_role("link").first.click()
    count(page, 3, len(ids))
    page.goto(address(site, "item=nothing%20here"))
    expect(page.locator("h1#item-title")).to_have_text("No such item")


def test_keyboard(site: Path, looked: Looked, open_page: OpenPage) -> None:
    page = open_page(address(site, "task=plain_task")).page
    plain = [i.id for i in looked.items if i.task == "plain_task"]
    title = page.locator(".sub .mono")
    expect(page.locator("#cards .card")).to_have_count(24)
    page.locator("#cards .card").nth(1).focus()
    page.keyboard.press("Enter")
    expect(title).to_have_text(plain[1])
    assert page.evaluate("document.activeElement.id") == "item-title"
    page.keyboard.press("ArrowRight")
    expect(title).to_have_text(plain[2])
    page.keyboard.press("ArrowLeft")
    expect(title).to_have_text(plain[1])
    page.keyboard.press("Escape")
    expect(page.locator("#list")).to_be_visible()
    expect(page.locator("#cards .card").nth(1)).to_be_focused()
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type("oja")  # letters in the field are letters
    expect(page.locator("#q")).to_have_value("oja")
    page.keyboard.press("Escape")
    expect(page.locator("#q")).not_to_be_focused()
    # The next item may stand on the next page of the list.
    page.goto(address(site, f"task=plain_task&item={plain[23]}"))
    expect(title).to_have_text(plain[23])
    page.keyboard.press("ArrowRight")
    expect(title).to_have_text(plain[24])
    page.keyboard.press("Escape")
    expect(page.locator("#pager")).to_contain_text("page 2 of")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone(site: Path, looked: Looked, open_page: OpenPage, scheme: str) -> None:
    watched = open_page(address(site), 390, 844, color_scheme=scheme, is_mobile=True, has_touch=True)
    page = watched.page
    expect(page.locator("#cards .card")).to_have_count(24)
    lefts = {c.evaluate("c => c.getBoundingClientRect().left") for c in page.locator("#cards .card").all()}
    assert len(lefts) == 1  # one column
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 22, 26)"
    assert dark == (scheme == "dark")
    assert watched.overflow_px() == 0
    several = looked.first("homography_to_image", "multi-choice")
    for item in (several, looked.items[-1]):
        page.goto(address(site, item_state(item)))
        expect(page.locator(".sub .mono")).to_contain_text(item.id.split()[0])
        expect(page.locator("#item .keyboard")).to_be_hidden()
        page.keyboard.press("a")
        page.keyboard.press("o")
        for summary in page.locator("#item summary").all():
            summary.click()
        assert watched.overflow_px() == 0
    for name in ("scenes.html", "plots.html", "scene/0000.html"):
        page.goto(address(site, page=name))
        assert watched.overflow_px() == 0


@pytest.mark.parametrize("task", ["metric_depth", "point_tracking", "homography_to_matrix", "homography_to_image"])
def test_on_a_desktop_images_question_and_options_fit_the_first_screen(
    site: Path, looked: Looked, open_page: OpenPage, task: str
) -> None:
    page = open_page(address(site, item_state(looked.first(task, "multi-choice"))), 1440, 900).page
    expect(page.locator("#item-title")).to_contain_text(task.replace("_", " "))
    expect(page.locator(".context")).to_be_visible()
    for shown in [page.locator(".options"), *page.locator(".picture").all()]:
        assert shown.evaluate("e => e.getBoundingClientRect().bottom") <= 900


def test_a_finger_moves_the_page_until_a_tap_takes_hold_of_the_view(
    site: Path, looked: Looked, open_page: OpenPage
) -> None:
    place = address(site, item_state(looked.first("point_tracking", "multi-choice")))
    page = open_page(place, 390, 844, is_mobile=True, has_touch=True).page
    canvas = page.locator("canvas.space")
    canvas.scroll_into_view_if_needed()
    expect(canvas).to_have_attribute("aria-label", re.compile("in space"))
    touch_action = "c => getComputedStyle(c).touchAction"
    assert canvas.evaluate(touch_action) == "auto"
    canvas.tap()
    assert canvas.evaluate(touch_action) == "none"
    page.locator(".in-space h2").tap()
    assert canvas.evaluate(touch_action) == "auto"


def test_hostile_texts_stay_texts(site: Path, looked: Looked, open_page: OpenPage) -> None:
    item = looked.items[-1]
    watched = open_page(address(site, item_state(item)))
    page = watched.page
    literal = HOSTILE.replace("\u2028", "")

    def seen(selector: str) -> str:
        return str(page.locator(selector).first.evaluate("e => e.textContent")).replace("\u2028", "")

    expect(page.locator("#item")).to_be_visible()
    assert seen(".question") == literal
    assert seen(".options .body") == literal
    assert literal in seen(".sub")
    for summary in page.locator("#item .more summary").all():
        summary.click()
    expect(page.locator("pre.raw")).to_contain_text("__proto__")
    assert page.evaluate("({}).polluted") is None
    page.keyboard.press("Escape")
    page.fill("#q", "</script><script>")
    count(page, 1, len(looked.items))
    choices = page.locator("#f-scene option").all_text_contents()
    assert any(literal in choice.replace("\u2028", "") for choice in choices)
    page.goto(address(site, f"scene={quote(f'{item.source}/{item.scene_id}', safe='')}"))
    count(page, 1, len(looked.items))
    for name in ("scenes.html", "plots.html", *(f"scene/{k:04d}.html" for k in range(5))):
        page.goto(address(site, page=name))
        assert page.title() != "owned"
        assert page.locator("img[src='x']").count() == 0
        if name != "scenes.html":
            continue
        page.get_by_text("owned").click()
        assert literal in seen("h1")
        page.get_by_role("link", name="All items of this scene").click()
        count(page, 1, len(looked.items))


def test_the_policy_stops_what_escaping_might_miss(site: Path, open_page: OpenPage) -> None:
    watched = open_page(address(site))
    refused: list[str] = []
    watched.page.on("requestfailed", lambda request: refused.append(f"{request.url} {request.failure}"))
    watched.page.evaluate(
        """() => {
            document.querySelector("main").insertAdjacentHTML("beforeend",
                "<img src='missing.png' onerror='document.title = 1'><img src='http://127.0.0.1:9/x.png'>");
            const script = document.createElement("script");
            script.textContent = "document.title = 2";
            document.body.append(script);
        }"""
    )
    for _ in range(100):  # until the browser has refused everything, then a little more for what it must not do
        if len([e for e in watched.errors if "Content Security Policy" in e]) >= 3 and refused:
            break
        watched.page.wait_for_timeout(100)
    watched.page.wait_for_timeout(200)
    assert watched.page.title() == "Items · set"
    assert "http://127.0.0.1:9/x.png csp" in refused
    assert len([e for e in watched.errors if "Content Security Policy" in e]) >= 3
    watched.errors.clear()


def test_everything_has_a_name(site: Path, looked: Looked, open_page: OpenPage) -> None:
    page = open_page(address(site)).page
    several = looked.first("point_tracking", "multi-choice")
    for url in (
        address(site),
        address(site, item_state(several)),
        *(address(site, page=name) for name in ("plots.html", "scenes.html", "scene/0000.html")),
    ):
        page.goto(url)
        expect(page.locator("h1:visible")).to_have_count(1)
        assert page.evaluate("document.documentElement.lang") == "en"
        nameless = page.evaluate(
            """() => [...document.querySelectorAll("button, select, input, a, summary, svg[role], nav, dialog")].filter(
                (e) => !(e.textContent.trim() || e.getAttribute("aria-label") || e.getAttribute("aria-labelledby")
                    || (e.labels && e.labels.length))).map((e) => e.outerHTML)"""
        )
        assert nameless == []
        bare = "[...document.images].filter((i) => !i.hasAttribute('alt')).length"
        assert page.evaluate(bare) == 0
        described = (
            "[...document.querySelectorAll('.picture img, .frames img')].filter((i) => i.alt.length < 12).length"
        )
        assert page.evaluate(described) == 0
        assert page.evaluate("document.querySelectorAll('[onclick], div[role=button]').length") == 0
        page.keyboard.press("Tab")
        outline = (
            "(() => { const s = getComputedStyle(document.activeElement); return s.outlineStyle + s.outlineWidth })()"
        )
        assert page.evaluate(outline) == "solid3px"


@pytest.fixture
def server(site: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None: ...

    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{running.server_address[1]}"
    running.shutdown()
    thread.join()
    running.server_close()


def test_from_a_web_server(server: str, open_page: OpenPage) -> None:
    page = open_page(f"{server}/gallery/index.html").page
    expect(page.get_by_role("link", name="Audit", exact=True)).to_have_attribute("href", "../audit/index.html")
    page.locator("#cards .card").first.click()
    expect(page.locator("#answer-button")).to_be_visible()
    assert page.locator(".picture img").first.evaluate("i => i.decode().then(() => i.naturalWidth)") > 0


def test_one_of_each_task_then_all_in_order_and_no_image_is_cut(
    site: Path, looked: Looked, open_page: OpenPage
) -> None:
    page = open_page(address(site)).page
    expect(page.locator("#openers .card")).to_have_count(len({item.task for item in looked.items}))
    assert [unquote(name) for name in shown_ids(page)] == [item.id for item in looked.items[:24]]
    shapes = [
        box["height"] / box["width"] for one in page.locator("#cards .thumb").all() if (box := one.bounding_box())
    ]
    assert max(shapes) - min(shapes) < 0.02
    # Every image is whole: nothing of it is cut by its frame.
    assert {one.evaluate("i => getComputedStyle(i).objectFit") for one in page.locator(".thumb img").all()} == {
        "contain"
    }
    page.get_by_role("button", name="Next page").click()
    expect(page.locator("#openers")).not_to_be_visible()


def test_on_a_phone_the_image_comes_before_conventions_and_space_before_details(
    site: Path, looked: Looked, open_page: OpenPage
) -> None:
    item = looked.first("point_tracking", "multi-choice")
    page = open_page(address(site, item_state(item)), 390, 844).page
    expect(page.locator(".context")).not_to_be_visible()
    tops = [
        page.locator(selector).first.evaluate("e => e.getBoundingClientRect().top")
        for selector in (".picture", ".options", ".in-space", "#item .more")
    ]
    assert tops == sorted(tops)
    assert tops[0] < 844 / 2
    page.get_by_text("Context of the question").click()
    assert page.inner_text(".context") == item.context
    wide = open_page(address(site, item_state(item)), 1280, 900).page
    expect(wide.locator(".context")).to_be_visible()
    tops = [
        wide.locator(selector).first.evaluate("e => e.getBoundingClientRect().top")
        for selector in (".question", "text=Context of the question", ".context", ".options")
    ]
    assert tops == sorted(tops)  # as a model reads them
    page.goto(address(site, item_state(looked.first("homography_to_matrix", "multi-choice"))))
    expect(page.locator("#item-title")).to_contain_text("matrix")
    page.get_by_text("Numbers behind the answer").click()
    heads = page.locator("#numbers thead th")
    assert heads.count() > 1
    for head in heads.all():  # no word of it is broken
        words = head.inner_text().split()
        assert head.evaluate("e => { const r = document.createRange(); r.selectNodeContents(e); "
            "return r.getClientRects().length }") <= len(words)  # fmt: skip


def test_filters_are_folded_on_a_phone(site: Path, open_page: OpenPage) -> None:
    page = open_page(address(site), 390, 844).page
    expect(page.locator("#f-task")).not_to_be_visible()
    page.locator("#fold > summary").click()
    expect(page.locator("#f-task")).to_be_visible()


def test_matrices_are_set_and_reasons_come_with_the_answer(site: Path, looked: Looked, open_page: OpenPage) -> None:
    item = next(item for item in looked.items if item.options and item.options[0].startswith("[["))
    page = open_page(address(site, item_state(item))).page
    for k in range(4):
        rows = page.locator(".options li").nth(k).locator(".matrix")
        assert [row.inner_text() for row in rows.all()] == item.options[k].split("\n")
        assert rows.count() == 3
        assert rows.first.evaluate("e => getComputedStyle(e).whiteSpace") == "pre"
    expect(page.locator("#why")).not_to_be_visible()
    page.keyboard.press("a")
    expect(page.locator("#why")).to_contain_text("The nearest wrong option")
