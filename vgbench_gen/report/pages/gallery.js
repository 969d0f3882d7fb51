"use strict";
// The list and the view of one item. All state stands in the address after "#"; texts from the data are only ever set
// as textContent or attributes of elements made here, never as markup.
(() => {
  const PER_PAGE = 24;
  const SVG = "http://www.w3.org/2000/svg";
  const FACETS = ["task", "type", "source", "scene", "difficulty", "verdict", "linked"];
  const CODED = ["task", "type", "source", "scene", "difficulty"];
  const PARTNERS = ["twin", "pair", "group"];
  const KEYS = [...FACETS, "answer", ...PARTNERS, "ids", "audit", "q", "order", "page", "item"];
  const NAMES = { twin: "twins", pair: "pair", group: "same truth", ids: "chosen items", audit: "figure of the audit", answer: "answer", order: "shuffled" };
  const LINKED = { twin: "has a twin", pair: "has a pair partner", group: "same truth in other forms" };
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
  const numbered = (name, k) => `${name}-${String(k).padStart(5, "0")}`;

  function fail(text) {
    $("failure").textContent = text;
    $("failure").hidden = false;
  }

  const index = loaded.get("index");
  if (!index) { fail("data/index.js is missing: make the gallery again with `vgbench browse`."); return; }
  const verdicts = loaded.get("verdicts") || { audit: [], reviews: [] };
  const { id: ids, text: texts, image: firstImages, images: imageCounts, answer: answers } = index.columns;
  const total = ids.length;
  const rowOf = new Map(ids.map((id, row) => [id, row]));
  const pageOfScene = new Map(index.pages);
  const field = (key, row) => index.coded[key].names[index.coded[key].codes[row]];
  const address = (text) => (text.startsWith("@") ? index.media + text.slice(1) : text);

  // Rows that share a twin, pair or group with another one.
  const members = new Map(PARTNERS.map((key) => {
    const sets = new Map();
    for (let row = 0; row < total; row += 1) {
      const code = index.coded[key].codes[row];
      if (!index.coded[key].names[code]) continue;
      if (!sets.has(code)) sets.set(code, []);
      sets.get(code).push(row);
    }
    return [key, sets];
  }));
  const partners = (key, row) => (members.get(key).get(index.coded[key].codes[row]) || []).filter((other) => other !== row);

  // Rows -> figures of the audit and people's verdicts.
  const linesOf = new Map();
  verdicts.audit.forEach((line) => {
    for (const row of line.items) {
      if (!linesOf.has(row)) linesOf.set(row, []);
      linesOf.get(row).push(line);
    }
  });
  const reviewsOf = new Map();
  for (const review of verdicts.reviews) {
    if (!reviewsOf.has(review.row)) reviewsOf.set(review.row, []);
    reviewsOf.get(review.row).push(review);
  }
  const isFlagged = (row) => (linesOf.get(row) || []).some((line) => line.verdict === "fell");
  function verdictsOf(row) {
    const found = [];
    if (isFlagged(row)) found.push("flagged");
    found.push(linesOf.has(row) ? "named" : "unnamed");
    const reviewed = reviewsOf.get(row);
    if (!reviewed) found.push("unreviewed");
    else for (const verdict of new Set(reviewed.map((review) => review.verdict))) found.push(`person:${verdict}`);
    return found;
  }
  const verdictNames = new Map([
    ["flagged", "behind a figure that fell"], ["named", "behind a figure of the audit"], ["unnamed", "behind no figure of the audit"],
  ]);
  for (const review of verdicts.reviews) verdictNames.set(`person:${review.verdict}`, `person: ${review.verdict}`);
  verdictNames.set("unreviewed", "not reviewed");
  const lineKey = (line) => [line.kind, line.name, line.task, line.form].map(encodeURIComponent).join("/");

  // --- state in the address ------------------------------------------------------------------------------------------

  function readState() {
    const state = {};
    for (const part of location.hash.slice(1).split("&")) {
      const at = part.indexOf("=");
      const key = part.slice(0, at);
      if (at < 0 || !KEYS.includes(key)) continue;
      const raw = part.slice(at + 1);
      try {
        // What names a figure of the audit is decoded one by one: a name may hold a slash.
        state[key] = key === "audit" ? raw : decodeURIComponent(raw);
      } catch { /* a torn escape: as if it were not there */ }
    }
    return state;
  }
  function hashOf(state) {
    const parts = KEYS.filter((key) => state[key] && !(key === "page" && state.page === "1")).map((key) => {
      if (key === "audit") return `audit=${state.audit}`;
      return `${key}=${encodeURIComponent(state[key]).replaceAll("%2C", ",")}`;
    });
    return `#${parts.join("&")}`;
  }
  const go = (state) => { location.hash = hashOf(state); };
  const amend = (state) => { location.replace(hashOf(state)); };

  // --- which items ---------------------------------------------------------------------------------------------------

  let searchTexts = null;
  let searching = null;
  function wantSearchTexts() {
    if (!searching) {
      const names = Array.from({ length: index.search_files }, (_, k) => numbered("search", k));
      searching = Promise.all(names.map(load)).then((parts) => {
        searchTexts = parts.flat().map((text) => text.toLowerCase());
        render();
      }, (error) => fail(error.message));
    }
  }

  function auditRows(raw) {
    const wanted = raw.split("/").map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
    const names = ["kind", "name", "task", "form"];
    const rows = new Set();
    for (const line of verdicts.audit) {
      if (wanted.every((part, k) => k >= names.length || part === line[names[k]])) line.items.forEach((row) => rows.add(row));
    }
    return rows;
  }

  // [rows that pass everything, facet -> value -> how many rows it would leave]
  let memo = { key: null };
  function matching(state) {
    const key = hashOf({ ...state, page: "", item: "" }) + (searchTexts ? "+" : "");
    if (memo.key === key) return memo;
    const chosen = state.ids ? new Set(state.ids.split(",").map((id) => rowOf.get(id))) : null;
    const named = state.audit ? auditRows(state.audit) : null;
    const terms = (state.q || "").toLowerCase().split(/\s+/).filter(Boolean);
    if (terms.length) wantSearchTexts();
    const haystack = (row) => (searchTexts ? `${ids[row]} ${searchTexts[row]}` : `${ids[row]} ${texts[row].toLowerCase()}`);
    const values = (facet, row) => {
      if (facet === "verdict") return verdictsOf(row);
      if (facet === "linked") return PARTNERS.filter((kind) => partners(kind, row).length);
      return [field(facet, row)];
    };
    const counts = new Map(FACETS.map((facet) => [facet, new Map()]));
    const rows = [];
    for (let row = 0; row < total; row += 1) {
      if (chosen && !chosen.has(row)) continue;
      if (named && !named.has(row)) continue;
      if (state.answer && answers[row] !== state.answer) continue;
      if (PARTNERS.some((kind) => state[kind] && field(kind, row) !== state[kind])) continue;
      if (terms.length) {
        const text = haystack(row);
        if (!terms.every((term) => text.includes(term))) continue;
      }
      const held = FACETS.map((facet) => values(facet, row));
      const failing = FACETS.filter((facet, k) => state[facet] && !held[k].includes(state[facet]));
      if (failing.length > 1) continue;
      FACETS.forEach((facet, k) => {
        if (failing.length && failing[0] !== facet) return;
        for (const value of held[k]) counts.get(facet).set(value, (counts.get(facet).get(value) || 0) + 1);
      });
      if (!failing.length) rows.push(row);
    }
    // Whoever asks for certain ones, or for the partners of one, gets them in the order of the dataset.
    const asked = chosen || named || PARTNERS.some((kind) => state[kind]);
    memo = { key, rows: state.order ? shuffled(rows, Number(state.order)) : asked ? rows : spread(rows), counts };
    return memo;
  }
  // The same rows, so that no two beside each other begin with the same image, as twins do, while that can be had.
  function spread(rows) {
    const found = [];
    let held = [];
    const fits = (row) => !found.length || !firstImages[row] || firstImages[row] !== firstImages[found[found.length - 1]];
    for (const row of rows) {
      if (fits(row)) found.push(row);
      else held.push(row);
      if (held.length && fits(held[0])) found.push(held.shift());
    }
    while (held.length) {
      const at = Math.max(0, held.findIndex(fits));
      found.push(...held.splice(at, 1));
    }
    return found;
  }
  // By a number in the address, so that the same address shows the same order.
  function shuffled(rows, seed) {
    const found = [...rows];
    let state = seed >>> 0;
    for (let k = found.length - 1; k > 0; k -= 1) {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      const other = ((t ^ (t >>> 14)) >>> 0) % (k + 1);
      [found[k], found[other]] = [found[other], found[k]];
    }
    return found;
  }

  // --- small makers --------------------------------------------------------------------------------------------------

  function make(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "class") node.className = value;
      else if (name === "on") for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
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
  const pretty = (name) => String(name).replaceAll("_", " ");
  const number = (value) => value.toLocaleString("en");

  // --- the list ------------------------------------------------------------------------------------------------------

  function flagsOf(row) {
    const flags = [];
    if (isFlagged(row)) flags.push(make("span", { class: "flag bad" }, "audit: flagged"));
    for (const verdict of new Set((reviewsOf.get(row) || []).map((review) => review.verdict))) {
      flags.push(make("span", { class: verdict === "valid" ? "flag good" : "flag bad" }, `person: ${verdict}`));
    }
    return flags;
  }

  function card(row, state) {
    const thumb = make("span", { class: "thumb" });
    if (firstImages[row]) thumb.append(make("img", { src: address(firstImages[row]), alt: "", loading: "lazy", decoding: "async" }));
    else thumb.append("no image");
    if (imageCounts[row] > 1) thumb.append(make("span", { class: "badge" }, `${imageCounts[row]} images`));
    const flags = flagsOf(row);
    const link = make("a", { class: "card", href: hashOf({ ...state, item: ids[row] }), "data-row": row }, thumb,
      make("span", { class: "card-text" },
        make("span", { class: "card-title" }, `${pretty(field("task", row))} · ${field("type", row)}`),
        make("span", { class: "card-question" }, texts[row]),
        flags.length ? make("span", { class: "flags" }, ...flags) : null,
        make("span", { class: "card-meta" }, `${field("scene", row)} · ${field("difficulty", row)} · ${ids[row]}`)));
    return make("li", {}, link);
  }

  function fillSelect(facet, state, counts) {
    const select = $(`f-${facet}`);
    let choices;
    if (facet === "verdict") choices = [...verdictNames];
    else if (facet === "linked") choices = Object.entries(LINKED);
    else choices = index.coded[facet].names.map((name) => [name, facet === "task" ? pretty(name) : name || "(none)"]);
    const current = state[facet] || "";
    const options = [make("option", { value: "" }, "all")];
    for (const [value, label] of choices) {
      const count = counts.get(value) || 0;
      if (value && (count || value === current)) options.push(make("option", { value }, `${label} (${number(count)})`));
    }
    if (current && !options.some((option) => option.value === current)) options.push(make("option", { value: current }, `${current} (0)`));
    select.replaceChildren(...options);
    select.value = current;
  }

  function chip(key, state) {
    let value = state[key];
    if (key === "order") return make("li", {}, make("button", { type: "button", on: { click: () => go({ ...state, order: "", page: "", item: "" }) } }, "shuffled ×"));
    if (key === "ids") value = `${state.ids.split(",").length}`;
    if (key === "audit") value = state.audit.split("/").map((part) => { try { return decodeURIComponent(part); } catch { return part; } }).filter(Boolean).join(" / ");
    const remove = () => go({ ...state, [key]: "", page: "", item: "" });
    return make("li", {}, make("button", { type: "button", "aria-label": `Remove filter ${NAMES[key]} ${value}`, on: { click: remove } }, `${NAMES[key]}: ${value} ×`));
  }

  function renderList(state) {
    const { rows, counts } = matching(state);
    for (const facet of FACETS) fillSelect(facet, state, counts.get(facet));
    if (document.activeElement !== $("q")) $("q").value = state.q || "";
    const pages = Math.max(1, Math.ceil(rows.length / PER_PAGE));
    const page = Math.min(pages, Math.max(1, Number.parseInt(state.page, 10) || 1));
    const shown = rows.slice((page - 1) * PER_PAGE, page * PER_PAGE);
    const loading = state.q && !searchTexts ? " (searching …)" : "";
    $("count").textContent = `${number(rows.length)} of ${number(total)} items${loading}`;
    const extra = ["answer", ...PARTNERS, "ids", "audit", "order"].filter((key) => state[key]);
    const filtered = extra.length || state.q || FACETS.some((facet) => state[facet]);
    $("opening").hidden = Boolean(filtered) || page > 1 || index.striking.length < 2;
    if (!$("opening").hidden) $("openers").replaceChildren(...index.striking.map((row) => card(row, state)));
    $("chips").replaceChildren(...extra.map((key) => chip(key, state)));
    $("clear").hidden = !filtered;
    $("cards").replaceChildren(...shown.map((row) => card(row, state)));
    const step = (to, text, label) => make("button", { type: "button", "aria-label": label, disabled: to < 1 || to > pages, on: { click: () => { go({ ...state, page: String(to) }); scrollTo(0, 0); } } }, text);
    const field = make("input", { type: "number", min: 1, max: pages, value: page, "aria-label": `Page, of ${pages}`, on: { change: (event) => go({ ...state, page: event.target.value }) } });
    $("pager").replaceChildren(...(pages > 1 ? [step(page - 1, "← Previous", "Previous page"), field, ` of ${number(pages)} `, step(page + 1, "Next →", "Next page")] : []));
    return { page, pages };
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
    const linked = new Set();
    const words = { twin: "Twin", pair: "Pair partner", group: "Same truth" };
    for (const kind of PARTNERS) {
      const others = partners(kind, row);
      const unseen = others.filter((one) => !linked.has(one));
      if (!unseen.length) continue; // twins are of one truth: that is said already
      for (const other of unseen.slice(0, 8)) {
        linked.add(other);
        const text = `${words[kind]}: ${pretty(field("task", other))} · ${field("type", other)} · ${ids[other]}`;
        found.push(make("li", {}, make("a", { href: hashOf({ item: ids[other] }), "data-link": kind }, text)));
      }
      found.push(make("li", {}, make("a", { href: hashOf({ [kind]: field(kind, row) }) }, `List all ${others.length + 1} (${NAMES[kind]})`)));
    }
    const scene = field("scene", row);
    if (pageOfScene.has(scene)) found.push(make("li", {}, make("a", { href: pageOfScene.get(scene), "data-link": "scene" }, `Scene ${scene}`)));
    found.push(make("li", {}, make("a", { href: hashOf({ scene }) }, "All items of this scene")));
    return make("ul", { class: "links" }, ...found);
  }

  // What fell and what people said; of the other figures of the audit only how many they are.
  const TRIED = { text: "a learner that reads only the text", rule: "a fixed rule that sees no image", "image rule": "a fixed rule on the images",
    solver: "a solver that looks at the images", "wrong image": "a solver with another question's images" };
  function said(row) {
    const found = [];
    const lines = linesOf.get(row) || [];
    const fallen = lines.filter((line) => line.verdict === "fell");
    for (const line of fallen) {
      const name = line.name ? ` “${pretty(line.name)}”` : "";
      const value = line.value === null ? "" : `: ${Number(line.value.toPrecision(4))}${line.unit === "%" ? " %" : ""}`;
      const allowed = line.limit === null ? "" : `, where at ${line.kind === "solver" ? "least" : "most"} ${Number(line.limit.toPrecision(4))} was allowed`;
      const text = `${TRIED[line.kind] || line.kind}${name}${value}${allowed}`;
      found.push(make("li", {}, make("span", { class: "flag bad" }, "fell"), " ", make("a", { href: hashOf({ audit: lineKey(line) }) }, text)));
    }
    for (const review of reviewsOf.get(row) || []) {
      const flags = review.flags.length ? ` (${review.flags.map(pretty).join(", ")})` : "";
      found.push(make("li", {}, make("span", { class: review.verdict === "valid" ? "flag good" : "flag bad" }, review.verdict),
        ` by ${review.reviewer}${flags}${review.note ? `: ${review.note}` : ""}`));
    }
    const rest = lines.length - fallen.length;
    if (rest) {
      const audit = document.querySelector('.top a[href$="audit/index.html"]');
      found.push(make("li", {}, `The question is counted in ${rest} ${fallen.length ? "more " : ""}${rest === 1 ? "figure" : "figures"} of the audit, none of which fell`,
        audit ? ": " : ".", audit ? make("a", { href: audit.getAttribute("href") }, "the audit") : null, audit ? "." : null));
    }
    return found;
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
    const list = matching(state).rows;
    const at = list.indexOf(row);
    const order = at >= 0 ? list : null;
    const neighbour = (step) => {
      const other = order ? order[at + step] : row === undefined ? undefined : row + step;
      return other === undefined || ids[other] === undefined ? null : hashOf({ ...state, item: ids[other], page: order ? String(1 + Math.floor((at + step) / PER_PAGE)) : state.page });
    };
    const back = make("a", { href: hashOf({ ...state, item: "" }), id: "back" }, "← List");
    if (row === undefined) {
      box.replaceChildren(make("nav", { class: "steps" }, back), make("h1", { id: "item-title", tabindex: -1 }, "No such item"),
        make("p", { class: "note" }, `This gallery holds no item ${state.item}.`));
      open = { back: hashOf({ ...state, item: "" }) };
      return;
    }
    const chunk = await load(numbered("items", Math.floor(row / index.chunk)));
    if (readState().item !== state.item) return; // somebody went on while it loaded
    const record = chunk[row % index.chunk];
    redrawn.clear();
    observer.disconnect();

    const previous = neighbour(-1);
    const next = neighbour(1);
    const place = order ? `${number(at + 1)} of ${number(order.length)}` : `${number(row + 1)} of ${number(total)}`;
    const steps = make("nav", { class: "steps", "aria-label": "Items" }, back,
      previous ? make("a", { href: previous, id: "previous", rel: "prev" }, "← Previous") : null,
      next ? make("a", { href: next, id: "next", rel: "next" }, "Next →") : null,
      make("span", { class: "where" }, place));
    const task = field("task", row);
    const title = make("h1", { id: "item-title", tabindex: -1 }, `${pretty(task)} · ${field("type", row)}`);
    const sub = make("p", { class: "sub" }, `${field("scene", row)} · ${field("difficulty", row)} · `, make("span", { class: "mono" }, ids[row]));

    const shown = record.images.map((entry, k) => {
      const name = `Image ${k + 1} of ${record.images.length}`;
      const alt = `${name} of item ${ids[row]}: ${pretty(task)}, scene ${field("scene", row)}`;
      const caption = make("figcaption", {}, make("span", {}, record.images.length > 1 ? `Image ${k + 1}` : "Image"),
        entry.size ? make("span", {}, `${entry.size[0]} x ${entry.size[1]} px`) : null);
      if (!entry.address) return { node: make("figure", { class: "picture" }, make("p", { class: "absent note" }, `${name} is not here: neither in media/ nor in the dataset's files.`), caption), show: () => {}, add: () => {} };
      const made = picture(address(entry.address), alt, entry.size, entry.marks, false);
      const button = make("button", { type: "button", "aria-label": `Enlarge ${alt}`, on: { click: () => enlarge(entry, k, name, alt, open.overlay) } }, made.frame);
      return { node: make("figure", { class: "picture" }, button, caption), show: made.show, add: made.add };
    });

    const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const options = record.options.map((text, k) => make("li", { "data-letter": letters[k] }, make("span", { class: "letter" }, letters[k]),
      make("span", { class: "body" }, ...setMatrices(text))));
    // Where a wrong pose would put the points in the second image: that is what it means.
    const meanings = (record.space?.cameras ?? []).filter((camera) => camera.image < 0 && record.images.length === 2);
    const meaningButtons = meanings.map((camera) => make("button", { type: "button", class: "meaning", "aria-pressed": "false", on: { click: () => showMeaning(camera) } }, camera.name));
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
    const answerButton = make("button", { type: "button", class: "main", id: "answer-button", "aria-expanded": "false", "aria-controls": "answer", on: { click: () => toggleAnswer() } });
    const overlayButton = make("button", { type: "button", id: "overlay-button", "aria-pressed": "false", on: { click: () => toggleOverlay() } });
    overlayButton.append("Overlay ", make("kbd", {}, "o"));
    const marked = record.images.some((entry) => entry.marks.length);
    overlayButton.disabled = !marked;
    const sample = (kind) => draw("svg", { "aria-hidden": "true", viewBox: "0 0 34 12" }, draw("polyline", { points: "2,6 32,6", class: `mark line ${kind}` }), kind === "right" ? draw("circle", { cx: 17, cy: 6, r: 4, class: "dot right" }) : draw("path", { d: "M12 6L17 1L22 6L17 11Z", class: "dot decoy" }));
    const decoys = record.images.some((entry) => entry.marks.some((mark) => !mark.right));
    const legend = make("p", { class: "legend-marks", id: "legend", hidden: true }, make("span", {}, sample("right"), " the truth: solid, round"),
      decoys ? make("span", {}, sample("decoy"), " wrong options: dashed, diamonds") : null);
    const spoken = marksInWords(record.images);

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
    open = { row, answered: true, overlay: false, toggleAnswer, toggleOverlay, previous, next, back: hashOf({ ...state, item: "" }) };
    toggleAnswer();

    const verdict = said(row);
    const raw = make("pre", { class: "raw", tabindex: 0 });
    const evidence = section("All evidence (JSON)", raw);
    evidence.addEventListener("toggle", () => { if (evidence.open && !raw.textContent) raw.textContent = JSON.stringify(record.evidence, null, 1); });
    const numbers = section("Numbers behind the answer", table(record.numbers),
      record.margins.length ? make("div", {}, make("h3", {}, "Margins over the required ones"), make("ul", { class: "margins" },
        ...record.margins.map(([name, value]) => make("li", {}, `${name} `, make("b", {}, String(value)))))) : null,
      record.decoys.length ? rowsTable(["Decoy", "strategy", "separation over margin", "candidate"], record.decoys) : null,
      spoken.length ? table(spoken) : null);
    numbers.id = "numbers";
    const rest = make("div", { class: "rest" }, make("div", { class: "now" },
      options.length ? make("ol", { class: "options", "aria-label": "Options" }, ...options) : null,
      make("div", { class: "actions" }, answerButton, overlayButton), meant, answer, legend,
      marked ? null : make("p", { class: "sub" }, record.overlay_problem)), make("div", { class: "more" },
      why,
      verdict.length ? make("section", { "aria-label": "Verdicts", id: "said" }, make("h2", {}, "Verdicts"),
        make("ul", { class: "links" }, ...verdict)) : null,
      make("h2", {}, "See also"), links(row),
      make("h2", {}, "Details"), numbers, section("Where it comes from", table(record.provenance)), evidence));
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
    const button = (text, act) => make("button", { type: "button", class: "quiet", on: { click: () => viewer && act() } }, text);
    const through = space.cameras.flatMap((camera, k) => (camera.image >= 0 ? [button(camera.name, () => viewer.through(k))] : []));
    const tell = () => viewer?.tell(open.answered || open.overlay);
    const wrong = [...space.cameras, ...space.boxes, ...space.points].some((one) => one.right === false);
    const node = make("figure", { class: "in-space" }, make("h2", {}, "In space"), canvas,
      make("div", { class: "space-bar" }, button("Whole", () => viewer.home()), button("From above", () => viewer.above()), ...through),
      make("figcaption", {}, make("span", {}, told, inWords(space), ` With the answer or the overlay: green what is true${wrong ? "; orange, dashed and diamonds what is wrong" : ""}.`),
        make("span", {}, matchMedia("(pointer: coarse)").matches ? "Tap to interact (one finger rotates, two zoom and pan). Tap outside to scroll the page." : "Drag to turn, scroll to zoom, Shift and drag to move.")));
    return { node, tell };
  }
  function inWords(space) {
    const count = (n, one, many) => (n ? [`${n} ${n === 1 ? one : many}`] : []);
    return `${[...count(space.cameras.length, "camera", "cameras"), ...count(space.boxes.length, "box", "boxes"),
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

  // Texts with their matrices set as matrices; what stands before one ("R =") stays on its line.
  function setMatrices(text) {
    const found = [];
    let from = 0;
    for (const match of text.matchAll(/\s?(\[\[[^[\]]+\](?:,\s*\[[^[\]]+\])+\])\n?/g)) {
      const rows = match[1].slice(2, -2).split(/\],\s*\[/).map((row) => row.split(",").map((cell) => cell.trim()));
      if (rows.some((row) => row.length !== rows[0].length || row.some((cell) => !/^[-+\d.e]+$/i.test(cell)))) continue;
      const before = text.slice(from, match.index);
      const inline = /(?:^|\n)([^\n]{0,12})$/.exec(before);
      const head = inline ? before.slice(0, before.length - inline[1].length) : before;
      const body = make("span", { class: "matrix", role: "img", "aria-label": `matrix ${match[1]}` },
        ...rows.map((row) => make("span", { class: "matrix-row" }, ...row.map((cell) => make("span", {}, cell)))));
      if (head) found.push(head.replace(/\n$/, found.length || head.length > 1 ? "\n" : ""));
      found.push(make("span", { class: "equation" }, inline ? inline[1].trimEnd() : "", body));
      from = match.index + match[0].length;
    }
    if (from < text.length) found.push(text.slice(from));
    return found;
  }

  // What the overlay shows, for those who do not see it.
  function marksInWords(images) {
    return images.flatMap((entry, k) => entry.marks.filter((mark) => mark.label || mark.kind === "rect").map((mark) => [
      `Overlay, image ${k + 1}`,
      `${mark.right ? "truth" : "wrong option"}: ${mark.kind} ${mark.label} at ${mark.points.map(([u, v]) => `(${Math.round(u)}, ${Math.round(v)})`).join(", ")}`,
    ]));
  }

  // --- which view ----------------------------------------------------------------------------------------------------

  let place = { page: 1, pages: 1 };
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
    place = renderList(state);
    $("item").hidden = true;
    $("list").hidden = false;
    document.title = `Items · ${index.name}`;
    if (cameFrom !== null) {
      scrollTo(0, scrolled);
      const row = rowOf.get(cameFrom);
      document.querySelector(`#cards .card[data-row="${row}"]`)?.focus({ preventScroll: true });
      cameFrom = null;
    }
  }

  // --- events --------------------------------------------------------------------------------------------------------

  addEventListener("hashchange", render);
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  for (const facet of FACETS) {
    $(`f-${facet}`).addEventListener("change", (event) => go({ ...readState(), [facet]: event.target.value, page: "" }));
  }
  let typing = 0;
  $("q").addEventListener("focus", wantSearchTexts);
  $("q").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      const state = readState();
      const q = $("q").value.trim();
      // Somebody may have opened an item meanwhile, and its list must stay what it was; or typed the same again.
      if (!state.item && q !== (state.q || "")) amend({ ...state, q, page: "" });
    }, 150);
  });
  $("shuffle").addEventListener("click", () => go({ ...readState(), order: String(1 + Math.floor(Math.random() * 99999)), page: "", item: "" }));
  // On a phone the filters are folded: the questions come first.
  $("fold").open = !matchMedia("(max-width: 640px)").matches || FACETS.some((facet) => readState()[facet]);
  $("clear").addEventListener("click", () => { $("q").value = ""; go({}); });
  $("help-open").addEventListener("click", () => $("help").showModal());
  $("zoom-close").addEventListener("click", () => $("zoom").close());
  document.querySelector(".skip").addEventListener("click", (event) => {
    // "#main" would be read as an address of the list.
    event.preventDefault();
    ($("list").hidden ? $("item-title") : $("q")).focus();
  });

  function moveCard(step) {
    const cards = [...document.querySelectorAll("#cards .card")];
    const at = cards.indexOf(document.activeElement);
    const to = at < 0 ? (step > 0 ? 0 : cards.length - 1) : at + step;
    if (cards[to]) { cards[to].focus(); cards[to].scrollIntoView({ block: "nearest" }); return; }
    const page = place.page + step;
    if (page < 1 || page > place.pages) return;
    go({ ...readState(), page: String(page) });
    addEventListener("hashchange", () => setTimeout(() => moveCard(step)), { once: true });
  }

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target;
    if (target.matches("input, select, textarea")) {
      if (event.key === "Escape") target.blur();
      return;
    }
    if ($("help").open) { if (event.key === "?") $("help").close(); return; }
    if ($("zoom").open) { if (event.key === "o") $("zoom").toggle?.(); return; }
    const step = { ArrowRight: 1, j: 1, ArrowLeft: -1, k: -1 }[event.key];
    const scrollable = target.matches("pre, .scroll");
    if (event.key === "?") $("help").showModal();
    else if (event.key === "/") {
      event.preventDefault();
      if (open) go({ ...readState(), item: "" });
      setTimeout(() => $("q").focus());
    } else if (open) {
      if (event.key === "a") open.toggleAnswer?.();
      else if (event.key === "o") open.toggleOverlay?.();
      else if (event.key === "Escape") location.hash = open.back;
      else if (step && !(scrollable && event.key.startsWith("Arrow"))) {
        const to = step > 0 ? open.next : open.previous;
        if (to) location.hash = to;
      } else return;
    } else if (step) moveCard(step);
    else return;
    event.preventDefault();
  });

  render();
})();
