// Strategies as rows, steps as columns: the texts of a comparison while they grow.
import { el, fmt, keepFocus, percent, themeOf } from "./dom.js"
import { ramp } from "./ramp.js"
import { cellClasses, cellProbability, changedFrom, longest, moveTo, spoken, standing, start } from "./columns_cells.js"
import { nameNode, sentence, stepNode, textsNode } from "./columns_panel.js"

const boards = new WeakMap()
const NARROW = 700

class Board {
  constructor(root) {
    this.root = root
    this.at = { row: 0, step: 0 }
    this.flow = null
    this.view = "tokens"
    this.rows = []
    // Roles are said, because rows that flow are no table for the browser.
    this.head = el("tr", { role: "row" })
    this.body = el("tbody", { role: "rowgroup" })
    this.table = el("table", { class: "grid", role: "grid" }, el("thead", { role: "rowgroup" }, this.head), this.body)
    this.scroller = el("div", { class: "scroller" }, this.table)
    this.tools = el("div", { class: "tools" })
    this.legend = el("div", { class: "legend" })
    this.panel = el("div", { class: "panel" })
    this.texts = el("div", { class: "all-texts" })
    this.live = el("p", { class: "sr-only", "aria-live": "polite" })
    root.replaceChildren(this.tools, this.scroller, this.legend, this.panel, this.texts, this.live)
    this.table.onkeydown = (event) => this.key(event)
    this.observer = new ResizeObserver(() => this.measure())
    this.observer.observe(root)
  }

  update(data, theme, emit) {
    const redraw = this.theme !== theme || this.data?.strings.lang !== data.strings.lang
    Object.assign(this, { data, theme, emit })
    if (redraw) {
      this.rows.forEach((own) => own.nodes.forEach((node) => node.remove()))
      this.rows = []
    }
    if (!data.rows[this.at.row]?.cells.some((cell) => cell.step === this.at.step)) this.moved = false
    this.table.setAttribute("aria-label", data.strings.table)
    this.root.setAttribute("aria-busy", String(data.running))
    keepFocus(this.root, () => this.draw())
    this.measure()
  }

  draw() {
    const { data } = this
    const room = data.rows.length
    if (!this.moved) this.at = start(data.rows)
    this.drawHead()
    while (this.rows.length > room) this.rows.pop().nodes.forEach((node) => node.remove())
    data.rows.forEach((row, index) => this.drawRow(row, index))
    this.stop()
    this.drawTools()
    this.drawLegend()
    this.show()
    this.texts.replaceChildren(...(this.view === "texts" ? textsNode(data, (sample) => this.emit({ do: "sample", sample })) : []))
    this.root.dataset.view = this.view
  }

  drawHead() {
    const steps = longest(this.data.rows)
    if (this.head.childElementCount === steps + 1 && this.steps === steps && this.corner === this.data.strings.steps) return
    this.corner = this.data.strings.steps
    this.steps = steps
    this.head.replaceChildren(el("th", { scope: "col", role: "columnheader", class: "corner" }, this.corner),
      ...Array.from({ length: steps }, (_, i) => el("th", { scope: "col", role: "columnheader" }, i + 1)))
  }

  drawRow(row, index) {
    let own = this.rows[index]
    if (!own) {
      own = { signs: [], tr: el("tr", { class: "line", role: "row" }), why: el("tr", { class: "reason", role: "row" }) }
      own.nodes = [own.tr, own.why]
      own.th = el("th", { scope: "row", role: "rowheader" })
      own.tr.append(own.th)
      this.body.append(own.tr, own.why)
      this.rows[index] = own
    }
    own.tr.classList.toggle("reference", row.reference)
    own.th.replaceChildren(nameNode(row),
      row.model ? el("span", { class: "model" }, row.model) : "",
      row.reference && this.data.rows.length > 1 ? el("span", { class: "badge" }, this.data.strings.reference) : "")
    const signs = row.cells.map((cell) => JSON.stringify(cell) + cellClasses(row, cell))
    const from = changedFrom(own.signs, signs)
    if (own.tail) own.tail.remove()
    while (own.tr.childElementCount > from + 1) own.tr.lastElementChild.remove()
    for (const cell of row.cells.slice(from)) own.tr.append(this.cellNode(row, cell, index))
    own.signs = signs
    own.tail = el("td", { class: "tail", role: "gridcell" }, row.fault ? "" : row.stop ? el("span", { class: "stop", title: row.stop_help }, row.stop) : this.data.running ? el("span", { class: "pending" }, "…") : "")
    own.tr.append(own.tail)
    const why = row.fault ? [["text", row.fault]] : row.why ?? []
    own.why.hidden = why.length === 0
    own.why.classList.toggle("fault", Boolean(row.fault))
    own.why.replaceChildren(el("td", { colspan: this.steps + 2, role: "gridcell" },
      el("div", { class: "why" }, el("span", { class: "sign", "aria-hidden": "true" }, row.fault ? "⚠" : row.first === null ? "=" : "≠"), el("span", {}, sentence(why)))))
  }

