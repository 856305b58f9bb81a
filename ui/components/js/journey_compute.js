// Stage 2: lanes of tokens through the layers; attention, the logit lens.
import { el, percent, svg } from "./dom.js"
import { changed, floats, laneHeight, layerAt, moved, quoted, ribbons, ticks, tint } from "./journey_layout.js"
import { rich, stageHead, tok, tokenChip } from "./journey_parts.js"

const LENS = { height: 36, above: 24 }
const RUN = 120 // pixels over which a ribbon leaves its lane and joins the reader's
const AXIS = 22

export function computeStage(data, ui) {
  const s = data.strings
  const body = el("div", { class: "stage-body" })
  const node = el(
    "section",
    { class: "stage compute", "aria-label": s.compute_title },
    stageHead(2, s.compute_title, rich(s.compute_terms, { n: data.layers })),
    body,
  )
  if (!data.layers) {
    body.append(el("p", { class: "table-model" }, s.no_layers))
    return { node, paint: () => {}, show: () => {}, pulse: () => {} }
  }
  const stack = layerStack(data, ui)
  const says = el("p", { class: "says", "aria-live": "polite" })
  body.append(stack.node, ...lensChips(data, ui), says, rising(data))
  const show = () => {
    stack.show()
    says.replaceChildren(...sentence(data, ui, stack))
    for (const chip of node.querySelectorAll(".lens-chip")) {
      chip.setAttribute("aria-pressed", String(Number(chip.dataset.layer) === ui.layer()))
    }
  }
  return { node, paint: (size) => (stack.paint(size), show()), show, pulse: stack.pulse }
}

