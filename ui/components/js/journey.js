// Home's journey of one prediction: read, compute, choose, and the loop back.
import { el, fmt, svg, themeOf } from "./dom.js"
import { bytes, thousands } from "./journey_layout.js"
import { rich, tok } from "./journey_parts.js"
import { readStage } from "./journey_read.js"
import { computeStage } from "./journey_compute.js"
import { chooseStage } from "./journey_choose.js"
import { tables } from "./journey_tables.js"

// Three stages side by side; below ROOMY with smaller type, so that a projector shows them all.
const WIDE = 900
const ROOMY = 1240
const FEW_GUESSES = 1400
// A window no higher than this is that of an old projector: everything moves closer together.
const LOW = 800
const places = new WeakMap()

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  const place = places.get(parentElement) ?? { picked: null, layers: 0, open: false, width: 0 }
  places.set(parentElement, place)
  root.dataset.theme = themeOf(parentElement)
  root.lang = data.lang
  if (place.layers !== data.layers) Object.assign(place, { picked: null, layers: data.layers })
  // Another token is followed only within one step; a new step follows its last token again.
  if (place.step !== data.step || place.read !== data.read) place.follow = null
  place.preview = null

  const stages = {}
  const ui = interplay(data, place, stages, root, (event) => setTriggerValue("action", event))
  const focus = root.getRootNode().activeElement?.dataset?.key
  const before = { step: place.step, read: place.read }
  Object.assign(stages, {
    read: readStage(data, ui),
    compute: computeStage(data, ui),
    choose: chooseStage(data, ui),
  })
  const loop = loopLine(data)
  const board = el(
    "div",
    { class: "board" },
    stages.read.node,
    stages.compute.node,
    stages.choose.node,
    loop.picture,
  )
  root.replaceChildren(board, loop.text, footer(data), tables(data, place))
  const paint = () => {
    const width = root.getBoundingClientRect().width
    if (!width) return
    place.width = width
    root.dataset.size = width >= WIDE ? "wide" : width >= 640 ? "middle" : "narrow"
    root.dataset.dense = String(width >= WIDE && width < ROOMY)
    root.dataset.short = String(width >= WIDE && window.innerHeight <= LOW)
    place.height = window.innerHeight
    root.dataset.few = String(width >= 640 && width < FEW_GUESSES)
    stages.compute.paint(root.dataset.size, root)
    stages.read.paint(root.dataset.theme)
    loop.paint(board, root.dataset.size === "wide")
  }
  place.observer?.disconnect()
  place.observer = new ResizeObserver(() => {
    const higher = place.height <= LOW !== window.innerHeight <= LOW
    const resized = higher || Math.abs(root.getBoundingClientRect().width - place.width) > 0.5
    // Sentences of another length move the floor under the loop's line.
    if (resized) paint()
    else loop.paint(board, root.dataset.size === "wide")
  })
  paint()
  ui.follow(ui.reader())
  place.observer.observe(board)
  if (focus) root.querySelector(`[data-key="${CSS.escape(focus)}"]`)?.focus({ preventScroll: true })
  if (before.step + 1 === data.step && before.read + 1 === data.read) arrive(root, stages)
  Object.assign(place, { step: data.step, read: data.read })
  return () => place.observer?.disconnect()
}

// What the stages share: the layer in view, the token that is followed, and events to Python.
function interplay(data, place, stages, root, act) {
  const last = data.lanes.length - 1
  const ui = {
    act,
    layer: () => place.preview ?? place.picked ?? data.layer ?? 0,
    reader: () => place.follow ?? last,
    isAutomatic: () => (place.preview ?? place.picked) === null,
    preview: (layer) => layer !== place.preview && ((place.preview = layer), refresh()),
    pick: (layer) => ((place.picked = layer), (place.preview = null), refresh()),
    automatic: () => ((place.picked = null), refresh()),
    follow: (row) => ((place.follow = row === last ? null : row), refresh()),
  }
  const refresh = () => {
    stages.compute.show()
    for (const pick of root.querySelectorAll(".pick")) {
      pick.setAttribute("aria-pressed", String(Number(pick.dataset.row) === ui.reader()))
    }
  }
  return ui
}

// The dashed way of the chosen token back into the text.
function loopLine(data) {
  const s = data.strings
  const picture = svg("svg", { class: "loop-picture", "aria-hidden": "true" })
  const token = tok(data.joins.label)
  const words = data.stop
    ? rich(s[`stop_${data.stop}`], { token, n: data.limit })
    : rich(s.loop, { token })
  const text = el(
    "p",
    { class: `loop${data.stop ? " stopped" : ""}` },
    el("span", {}, data.stop ? "■ " : "↻ ", words),
  )
  function paint(board, wide) {
    picture.replaceChildren()
    if (!wide || data.stop) return
    const home = board.getBoundingClientRect()
    const chip = board.querySelector(".joins .chip").getBoundingClientRect()
    const choose = board.querySelector(".choose").getBoundingClientRect()
    const x = (value) => Math.round(value - home.left)
    const y = (value) => Math.round(value - home.top)
    const [from, floor, side] = [x(choose.left + choose.width / 2), y(choose.bottom) + 20, 6]
    const [to, level] = [
      x(board.querySelector(".joins").getBoundingClientRect().left) - 4,
      y(chip.top + chip.height / 2),
    ]
    const path = `M${from} ${y(choose.bottom)}V${floor - 10}q0 10 -10 10H${side + 10}q-10 0 -10 -10V${level + 10}q0 -10 10 -10H${to}`
    picture.append(
      svg("path", { d: path, class: "dash" }),
      svg("path", { class: "tip", d: `M${to + 7} ${level}l-9 -5v10z` }),
    )
  }
  return { picture, text, paint }
}

// A new step: the token chosen before moves into the text, then a pulse runs up the layers.
function arrive(root, stages) {
  if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) return
  const target = root.querySelector(".read .is-last .chip")
  const source = root.querySelector(".choose .draw-bar")
  if (target && source) {
    const [a, b] = [source.getBoundingClientRect(), target.getBoundingClientRect()]
    const way = `translate(${a.left + a.width / 2 - b.left}px, ${a.top - b.top}px)`
    target.animate(
      [
        { transform: way, opacity: 0.4 },
        { transform: "none", opacity: 1 },
      ],
      { duration: 280, easing: "ease-in-out" },
    )
  }
  stages.compute.pulse(270)
}

// What was measured, and what follows exactly from the model's shape.
function footer(data) {
  const s = data.strings
  const c = data.cache
  const time = {
    ms: data.ms < 0.05 ? "< 0.1" : data.ms < 10 ? data.ms.toFixed(1) : thousands(Math.round(data.ms)),
    n: thousands(data.new),
  }
  const items = [
    fmt(s[`ms${data.recorded ? "_recorded" : ""}${data.new === 1 ? "_one" : ""}`], time),
    fmt(s.tokens_read, { n: thousands(data.read), cached: thousands(data.cached) }),
  ]
  if (c.bytes) {
    const formula = fmt(s.cache_formula, { ...c, positions: thousands(data.read) })
    const size = fmt(c.at_most ? s.cache_most : s.cache, { size: bytes(c.bytes) })
    items.push([size, el("small", {}, ` ${formula}`)])
  }
  return el(
    "p",
    { class: "measured" },
    items.map((item) => el("span", {}, item)),
    el("span", { class: "faint" }, s.promise),
  )
}
