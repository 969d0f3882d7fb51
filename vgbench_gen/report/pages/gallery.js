"use strict";
// The list and the view of one item. All state stands in the address after "#"; texts from the data are only ever set
// as textContent or attributes of elements made here, never as markup.
(() => {
  const PER_PAGE = 24;
  const SVG = "http://www.w3.org/2000/svg";
  const CHOICES = ["task", "type", "source", "scene", "difficulty", "verdict"];
  const KEYS = [...CHOICES, "ids", "q", "page", "item"];
  const NAMES = new Map([["multi-choice", "multiple choice"], ["flagged", "behind a check that failed"]]);
  const LINKED = { twin: "Twin", pair: "Pair partner", group: "Same truth" };
  const $ = (id) => document.getElementById(id);

  // --- data files ----------------------------------------------------------------------------------------------------

  const loaded = new Map();
  const waiting = new Map();
  function accept([name, text]) {
    loaded.set(name, JSON.parse(text));
    for (const done of waiting.get(name) || []) done(loaded.get(name));
    waiting.delete(name);
  }
  for (const entry of self.VGBENCH_GALLERY || []) accept(entry);
  self.VGBENCH_GALLERY = { push: accept };

  function load(name) {
    if (loaded.has(name)) return Promise.resolve(loaded.get(name));
    return new Promise((resolve, reject) => {
      if (waiting.has(name)) { waiting.get(name).push(resolve); return; }
      waiting.set(name, [resolve]);
      const script = document.createElement("script");
      script.src = `data/${name}.js`;
      script.onerror = () => { waiting.delete(name); reject(new Error(`data/${name}.js is missing`)); };
      document.head.append(script);
    });
  }

  function fail(text) {
    $("failure").textContent = text;
    $("failure").hidden = false;
  }

  const index = loaded.get("index");
  if (!index) { fail("data/index.js is missing: make the gallery again with `vgbench browse`."); return; }
  const verdicts = loaded.get("verdicts") || { audit: [], reviews: [] };
  const { id: ids, text: texts, image: firstImages, images: imageCounts } = index.columns;
  const total = ids.length;
  const rowOf = new Map(ids.map((id, row) => [id, row]));
  const pageOfScene = new Map(index.pages);
  const field = (key, row) => index.coded[key].names[index.coded[key].codes[row]];
  const address = (text) => (text.startsWith("@") ? index.media + text.slice(1) : text);

  // Rows -> checks of the audit that failed, and people's verdicts.
  const failedOf = new Map();
  for (const line of verdicts.audit) for (const row of line.items) failedOf.set(row, [...(failedOf.get(row) || []), line]);
  const reviewsOf = new Map();
  for (const review of verdicts.reviews) reviewsOf.set(review.row, [...(reviewsOf.get(review.row) || []), review]);
  const verdictsOf = (row) => [...(failedOf.has(row) ? ["flagged"] : []), ...new Set((reviewsOf.get(row) || []).map((review) => `person: ${review.verdict}`))];
  const valuesOf = (key, row) => (key === "verdict" ? verdictsOf(row) : [field(key, row)]);

  // --- state in the address, and which items it wants ----------------------------------------------------------------

  function readState() {
    const state = {};
    for (const part of location.hash.slice(1).split("&")) {
      const [key, ...value] = part.split("=");
      try { if (KEYS.includes(key)) state[key] = decodeURIComponent(value.join("=")); } catch { /* a torn escape: as if it were not there */ }
    }
    return state;
  }
  const hashOf = (state) => `#${KEYS.filter((key) => state[key]).map((key) => `${key}=${encodeURIComponent(state[key]).replaceAll("%2C", ",")}`).join("&")}`;
  const go = (state) => { location.hash = hashOf(state); };

  function matching(state) {
    const rows = state.ids ? state.ids.split(",").map((id) => rowOf.get(id)).filter((row) => row !== undefined) : [...ids.keys()];
    const terms = (state.q || "").toLowerCase().split(/\s+/).filter(Boolean);
    return rows.filter((row) => CHOICES.every((key) => !state[key] || valuesOf(key, row).includes(state[key]))
      && terms.every((term) => `${ids[row]} ${texts[row]}`.toLowerCase().includes(term)));
  }

  // --- small makers --------------------------------------------------------------------------------------------------

  function make(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "class") node.className = value;
      else if (name === "click") node.addEventListener("click", value);
      else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null));
    return node;
  }
  function draw(tag, attributes = {}, ...children) {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }
  const pretty = (name) => NAMES.get(name) ?? String(name).replaceAll("_", " ");
  const number = (value) => value.toLocaleString("en");
  const titleOf = (row) => `${pretty(field("task", row))} · ${pretty(field("type", row))}`;

  // --- the list ------------------------------------------------------------------------------------------------------

  function card(row, state) {
    const thumb = make("span", { class: "thumb" });
    if (firstImages[row]) thumb.append(make("img", { src: address(firstImages[row]), alt: "", loading: "lazy", decoding: "async" }));
    else thumb.append("no image");
    if (imageCounts[row] > 1) thumb.append(make("span", { class: "badge" }, `${imageCounts[row]} images`));
    const flags = verdictsOf(row).map((name) => make("span", { class: name === "person: valid" ? "flag good" : "flag bad" }, pretty(name)));
    return make("li", {}, make("a", { class: "card", href: hashOf({ ...state, item: ids[row] }), "data-row": row }, thumb,
      make("span", { class: "card-text" },
        make("span", { class: "card-title" }, titleOf(row)),
        make("span", { class: "card-question" }, texts[row]),
        flags.length ? make("span", { class: "flags" }, ...flags) : null,
        make("span", { class: "card-meta" }, `${field("scene", row)} · ${field("difficulty", row)} · ${ids[row]}`))));
  }

  // A column's values with how many items have each.
  function fillChoices(key) {
    const counts = new Map(key === "verdict" ? [] : index.coded[key].names.map((name) => [name, 0]));
    for (const row of ids.keys()) for (const value of valuesOf(key, row)) counts.set(value, (counts.get(value) || 0) + 1);
    $(`f-${key}`).replaceChildren(make("option", { value: "" }, "all"),
      ...[...counts].filter(([value]) => value).map(([value, n]) => make("option", { value }, `${key === "scene" ? value : pretty(value)} (${number(n)})`)));
    $(`f-${key}`).closest(".field").hidden = !counts.size;
  }

  function renderList(state) {
    const rows = matching(state);
    for (const key of CHOICES) $(`f-${key}`).value = state[key] || "";
    if (document.activeElement !== $("q")) $("q").value = state.q || "";
    const pages = Math.max(1, Math.ceil(rows.length / PER_PAGE));
    const page = Math.min(pages, Math.max(1, Number.parseInt(state.page, 10) || 1));
    const filtered = state.q || state.ids || CHOICES.some((key) => state[key]);
    $("count").textContent = `${number(rows.length)} of ${number(total)} items`;
    $("opening").hidden = Boolean(filtered) || page > 1 || index.striking.length < 2;
    if (!$("opening").hidden) $("openers").replaceChildren(...index.striking.map((row) => card(row, state)));
    $("clear").hidden = !filtered;
    $("cards").replaceChildren(...rows.slice((page - 1) * PER_PAGE, page * PER_PAGE).map((row) => card(row, state)));
    const step = (to, text, label) => make("button", { type: "button", "aria-label": label, disabled: to < 1 || to > pages, click: () => { go({ ...state, page: String(to) }); scrollTo(0, 0); } }, text);
    $("pager").replaceChildren(...(pages > 1 ? [step(page - 1, "← Previous", "Previous page"), `page ${number(page)} of ${number(pages)}`, step(page + 1, "Next →", "Next page")] : []));
  }

  // --- the overlay ---------------------------------------------------------------------------------------------------

  function drawMarks(svg, image, marks) {
    const width = image.naturalWidth;
    const height = image.naturalHeight;
    if (!width || !image.clientWidth) return;
    // Pixel (0, 0) is the centre of the top-left pixel.
    svg.setAttribute("viewBox", `-0.5 -0.5 ${width} ${height}`);
    svg.replaceChildren();
    const unit = width / image.clientWidth;
    const labels = [];
    // Decoys first: the truth lies on top.
    for (const mark of [...marks].sort((a, b) => Number(a.right) - Number(b.right))) {
      const kind = mark.right ? "right" : "decoy";
      if (mark.kind === "point") {
        for (const [u, v] of mark.points) svg.append(pin(u, v, unit, kind));
      } else {
        const corners = mark.kind === "rect" ? rectangle(mark.points) : mark.points;
        const points = corners.map((point) => point.join(",")).join(" ");
        svg.append(draw("polyline", { points, class: "mark halo" }), draw("polyline", { points, class: `mark line ${kind}` }));
      }
      if (mark.label) labels.push([mark, kind]);
    }
    const taken = [];
    for (const [mark, kind] of labels) label(svg, mark, kind, unit, width, height, taken);
  }
  function rectangle(points) {
    const [[x1, y1], [x2, y2]] = [points[0], points[points.length - 1]];
    return [[x1, y1], [x2, y1], [x2, y2], [x1, y2], [x1, y1]];
  }
  function pin(u, v, unit, kind) {
    const r = 5 * unit;
    if (kind === "right") return draw("circle", { cx: u, cy: v, r, class: "dot right" });
    return draw("path", { d: `M${u - r} ${v}L${u} ${v - r}L${u + r} ${v}L${u} ${v + r}Z`, class: "dot decoy" });
  }
  function label(svg, mark, kind, unit, width, height, taken) {
    const font = width / unit < 500 ? 11 : 13;
    const text = draw("text", { class: `tag-text ${kind}`, x: 0, y: 0, "font-size": font * unit });
    svg.append(text);
    const lines = [];
    const room = width - 12 * unit;
    // Long labels are lists of numbers; they break at commas.
    for (const part of mark.label.split(/(?<=,) /)) {
      text.textContent = lines.length ? `${lines[lines.length - 1]} ${part}` : part;
      if (lines.length && text.getComputedTextLength() <= room) lines[lines.length - 1] = text.textContent;
      else lines.push(part);
    }
    text.replaceChildren(...lines.map((line, k) => draw("tspan", { x: 0, dy: k ? 1.25 * font * unit : 0 }, line)));
    const box = text.getBBox();
    const pad = 3 * unit;
    const points = mark.points;
    const [x, y] = mark.kind === "line" ? [0, 1].map((axis) => points.reduce((sum, point) => sum + point[axis], 0) / points.length) : points[0];
    // A drawn rectangle has its own number above it, so the label goes below.
    const at = mark.kind === "rect"
      ? [Math.min(x, points[1][0]), Math.max(y, points[1][1]) + 8 * unit]
      : [x + 9 * unit, y - box.height - 4 * unit];
    const left = Math.max(pad, Math.min(at[0], width - box.width - 2 * pad));
    const fit = (wanted) => Math.max(pad, Math.min(wanted, height - box.height - 2 * pad));
    const free = (top) => taken.every((t) => left > t.right || left + box.width < t.left || top > t.bottom || top + box.height < t.top);
    const step = box.height + 2 * pad;
    const top = [0, 1, -1, 2, -2].map((k) => fit(at[1] + k * step)).find(free) ?? fit(at[1]);
    taken.push({ left: left - pad, right: left + box.width + pad, top: top - pad, bottom: top + box.height + pad });
    for (const line of text.children) line.setAttribute("x", left);
    text.setAttribute("y", top - box.y);
    svg.insertBefore(draw("rect", { x: left - pad, y: top - pad / 2, width: box.width + 2 * pad, height: box.height + pad, rx: 3 * unit, class: "tag" }), text);
  }

  // Layout changes move labels; one observer redraws what is shown.
  const redrawn = new Map();
  const observer = new ResizeObserver((entries) => { for (const entry of entries) redrawn.get(entry.target)?.(); });
  function picture(source, alt, size, marks, overlay) {
    const image = make("img", { alt, src: source, width: size ? size[0] : null, height: size ? size[1] : null });
    const svg = draw("svg", { "aria-hidden": "true" });
    svg.toggleAttribute("hidden", !overlay);
    let more = [];
    const redraw = () => { if (!svg.hasAttribute("hidden")) drawMarks(svg, image, [...marks, ...more]); };
    image.addEventListener("load", redraw);
    redrawn.set(image, redraw);
    observer.observe(image);
    const show = (on) => { svg.toggleAttribute("hidden", !on); redraw(); };
    const frame = make("span", { class: "frame" }, image, svg);
    if (size) frame.style.setProperty("--ratio", String(size[0] / size[1]));
    image.addEventListener("load", () => frame.style.setProperty("--ratio", String(image.naturalWidth / image.naturalHeight)));
    const add = (marks_of_option) => { more = marks_of_option; redraw(); };
    return { frame, image, show, add };
  }

  // --- one item ------------------------------------------------------------------------------------------------------

  let open = null; // {row, answered, overlay, toggleAnswer, toggleOverlay}

  function table(entries) {
    return make("dl", { class: "table" }, ...entries.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", { class: /[[{]/.test(value) ? "mono" : "" }, ...setMatrices(value)))));
  }
  function section(title, ...children) {
    return make("details", {}, make("summary", {}, title), ...children);
  }
  function rowsTable(head, rows) {
    return make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": head.join(", ") }, make("table", {},
      make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", {}, String(cell))))))));
  }

  function links(row) {
    const found = [];
    const linked = new Set([row]);
    for (const [kind, word] of Object.entries(LINKED)) {
      const group = index.groups[kind].find((rows) => rows.includes(row)) || [];
      const unseen = group.filter((one) => !linked.has(one));
      if (!unseen.length) continue; // twins are of one truth: that is said already
      for (const other of unseen.slice(0, 8)) {
        linked.add(other);
        found.push(make("li", {}, make("a", { href: hashOf({ item: ids[other] }), "data-link": kind }, `${word}: ${titleOf(other)} · ${ids[other]}`)));
      }
      found.push(make("li", {}, make("a", { href: hashOf({ ids: group.slice(0, 60).map((one) => ids[one]).join(",") }) }, `List all ${group.length}`)));
    }
    const scene = field("scene", row);
    if (pageOfScene.has(scene)) found.push(make("li", {}, make("a", { href: pageOfScene.get(scene), "data-link": "scene" }, `Scene ${scene}`)));
    found.push(make("li", {}, make("a", { href: hashOf({ scene }) }, "All items of this scene")));
    return make("ul", { class: "links" }, ...found);
  }

  // Checks of the audit that failed, and what people said.
  function said(row) {
    return [...(failedOf.get(row) || []).map((line) => make("li", {}, make("span", { class: "flag bad" }, "failed"), " ",
      make("a", { href: hashOf({ ids: line.items.slice(0, 60).map((one) => ids[one]).join(",") }) }, line.words))),
    ...(reviewsOf.get(row) || []).map((review) => {
      const flags = review.flags.length ? ` (${review.flags.map(pretty).join(", ")})` : "";
      return make("li", {}, make("span", { class: review.verdict === "valid" ? "flag good" : "flag bad" }, review.verdict),
        ` by ${review.reviewer}${flags}${review.note ? `: ${review.note}` : ""}`);
    })];
  }

  function enlarge(record, k, name, alt, overlay) {
    const source = address(record.address);
    const { frame, image, show } = picture(source, alt, record.size, record.marks, overlay);
    const pane = $("zoom-pane");
    const scale = (wanted) => {
      const width = image.naturalWidth || 640;
      const height = image.naturalHeight || 480;
      const fit = Math.min(pane.clientWidth / width, pane.clientHeight / height, 1);
      frame.style.width = `${Math.round(width * (wanted === "fit" ? fit : Number(wanted)))}px`;
      for (const button of document.querySelectorAll("[data-zoom]")) button.setAttribute("aria-pressed", String(button.dataset.zoom === wanted));
    };
    pane.replaceChildren(frame);
    $("zoom-name").textContent = name;
    $("zoom").showModal();
    for (const button of document.querySelectorAll("[data-zoom]")) button.onclick = () => scale(button.dataset.zoom);
    image.addEventListener("load", () => scale("fit"));
    $("zoom").toggle = () => { overlay = !overlay; show(overlay); };
  }

  async function renderItem(state) {
    const row = rowOf.get(state.item);
    const box = $("item");
    const list = matching(state);
    const order = list.includes(row) ? list : [...ids.keys()];
    const at = order.indexOf(row);
    const hashAt = (place) => (place >= 0 && place < order.length ? hashOf({ ...state, item: ids[order[place]], page: String(1 + Math.floor(place / PER_PAGE)) }) : null);
    const backHash = hashOf({ ...state, item: "" });
    const back = make("a", { href: backHash, id: "back" }, "← List");
    if (row === undefined) {
      box.replaceChildren(make("nav", { class: "steps" }, back), make("h1", { id: "item-title", tabindex: -1 }, "No such item"),
        make("p", { class: "note" }, `This gallery holds no item ${state.item}.`));
      open = { back: backHash };
      return;
    }
    const chunk = await load(`items-${String(Math.floor(row / index.chunk)).padStart(5, "0")}`);
    if (readState().item !== state.item) return; // somebody went on while it loaded
    const record = chunk[row % index.chunk];
    redrawn.clear();
    observer.disconnect();

    const [previous, next] = [hashAt(at - 1), hashAt(at + 1)];
    const steps = make("nav", { class: "steps", "aria-label": "Items" }, back,
      previous ? make("a", { href: previous, id: "previous", rel: "prev" }, "← Previous") : null,
      next ? make("a", { href: next, id: "next", rel: "next" }, "Next →") : null,
      make("span", { class: "where" }, `${number(at + 1)} of ${number(order.length)}`));
    const task = field("task", row);
    const title = make("h1", { id: "item-title", tabindex: -1 }, titleOf(row));
    const sub = make("p", { class: "sub" }, `${field("scene", row)} · ${field("difficulty", row)} · `, make("span", { class: "mono" }, ids[row]));

    const shown = record.images.map((entry, k) => {
      const name = `Image ${k + 1} of ${record.images.length}`;
      const alt = `${name} of item ${ids[row]}: ${pretty(task)}, scene ${field("scene", row)}`;
      const caption = make("figcaption", {}, make("span", {}, record.images.length > 1 ? `Image ${k + 1}` : "Image"),
        entry.size ? make("span", {}, `${entry.size[0]} x ${entry.size[1]} px`) : null);
      if (!entry.address) return { node: make("figure", { class: "picture" }, make("p", { class: "absent note" }, `${name} is not here: neither in media/ nor in the dataset's files.`), caption), show: () => {}, add: () => {} };
      const made = picture(address(entry.address), alt, entry.size, entry.marks, false);
      const button = make("button", { type: "button", "aria-label": `Enlarge ${alt}`, click: () => enlarge(entry, k, name, alt, open.overlay) }, made.frame);
      return { node: make("figure", { class: "picture" }, button, caption), show: made.show, add: made.add };
    });

    const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const options = record.options.map((text, k) => make("li", { "data-letter": letters[k] }, make("span", { class: "letter" }, letters[k]),
      make("span", { class: "body" }, ...setMatrices(text))));
    // Where a wrong pose would put the points in the second image: that is what it means.
    const meanings = (record.space?.cameras ?? []).filter((camera) => camera.image < 0 && record.images.length === 2);
    const meaningButtons = meanings.map((camera) => make("button", { type: "button", class: "meaning", "aria-pressed": "false", click: () => showMeaning(camera) }, camera.name));
    const meant = make("p", { class: "actions", id: "meant", hidden: true }, make("span", {}, "Points by a wrong pose:"), ...meaningButtons);
    // Whoever sees which letters are wrong knows the right one.
    const tellMeanings = () => { meant.hidden = !meanings.length || !(open.answered || open.overlay); };
    function showMeaning(camera) {
      const wanted = open.meaning === camera.name ? null : camera;
      open.meaning = wanted && wanted.name;
      for (const button of meaningButtons) button.setAttribute("aria-pressed", String(button.textContent === open.meaning));
      if (wanted && !open.overlay) toggleOverlay();
      shown[1].add(wanted ? placePoints(record.space.points, wanted) : []);
    }
    const answer = make("p", { class: "answer", id: "answer", role: "status", hidden: true });
    const answerButton = make("button", { type: "button", class: "main", id: "answer-button", "aria-expanded": "false", "aria-controls": "answer", click: () => toggleAnswer() });
    const overlayButton = make("button", { type: "button", id: "overlay-button", "aria-pressed": "false", click: () => toggleOverlay() });
    overlayButton.append("Overlay ", make("kbd", {}, "o"));
    const marked = record.images.some((entry) => entry.marks.length);
    overlayButton.disabled = !marked;
    const sample = (kind) => draw("svg", { "aria-hidden": "true", viewBox: "0 0 34 12" }, draw("polyline", { points: "2,6 32,6", class: `mark line ${kind}` }), kind === "right" ? draw("circle", { cx: 17, cy: 6, r: 4, class: "dot right" }) : draw("path", { d: "M12 6L17 1L22 6L17 11Z", class: "dot decoy" }));
    const decoys = record.images.some((entry) => entry.marks.some((mark) => !mark.right));
    const legend = make("p", { class: "legend-marks", id: "legend", hidden: true }, make("span", {}, sample("right"), " the truth: solid, round"),
      decoys ? make("span", {}, sample("decoy"), " wrong options: dashed, diamonds") : null);

    const why = make("section", { "aria-labelledby": "why-title", id: "why", hidden: true }, make("h2", { id: "why-title" }, "Why this is the answer"),
      make("ul", { class: "told" }, ...record.told.map((text) => make("li", {}, text))));
    const inSpace = record.space ? makeSpace(record, field("scene", row), ids[row]) : null;
    const option = record.options[letters.indexOf(record.answer)];
    const answerText = `Answer: ${record.answer}${option && option.length < 40 && !option.includes("\n") ? ` (${option})` : ""}`;

    function toggleAnswer() {
      open.answered = !open.answered;
      answer.hidden = !open.answered;
      tellMeanings();
      why.hidden = !open.answered || !record.told.length;
      answer.textContent = open.answered ? answerText : "";
      answerButton.replaceChildren(open.answered ? "Hide answer " : "Show answer ", make("kbd", {}, "a"));
      answerButton.setAttribute("aria-expanded", String(open.answered));
      inSpace?.tell();
      for (const entry of options) entry.classList.toggle("is-right", open.answered && entry.dataset.letter === record.answer);
    }
    function toggleOverlay() {
      if (!marked) return;
      open.overlay = !open.overlay;
      overlayButton.setAttribute("aria-pressed", String(open.overlay));
      legend.hidden = !open.overlay;
      for (const one of shown) one.show(open.overlay);
      tellMeanings();
      inSpace?.tell();
    }
    open = { row, answered: true, overlay: false, toggleAnswer, toggleOverlay, previous, next, back: backHash };
    toggleAnswer();

    const verdict = said(row);
    const raw = make("pre", { class: "raw", tabindex: 0 });
    const evidence = section("All evidence (JSON)", raw);
    evidence.addEventListener("toggle", () => { if (evidence.open && !raw.textContent) raw.textContent = JSON.stringify(record.evidence, null, 1); });
    const numbers = section("Numbers behind the answer", table(record.numbers),
      record.margins.length ? make("div", {}, make("h3", {}, "Margins over the required ones"), make("ul", { class: "margins" },
        ...record.margins.map(([name, value]) => make("li", {}, `${name} `, make("b", {}, String(value)))))) : null,
      record.decoys.length ? rowsTable(["Decoy", "strategy", "separation over margin", "candidate"], record.decoys) : null);
    numbers.id = "numbers";
    const rest = make("div", { class: "rest" }, make("div", { class: "now" },
      options.length ? make("ol", { class: "options", "aria-label": "Options" }, ...options) : null,
      make("div", { class: "actions" }, answerButton, overlayButton), meant, answer, legend,
      marked ? null : make("p", { class: "sub" }, record.overlay_problem)), make("div", { class: "more" },
      why,
      verdict.length ? make("section", { "aria-label": "Verdicts", id: "said" }, make("h2", {}, "Verdicts"),
        make("ul", { class: "links" }, ...verdict)) : null,
      make("h2", {}, "See also"), links(row),
      make("h2", {}, "Details"), numbers, section("Where it comes from", table(record.provenance)), evidence,
      make("p", { class: "sub keyboard" }, "Keys: ← → previous and next, a answer, o overlay, / search, Esc back to the list")));
    // Between question and options, as a model reads it; folded where it would push the images off the screen.
    const context = record.context ? make("details", { class: "given" }, make("summary", {}, "Context of the question"),
      make("p", { class: "context" }, ...setMatrices(record.context))) : null;
    if (context) context.open = matchMedia("(min-width: 761px)").matches;
    const words = make("div", { class: "words" }, make("p", { class: "question" }, ...setMatrices(record.question)), context);
    const across = Math.min(shown.length, 3);
    box.replaceChildren(steps, title, sub, make("div", { class: shown.length > 1 ? "item-body many" : "item-body" }, words,
      make("div", { class: "pictures" }, ...shown.map((one) => one.node)), rest, inSpace?.node ?? null));
    const body = box.lastElementChild.style;
    body.setProperty("--across", across);
    body.setProperty("--rows", Math.ceil(shown.length / across));
  }

  // The question in space. Points come when the view comes into sight; where no scan was at hand there are none.
  function makeSpace(record, scene, id) {
    const space = record.space;
    const canvas = make("canvas", { class: "space", tabindex: 0, role: "img", "aria-label": "points and cameras of the frames, being read" });
    const told = make("span", {});
    const loadImage = (entry) => {
      if (!entry?.address) return null;
      const image = make("img", { src: address(entry.address), alt: "" });
      image.addEventListener("load", () => viewer?.redraw());
      return image;
    };
    const files = space.frames.map((frame) => (index.clouds[scene] || {})[frame]).filter(Boolean);
    let viewer = null;
    new IntersectionObserver((entries, watch) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      watch.disconnect();
      viewer = self.VGBENCH_SPACE.show(canvas, space, record.images.map(loadImage), `Item ${id} in space: ${inWords(space)}`);
      canvas.viewer = viewer;
      tell();
      for (const file of new Set(files)) {
        load(file).then((cloud) => { viewer.add(cloud); told.textContent = `${number(viewer.count())} points of the frames. `; }, (error) => fail(error.message));
      }
    }, { rootMargin: "300px" }).observe(canvas);
    const button = (text, act) => make("button", { type: "button", class: "quiet", click: () => viewer && act() }, text);
    const through = space.cameras.flatMap((camera, k) => (camera.image >= 0 ? [button(camera.name, () => viewer.through(k))] : []));
    const tell = () => viewer?.tell(open.answered || open.overlay);
    const wrong = [...space.cameras, ...space.boxes, ...space.points].some((one) => one.right === false);
    const node = make("figure", { class: "in-space" }, make("h2", {}, "In space"), canvas,
      make("div", { class: "space-bar" }, button("Whole", () => viewer.home()), button("From above", () => viewer.above()), ...through),
      make("figcaption", {}, make("span", {}, told, inWords(space), ` With the answer or the overlay: green what is true${wrong ? "; orange, dashed and diamonds what is wrong" : ""}.`),
        make("span", {}, matchMedia("(pointer: coarse)").matches ? "Tap to interact (one finger rotates, two zoom). Tap outside to scroll the page." : "Drag to turn, scroll to zoom.")));
    return { node, tell };
  }
  function inWords(space) {
    const count = (n, one, many) => (n ? [`${n} ${n === 1 ? one : many}`] : []);
    return `${[...count(space.cameras.filter((camera) => camera.image >= 0).length, "camera", "cameras"), ...count(space.boxes.length, "box", "boxes"),
      ...count(space.points.length, "marked point", "marked points")].join(", ")}.`;
  }

  // Marks of the points that lie in the image of a camera.
  function placePoints(points, { pose, K, size }) {
    return points.flatMap(({ at, label: name }) => {
      const d = [at[0] - pose[3], at[1] - pose[7], at[2] - pose[11]];
      const [x, y, z] = [0, 1, 2].map((k) => d[0] * pose[k] + d[1] * pose[4 + k] + d[2] * pose[8 + k]);
      const [u, v] = [K[2] + (K[0] * x) / z, K[3] + (K[1] * y) / z];
      return z > 0.01 && u > -0.5 && v > -0.5 && u < size[0] - 0.5 && v < size[1] - 0.5 ? [{ kind: "point", points: [[u, v]], label: name, right: false }] : [];
    });
  }

  // Rows of matrices stand in a font of one width.
  function setMatrices(text) {
    return text.split(/(?<=\n)/).map((line) => (/^\s*(?:\w{1,2} = )?\[+\s*[-+\d.]/.test(line) && text.includes("\n") ? make("span", { class: "matrix" }, line.replace("\n", "")) : line));
  }

  // --- which view ----------------------------------------------------------------------------------------------------

  let scrolled = 0;
  let cameFrom = null;

  async function render() {
    const state = readState();
    if (state.item) {
      if (!$("list").hidden) scrolled = scrollY;
      try { await renderItem(state); } catch (error) { fail(error.message); return; }
      if (readState().item !== state.item) return;
      $("list").hidden = true;
      $("item").hidden = false;
      document.title = `${state.item} · ${index.name}`;
      if (cameFrom !== state.item) { scrollTo(0, 0); $("item-title").focus({ preventScroll: true }); }
      cameFrom = state.item;
      return;
    }
    open = null;
    if ($("zoom").open) $("zoom").close();
    renderList(state);
    $("item").hidden = true;
    $("list").hidden = false;
    document.title = `Items · ${index.name}`;
    if (cameFrom !== null) {
      scrollTo(0, scrolled);
      document.querySelector(`#cards .card[data-row="${rowOf.get(cameFrom)}"]`)?.focus({ preventScroll: true });
      cameFrom = null;
    }
  }

  // --- events --------------------------------------------------------------------------------------------------------

  addEventListener("hashchange", render);
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  for (const key of CHOICES) {
    fillChoices(key);
    $(`f-${key}`).addEventListener("change", (event) => go({ ...readState(), [key]: event.target.value, page: "" }));
  }
  $("q").addEventListener("input", () => {
    location.replace(hashOf({ ...readState(), q: $("q").value.trim(), page: "" }));
  });
  // On a phone the filters are folded: the questions come first.
  $("fold").open = !matchMedia("(max-width: 640px)").matches || CHOICES.some((key) => readState()[key]);
  $("clear").addEventListener("click", () => { $("q").value = ""; go({}); });
  $("zoom-close").addEventListener("click", () => $("zoom").close());
  document.querySelector(".skip").addEventListener("click", (event) => {
    // "#main" would be read as an address of the list.
    event.preventDefault();
    ($("list").hidden ? $("item-title") : $("q")).focus();
  });

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("input, select, textarea")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if ($("zoom").open) { if (event.key === "o") $("zoom").toggle?.(); return; }
    const to = { ArrowRight: open?.next, ArrowLeft: open?.previous, Escape: open?.back }[event.key];
    if (event.key === "/") {
      if (open) location.hash = open.back;
      setTimeout(() => $("q").focus());
    } else if (open && event.key === "a") open.toggleAnswer?.();
    else if (open && event.key === "o") open.toggleOverlay?.();
    else if (to && !(event.target.matches("pre, .scroll") && event.key.startsWith("Arrow"))) location.hash = to;
    else return;
    event.preventDefault();
  });

  render();
})();
