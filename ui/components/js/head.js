// One head in full: its map (rows attend from, columns are attended to), the arcs of a row, or
// what the last position reads in every layer.
import { el, fmt, keepFocus, themeOf } from "./dom.js"
import { attendColour, columnAt, numberText, rangeIn, rangeOfMap, rowAt, weightAt, weightFor } from "./attention_maps.js"
import { weightText, weightsOf } from "./attention_maps.js"
import { heatMap, stepCell } from "./head_plot.js"
import { arcsNode, rowTable, tokenName } from "./head_side.js"

const heads = new WeakMap()

const SINK = 0.1 // share of the first token from which on there is something to explain

class Head {
  constructor(root) {
    this.root = root
    this.hide = false
    this.log = false
    this.view = "map"
    this.here = null
    this.column = null
    this.open = false
    this.plot = heatMap({ hover: (cell) => this.hover(cell), pick: (cell) => this.pick(cell), key: (name) => this.key(name) })
    this.tools = el("div", { class: "tools" })
    this.readout = el("p", { class: "readout", "aria-live": "polite" })
    this.legend = el("div", { class: "legend" })
    this.side = el("div", { class: "side" })
    this.notes = el("div", { class: "notes" })
    this.summary = el("summary", {}) // one for good: a click is lost on a node that is replaced
    this.table = el("details", { class: "table" }, this.summary)
    this.table.ontoggle = () => this.fillTable()
    this.corner = el("div", { class: "axes" })
    root.replaceChildren(this.tools, el("div", { class: "map-and-side" },
      el("div", { class: "map" }, this.corner, this.plot.node, this.readout, this.legend), this.side), this.notes, this.table)
    this.observer = new ResizeObserver(() => {
      if (this.data && Math.abs(this.plot.node.clientWidth - this.width) > 1) this.redraw()
    })
    this.observer.observe(root)
  }

  update(data, theme, emit) {
    const other = this.data && (this.data.layer !== data.layer || this.data.head !== data.head)
    Object.assign(this, { data, theme, emit })
    this.map = { values: weightsOf(data.values), first: data.first, total: data.tokens.length }
    this.last = data.last ? weightsOf(data.last) : null
    if (other || this.here?.row >= data.tokens.length) this.here = null
    this.column = null
    keepFocus(this.root, () => {
      this.drawTools()
      this.redraw()
    })
  }

  redraw() {
    this.width = this.plot.node.clientWidth
    this.drawPlot()
    this.drawLegend()
    this.drawNotes()
    this.refresh()
  }

  // ---- the map

  model() {
    const { data, map, hide, log, theme } = this
    const skip = hide ? 1 : 0
    const label = (position) => ({ index: position, text: data.tokens[position].label })
    const total = data.tokens.length
    if (this.view === "map") {
      return { rows: total, columns: total, at: (row, column) => weightAt(map, row, column), hidden: (row, column) => column > row,
        rowLabel: label, columnLabel: label, range: rangeOfMap(map, hide), log, theme, skip, own: true, least: map.first, tall: 620, square: true }
    }
    const range = rangeIn((see) => {
      for (let layer = 0; layer < data.layers; layer++) {
        for (let key = skip; key < total; key++) see(this.last[layer * total + key])
      }
    })
    return { rows: data.layers, columns: total, at: (row, column) => this.last[row * total + column], hidden: () => false,
      rowLabel: (layer) => ({ index: fmt(data.strings.layer_n, { n: layer + 1 }), text: "" }), columnLabel: label,
      range, log, theme, skip, own: false, tall: 620, square: false }
  }

  drawPlot() {
    const s = this.data.strings
    this.root.dataset.view = this.view
    this.plot.draw(this.model())
    const [rows, columns] = this.view === "map" ? [s.query_axis, s.key_axis] : [s.layer_axis, s.key_axis]
    this.corner.replaceChildren(el("span", { class: "axis-row" }, `↓ ${rows}`), el("span", { class: "axis-column" }, `→ ${columns}`))
    this.plot.node.setAttribute("aria-label", fmt(this.view === "map" ? s.map_label : s.last_label, { name: this.name() }))
  }

  name() {
    const { layer, head, strings: s } = this.data
    return fmt(head < 0 ? s.mean_of : s.head_of, { layer: layer + 1, head: head + 1 })
  }

  drawLegend() {
    const s = this.data.strings
    const { range, log } = this.plot.model
    const stops = [0, 0.25, 0.5, 0.75, 1].map((unit) => `rgb(${attendColour(unit, this.theme)})`)
    this.legend.replaceChildren(el("span", { class: "faint" }, log ? s.legend_log : s.legend),
      el("div", { class: "legend-bar" }, el("i", { style: { background: `linear-gradient(to right, ${stops.join(", ")})` } }),
        el("div", { class: "legend-ticks" }, [0, 0.5, 1].map((unit) => el("span", {}, weightText(weightFor(unit, range, log)))))),
      this.view === "map" ? el("span", { class: "masked-key" }, el("i", {}), s.masked) : "",
      this.plot.pool > 1 ? el("span", { class: "faint" }, fmt(s.grid_pooled, { n: this.plot.pool })) : "")
  }

