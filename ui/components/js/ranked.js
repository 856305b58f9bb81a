import { el, percent, themeOf } from "./dom.js"

// Rankings side by side: each is a title, a note, and rows of a token with one value as a bar.
// A value is a probability (share of 1) or a cosine (-1 … 1).
function rankedList(list, strings) {
  const most = Math.max(...list.rows.map((row) => row.value), 1e-9)
  const write = list.kind === "probability" ? percent : (x) => x.toFixed(3).replace("-", "−")
  return el("section", { class: "box" },
    el("h3", {}, list.title),
    list.note && el("p", { class: "dim" }, list.note),
    list.tokens && el("p", { class: "read" }, list.tokens.map((token) =>
      el("span", { class: `token ${token.special ? "control" : ""}${token.moved ? " moved" : ""}` }, el("bdi", {}, token.label)))),
    list.rows.length ? null : el("p", { class: "dim" }, strings.nothing),
    el("ol", { class: "rows", "aria-label": list.title }, list.rows.map((row) => el("li", { class: row.marked ? "marked" : "" },
      el("span", { class: "rank" }, row.rank),
      el("span", { class: "label", title: row.label }, el("bdi", {}, row.label)),
      el("span", { class: "track" }, el("span", { class: `fill ${list.kind}`, style: { width: `${(100 * Math.max(0, row.value)) / most}%` } })),
      el("span", { class: "value" }, write(row.value)),
      el("span", { class: "aside" }, row.aside ?? "")))))
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  root.dataset.theme = themeOf(parentElement)
  root.lang = data.lang
  root.replaceChildren(
    data.headline ? el("p", { class: "headline" }, data.headline) : "",
    el("div", { class: "lists" }, data.lists.map((list) => rankedList(list, data.strings))),
    data.verdict ? el("p", { class: "verdict" }, data.verdict) : "")
}
