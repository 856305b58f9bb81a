// Above and below the grid: which statistic, in which order, from which value on; the legend.
import { el, fmt } from "./dom.js"
import { attendColour } from "./attention_maps.js"
import { passes, spread } from "./attention_grid.js"
import { STATISTICS, statText } from "./heads_table.js"

// view: {data, by, sorted, descending, limit, list(), choose, turn, sort, redraw}.
export function toolNodes(view) {
  const s = view.data.strings
  const range = view.by ? spread(view.list()) : null
  const name = (statistic) => (statistic ? s[`stat_${statistic}`] : s.by_none)
  const by = el("select", { "data-key": "by", onchange: () => view.choose(by.value) },
    ["", ...STATISTICS].map((value) => el("option", { value, selected: value === view.by }, name(value))))
  return [el("label", {}, el("span", {}, s.by), by), ...(range ? filterNodes(view, range) : []),
    view.by ? el("p", { class: "help" }, s[`stat_${view.by}_help`]) : ""]
}

function filterNodes(view, [low, high]) {
  const { data, descending } = view
  const s = data.strings
  const direction = el("select", { "data-key": "direction", onchange: () => view.turn(direction.value === "high") },
    el("option", { value: "high", selected: descending }, s.highest), el("option", { value: "low", selected: !descending }, s.lowest))
  const sorted = el("input", { type: "checkbox", checked: view.sorted, "data-key": "sorted", onchange: () => view.sort(sorted.checked) })
  const slider = el("input", { type: "range", min: 0, max: 1000, "data-key": "limit", "aria-label": s.filter })
  const told = el("output", {})
  const end = descending ? low : high
  const show = () => {
    const kept = view.list().filter((item) => passes(item, view.limit, descending)).length
    const limit = fmt(descending ? s.at_least : s.at_most, { value: statText(view.by, view.limit ?? end, s) })
    told.textContent = `${limit} · ${fmt(s.kept, { n: kept, all: (data.layers - data.closed.length) * data.heads })}`
    slider.setAttribute("aria-valuetext", told.textContent)
  }
  slider.value = String(Math.round(1000 * (high > low ? Math.abs(((view.limit ?? end) - end) / (high - low)) : 0)))
  slider.oninput = () => {
    const part = (Number(slider.value) / 1000) * (high - low)
    view.limit = part === 0 ? null : descending ? low + part : high - part
    show()
    view.redraw()
  }
  show()
  return [el("label", {}, el("span", {}, s.direction), direction), el("label", { class: "check" }, sorted, el("span", {}, s.sorted)),
    el("label", { class: "limit" }, el("span", {}, s.filter), slider, told)]
}

// view: {data, theme, grid}; the grid knows whether layers run across or down.
export function legendNodes({ data, theme, grid }) {
  const s = data.strings
  const axes = grid.flow ? s.grid_flow : grid.across ? s.grid_across : s.grid_down
  const stops = [0, 0.5, 1].map((unit) => `rgb(${attendColour(unit, theme)})`)
  const shared = data.heads / Math.max(1, data.kv_heads)
  return [axes, s.sentence_join, s.grid_legend, " ",
    el("span", { class: "ramp-legend" }, "0 ", el("i", { style: { background: `linear-gradient(to right, ${stops.join(", ")})` } }), " 1"),
    ` ${s.grid_scale}`, data.pool > 1 ? `${s.sentence_join}${fmt(s.grid_pooled, { n: data.pool })}` : "",
    data.closed.length ? `${s.sentence_join}${s.grid_closed}` : "",
    shared > 1 ? `${s.sentence_join}${fmt(data.kv_heads > 1 ? s.grid_shared : s.grid_shared_one, { n: shared, groups: data.kv_heads })}` : ""]
}