  cellNode(row, cell, index) {
    const s = this.data.strings
    const about = spoken(row, cell, s)
    const colours = ramp(cellProbability(cell), this.theme)
    const first = standing(row, cell) === "first"
    const node = el("button", { class: cellClasses(row, cell), type: "button", title: about, "aria-label": about,
      style: colours, tabindex: -1, "data-step": cell.step },
    first ? el("span", { class: "sign", "aria-hidden": "true" }, "≠") : null,
    el("bdi", { class: "label" }, cell.label),
    el("span", { class: "bar", "aria-hidden": "true" }, el("i", { style: { width: `${(100 * cellProbability(cell)).toFixed(1)}%` } })))
    const point = () => this.move({ row: index, step: cell.step })
    node.onpointerenter = node.onfocus = node.onclick = point
    return el("td", { role: "gridcell", colspan: cell.parts.length > 1 ? cell.parts.length : null }, node)
  }

  move(at) {
    if (at.row === this.at.row && at.step === this.at.step && this.panel.childElementCount) return
    this.at = at
    this.moved = true
    this.stop()
    this.show()
  }

  // The one tab stop of the grid, and the marks of the step in view.
  stop() {
    this.body.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1")
    this.button(this.at)?.setAttribute("tabindex", "0")
    for (const node of this.root.querySelectorAll(".here")) node.classList.remove("here")
    this.head.children[this.at.step + 1]?.classList.add("here")
    this.rows.forEach((own, index) => {
      const cell = this.data.rows[index]?.cells.findIndex((c) => c.step <= this.at.step && this.at.step < c.step + c.parts.length) ?? -1
      own.tr.children[cell + 1]?.firstElementChild?.classList.toggle("here", cell >= 0)
    })
  }

  button({ row, step }) {
    return this.rows[row]?.tr.querySelector(`[data-step="${step}"]`)
  }

  show() {
    const { data, at } = this
    const any = data.rows.some((row) => row.cells.length)
    this.panel.replaceChildren(...(any ? stepNode(data, at.step, at.row, (row, step) => this.emit({ do: "open", column: row, step })).filter(Boolean) : []))
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const next = moveTo(event.key, this.at, this.data.rows)
    const ours = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)
    if (!ours) return
    event.preventDefault()
    event.stopPropagation()
    if (!next) return
    this.move(next)
    this.button(next)?.focus()
  }

  drawTools() {
    const s = this.data.strings
    const pick = (group, value, on, text, act) => el("button", { type: "button", class: "switch", "aria-pressed": String(on),
      "data-key": `${group}-${value}`, onclick: act }, text)
    const show = (view, flow) => () => {
      this.view = view
      this.flow = flow
      keepFocus(this.root, () => this.draw())
      this.measure()
    }
    const flow = this.flowing()
    this.tools.replaceChildren(el("div", { class: "switches", role: "group", "aria-label": s.view },
      pick("view", "aligned", this.view === "tokens" && !flow, s.view_aligned, show("tokens", false)),
      pick("view", "flow", this.view === "tokens" && flow, s.view_flow, show("tokens", true)),
      pick("view", "texts", this.view === "texts", s.view_texts, show("texts", this.flow))))
  }

  drawLegend() {
    const s = this.data.strings
    const stops = [0, 0.25, 0.5, 0.75, 1]
    const differs = this.data.rows.some((row) => row.first !== null && row.first !== undefined)
    this.legend.replaceChildren(
      el("span", { class: "scale" }, el("span", {}, s.legend), el("span", { class: "swatches" },
        stops.map((p) => el("span", { class: "swatch", style: ramp(p, this.theme) }, percent(p).replace(".0", ""))))),
      differs ? el("span", {}, el("b", { class: "sign" }, "≠"), " ", s.legend_first) : "",
      el("span", { class: "keys" }, s.legend_keys))
  }

  flowing() {
    return this.flow ?? (this.root.clientWidth || 1000) < NARROW
  }

  measure() {
    const flow = this.flowing()
    if (String(flow) !== this.root.dataset.flow) {
      this.root.dataset.flow = String(flow)
      if (this.data) keepFocus(this.root, () => this.drawTools())
    }
    this.root.style.setProperty("--room", `${Math.max(200, this.scroller.clientWidth - 24)}px`)
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  root.dataset.theme = themeOf(parentElement)
  root.lang = data.lang
  if (!boards.has(root)) boards.set(root, new Board(root))
  const board = boards.get(root)
  board.update(data, root.dataset.theme, (event) => setTriggerValue("action", event))
  return () => {
    board.observer.disconnect()
    boards.delete(root)
  }
}
