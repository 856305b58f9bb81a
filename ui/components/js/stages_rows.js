// The candidates as a table with bars in it: the model's probability above, the one after the
// filters below, the name of the stage that removed a token in its place.
import { el, fmt, percent } from "./dom.js"
import { stagesLength, stagesNumber, stagesOthers, stagesRow, stagesTop } from "./stages.js"
import { cardAttribute, cardText } from "./stages_cards.js"

// `force(id)` is null where nothing can be forced.
export function rowsOf(words, prepared, language, labelOf, force) {
  const number = (n) => n.toLocaleString(language)
  const top = el("tbody")
  const extra = el("tbody")
  const rest = rowOthers(words)
  const axis = el("th", { scope: "col", class: "bars" })
  const node = el(
    "table",
    { class: "rows" },
    el("thead", null, el("tr", null,
      el("th", { scope: "col", class: "rank" }, words.col_rank),
      el("th", { scope: "col", class: "token" }, words.col_token),
      axis,
      el("th", { scope: "col", class: "number model" }, words.col_model),
      el("th", { scope: "col", class: "number after" }, words.col_after),
      el("th", { scope: "col", class: "number logit" }, words.col_logit))),
    top, extra, el("tbody", null, rest.node),
  )
  const made = new Map()
  const look = { words, prepared, number, labelOf, force }
  const rowFor = (id) => made.get(id) ?? made.set(id, rowOf(look, id)).get(id)

  // `ids` have rows by rank, `apart` are shown below them (the chosen one, if it is not among them).
  function update(outcome, ids, apart, log) {
    rowsPlace(top, ids.map(rowFor))
    rowsPlace(extra, apart.map(rowFor))
    const shown = [...ids, ...apart]
    const values = shown.map((id) => stagesRow(prepared, outcome, id))
    const others = stagesOthers(prepared, outcome, shown)
    const largest = Math.max(others.model, others.after, ...values.map((v) => Math.max(v.model, v.after)))
    const scale = { log, top: stagesTop(largest) }
    values.forEach((value) => rowFor(value.id).update(value, outcome, scale))
    rest.node.hidden = others.count === 0
    rest.update(others, scale, number)
    rowsAxis(axis, words, scale)
  }
  return { node, update, rowFor }
}

export function rowsPlace(body, rows) {
  const same = body.children.length === rows.length && rows.every((row, i) => body.children[i] === row.node)
  if (!same) body.replaceChildren(...rows.map((row) => row.node))
}

function rowsAxis(axis, words, { log, top }) {
  const marks = log ? ["10⁻⁶", "10⁻⁴", "10⁻²", "1"] : [0, 0.25, 0.5, 0.75, 1].map((part) => `${Number((100 * top * part).toPrecision(3))} %`)
  const key = marks.join()
  if (axis.shownKey === key) return
  axis.shownKey = key
  axis.replaceChildren(el("span", { class: "sr-only" }, words.col_bars), el("span", { class: "marks", "aria-hidden": "true" }, marks.map((m) => el("span", null, m))))
}

// One token's row; also used for search results.
export function rowOf({ words, prepared, number, labelOf, force }, id) {
  const label = labelOf(id)
  const name = el("bdi", { class: "label", title: `${label} · ${fmt(words.id, { id })}` }, label)
  const token = force
    ? el("button", { type: "button", class: "force", title: fmt(words.force, { token: label }), onclick: () => force(id) }, name)
    : name
  const mark = el("span", { class: "mark" })
  const model = el("div", { class: "bar model" })
  const after = el("div", { class: "bar after" })
  const why = el("div", { class: "why" })
  const moved = el("small", { class: "moved" })
  const cells = {
    rank: el("td", { class: "rank" }, number(prepared.rank[id] + 1)),
    token: el("th", { scope: "row", class: "token" }, token, mark),
    bars: el("td", { class: "bars" }, model, after, why),
    model: el("td", { class: "number model" }),
    after: el("td", { class: "number after" }),
    logit: el("td", { class: "number logit" }, stagesNumber(prepared.logits[id]), moved),
  }
  const node = el("tr", { "data-id": id }, Object.values(cells))
  return {
    node,
    relabel: () => cardText(name, labelOf(id)),
    update(value, outcome, { log, top }) {
      const removed = value.by !== null
      rowBar(model, stagesLength(value.model, top, log))
      rowBar(after, stagesLength(value.after, top, log))
      cardText(why, removed ? fmt(words.removed, { name: words[`${value.by}_term`] }) : value.model > 0 ? "" : words.impossible)
      cardText(moved, value.score === value.logit ? "" : ` → ${stagesNumber(value.score)}`)
      cardText(cells.model, percent(value.model))
      cardText(cells.after, removed ? "–" : percent(value.after))
      cardText(mark, rowMark(words, outcome, id))
      const state = id === outcome.chosen ? "chosen" : removed ? "removed" : value.model > 0 ? "kept" : "impossible"
      cardAttribute(node, "class", state + (removed ? " struck" : ""))
      cardAttribute(node, "data-model", String(value.model))
      cardAttribute(node, "data-after", String(value.after))
    },
  }
}

function rowMark(words, outcome, id) {
  if (id === outcome.chosen) return `◀ ${outcome.rule === "forced" ? words.forced : words.chosen}`
  return outcome.rule === "forced" && id === outcome.drawn ? words.would : ""
}

function rowBar(bar, length) {
  const width = `${(100 * length).toFixed(2)}%`
  if (bar.shownWidth === width) return
  bar.shownWidth = width
  bar.style.width = width
}

function rowOthers(words) {
  const label = el("span", { class: "label" })
  const model = el("div", { class: "bar model" })
  const after = el("div", { class: "bar after" })
  const why = el("div", { class: "why" })
  const modelText = el("td", { class: "number model" })
  const afterText = el("td", { class: "number after" })
  const node = el("tr", { class: "others" },
    el("td", { class: "rank" }), el("th", { scope: "row", class: "token" }, label),
    el("td", { class: "bars" }, model, after, why), modelText, afterText, el("td", { class: "number logit" }))
  function update(others, { log, top }, number) {
    cardText(label, fmt(words.others, { n: number(others.count) }))
    rowBar(model, stagesLength(others.model, top, log))
    rowBar(after, stagesLength(others.after, top, log))
    cardText(why, others.kept === 0 ? words.others_none : others.kept < others.count ? fmt(words.others_left, { n: number(others.kept) }) : "")
    cardText(modelText, percent(others.model))
    cardText(afterText, others.kept === 0 ? "–" : percent(others.after))
    cardAttribute(node, "data-model", String(others.model))
    cardAttribute(node, "data-after", String(others.after))
    cardAttribute(node, "data-count", String(others.count))
  }
  return { node, update }
}
