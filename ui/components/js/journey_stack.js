// The grid of layers as one control: hover or arrow keys choose the layer in view.
import { el, percent, svg } from "./dom.js"
import { drawAxis, drawCells, drawLanes, drawLens } from "./journey_draw.js"
import { drawColumn, drawRibbons } from "./journey_draw.js"
import { GRID, laneGrid, reading } from "./journey_grid.js"
import { changed, floats, moved, tint } from "./journey_layout.js"
import { layerName, rich, tok, tokenChip } from "./journey_parts.js"

export function layerStack(data, ui) {
  const stack = {
    data,
    ui,
    change: floats(data.change),
    attention: floats(data.attention),
    grid: null,
    picture: svg("svg", { class: "stack", "aria-hidden": "true" }),
    labels: el("ol", { class: "lane-labels", "aria-hidden": "true" }),
    readout: el("p", { class: "readout faint" }),
  }
  stack.slider = sliderOf(stack)
  stack.node = el("div", { class: "stack-box" }, stack.labels, stack.slider, stack.readout)
  stack.readout.replaceChildren(...legend(data.strings))
  return stack
}

function sliderOf(stack) {
  const { data } = stack
  const range = { "aria-valuemin": 1, "aria-valuemax": data.layers }
  return el(
    "div",
    {
      class: "slider",
      role: "slider",
      tabindex: "0",
      "data-key": "layers",
      "aria-label": data.strings.layer_slider,
      ...range,
      onpointermove: (event) => pointed(stack, event),
      onpointerleave: () => leaves(stack),
      onclick: (event) => clicked(stack, event),
      onkeydown: (event) => pressed(stack, event),
    },
    stack.picture,
  )
}

// Everything that depends on the width, drawn anew.
export function paintStack(stack, size, root) {
  const { data, picture } = stack
  const width = stack.slider.getBoundingClientRect().width
  const [rows, layers] = [data.lanes.length, data.layers]
  const [dense, short] = [root.dataset.dense === "true", root.dataset.short === "true"]
  const grid = laneGrid({ size, dense, short, width, layers, rows, hidden: data.hidden, lens: data.lens })
  stack.grid = grid
  root.style.setProperty("--lane", `${grid.lane}px`)
  picture.setAttribute("width", width)
  picture.setAttribute("height", grid.height)
  const [y, height] = [GRID.axis, grid.lanesEnd - GRID.axis]
  picture.replaceChildren(
    drawLanes(grid),
    drawCells(grid, stack.change),
    data.lens ? drawLens(grid, data) : svg("g"),
    drawAxis(grid, data.attention ? data.strings.attention_short : ""),
    svg("g", { class: "column" }),
    svg("g", { class: "ribbons" }),
    svg("rect", { class: "pulse", width: 2.5 * grid.pitch, height, y, x: 0, opacity: 0 }),
  )
  const labels = data.lanes.map((lane, row) =>
    el("li", {}, tokenChip(lane, row === rows - 1 ? "last" : lane.source)),
  )
  if (data.hidden) labels.splice(1, 0, el("li", { class: "faint" }, "⋮"))
  stack.labels.replaceChildren(...labels)
  stack.readout.style.top = grid.wide ? `${grid.bottom - grid.lane / 2}px` : ""
}

// What depends on the layer in view and the token that is followed.
export function showStack(stack) {
  const { data, grid, picture, slider, ui } = stack
  if (!grid) return
  const [layer, reader] = [ui.layer(), ui.reader()]
  const sources = stack.attention.length ? reading(stack.attention, grid, layer, reader) : []
  const name = layerName(data.strings, layer)
  slider.setAttribute("aria-valuenow", layer + 1)
  slider.setAttribute("aria-valuetext", spoken(data, name, reader, sources))
  picture.querySelector(".column").replaceChildren(...drawColumn(grid, layer, name))
  picture.querySelector(".ribbons").replaceChildren(...drawRibbons(grid, layer, reader, sources))
  for (const tick of picture.querySelectorAll(".tick[data-n]")) {
    const far = Math.abs(Number(tick.dataset.n) - 1 - layer) * grid.pitch
    tick.setAttribute("opacity", far < 44 ? 0 : 1)
  }
}

export function pulseStack({ grid, picture }, delay) {
  const steps = [grid.start - 2.5 * grid.pitch, grid.end].map((x) => ({
    transform: `translateX(${x}px)`,
    opacity: 0.9,
  }))
  picture.querySelector(".pulse").animate(steps, { duration: 320, delay, easing: "ease-in-out" })
}

// The three strongest links in words, for a screen reader.
function spoken(data, name, reader, sources) {
  const label = (key) => (key === "gap" ? "…" : data.lanes[key].label)
  const links = [...sources].sort((a, b) => b.weight - a.weight).slice(0, 3)
  const words = links.map(({ key, weight }) => `${label(key)} ${percent(weight)}`)
  return words.length ? `${name}; ${data.lanes[reader].label} ← ${words.join(", ")}` : name
}

function legend(s) {
  const swatches = [0.01, 0.1, 0.3, 1].map((size) =>
    el(
      "span",
      { class: "swatch" },
      el("i", { style: { opacity: tint(size) } }),
      size === 1 ? "≥ 100 %" : `${100 * size} %`,
    ),
  )
  const row = el("span", { class: "swatches", "aria-hidden": "true" }, swatches)
  return [el("span", {}, s.cells), " ", row]
}

function under(stack, event) {
  const box = stack.slider.getBoundingClientRect()
  return stack.grid.at(event.clientX - box.left, event.clientY - box.top)
}

function pointed(stack, event) {
  const { data, change } = stack
  const { layer, row } = under(stack, event)
  stack.ui.preview(layer)
  if (layer === null || row < 0) return stack.readout.replaceChildren(...legend(data.strings))
  const size = changed(change[layer * data.lanes.length + row])
  const holes = { layer: layer + 1, token: tok(data.lanes[row].label), change: size }
  stack.readout.replaceChildren(...rich(data.strings.cell, holes))
}

function leaves(stack) {
  stack.ui.preview(null)
  stack.readout.replaceChildren(...legend(stack.data.strings))
}

function clicked(stack, event) {
  const { layer } = under(stack, event)
  if (layer !== null) stack.ui.pick(layer)
}

function pressed(stack, event) {
  const { data, ui } = stack
  const plain = !(event.ctrlKey || event.metaKey || event.altKey || event.shiftKey)
  const layer = moved(event.key, ui.layer(), data.layers)
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key]
  if (!plain || (layer === null && !step)) return
  event.preventDefault()
  event.stopPropagation() // the page's own arrow keys step the run
  if (layer !== null) return ui.pick(layer)
  ui.follow(Math.max(0, Math.min(data.lanes.length - 1, ui.reader() + step)))
}
