// Searches the Markdown of all pages. The index is fetched when the reader first enters the field. A section is found
// if it has every word; words in its heading count more than words in its text.
"use strict";
const field = document.getElementById("search");
const list = document.getElementById("found");
const source = document.currentScript.dataset.index;
let sections;

// anchors follow the rules of the Markdown renderer: lower case, no punctuation, hyphens for spaces.
function anchor(heading, seen) {
  const name = heading.toLowerCase().replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/[^\p{L}\p{N}\s_-]/gu, "").replace(/\s/g, "-");
  const n = seen[name] ?? 0;
  seen[name] = n + 1;
  return n ? `${name}-${n}` : name;
}

function split(page) {
  const seen = {}, out = [];
  let fence = false, section = { heading: page.page, url: page.url, lines: [] };
  for (const line of page.text.split("\n")) {
    if (line.startsWith("```")) fence = !fence;
    const heading = fence ? null : /^#{1,6} +(.*)$/.exec(line);
    if (!heading) {
      section.lines.push(line);
      continue;
    }
    out.push(section);
    const text = heading[1].replace(/`/g, "");
    section = { heading: text, url: `${page.url}#${anchor(text, seen)}`, lines: [] };
  }
  out.push(section);
  return out.map(({ heading, url, lines }) => ({ page: page.page, heading, url, text: lines.join("\n") }));
}

async function load() {
  if (!sections) {
    const pages = await (await fetch(source)).json();
    sections = pages.flatMap(split).map((s) => ({ ...s, low: s.text.toLowerCase(), title: `${s.page} ${s.heading}`.toLowerCase() }));
  }
  return sections;
}

function rank(section, words) {
  let sum = 0;
  for (const word of words) {
    const inTitle = section.title.includes(word), times = section.low.split(word).length - 1;
    if (!inTitle && !times) return 0;
    sum += (inTitle ? 20 : 0) + Math.min(times, 5);
  }
  return sum;
}

function excerpt(section, word) {
  const at = Math.max(0, section.low.indexOf(word) - 40);
  return section.text.slice(at, at + 120).replace(/\s+/g, " ");
}

async function search() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = await load();
  const found = words.length ? all.map((s) => [rank(s, words), s]).filter(([r]) => r).sort((a, b) => b[0] - a[0]).slice(0, 12) : [];
  list.replaceChildren(...found.map(([, s]) => {
    const item = document.createElement("li"), link = item.appendChild(document.createElement("a"));
    link.href = s.url;
    link.textContent = s.heading === s.page ? s.page : `${s.page}: ${s.heading}`;
    item.append(document.createElement("br"), excerpt(s, words[0]));
    return item;
  }));
  if (words.length && !found.length) list.append(Object.assign(document.createElement("li"), { textContent: "Nothing found" }));
  list.hidden = !words.length;
}

field.addEventListener("focus", load);
field.addEventListener("input", search);
addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== field) {
    event.preventDefault();
    field.focus();
  } else if (event.key === "Escape") {
    field.value = "";
    list.hidden = true;
  }
});