// The drawing itself: one svg for cells, ribbons and lens bars, and a label column for phones.
function layerStack(data, ui) {
  const s = data.strings
  const rows = data.lanes.length
  const columns = rows + (data.hidden ? 1 : 0)
  const change = floats(data.change)
  const attention = floats(data.attention)
  const picture = svg("svg", { class: "stack", "aria-hidden": "true" })
  const labels = el("ol", { class: "lane-labels", "aria-hidden": "true" })
  const readout = el("p", { class: "readout faint" })
  const slider = el(
    "div",
    {
      class: "slider",
      role: "slider",
      tabindex: "0",
      "data-key": "layers",
      "aria-label": s.layer_slider,
      "aria-valuemin": 1,
      "aria-valuemax": data.layers,
    },
    picture,
  )
  const node = el("div", { class: "stack-box" }, labels, slider, readout)
  const weight = (layer, row, column) => attention[(layer * rows + row) * columns + column] ?? 0
  const changeAt = (layer, row) => change[layer * rows + row] ?? 0
  let box = null

  // Slot = vertical place: the gap stands between the first lane and the others.
  const slotOf = (row) => (data.hidden && row > 0 ? row + 1 : row)
  const slots = columns + 1
  const middle = (slot) => AXIS + (slot + 0.5) * box.lane

  function paint(size) {
    const wide = size !== "narrow"
    const room = wide ? 325 : 30 * slots
    const width = slider.getBoundingClientRect().width
    const pad = wide ? { left: 46, right: 58 } : { left: 14, right: 44 }
    const pitch = (width - pad.left - pad.right) / data.layers
    box = { wide, reach: size === "wide" ? 27 : 0, width, ...pad, pitch, lane: laneHeight(slots, room), cell: 0 }
    box.cell = Math.round(box.lane * 0.7)
    box.bottom = AXIS + slots * box.lane - (wide ? 0 : box.lane)
    const height = box.bottom + (data.lens ? LENS.above + LENS.height + 4 : 0)
    picture.setAttribute("width", width)
    picture.setAttribute("height", height)
    node.getRootNode().querySelector(".root")?.style.setProperty("--lane", `${box.lane}px`)
    picture.replaceChildren(
      flows(),
      cells(),
      data.lens ? lensBars() : svg("g"),
      svg("g", { class: "axis-labels" }, axis()),
      svg("g", { class: "column" }),
      svg("g", { class: "ribbons" }),
      svg("rect", { class: "pulse", width: 2.5 * pitch, height: box.bottom - AXIS, y: AXIS, x: 0, opacity: 0 }),
    )
    labels.replaceChildren(...laneLabels())
    readout.style.top = wide ? `${box.bottom - box.lane / 2 - 10}px` : ""
  }

  const left = (layer) => box.left + layer * box.pitch

  function flows() {
    const [start, end] = [left(0), box.width - box.right]
    const out = data.lanes.flatMap((_, row) => {
      const y = middle(slotOf(row))
      const into = svg("path", { d: `M${box.wide ? -17 : 0} ${y}H${start}`, class: "flow" })
      if (row < rows - 1) return [into]
      return [into, svg("path", { d: `M${end} ${y}H${box.width + box.reach}`, class: "flow last" })]
    })
    const y = middle(slotOf(rows - 1))
    const tip = box.width + box.reach
    if (box.reach) out.push(svg("path", { class: "flow-tip", d: `M${tip + 6} ${y}l-9 -5v10z` }))
    if (data.hidden) out.push(svg("path", { class: "flow gap", d: `M${start} ${middle(1)}H${end}` }))
    return svg("g", {}, out)
  }

  function cells() {
    const inset = box.pitch > 12 ? 1.5 : 0.5
    const group = svg("g", { class: "cells" })
    for (let layer = 0; layer < data.layers; layer++) {
      for (let row = 0; row < rows; row++) {
        group.append(
          svg("rect", {
            x: left(layer) + inset,
            y: middle(slotOf(row)) - box.cell / 2,
            width: Math.max(1, box.pitch - 2 * inset),
            height: box.cell,
            rx: Math.min(3, box.pitch / 5),
            "fill-opacity": tint(changeAt(layer, row)),
          }),
        )
      }
    }
    return group
  }

  function axis() {
    const numbers = ticks(data.layers, box.pitch * data.layers).map((n) =>
      svg("text", { x: left(n - 0.5), y: AXIS - 8, class: "tick", "data-n": n }, n),
    )
    const share = svg("text", { x: box.width, y: AXIS - 8, class: "tick share head" }, s.attention_short)
    return [...numbers, data.attention ? share : svg("g")]
  }

  function lensBars() {
    const base = box.bottom + LENS.above + LENS.height
    const bars = data.lens.chosen.map((p, layer) =>
      svg("rect", {
        x: left(layer) + 1,
        y: base - Math.max(p > 0.002 ? 1.5 : 0, p * LENS.height),
        width: Math.max(1, box.pitch - 2),
        height: Math.max(p > 0.002 ? 1.5 : 0, p * LENS.height),
      }),
    )
    const title = svg("text", { class: "lens-title", x: box.wide ? box.left : -74, y: box.bottom + 15 })
    title.append(...rich(s.lens_bars, { token: clipped(data.joins.label, box.wide ? 18 : 7) }))
    const ends = [
      svg("text", { class: "tick share", x: box.width, y: base - LENS.height + 9 }, "100 %"),
      svg("text", { class: "tick share", x: box.width, y: base }, "0"),
    ]
    const rule = svg("path", { class: "base", d: `M${left(0)} ${base + 0.5}H${box.width - box.right}` })
    const top = svg("path", { class: "base top", d: `M${left(0)} ${base - LENS.height}H${box.width - box.right}` })
    return svg("g", { class: "lens" }, top, bars, rule, title, ends)
  }

  function laneLabels() {
    const items = data.lanes.map((lane, row) =>
      el("li", {}, tokenChip(lane, row === rows - 1 ? "last" : lane.source)),
    )
    if (data.hidden) items.splice(1, 0, el("li", { class: "faint" }, "⋮"))
    return items
  }

  function show() {
    if (!box) return
    const [layer, reader] = [ui.layer(), ui.reader()]
    slider.setAttribute("aria-valuenow", layer + 1)
    slider.setAttribute("aria-valuetext", spoken(data, layer, reader, weight))
    const frame = picture.querySelector(".column")
    const height = box.bottom - AXIS - (box.wide ? box.lane : 0)
    frame.replaceChildren(
      svg("rect", { x: left(layer) - 1.5, y: AXIS - 2, width: box.pitch + 3, height: height + 4, rx: 5 }),
      svg("text", { x: Math.min(box.width - box.right - 18, Math.max(box.left + 18, left(layer + 0.5))), y: AXIS - 8 }, fmtLayer(s, layer)),
    )
    for (const tick of picture.querySelectorAll(".tick[data-n]")) {
      const far = Math.abs(Number(tick.dataset.n) - 1 - layer) * box.pitch
      tick.setAttribute("opacity", far < 44 ? 0 : 1)
    }
    picture.querySelector(".ribbons").replaceChildren(...reading(layer, reader))
  }

  function reading(layer, reader) {
    if (!attention.length) return []
    const sources = []
    for (let row = 0; row <= reader; row++) {
      sources.push({ key: row, y: middle(slotOf(row)), weight: weight(layer, reader, row) })
      if (row === 0 && data.hidden && reader > 0) {
        sources.push({ key: "gap", y: middle(1), weight: weight(layer, reader, rows) })
      }
    }
    const x1 = left(layer) + 1
    const x0 = Math.max(box.wide ? -17 : 0, x1 - (box.wide ? RUN : 44))
    const target = { y: middle(slotOf(reader)), height: box.cell }
    return ribbons(sources, target, x0, x1).flatMap((band) => [
      svg("path", { d: band.path, class: `ribbon${band.key === 0 && reader > 0 ? " sink" : ""}` }),
      svg(
        "text",
        { class: "weight", x: box.width, y: band.y + 4.5, "font-weight": band.weight >= 0.1 ? 700 : 400 },
        band.weight >= 0.005 ? `${(100 * band.weight).toFixed(0)} %` : "< 1 %",
      ),
    ])
  }

  const hit = (event) => {
    const at = slider.getBoundingClientRect()
    const x = event.clientX - at.left
    const slot = Math.floor((event.clientY - at.top - AXIS) / box.lane)
    const row = data.hidden && slot > 1 ? slot - 1 : slot
    return { layer: layerAt(x, box.left, box.pitch, data.layers), row: row < rows && !(data.hidden && slot === 1) ? row : -1 }
  }
  const quiet = () => readout.replaceChildren(...legend(s))
  slider.onpointermove = (event) => {
    const { layer, row } = hit(event)
    ui.preview(layer)
    if (layer === null || row < 0) return quiet()
    readout.replaceChildren(
      ...rich(s.cell, { layer: layer + 1, token: tok(data.lanes[row].label), change: changed(changeAt(layer, row)) }),
    )
  }
  slider.onpointerleave = () => (ui.preview(null), quiet())
  slider.onclick = (event) => {
    const { layer } = hit(event)
    if (layer !== null) ui.pick(layer)
  }
  slider.onkeydown = (event) => {
    const plain = !(event.ctrlKey || event.metaKey || event.altKey)
    const layer = moved(event.key, ui.layer(), data.layers)
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key]
    if (!plain || (layer === null && !step)) return
    event.preventDefault()
    event.stopPropagation() // the page's own arrow keys step the run
    if (step) ui.follow(Math.max(0, Math.min(rows - 1, ui.reader() + step)))
    else ui.pick(layer)
  }
  quiet()

  function pulse(delay) {
    const bar = picture.querySelector(".pulse")
    const way = [left(0) - 2.5 * box.pitch, left(data.layers)]
    bar?.animate(
      [
        { transform: `translateX(${way[0]}px)`, opacity: 0.9 },
        { transform: `translateX(${way[1]}px)`, opacity: 0.9 },
      ],
      { duration: 320, delay, easing: "ease-in-out" },
    )
  }
  return { node, paint, show, pulse, weight }
}

