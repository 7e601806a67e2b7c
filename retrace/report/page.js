(async () => {
  "use strict";
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const element = (tag, style, ...children) => {
    const made = document.createElement(tag);
    if (style) made.className = style;
    made.append(...children.filter(child => child != null));
    return made;
  };
  document.documentElement.classList.add("js");

  // Theme: the rule for dark systems is switched on or off; the choice is kept where the browser allows it.
  const dark = [...document.styleSheets[0].cssRules].find(rule => rule.conditionText?.includes("prefers-color-scheme"));
  const wanted = matchMedia("(prefers-color-scheme: dark)"), button = one(".theme");
  let chosen = null;
  const isDark = () => chosen ? chosen === "dark" : wanted.matches;
  const apply = () => {
    if (chosen) dark.media.mediaText = chosen === "dark" ? "screen" : "not all";
    button.textContent = isDark() ? "Light" : "Dark";
  };
  try { chosen = localStorage.getItem("retrace-theme"); } catch { /* a file may have no storage */ }
  button.onclick = () => {
    chosen = isDark() ? "light" : "dark";
    try { localStorage.setItem("retrace-theme", chosen); } catch { /* then it lasts until the page is closed */ }
    apply();
  };
  wanted.onchange = apply;
  button.hidden = false;
  apply();

  // Tooltips.
  const tip = element("div", "tip");
  tip.hidden = true;
  document.body.append(tip);
  document.addEventListener("pointerover", event => {
    const over = event.target.closest?.("[data-t]");
    tip.hidden = !over;
    if (over) tip.textContent = over.dataset.t;
  });
  document.addEventListener("pointermove", event => {
    if (tip.hidden) return;
    const above = event.clientY - tip.offsetHeight - 12;
    tip.style.left = `${Math.max(4, Math.min(innerWidth - tip.offsetWidth - 4, event.clientX + 12))}px`;
    tip.style.top = `${above < 4 ? event.clientY + 16 : above}px`;
  });

  // The list of contents shows what is being read.
  const links = all("nav a");
  const seen = new IntersectionObserver(entries => entries.filter(entry => entry.isIntersecting).forEach(entry => {
    for (const link of links)
      if (link.getAttribute("href") === `#${entry.target.id}`) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
  }), { rootMargin: "-10% 0px -80%" });
  all("section[id]").forEach(section => seen.observe(section));

  // Tables: sorted by a click on a heading, each body by itself, and downloaded as they stand.
  const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const number = text => {
    const plain = text.replace(/[,≈<]/g, "").replace("−", "-").replace(/ × 10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)/,
      (_, power) => "e" + [...power].map(sign => sign === "⁻" ? "-" : RAISED.indexOf(sign)).join(""));
    return parseFloat(plain) * ({ K: 1e3, M: 1e6, B: 1e9 }[/^\s*-?[\d.]+ ?([KMB])/.exec(plain)?.[1]] ?? 1);
  };
  const sort = (table, headings, column) => {
    const numeric = headings[column].classList.contains("n"), before = headings[column].getAttribute("aria-sort");
    const down = before ? before === "ascending" : numeric;
    headings.forEach(heading => heading.removeAttribute("aria-sort"));
    headings[column].setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = row => numeric ? number(row.cells[column].textContent) : row.cells[column].textContent.trim();
    const compare = (a, b) => numeric
      ? (isNaN(a) ? 1 : isNaN(b) ? -1 : (a - b) * (down ? -1 : 1))
      : a.localeCompare(b, "en", { numeric: true }) * (down ? -1 : 1);
    for (const body of table.tBodies) body.append(...[...body.rows].sort((a, b) => compare(key(a), key(b))));
  };
  // A spreadsheet runs what begins with one of these signs as a formula, such as -1+cmd|'/C calc'!A0; numbers begin so too.
  const isFormula = text => /^([=@]|[-+](?![\d.]+$))/.test(text);
  const plain = cell => {
    const text = cell.dataset.name ?? cell.textContent.trim().replace(/\s+/g, " ");
    // What other programs read as a number: a minus sign of their own, and no commas between thousands.
    if (cell.classList.contains("n") && !cell.dataset.name) return text.replaceAll("−", "-").replace(/,(?=\d{3}(?!\d))/g, "");
    return isFormula(text) ? `'${text}` : text;
  };
  const quoted = text => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  const asCsv = table => [...table.rows].filter(row => !row.classList.contains("group"))
    .map(row => [...row.cells].map(cell => quoted(plain(cell))).join(",")).join("\n");
  for (const table of all("table.sortable")) {
    const headings = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    headings.forEach((heading, column) => {
      if (!heading.textContent.trim()) return;
      const press = element("button", "", ...heading.childNodes);
      press.onclick = () => sort(table, headings, column);
      heading.append(press);
    });
    const frame = table.closest(".scroll"), save = element("button", "download", "Download as CSV");
    save.setAttribute("aria-label", `Download as CSV: ${frame.getAttribute("aria-label")}`);
    save.onclick = () => {
      const link = element("a");
      link.href = URL.createObjectURL(new Blob([asCsv(table) + "\n"], { type: "text/csv" }));
      link.download = frame.dataset.file;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    };
    frame.after(save);
  }

  // Printing opens what is folded.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = all("details:not([open])");
    for (const fold of opened) fold.open = true;
  });
  addEventListener("afterprint", () => opened.forEach(fold => { fold.open = false; }));

  // Predictions, as browser.py packs them.
  const packed = one("#predictions-data");
  if (!packed) return;
  const bytes = Uint8Array.from(atob(packed.textContent), character => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const tasks = await new Response(stream).json();
  const ui = Object.fromEntries(["tabs", "search", "show", "method", "gold", "order", "count", "items", "prev", "next", "page"]
    .map(id => [id, one(`#b-${id}`)]));
  const marks = Object.fromEntries(all("template").map(template => [template.dataset.name, template]));
  const PAGE = 20;
  let task, list = [], page = 0, order = ui.order.value;  // the order as chosen, which not every task has

  const isRight = (method, example) => method.right[0][example] === "1";
  const sureness = (method, example) => Math.abs(method.sure[example]);
  const methods = () => task.methods.filter(method => !method.baseline);
  const isClasses = () => task.classes.length > 0;
  const passageOf = example => task.passages[task.passage[example]];
  const answer = (method, example) => {
    if (method.said) return task.classes[method.said[example]];
    const start = method.start[example];
    if (start < 0) return method.other[example] ?? "no answer";
    return text(passageOf(example).slice(start, start + method.length[example]));
  };
  // Python counts characters, JavaScript 16-bit units: passages with others are cut into characters once.
  const text = piece => typeof piece === "string" ? piece : piece.join("");
  for (const each of tasks) {
    each.passages = each.passages.map(passage => /[\ud800-\udbff]/.test(passage) ? [...passage] : passage);
    each.plain = each.passages.map(text);
  }

  const choose = number => {
    task = tasks[number];
    all("button", ui.tabs).forEach((tab, i) => tab.setAttribute("aria-pressed", i === number));
    ui.method.replaceChildren(...methods().map((method, i) => new Option(method.name, i)));
    const kinds = isClasses() ? task.classes.map((name, i) => new Option(name, i))
      : [new Option("answerable", 1), new Option("none", 0)];
    ui.gold.replaceChildren(new Option("any", ""), ...kinds);
    filter();
  };

  const SHOWN = {
    all: () => true,
    wrong: (right, own) => !right[own],
    only: (right, own) => !right[own] && right.filter(of => !of).length === 1,
    disagree: (right, own, example) => new Set(isClasses() ? methods().map(of => of.said[example]) : right).size > 1,
    allwrong: right => !right.some(Boolean),
    seeds: (right, own, example) => new Set(methods()[own].right.map(seed => seed[example])).size > 1,
  };
  const filter = () => {
    const query = ui.search.value.trim().toLowerCase(), own = Number(ui.method.value), gold = ui.gold.value;
    const lower = query ? task.plain.map(passage => passage.toLowerCase()) : null;
    const found = example => !query || task.text[example].toLowerCase().includes(query)
      || lower?.[task.passage[example]]?.includes(query);
    const kind = example => isClasses() ? task.gold[example] : Number(task.gold[example].length > 0);
    const method = methods()[own], hasSureness = method?.sure.some(of => of !== null);
    for (const each of ui.order.options) each.hidden = each.disabled = each.value !== "data" && !hasSureness;
    ui.order.value = hasSureness ? order : "data";
    list = [];
    for (let example = 0; example < task.text.length; example++) {
      const right = methods().map(each => isRight(each, example));
      if ((gold === "" || kind(example) === Number(gold)) && SHOWN[ui.show.value](right, own, example) && found(example))
        list.push(example);
    }
    if (ui.order.value === "sure")
      list.sort((a, b) => isRight(method, a) - isRight(method, b) || sureness(method, b) - sureness(method, a));
    if (ui.order.value === "unsure") list.sort((a, b) => sureness(method, a) - sureness(method, b));
    page = 0;
    draw();
  };

  const highlighted = (whole, query) => {
    const low = whole.toLowerCase(), pieces = [];
    let at = 0;
    for (let next; query && low.length === whole.length && (next = low.indexOf(query, at)) >= 0; at = next + query.length)
      pieces.push(whole.slice(at, next), element("mark", "found", whole.slice(next, next + query.length)));
    return [...pieces, whole.slice(at)];
  };
  const marked = example => {
    const passage = passageOf(example), spans = task.gold[example].map(([start, length]) => ({ start, end: start + length }));
    for (const method of task.methods) {
      const start = method.start[example];
      if (start >= 0) spans.push({ start, end: start + method.length[example], method });
    }
    const cuts = [...new Set([0, passage.length, ...spans.flatMap(span => [span.start, span.end])])].sort((a, b) => a - b);
    const shown = element("p", "passage");
    shown.dir = "auto";
    cuts.slice(0, -1).forEach((start, i) => {
      const here = spans.filter(span => span.start <= start && span.end >= cuts[i + 1]);
      const piece = text(passage.slice(start, cuts[i + 1])), by = here.filter(span => span.method);
      const thick = Math.min(3, 10 / by.length);  // px; more than three underlines share the room between two lines
      if (!here.length) return shown.append(piece);
      const gold = by.length < here.length, part = element(gold ? "mark" : "span", "", piece);
      const lines = by.map((span, k) => `0 ${thick * (k + 1)}px 0 -.5px var(--${marks[span.method.name]?.dataset.colour ?? "dim"})`);
      if (lines.length) part.style.boxShadow = lines.join(",");
      part.dataset.t = [gold && "right answer", by.length && `said by ${by.map(span => span.method.name).join(", ")}`]
        .filter(Boolean).join("; ");
      shown.append(part);
    });
    return shown;
  };
  const opinion = (method, example) => {
    const who = element("span", "who", marks[method.name] ? marks[method.name].content.cloneNode(true) : method.name);
    if (method.right.length > 1) {
      const seeds = element("span", "seeds", ...method.right.map(seed => seed[example] === "1" ? "●" : "○"));
      seeds.dataset.t = `right with ${method.right.filter(seed => seed[example] === "1").length} of ${method.right.length} seeds`;
      seeds.setAttribute("role", "img");
      seeds.setAttribute("aria-label", seeds.dataset.t);
      who.append(seeds);
    }
    const right = isRight(method, example), f1 = method.f1?.[example], partly = f1 > 0 && f1 < 100;
    const sure = (method.sure?.[example] ?? null) === null ? "" : method.said ? `${method.sure[example]}%` : (method.sure[example] / 10).toFixed(1).replace("-", "−");
    const said = element("span", right ? "" : "wrong", `${partly ? "≈" : right ? "✓" : "✗"} `, element("bdi", "", answer(method, example)), " ");
    return element("li", "", who, said, element("span", "small", sure + (partly ? `${sure && ", "}F1 ${f1}` : "")));
  };
  const item = example => {
    const query = ui.search.value.trim().toLowerCase(), number = task.number?.[example] ?? example + 1;
    const words = element("p", "", ...highlighted(task.text[example], query));
    words.dir = "auto";
    const made = element("li", "item", element("div", "head", words, element("span", "number", `№ ${number.toLocaleString("en")}`)));
    made.tabIndex = -1;
    if (!isClasses()) made.append(marked(example));
    const golds = isClasses() ? [task.classes[task.gold[example]]]
      : task.gold[example].map(([start, length]) => text(passageOf(example).slice(start, start + length)));
    const right = element("mark", "", [...new Set(golds)].join(" / ") || "no answer");
    right.dir = "auto";
    made.append(element("ul", "said", element("li", "", element("span", "who", "Right answer"), right),
      ...task.methods.map(method => opinion(method, example))));
    return made;
  };

  const pages = () => Math.max(1, Math.ceil(list.length / PAGE));
  const draw = focus => {
    ui.items.replaceChildren(...list.slice(page * PAGE, (page + 1) * PAGE).map(item));
    if (!list.length) ui.items.append(element("li", "item", "Nothing matches. Clear the search or show all."));
    ui.count.textContent = `${list.length.toLocaleString("en")} of ${task.text.length.toLocaleString("en")} ${task.noun}`;
    ui.page.textContent = `page ${page + 1} of ${pages()}`;
    ui.prev.disabled = page === 0;
    ui.next.disabled = page >= pages() - 1;
    ui.items.firstChild.tabIndex = 0;
    if (focus) go(focus > 0 ? 0 : ui.items.children.length - 1);
  };
  const go = place => {
    const items = [...ui.items.children];
    if (!items[place]) return;
    items.forEach((each, i) => { each.tabIndex = i === place ? 0 : -1; });
    items[place].focus();
    items[place].scrollIntoView({ block: "nearest" });
  };
  const turn = (by, focus) => {
    if (page + by < 0 || page + by >= pages()) return;
    page += by;
    draw(focus ? by : 0);
  };
  ui.items.onclick = event => event.target.closest(".item")?.classList.toggle("open");
  ui.items.onkeydown = event => {
    const items = [...ui.items.children], at = items.indexOf(document.activeElement);
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = by => at + by < 0 ? turn(-1, true) : at + by >= items.length ? turn(1, true) : go(at + by);
    const keys = {
      ArrowDown: () => step(1), j: () => step(1), ArrowUp: () => step(-1), k: () => step(-1),
      PageDown: () => turn(1, true), n: () => turn(1, true), PageUp: () => turn(-1, true), p: () => turn(-1, true),
      Home: () => go(0), End: () => go(items.length - 1), Enter: () => items[at].classList.toggle("open"),
      "/": () => ui.search.focus(),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  };
  let waiting;
  ui.search.oninput = () => {
    clearTimeout(waiting);
    waiting = setTimeout(filter, 120);
  };
  for (const id of ["show", "method", "gold"]) ui[id].onchange = filter;
  ui.order.onchange = () => {
    order = ui.order.value;
    filter();
  };
  ui.prev.onclick = () => turn(-1);
  ui.next.onclick = () => turn(1);
  tasks.forEach((each, i) => {
    const tab = element("button", "btn", each.title);
    tab.onclick = () => choose(i);
    ui.tabs.append(tab);
  });
  choose(0);
  document.documentElement.dataset.ready = "";
})();
