import { el, fmt, keepFocus, themeOf } from "./dom.js"
import { ramp } from "./ramp.js"
import { MAP, agrees, cellText, fitted, mapGrid, movedCell, strength, valueText } from "./lens_layout.js"
import { panelNodes, spoken } from "./lens_panel.js"

const maps = new WeakMap()

class LensMap {
  constructor(root) {
    this.root = root
    this.observer = new ResizeObserver(() => {
      if (this.data && Math.abs(root.clientWidth - this.width) >= 8) keepFocus(root, () => this.draw())
    })
    this.observer.observe(root)
  }

  update(data, emit) {
    const moved = !this.data || this.data.at !== data.at || this.data.layer !== data.layer ||
      this.data.start !== data.start
    Object.assign(this, { data, emit, hover: null })
    if (moved || !this.cursor) this.cursor = this.chosen()
    this.cursor.column = Math.min(this.cursor.column, data.columns.length - 1)
    this.root.removeAttribute("aria-busy")
    const shadow = this.root.getRootNode()
    const held = shadow.activeElement?.dataset?.hold
    this.draw()
    if (held) this.root.querySelector(`[data-hold="${CSS.escape(held)}"]`)?.focus({ preventScroll: true })
  }

  chosen() {
    return { layer: this.data.layer, column: this.data.at - this.data.start }
  }

  ask(event) {
    this.root.setAttribute("aria-busy", "true")
    this.emit(event)
  }

  open(cell) {
    this.cursor = { layer: cell.layer ?? this.data.layer, column: cell.column }
    this.show(this.cursor)
    const at = this.data.start + this.cursor.column
    if (at === this.data.at && this.cursor.layer === this.data.layer) return
    // The last position has no number, so that the page follows the text when it grows.
    this.ask({ do: "look", at: at === this.data.total - 1 ? -1 : at, layer: this.cursor.layer })
  }

  draw() {
    const { data, root } = this
    const s = data.strings
    this.width = root.clientWidth
    const side = this.width >= 760 ? 300 : 0
    const room = this.width - side - 34
    this.grid = mapGrid({ width: room, columns: data.columns.length, layers: data.layers })
    this.canvas = el("canvas", {
      tabindex: 0, role: "application", "data-hold": "map", "aria-label": s.map_label,
      "aria-roledescription": s.map_role, "aria-describedby": "keys",
      onmousemove: (event) => this.point(event),
      onmouseleave: () => { this.hover = null; this.show(this.chosen()) },
      onclick: (event) => this.click(event),
      onkeydown: (event) => this.key(event),
      onfocus: () => this.show(this.cursor),
      onblur: () => { this.hover = null; this.show(this.chosen()) },
    })
    this.live = el("p", { class: "sr-only", "aria-live": "polite" })
    this.panel = el("aside", { class: "panel", "aria-label": s.cell_title })
    this.scroller = el("div", { class: "scroller" }, this.canvas)
    root.dataset.side = side ? "yes" : "no"
    root.style.setProperty("--map", `${this.grid.width + 34}px`)
    const pager = this.pager()
    root.replaceChildren(
      this.chooser(),
      el("p", { class: "explain" }, s[`cell_${data.cell || "lens"}_help`]),
      el("div", { class: "board" },
        el("div", { class: "map" }, this.axis(), this.scroller),
        this.panel),
      this.legend(), ...(pager ? [pager] : []), this.live,
      el("p", { class: "sr-only", id: "keys" }, s.map_keys))
    this.size()
    this.paint()
    this.show(this.chosen())
    const left = this.grid.left(this.chosen().column)
    this.scroller.scrollLeft = Math.max(0, left - this.scroller.clientWidth / 2)
  }

  chooser() {
    const { data } = this
    const s = data.strings
    return el("div", { class: "chooser", role: "group", "aria-label": s.cells },
      data.cells.map((name) => el("button", {
        type: "button", "data-hold": `cell-${name}`, "aria-pressed": String(name === data.cell),
        onclick: () => { if (name !== data.cell) this.ask({ do: "cell", cell: name }) },
      }, s[`cell_${name || "lens"}`])))
  }

  axis() {
    const { data, grid } = this
    const every = grid.row >= 17 ? 1 : 2
    const marks = []
    for (let layer = 0; layer < data.layers; layer += every) {
      marks.push(el("span", {
        class: layer === data.layer ? "on" : null,
        style: { top: `${grid.top(layer)}px`, height: `${grid.row}px`, lineHeight: `${grid.row}px` },
      }, layer + 1))
    }
    return el("div", { class: "axis", "aria-hidden": "true", style: { height: `${grid.height}px` } },
      el("span", { class: "axis-name", style: { top: "4px" } }, data.strings.axis_short), marks)
  }

  legend() {
    const { data } = this
    const s = data.strings
    const scale = data.values ? data.scale : null
    const ends = !scale ? ["0 %", "100 %"]
      : scale.kind === "log" ? [scale.low, scale.high].map((v) => valueText(v, "log"))
        : scale.kind === "share" ? ["0 %", "≥ 100 %"] : ["≤ 0", "1"]
    const theme = this.root.dataset.theme
    const stops = [0, 0.25, 0.5, 0.75, 1].map((x) => ramp(x, theme).background)
    const note = !scale ? s.legend_lens : s[`legend_${scale.kind}`]
    return el("p", { class: "legend" },
      el("span", {}, ends[0]), el("i", { class: "ramp", style: { background: `linear-gradient(90deg, ${stops.join(", ")})` } }),
      el("span", {}, ends[1]), el("span", { class: "dim" }, note),
      scale ? null : el("span", { class: "key" }, el("i", { class: "mark" }), s.legend_next))
  }