const fmtLayer = (s, layer) => s.layer_n.replace("{n}", layer + 1)
const clipped = (label, most) => ([...label].length > most ? `${[...label].slice(0, most - 1).join("")}…` : label)

function legend(s) {
  const swatches = [0.01, 0.1, 0.3, 1].map((size) =>
    el("span", { class: "swatch" }, el("i", { style: { opacity: tint(size) } }), size === 1 ? "≥ 100 %" : `${100 * size} %`),
  )
  return [el("span", {}, s.cells), " ", el("span", { class: "swatches", "aria-hidden": "true" }, swatches)]
}

// The same picture for a screen reader: the three strongest links.
function spoken(data, layer, reader, weight) {
  const name = data.lanes[reader].label
  const links = data.lanes
    .slice(0, reader + 1)
    .map((lane, row) => [weight(layer, reader, row), lane.label])
    .sort((a, b) => b[0] - a[0])
    .slice(0, 3)
    .map(([p, label]) => `${label} ${percent(p)}`)
  const start = fmtLayer(data.strings, layer)
  return data.attention ? `${start}; ${name} ← ${links.join(", ")}` : start
}

function sentence(data, ui, stack) {
  const s = data.strings
  const [layer, reader] = [ui.layer(), ui.reader()]
  const head = el("strong", {}, fmtLayer(s, layer))
  if (!data.attention) return [head]
  const out = [head, s.colon]
  const sink = stack.weight(layer, reader, 0)
  const others = data.lanes.slice(1, reader).map((lane, i) => [stack.weight(layer, reader, i + 1), lane.label])
  const best = others.sort((a, b) => b[0] - a[0])[0]
  const token = tok(data.lanes[reader].label)
  const how = ui.isAutomatic() && reader === data.lanes.length - 1 ? s.reads_strongest : s.reads_most
  if (best) out.push(...rich(how, { token, other: tok(best[1]), p: percent(best[0]), heads: data.heads }))
  if (reader === 0) out.push(...rich(s.reads_itself, { token }))
  else if (sink >= 0.3) out.push(" ", ...rich(s.sink, { p: percent(sink), first: tok(data.lanes[0].label) }))
  if (!ui.isAutomatic()) out.push(" ", el("button", { type: "button", class: "link", "data-key": "auto", onclick: ui.automatic }, s.layer_auto))
  return out
}

