// The grid of heads in words: one head's statistics, and the table of all.
import { el, fmt } from "./dom.js"
import { numberText } from "./attention_maps.js"

export const STATISTICS = ["entropy", "distance", "first", "previous", "itself", "same", "induction"]
const SHARES = ["first", "previous", "itself", "same", "induction"]

// A statistic's value with its unit: 1.23 bits, 2.1 tokens, 45.0 %.
export function statText(name, value, s) {
  if (value === null || value === undefined) return "–"
  if (SHARES.includes(name)) return `${(100 * value).toFixed(1)} %`
  return fmt(s[`stat_${name}_value`], { n: numberText(value, 2) })
}

export function headName(layer, head, s) {
  return fmt(head < 0 ? s.mean_of : s.head_of, { layer: layer + 1, head: head + 1 })
}

export function valueOf(data, name, layer, head) {
  return data.statistics[name][layer]?.[head] ?? null
}

// All statistics of one head as [name, text].
export function headFacts(data, layer, head) {
  const s = data.strings
  return STATISTICS.map((name) => [s[`stat_${name}`], statText(name, valueOf(data, name, layer, head), s)])
}

export function headsTable(data, list, open) {
  const s = data.strings
  const heading = (text, title) => el("th", { scope: "col", title }, text)
  const row = ({ layer, head }) => el("tr", { class: layer === data.layer && head === data.head ? "chosen" : null },
    el("td", { class: "num" }, layer + 1), el("td", { class: "num" }, head + 1),
    STATISTICS.map((name) => el("td", { class: "num" }, statText(name, valueOf(data, name, layer, head), s))),
    el("td", {}, el("button", { type: "button", class: "quiet", "aria-label": fmt(s.open_head, { layer: layer + 1, head: head + 1 }),
      onclick: () => open(layer, head) }, s.open)))
  return el("div", { class: "scroll" }, el("table", { class: "heads-table" },
    el("thead", {}, el("tr", {}, heading(s.layer), heading(s.head),
      STATISTICS.map((name) => heading(s[`stat_${name}`], s[`stat_${name}_help`])), heading(""))),
    el("tbody", {}, list.map(row))))
}