  pager() {
    const { data } = this
    const s = data.strings
    if (data.earlier === null && data.later === null) return null
    const button = (at, text, hold) => el("button", {
      type: "button", "aria-disabled": String(at === null), "data-hold": hold,
      onclick: () => { if (at !== null) this.ask({ do: "look", at, layer: data.layer }) },
    }, text)
    return el("p", { class: "pager" },
      button(data.earlier, `← ${s.earlier}`, "earlier"),
      el("span", {}, fmt(s.window, { from: data.start, to: data.start + data.columns.length - 1, total: data.total })),
      button(data.later, `${s.later} →`, "later"))
  }

  size() {
    const ratio = globalThis.devicePixelRatio || 1
    this.canvas.width = Math.round(this.grid.width * ratio)
    this.canvas.height = Math.round(this.grid.height * ratio)
    Object.assign(this.canvas.style, { width: `${this.grid.width}px`, height: `${this.grid.height}px` })
    this.ratio = ratio
  }

  paint() {
    const { data, grid, canvas } = this
    const pen = canvas.getContext("2d")
    const look = getComputedStyle(this.root)
    this.colours = Object.fromEntries(
      ["--faint", "--filtered", "--panel", "--line", "--model"].map((name) => [name, look.getPropertyValue(name).trim()]))
    this.colours.text = look.color
    this.font = look.fontFamily
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0)
    pen.clearRect(0, 0, grid.width, grid.height)
    pen.textBaseline = "middle"
    pen.direction = "ltr"
    data.columns.forEach((own, column) => {
      this.edge(pen, column, own.label, MAP.head / 2, own.position === data.at)
      this.edge(pen, column, own.next, grid.height - MAP.foot / 2, false, true)
    })
    for (let layer = 0; layer < data.layers; layer++) {
      for (let column = 0; column < data.columns.length; column++) this.cell(pen, layer, column)
    }
    this.outline(pen, this.chosen(), this.colours["--filtered"], 3)
    const pointed = this.hover ?? (this.root.getRootNode().activeElement === canvas ? this.cursor : null)
    if (pointed) this.outline(pen, pointed, this.colours.text, 2)
  }

  edge(pen, column, label, y, on, next = false) {
    const { grid } = this
    pen.font = `${on ? 700 : 600} 13.5px ${this.font}`
    pen.fillStyle = next ? this.colours["--filtered"] : on ? this.colours.text : this.colours["--faint"]
    pen.textAlign = "center"
    pen.fillText(fitted(label, grid.column - 8, (text) => pen.measureText(text).width), grid.left(column) + grid.column / 2, y)
  }

  cell(pen, layer, column) {
    const { data, grid } = this
    const x = grid.left(column)
    const y = grid.top(layer)
    const level = strength(data, layer, column)
    const colours = level === null ? { background: "transparent", color: this.colours["--faint"] } : ramp(level, this.root.dataset.theme)
    pen.fillStyle = colours.background
    pen.fillRect(x + 0.5, y + 0.5, grid.column - 1, grid.row - 1)
    pen.fillStyle = colours.color
    pen.font = `12.5px ${this.font}`
    pen.textAlign = "center"
    const text = cellText(data, layer, column)
    pen.fillText(fitted(text, grid.column - 10, (part) => pen.measureText(part).width), x + grid.column / 2, y + grid.row / 2 + 0.5)
    if (agrees(data, layer, column)) {
      pen.fillStyle = this.colours["--filtered"]
      pen.strokeStyle = this.colours["--panel"]
      pen.lineWidth = 1
      pen.beginPath()
      pen.rect(x + 1, y + 1, 5, grid.row - 2)
      pen.fill()
      pen.stroke()
    }
  }

  outline(pen, { layer, column }, colour, width) {
    const { grid } = this
    pen.strokeStyle = colour
    pen.lineWidth = width
    pen.strokeRect(grid.left(column) + width / 2, grid.top(layer) + width / 2, grid.column - width, grid.row - width)
  }

  show(cell) {
    const { data } = this
    this.panel.replaceChildren(...panelNodes(data, cell).flat(Infinity).filter(Boolean))
    this.root.dataset.layer = cell.layer
    this.root.dataset.position = data.columns[cell.column].position
    this.paint()
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect()
    const found = this.grid.at(event.clientX - box.left, event.clientY - box.top)
    const next = found && found.layer !== null ? found : null
    if (next?.layer === this.hover?.layer && next?.column === this.hover?.column) return
    this.hover = next
    this.show(next ?? this.chosen())
  }

  click(event) {
    const box = this.canvas.getBoundingClientRect()
    const found = this.grid.at(event.clientX - box.left, event.clientY - box.top)
    if (found) this.open(found)
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    if (event.key === "Enter" || event.key === " ") this.open(this.cursor)
    else {
      const next = movedCell(event.key, this.cursor, this.grid)
      if (!next) return
      this.cursor = next
      this.hover = null
      this.show(next)
      this.live.textContent = spoken(this.data, next)
      const left = this.grid.left(next.column)
      if (left < this.scroller.scrollLeft) this.scroller.scrollLeft = left
      const right = left + this.grid.column - this.scroller.clientWidth
      if (right > this.scroller.scrollLeft) this.scroller.scrollLeft = right
    }
    event.preventDefault()
    event.stopPropagation()
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  root.dataset.theme = themeOf(parentElement)
  root.lang = data.lang
  if (!maps.has(root)) maps.set(root, new LensMap(root))
  const map = maps.get(root)
  map.update(data, (event) => setTriggerValue("action", event))
  return () => {
    map.observer.disconnect()
    maps.delete(root)
  }
}