  // ---- pointing

  query() {
    if (this.view === "map" && this.here) return this.here.row
    return Math.max(this.map.first, this.data.at)
  }

  hover(cell) {
    if (cell && this.view === "map" && (cell.column > cell.row || cell.row < this.map.first)) cell = { ...cell, masked: true }
    if (cell?.row === this.here?.row && cell?.column === this.here?.column) return
    this.here = cell
    this.column = null
    this.refresh()
  }

  pick(cell) {
    const { data } = this
    if (this.view !== "map" && this.isClosed(cell.row)) return
    if (this.view !== "map") return this.emit({ do: "look", layer: cell.row, head: -1, key: -1 })
    if (cell.row < this.map.first) return
    if (cell.column > cell.row || data.head < 0) return this.emit({ do: "look", layer: data.layer, head: data.head, at: cell.row })
    this.emit({ do: "look", layer: data.layer, head: data.head, at: cell.row, key: cell.column })
  }

  key(name) {
    const start = this.here ?? { row: this.view === "map" ? this.data.at : this.data.layer, column: this.view === "map" ? Math.min(this.data.at, Math.max(0, this.data.key)) : 0 }
    if (name === "Enter" || name === " ") this.pick(start)
    else if (name === "Escape") this.unpin()
    else {
      const next = stepCell(name, start, this.plot.model)
      if (!next) return false
      this.hover(next)
    }
    return true
  }

  unpin() {
    if (this.data.pinned) this.emit({ do: "look", layer: this.data.layer, head: this.data.head, at: -1, key: -1 })
  }

  refresh() {
    const { data, map } = this
    this.plot.show(this.here, this.view === "map" ? (data.pinned ? data.at : null) : data.layer)
    this.root.dataset.query = String(this.query())
    this.readout.replaceChildren(...this.said())
    const query = this.query()
    const weights = this.column === null ? rowAt(map, query, this.hide) : columnAt(map, this.column).filter(() => !(this.hide && this.column === 0))
    const ui = {
      hoverRow: (row) => this.fromArcs(row, null),
      hoverColumn: (key) => this.fromArcs(null, key),
      leave: () => (this.here || this.column !== null) && this.fromArcs(null, null),
      pin: (row) => this.emit({ do: "look", layer: data.layer, head: data.head, at: data.pinned && row === data.at ? -1 : row }),
      cell: (key) => this.emit({ do: "look", layer: data.layer, head: data.head, at: this.query(), key: Math.min(key, this.query()) }),
    }
    this.ui = ui
    if (this.view === "map") this.drawSide(arcsNode(data, { query, column: this.column }, weights, ui))
    else this.side.replaceChildren()
    this.fillTable()
  }

  // Rebuilding under the pointer would fire pointerenter again: only what changed is replaced.
  drawSide(node) {
    const s = this.data.strings
    const focus = this.root.getRootNode().activeElement
    const at = focus && this.side.contains(focus) ? { query: focus.dataset.query, column: focus.dataset.column } : null
    const title = el("h2", {}, this.column === null ? s.arcs_title : s.arcs_column,
      this.data.pinned ? el("button", { type: "button", class: "quiet", onclick: () => this.unpin() }, s.unpin) : null)
    this.side.replaceChildren(title, node)
    if (!at) return
    const kind = at.query === undefined ? "column" : "query"
    this.quiet = true
    this.side.querySelector(`[data-${kind}="${at[kind]}"]`)?.focus({ preventScroll: true })
    this.quiet = false
  }

  fromArcs(row, column) {
    if (this.quiet) return
    const here = row === null || row < this.map.first ? null : { row, column: -1 }
    if (here?.row === this.here?.row && column === this.column && this.here?.column === here?.column) return
    this.here = here
    this.column = column
    this.refresh()
  }

  said() {
    const { data, here } = this
    const s = data.strings
    if (!here || here.column < 0) return [el("span", { class: "faint" }, this.view === "map" ? s.readout : s.readout_last)]
    const key = tokenName(data.tokens, here.column)
    const weight = this.plot.model.at(here.row, here.column)
    const value = el("b", { class: "value" }, weightText(weight), Number.isNaN(weight) ? "" : ` = ${numberText(100 * weight, 2)} %`)
    const from = this.view === "map" ? [el("span", {}, s.query_axis), tokenName(data.tokens, here.row)]
      : [el("span", {}, fmt(s.layer_n, { n: here.row + 1 }))]
    if (this.view === "last" && this.isClosed(here.row)) return [...from, s.colon, s.closed]
    const hidden = this.hide && here.column === 0 ? ` ${s.is_hidden}` : ""
    return [...from, el("span", { class: "arrow" }, " → "), el("span", {}, s.key_axis), key, s.colon,
      here.column > here.row && this.view === "map" ? el("b", { class: "value" }, s.masked_value) : value, hidden]
  }

