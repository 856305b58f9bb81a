// The drawing of stage 2, in SVG: lanes, cells, the lens bars, the ribbons of attention.
import { svg } from "./dom.js"
import { GRID } from "./journey_grid.js"
import { ribbons, ticks, tint } from "./journey_layout.js"
import { clipped, rich } from "./journey_parts.js"

export function drawLanes(grid) {
  const out = []
  for (let row = 0; row < grid.rows; row++) {
    const y = grid.rowMiddle(row)
    out.push(svg("path", { class: "flow", d: `M${grid.before} ${y}H${grid.start}` }))
  }
  const y = grid.rowMiddle(grid.rows - 1)
  const end = grid.width + grid.after
  out.push(svg("path", { class: "flow last", d: `M${grid.end} ${y}H${end}` }))
  if (grid.after) out.push(svg("path", { class: "flow-tip", d: `M${end + 6} ${y}l-9 -5v10z` }))
  if (grid.hidden) {
    out.push(svg("path", { class: "flow gap", d: `M${grid.start} ${grid.middle(1)}H${grid.end}` }))
  }
  return svg("g", {}, out)
}

// change [layer, row]
export function drawCells(grid, change) {
  const inset = grid.pitch > 12 ? 1.5 : 0.5
  const cells = []
  for (let layer = 0; layer < grid.layers; layer++) {
    for (let row = 0; row < grid.rows; row++) {
      cells.push(
        svg("rect", {
          x: grid.left(layer) + inset,
          y: grid.rowMiddle(row) - grid.cell / 2,
          width: Math.max(1, grid.pitch - 2 * inset),
          height: grid.cell,
          rx: Math.min(3, grid.pitch / 5),
          "fill-opacity": tint(change[layer * grid.rows + row]),
        }),
      )
    }
  }
  return svg("g", { class: "cells" }, cells)
}

export function drawAxis(grid, attention) {
  const y = GRID.axis - 8
  const numbers = ticks(grid.layers, grid.end - grid.start).map((n) =>
    svg("text", { x: grid.left(n - 0.5), y, class: "tick", "data-n": n }, n),
  )
  return svg(
    "g",
    {},
    numbers,
    svg("text", { x: grid.width, y, class: "tick share head" }, attention),
  )
}

// A bar a layer: the chosen token's probability if the model stopped there.
export function drawLens(grid, data) {
  const base = grid.bottom + GRID.lensTitle + GRID.lens
  const top = base - GRID.lens
  const bars = data.lens.chosen.map((p, layer) => {
    const height = p > 0.002 ? Math.max(1.5, p * GRID.lens) : 0
    const width = Math.max(1, grid.pitch - 2)
    return svg("rect", { x: grid.left(layer) + 1, y: base - height, width, height })
  })
  const title = svg(
    "text",
    { class: "lens-title", x: grid.wide ? grid.start : -74, y: grid.bottom + 15 },
    rich(data.strings.lens_bars, { token: clipped(data.joins.label, grid.wide ? 18 : 7) }),
  )
  return svg(
    "g",
    { class: "lens" },
    svg("path", { class: "base top", d: `M${grid.start} ${top}H${grid.end}` }),
    bars,
    svg("path", { class: "base", d: `M${grid.start} ${base + 0.5}H${grid.end}` }),
    title,
    svg("text", { class: "tick share", x: grid.width, y: top + 9 }, "100 %"),
    svg("text", { class: "tick share", x: grid.width, y: base }, "0"),
  )
}

export function drawColumn(grid, layer, name) {
  const label = Math.min(grid.end - 18, Math.max(grid.start + 18, grid.left(layer + 0.5)))
  const size = { width: grid.pitch + 3, height: grid.lanesEnd - GRID.axis + 4 }
  return [
    svg("rect", { x: grid.left(layer) - 1.5, y: GRID.axis - 2, rx: 5, ...size }),
    svg("text", { x: label, y: GRID.axis - 8 }, name),
  ]
}

// Each ribbon is as thick as its weight; together they fill the reader's cell.
export function drawRibbons(grid, layer, reader, sources) {
  const x1 = grid.left(layer) + 1
  const x0 = Math.max(grid.before, x1 - (grid.wide ? GRID.run : 44))
  const target = { y: grid.rowMiddle(reader), height: grid.cell }
  return ribbons(sources, target, x0, x1).flatMap((band) => [
    svg("path", { d: band.path, class: `ribbon${band.key === 0 && reader > 0 ? " sink" : ""}` }),
    svg(
      "text",
      { class: `weight${band.weight >= 0.1 ? " strong" : ""}`, x: grid.width, y: band.y + 4.5 },
      band.weight >= 0.005 ? `${(100 * band.weight).toFixed(0)} %` : "< 1 %",
    ),
  ])
}
