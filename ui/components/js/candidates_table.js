// The candidates as a table: what each token was worth before and after every filter.

import { el, fmt, percent } from "./dom.js"

// The rows for a table of the n likeliest: those, and the chosen one wherever it stands.
export function rowsFor(rows, n) {
  return rows.filter((row) => row.rank <= n || row.chosen)
}

// Columns: the stages that can change something, with their place in `after`.
export function activeStages(stages) {
  return stages.map((stage, place) => ({ ...stage, place })).filter((stage) => stage.on)
}

const ROOM = 5

// More stages than there is room for: one that changes no number of the table needs no column.
export function columnsFor(active, rows) {
  if (active.length <= ROOM) return active
  const before = (row, i) => (i > 0 ? cellText(row, active[i - 1]) : percent(row.model))
  return active.filter((stage, i) => i === active.length - 1
    || rows.some((row) => cellText(row, stage) !== before(row, i)))
}

// The columns of a table of the n likeliest, and the stages that are on without one.
export function stagesOf(data, n) {
  const active = activeStages(data.stages)
  const shown = columnsFor(active, [...rowsFor(data.rows, n), data.others[String(n)]].filter(Boolean))
  return { shown, idle: active.filter((stage) => !shown.includes(stage)) }
}

// The greatest probability in any bar: the bars' scale.
export function scaleOf(rows, active) {
  const last = active.at(-1)
  return Math.max(...rows.filter(Boolean).flatMap((r) => [r.model, last ? r.after[last.place] : 0]), 1e-12)
}

// What stands in the column of one stage: a probability, or a dash where the token is gone.
export function cellText(row, stage) {
  const value = row.after[stage.place]
  return value > 0 || !row.removed ? percent(value) : "–"
}

export function logitText(row) {
  if (row.logit === null) return "−∞"
  return `${row.logit < 0 ? "−" : ""}${Math.abs(row.logit).toFixed(2)}`
}

// A name that no line ends within.
const whole = (label) => label.replace("-", "\u2011")
const named = (data, name) => whole(data.stages.find((stage) => stage.name === name).label)

function bars(row, active, scale, data) {
  const s = data.strings
  const last = active.at(-1)
  const bar = (kind, p) => p > 0 && el("i", { class: kind, style: { width: `${(100 * p) / scale}%` } })
  const end = row.removed ? fmt(s.removed_by, { stage: named(data, row.removed) })
    : row.model === 0 && row.rank ? s.impossible : null
  return el("div", { class: end ? "bars ended" : "bars", "aria-hidden": end ? null : "true" }, bar("model", row.model),
    end ? el("small", {}, end) : last && bar("filtered", row.after[last.place]))
}

function token(row, data, force) {
  const s = data.strings
  const values = { token: row.label, p: percent(row.model), rank: row.rank }
  const what = fmt(row.chosen ? s.is_chosen : s.force, values)
  const about = row.special ? `${what} · ${s.control}` : what
  return el("button", {
    type: "button", class: "pick", title: about, "aria-label": about, tabindex: -1,
    "aria-current": row.chosen ? "true" : null, onclick: row.chosen ? null : () => force(row.id),
  }, el("span", { class: "mark", "aria-hidden": "true" }, row.chosen ? "▶" : ""),
  el("bdi", { class: row.special ? "label control" : "label" }, row.label))
}

function line(row, active, scale, data, force) {
  const state = [row.chosen && "chosen", (row.removed || row.model === 0) && "gone"].filter(Boolean)
  return el("tr", { class: state.join(" ") || null, onclick: (event) => {
    if (!row.chosen && event.target.closest("button") === null) force(row.id)
  } },
  el("td", { class: "number rank" }, row.rank), el("td", { class: "name" }, token(row, data, force)),
  el("td", { class: "number wide" }, row.id), el("td", { class: "number wide" }, logitText(row)),
  el("td", { class: "number model" }, percent(row.model)),
  active.map((stage, i) => el("td", { class: i < active.length - 1 ? "number stage" : "number filtered" },
    cellText(row, stage))),
  el("td", { class: "graph" }, bars(row, active, scale, data)))
}

function others(rest, active, scale, data) {
  const s = data.strings
  return el("tr", { class: "others" },
    el("td", { class: "name", colspan: 2, title: s.others_all }, fmt(s.others, { n: rest.count.toLocaleString("en") })),
    el("td", { class: "wide" }), el("td", { class: "wide" }),
    el("td", { class: "number model" }, percent(rest.model)),
    active.map((stage, i) => el("td", { class: i < active.length - 1 ? "number stage" : "number filtered" },
      percent(rest.after[stage.place]))),
    el("td", { class: "graph" }, bars({ ...rest, removed: null }, active, scale, data)))
}

function head(active, scale, s) {
  const cell = (text, title, kind) => el("th", { scope: "col", class: kind, title }, text)
  return el("tr", {}, cell(s.rank, null, "number rank"), cell(s.token, null, "name"),
    cell(s.id, null, "number wide"), cell(s.logit, null, "number wide"),
    cell(s.model, s.model_help, "number model"),
    active.map((stage, i) => cell(
      [fmt(s.after, { stage: whole(stage.label) }), el("small", {}, ` ${stage.value}`)],
      fmt(s.after_help, { stage: stage.label, value: stage.value, n: stage.survivors.toLocaleString("en"), mass: percent(stage.mass) }),
      i < active.length - 1 ? "number stage" : "number filtered")),
    cell(s.bars, fmt(s.bars_help, { p: percent(scale) }), "graph"))
}

// The whole table; `force(id)` is called for a click or Enter on a row.
export function tableNode(data, n, force) {
  const { shown: active } = stagesOf(data, n)
  const rows = rowsFor(data.rows, n)
  const rest = data.others[String(n)]
  const scale = scaleOf([...data.rows, rest], active)
  const table = el("table", { class: active.length >= ROOM ? "many" : null },
    el("thead", {}, head(active, scale, data.strings)),
    el("tbody", {}, rows.map((row) => line(row, active, scale, data, force)),
      rest && others(rest, active, scale, data)))
  return el("div", { class: "sideways" }, table)
}
