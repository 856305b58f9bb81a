// The lanes and the candidates as tables, for screen readers and for copying.
import { el, fmt, percent } from "./dom.js"
import { changed, floats, signed, thousands } from "./journey_layout.js"

export function tables(data, place) {
  const s = data.strings
  const details = el(
    "details",
    { class: "tables", open: place.open },
    el("summary", { "data-key": "tables" }, s.as_table),
  )
  details.ontoggle = () => {
    place.open = details.open
    if (details.open && details.childElementCount === 1)
      details.append(layerTable(data), candidateTable(data))
  }
  if (place.open) details.append(layerTable(data), candidateTable(data))
  return details
}

function sheet(caption, head, rows) {
  const cell = (tag) => (value) =>
    el(
      tag,
      tag === "th" ? { scope: "col" } : {},
      typeof value === "string" ? el("bdi", {}, value) : value,
    )
  return el(
    "div",
    { class: "sheet", tabindex: 0, role: "region", "aria-label": caption },
    el(
      "table",
      {},
      el("caption", {}, caption),
      el("thead", {}, el("tr", {}, head.map(cell("th")))),
      el(
        "tbody",
        {},
        rows.map((row) => el("tr", {}, row.map(cell("td")))),
      ),
    ),
  )
}

// A share of attention; a dash where it was not kept, or the layer has none.
function shareText(share) {
  return share >= 0 ? percent(share) : "–"
}

function layerTable(data) {
  const s = data.strings
  const last = data.lanes.length - 1
  const rows = data.lanes.length
  const columns = rows + (data.hidden ? 1 : 0)
  const change = floats(data.change)
  const attention = floats(data.attention)
  const names = data.lanes.map((lane) => `${lane.position} ${lane.label}`)
  if (data.hidden) names.push(fmt(s.hidden, { n: thousands(data.hidden) }))
  const body = Array.from({ length: data.layers }, (_, layer) => [
    String(layer + 1),
    changed(change[layer * rows + last]),
    ...names.map((_, column) =>
      shareText(attention[(layer * rows + last) * columns + column]),
    ),
    ...(data.lens
      ? [
          `${data.lens.guesses[layer]} ${percent(data.lens.probabilities[layer])}`,
          percent(data.lens.chosen[layer]),
        ]
      : []),
  ])
  const guess = data.lens ? [s.table_guess, fmt(s.table_chosen, { token: data.joins.label })] : []
  const head = [
    s.table_layer,
    s.table_change,
    ...names.map((name) => fmt(s.table_reads, { token: name })),
    ...guess,
  ]
  return sheet(fmt(s.table_layers, { token: data.lanes[last].label }), head, body)
}

function candidateTable(data) {
  const s = data.strings
  const rows = data.candidates.map((c) => [
    String(c.rank),
    c.chosen ? `● ${c.label}` : c.label,
    String(c.id),
    c.logit === null ? "−∞" : signed(c.logit, 3),
    percent(c.model),
    c.removed ? fmt(s.removed, { stage: s[c.removed] }) : percent(c.filtered),
  ])
  const o = data.others
  if (o.count)
    rows.push([
      "",
      fmt(s.others, { n: thousands(o.count) }),
      "",
      "",
      percent(o.model),
      percent(o.filtered),
    ])
  return sheet(
    s.table_candidates,
    [s.table_rank, s.token, "id", s.logit, s.p_model_long, s.p_filtered_long],
    rows,
  )
}
