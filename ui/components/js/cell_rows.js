// The softmax over one row: which keys get a line of their own, and the line for all others.

import { el, fmt } from "./dom.js"
import { numberText, weightText } from "./attention_maps.js"

// rows: [position, q·k, score, e^(score − highest), weight, the model's weight]. The `most`
// heaviest, the key in view, the masked one behind, in their order; the others summed up.
export function pickRows(rows, key, most) {
  const best = [...rows].sort((a, b) => b[4] - a[4]).slice(0, most).map((row) => row[0])
  const keep = new Set([...best, key])
  const last = rows.at(-1)
  if (last[2] === null) keep.add(last[0])
  const shown = rows.filter((row) => keep.has(row[0]))
  const others = rows.filter((row) => !keep.has(row[0]))
  const sum = (column) => others.reduce((total, row) => total + row[column], 0)
  return { shown, rest: others.length ? { count: others.length, raised: sum(3), weight: sum(4), captured: sum(5) } : null }
}

export function softmaxTable(data, all, open) {
  const s = data.strings
  const { shown, rest } = pickRows(data.rows, data.key, all ? data.rows.length : 12)
  const head = [s.key_axis, "q·k", s.score, s.raised, s.weight, s.of_model]
  const why = (position) => (position > data.query ? s.mask_future : s.mask_window)
  const line = ([position, dot, score, raised, weight, captured]) => el("tr", { class: [position === data.key && "chosen",
    score === null && "masked"].filter(Boolean).join(" ") || null },
  el("td", { class: "name" }, el("button", { type: "button", class: "quiet", onclick: () => open(position) },
    el("small", {}, position), " ", el("bdi", {}, data.tokens[position].label))),
  el("td", { class: "num" }, dot === null ? "–" : numberText(dot)),
  el("td", { class: "num" }, score === null ? ["−∞ ", el("small", {}, why(position))] : numberText(score)),
  el("td", { class: "num" }, score === null ? "0" : numberText(raised)),
  el("td", { class: "num strong" }, weightText(weight), el("i", { class: "bar", style: { width: `${100 * weight}%` } })),
  el("td", { class: "num" }, weightText(captured)))
  const others = rest && el("tr", { class: "others" }, el("td", {}, fmt(s.others, { n: rest.count })), el("td", {}), el("td", {}),
    el("td", { class: "num" }, numberText(rest.raised)), el("td", { class: "num" }, weightText(rest.weight)),
    el("td", { class: "num" }, weightText(rest.captured)))
  const total = data.rows.reduce((sum, row) => sum + row[4], 0)
  const ofModel = data.rows.reduce((sum, row) => sum + row[5], 0)
  return el("div", { class: all ? "scroll" : null }, el("table", { class: "softmax" },
    el("thead", {}, el("tr", {}, head.map((text, i) => el("th", { scope: "col", class: i ? "num" : null }, text)))),
    el("tbody", {}, shown.map(line), others),
    el("tfoot", {}, el("tr", {}, el("th", { scope: "row" }, s.sum), el("td", {}), el("td", {}), el("td", { class: "num" }, numberText(data.sum)),
      el("td", { class: "num" }, numberText(total)), el("td", { class: "num" }, numberText(ofModel))))))
}
