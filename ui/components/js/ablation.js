// Before and after some heads were switched off: the next token's probabilities, and the texts.
import { el, fmt, keepFocus, percent, themeOf } from "./dom.js"
import { numberText } from "./attention_maps.js"

export function offName([layer, head], s) {
  return fmt(head < 0 ? s.layer_n : s.head_of, { n: layer + 1, layer: layer + 1, head: head + 1 })
}

function chips(data, emit) {
  const s = data.strings
  const one = ([layer, head]) => el("button", { type: "button", class: "off-chip", title: s.switch_on,
    onclick: () => emit({ do: "on", layer, head }) }, offName([layer, head], s), el("span", { "aria-hidden": "true" }, " ✕"))
  return el("p", { class: "off-list" }, el("span", {}, s.off_now), data.off.map(one),
    data.off.length > 1 ? el("button", { type: "button", class: "quiet", onclick: () => emit({ do: "all_on" }) }, s.all_on) : null)
}

function figures(data) {
  const s = data.strings
  const { chosen, kl } = data
  const tile = (title, value, help) => el("div", { class: "tile", title: help }, el("span", { class: "title" }, title), el("strong", {}, value))
  return el("div", { class: "tiles" },
    tile(fmt(s.chosen_probability, { token: chosen.label }), `${percent(chosen.before)} → ${percent(chosen.after)}`, s.chosen_help),
    tile(s.chosen_rank, `${chosen.rank_before} → ${chosen.rank_after}`, s.chosen_help),
    tile(s.kl, kl === null ? "∞" : fmt(s.kl_value, { n: numberText(kl) }), s.kl_help))
}

function shifts(data) {
  const s = data.strings
  const scale = Math.max(...data.rows.map((row) => Math.max(row.before, row.after)), 1e-12)
  const bar = (kind, p) => el("i", { class: kind, style: { width: `${(100 * p) / scale}%` } })
  const line = (row) => el("tr", { class: row.chosen ? "chosen" : null },
    el("td", { class: "num" }, row.rank_before), el("td", { class: "num" }, row.rank_after),
    el("td", { class: "name" }, el("bdi", {}, row.label), row.chosen ? el("small", {}, ` ◀ ${s.chosen}`) : null),
    el("td", { class: "num logit" }, numberText(row.logit_before, 2)), el("td", { class: "num logit" }, numberText(row.logit_after, 2)),
    el("td", { class: "num before" }, percent(row.before)), el("td", { class: "num after" }, percent(row.after)),
    el("td", { class: "bars", "aria-hidden": "true" }, bar("before", row.before), bar("after", row.after)))
  const heads = [[s.rank_before, "num"], [s.rank_after, "num"], [s.token, "name"], [s.logit_before, "num logit"],
    [s.logit_after, "num logit"], [s.before, "num before"], [s.after, "num after"], ["", "bars"]]
  return el("table", { class: "shifts" }, el("caption", { class: "sr-only" }, s.shifts),
    el("thead", {}, el("tr", {}, heads.map(([text, kind]) => el("th", { scope: "col", class: kind }, text)))),
    el("tbody", {}, data.rows.map(line)))
}

function texts(data) {
  const s = data.strings
  if (!data.texts) return null
  const text = (tokens) => tokens.map((label, i) => el("bdi", { class: i < data.texts.same ? "tok" : "tok other" }, label))
  return el("div", { class: "texts" },
    el("p", {}, el("b", { class: "before" }, s.text_before + s.colon), text(data.texts.before)),
    el("p", {}, el("b", { class: "after" }, s.text_after + s.colon), text(data.texts.after)),
    el("p", { class: "faint" }, data.texts.same >= Math.max(data.texts.before.length, data.texts.after.length)
      ? s.texts_same : fmt(s.texts_part, { n: data.texts.same + 1 })))
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  root.dataset.theme = themeOf(parentElement)
  root.lang = data.lang
  if (!data.off.length) {
    delete root.dataset.kl
    keepFocus(root, () => root.replaceChildren(el("p", { class: "nothing", tabindex: "-1" }, data.strings.off_none)))
    return
  }
  root.dataset.kl = String(data.kl)
  const list = chips(data, (event) => setTriggerValue("action", event))
  keepFocus(root, () => root.replaceChildren(list, figures(data), shifts(data), ...[texts(data)].filter(Boolean)))
}
