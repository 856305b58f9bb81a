// Two answers to "which tokens mattered?": gradient × input, and the attention of the last row.
import { el, fmt, themeOf } from "./dom.js"
import { numberText, weightText } from "./attention_maps.js"

export const MOST_BARS = 40

// The tokens shown: all, or the ones with the largest values, in their order.
export function telling(values, most) {
  const order = values.map((_, i) => i)
  if (values.length <= most) return order
  return order.sort((a, b) => Math.abs(values[b]) - Math.abs(values[a])).slice(0, most).sort((a, b) => a - b)
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  root.dataset.theme = themeOf(parentElement)
  root.lang = data.lang
  const s = data.strings
  const shown = telling(data.values, MOST_BARS)
  const size = Math.max(...data.values.map(Math.abs), 1e-12)
  const most = data.attention ? Math.max(...data.attention, 1e-12) : 1
  const bar = (value) => el("div", { class: "both-ways", "aria-hidden": "true" },
    el("i", { class: value < 0 ? "less" : "more", style: { width: `${(50 * Math.abs(value)) / size}%` } }))
  const one = (weight) => el("div", { class: "one-way", "aria-hidden": "true" },
    el("i", { class: "attend", style: { width: `${(100 * weight) / most}%` } }))
  const line = (i) => el("tr", {}, el("td", { class: "num" }, i), el("td", { class: "name" }, el("bdi", {}, data.tokens[i].label)),
    el("td", { class: "num" }, numberText(data.values[i], 3)), el("td", { class: "graph" }, bar(data.values[i])),
    data.attention ? [el("td", { class: "num" }, weightText(data.attention[i])), el("td", { class: "graph" }, one(data.attention[i]))] : null)
  const of = fmt(data.head < 0 ? s.mean_of : s.head_of, { layer: data.layer + 1, head: data.head + 1 })
  root.replaceChildren(
    el("table", { class: "attribution" }, el("caption", {}, fmt(s[`why_${data.how}_of`], { token: data.target, logit: numberText(data.score, 2), sum: numberText(data.sum, 2) })),
      el("thead", {}, el("tr", {}, el("th", { scope: "col", class: "num" }, s.index), el("th", { scope: "col", class: "name" }, s.token),
        el("th", { scope: "colgroup", colspan: 2 }, s[`why_${data.how}`]),
        data.attention ? el("th", { scope: "colgroup", colspan: 2 }, fmt(s.why_attention, { of })) : null)),
      el("tbody", {}, shown.map(line))),
    data.values.length > shown.length ? el("p", { class: "faint" }, fmt(s.why_some, { n: shown.length, all: data.values.length })) : "",
    el("p", { class: "faint" }, s.why_limits))
}