  fillTable() {
    const s = this.data.strings
    this.summary.textContent = s.row_table
    const query = Math.max(this.map.first, this.data.at)
    const rows = this.table.open ? [rowTable(this.data, query, rowAt(this.map, query, false), this.ui)] : []
    keepFocus(this.table, () => {
      while (this.summary.nextSibling) this.summary.nextSibling.remove()
      this.table.append(...rows)
    })
  }

  // ---- words and switches

  drawTools() {
    const { data } = this
    const s = data.strings
    const pick = (name, value, options, change) => {
      const select = el("select", { "data-key": name, onchange: () => change(Number(select.value)) },
        options.map(([number, text, disabled]) => el("option", { value: number, selected: number === value, disabled }, text)))
      return el("label", {}, el("span", {}, s[name]), select)
    }
    const counted = (count, text) => Array.from({ length: count }, (_, i) => [i, fmt(s[text], { n: i + 1 }), false])
    const layers = counted(data.layers, "layer_n").map(([n, text]) =>
      this.isClosed(n) ? [n, `${text} (${s.closed_short})`, true] : [n, text, false])
    const check = (name, value, change) => {
      const box = el("input", { type: "checkbox", checked: value, "data-key": name, onchange: () => change(box.checked) })
      return el("label", { class: "check" }, box, el("span", {}, s[name]))
    }
    const tab = (view) => el("button", { type: "button", "aria-pressed": String(this.view === view), "data-key": view,
      onclick: () => this.turn({ view }, view) }, s[`view_${view}`])
    const off = this.isOff()
    this.tools.replaceChildren(
      pick("layer", data.layer, layers, (layer) => this.emit({ do: "look", layer, head: data.head })),
      pick("head", data.head, [[-1, s.mean], ...counted(data.heads, "head_n")], (head) => this.emit({ do: "look", layer: data.layer, head })),
      this.last ? el("div", { class: "tabs", role: "group", "aria-label": s.view }, tab("map"), tab("last")) : "",
      check("hide_first", this.hide, (hide) => this.turn({ hide }, "hide_first")),
      check("log_scale", this.log, (log) => this.turn({ log }, "log_scale")),
      el("div", { class: "switches" },
        data.head < 0 ? null : this.toggle(off.head, data.head, off.head ? s.on_head : s.off_head),
        this.toggle(off.layer, -1, off.layer ? s.on_layer : s.off_layer)))
  }

  isClosed(layer) {
    return this.data.closed.includes(layer)
  }

  isOff() {
    const { off, layer, head } = this.data
    const has = (h) => off.some(([a, b]) => a === layer && b === h)
    return { head: has(head), layer: has(-1) }
  }

  toggle(on, head, text) {
    return el("button", { type: "button", class: "switch", "aria-pressed": String(on), "data-key": `off${head < 0 ? "layer" : "head"}`,
      onclick: () => this.emit({ do: on ? "on" : "off", layer: this.data.layer, head }) }, text)
  }

  turn(change, key) {
    Object.assign(this, change, { here: null, column: null })
    this.drawTools()
    this.redraw()
    this.root.querySelector(`[data-key="${key}"]`)?.focus({ preventScroll: true })
  }

  drawNotes() {
    const { data } = this
    const s = data.strings
    const about = []
    if (data.head >= 0 && data.sharing.length > 1) {
      about.push(fmt(s.sharing, { heads: data.sharing.map((n) => n + 1).join(s.comma), kv: data.kv_head + 1, groups: data.kv_heads }))
    }
    if (data.window !== null) about.push(fmt(s.window, { n: data.window }))
    if (data.first > 0) about.push(fmt(s.rows_from, { n: data.first }))
    if (this.view === "last") about.push(s.last_about)
    if (data.tokens.length > data.prompt) about.push(fmt(s.stitched, { n: data.tokens.length - data.prompt }))
    const items = [[s.not_explanation_title, s.not_explanation]]
    if (data.sink >= SINK && data.tokens.length > 1) {
      items.unshift([s.sink_title, fmt(s.sink, { share: (100 * data.sink).toFixed(0), token: data.tokens[0].label })
        + (data.whole ? "" : s.sentence_join + s.sink_some)])
    }
    this.notes.replaceChildren(
      this.hide ? el("p", { class: "warn" }, s.hidden_note) : "",
      about.length ? el("p", {}, el("b", {}, this.name() + s.colon), about.join(s.sentence_join)) : "",
      el("div", { class: "cards" }, items.map(([title, text]) => el("section", {}, el("h2", {}, title), el("p", {}, text)))))
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  root.dataset.theme = themeOf(parentElement)
  root.lang = data.lang
  if (!heads.has(root)) heads.set(root, new Head(root))
  const head = heads.get(root)
  head.update(data, root.dataset.theme, (event) => setTriggerValue("action", event))
  return () => {
    head.observer.disconnect()
    heads.delete(root)
  }
}
