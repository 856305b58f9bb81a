// One text through several tokenizers, a row each.
import { el, fmt, themeOf } from "./dom.js"

const number = (n) => n.toLocaleString("en")

function chipNode(chip, index, s) {
  const ids = chip.parts.map(([id, label]) => `${label} (${id})`).join(" ")
  const several = chip.parts.length > 1
  const classes = ["piece", index % 2 ? "odd" : "even", chip.special && "control", several && "several"]
  return el("span", { class: classes.filter(Boolean).join(" "), title: several ? fmt(s.parts_title, { n: chip.parts.length, ids }) : ids },
    el("bdi", {}, chip.label), several && el("small", {}, `×${chip.parts.length}`))
}

function rowNode(row, most, s) {
  const head = el("div", { class: "head" }, el("b", {}, row.name),
    row.entries && el("small", {}, fmt(s.entries, { n: number(row.entries) })))
  if (row.why) return el("section", { class: "reading" }, head, el("p", { class: "why" }, row.why))
  return el("section", { class: "reading" }, head,
    el("div", { class: "count" }, el("span", { class: "bar", "aria-hidden": "true" },
      el("i", { style: { width: `${(100 * row.count) / Math.max(most, 1)}%` } })),
    el("strong", {}, fmt(s.n_tokens, { n: number(row.count) }))),
    el("p", { class: "pieces" }, row.chips.map((chip, i) => chipNode(chip, i, s)),
      row.more > 0 && el("span", { class: "more" }, fmt(s.more, { n: number(row.more) }))),
    row.changed && el("p", { class: "why" }, s.reading_changed))
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  root.dataset.theme = themeOf(parentElement)
  root.lang = data.lang
  root.replaceChildren(...data.rows.map((row) => rowNode(row, data.most, data.strings)))
}