function lensChips(data, ui) {
  if (!data.lens) return []
  const s = data.strings
  const chips = quoted(data.layers, 8).map((layer) => {
    const guess = data.lens.guesses[layer]
    const same = guess === data.joins.label
    return el(
      "button",
      {
        type: "button",
        class: `lens-chip${same ? " same" : ""}`,
        "data-layer": layer,
        "data-key": `lens${layer}`,
        "aria-pressed": "false",
        title: `${guess} · ${percent(data.lens.probabilities[layer])}`,
        onclick: () => ui.pick(layer),
        onpointerenter: () => ui.preview(layer),
        onpointerleave: () => ui.preview(null),
      },
      el("bdi", { class: "guess" }, guess),
      el("small", {}, fmtLayer(s, layer), el("br"), percent(data.lens.probabilities[layer]), same ? " ✓" : ""),
    )
  })
  return [el("p", { class: "lens-says" }, s.lens_says), el("div", { class: "lens-chips" }, chips)]
}

// Where the chosen token's probability grows on its way up.
function rising(data) {
  const r = data.lens?.rise
  if (!r) return el("p")
  const s = data.strings
  const hole = {
    token: tok(data.joins.label),
    layer: r.layer + 1,
    before: percent(r.before),
    after: percent(r.after),
    since: r.since === null ? "" : r.since + 1,
    final: percent(r.final),
  }
  const low = Math.max(...data.lens.chosen) < 0.01
  const parts = low ? rich(s.rise_low, hole) : rich(s.rise, hole)
  if (!low && r.since !== null && r.since !== r.layer) parts.push(" ", ...rich(s.rise_since, hole))
  return el("p", { class: "rise" }, parts)
}
