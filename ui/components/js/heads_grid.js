// All heads as one canvas: hover tells, a click or Enter opens, arrow keys walk.
import { el, fmt, keepFocus, themeOf } from "./dom.js"
import { attendTable, bytesOf } from "./attention_maps.js"
import { flowGrid, headUnder, isClosed, listHeads, modelGrid, paintPicture, passes, pictureOf } from "./attention_grid.js"
import { sortHeads, stepFlow, stepHead } from "./attention_grid.js"
import { HEADS_MARGIN, drawHeads } from "./heads_draw.js"
import { headFacts, headName, headsTable } from "./heads_table.js"
import { legendNodes, toolNodes } from "./heads_tools.js"

const grids = new WeakMap()

class HeadsGrid {
  constructor(root) {
    this.root = root
    this.by = ""
    this.sorted = false
    this.descending = true
    this.limit = null
    this.here = null
    this.canvas = el("canvas", {})
    this.board = el("div", { class: "board", tabindex: "0", role: "application", "data-key": "board" }, this.canvas)
    this.preview = el("canvas", { class: "preview", width: 96, height: 96, "aria-hidden": "true" })
    this.told = el("div", { class: "told", "aria-live": "polite" })
    this.tools = el("div", { class: "tools" })
    this.legend = el("p", { class: "note" })
    this.summary = el("summary", {}) // one for good: a click is lost on a node that is replaced
    this.table = el("details", { class: "table" }, this.summary)
    this.table.ontoggle = () => this.fillTable()
    root.replaceChildren(this.tools, this.board,
      el("div", { class: "about" }, this.preview, this.told), this.legend, this.table)
    this.board.onpointermove = (event) => this.hover(this.under(event))
    this.board.onpointerleave = () => this.hover(null)
    this.board.onclick = (event) => this.open(this.under(event))
    this.board.onkeydown = (event) => this.key(event)
    this.board.onblur = () => this.hover(null)
    this.observer = new ResizeObserver(() => this.resize())
    this.observer.observe(root)
  }

  update(data, theme, emit) {
    const fresh = this.data?.pictures !== data.pictures || this.theme !== theme || this.data?.lang !== data.lang
    Object.assign(this, { data, theme, emit })
    if (fresh) this.paintPictures()
    this.here = null
    keepFocus(this.root, () => {
      this.drawTools()
      this.redraw()
      this.fillTable()
    })
  }

  paintPictures() {
    const { data, theme } = this
    const bytes = bytesOf(data.pictures)
    const colours = attendTable(theme)
    this.small = new Map()
    for (const layer of data.known) {
      for (let head = 0; head < data.heads; head++) {
        const pixels = paintPicture(pictureOf(data, bytes, layer, head), data.side, colours)
        const canvas = el("canvas", { width: data.side, height: data.side })
        canvas.getContext("2d").putImageData(new ImageData(pixels, data.side, data.side), 0, 0)
        this.small.set(layer * data.heads + head, canvas)
      }
    }
  }

  // ---- what is shown

  list() {
    return listHeads(this.data, this.by)
  }

  shown() {
    const list = this.by && this.sorted ? sortHeads(this.list(), this.descending) : this.list()
    return this.by && this.sorted ? list.filter((item) => passes(item, this.limit, this.descending)) : list
  }

  redraw() {
    const width = this.board.clientWidth || 600
    this.width = width
    this.items = this.shown()
    const flow = this.by && this.sorted
    this.grid = flow ? { flow: true, ...flowGrid(this.items.length, width) } : modelGrid(this.data, width, HEADS_MARGIN)
    this.root.dataset.shown = String(this.items.filter((x) => passes(x, this.limit, this.descending)).length)
    this.draw()
    this.legend.replaceChildren(...legendNodes(this))
    this.tell(this.here)
  }

  placeOf(layer, head) {
    if (!this.grid.flow) return this.grid.place(layer, head)
    const index = this.items.findIndex((item) => item.layer === layer && item.head === head)
    return index < 0 ? null : this.grid.place(index)
  }

  draw() {
    drawHeads(this)
  }

  isOff({ layer, head }) {
    return this.data.off.some(([l, h]) => l === layer && (h === -1 || h === head))
  }

  // ---- pointing

  under(event) {
    const box = this.canvas.getBoundingClientRect()
    const [x, y] = [event.clientX - box.left, event.clientY - box.top]
    if (!this.grid.flow) return headUnder(this.grid, this.data, x, y)
    const { columns, size, caption } = this.grid
    const [column, row] = [Math.floor(x / size), Math.floor(y / (size + caption))]
    return column < columns && column >= 0 ? (this.items[row * columns + column] ?? null) : null
  }

  hover(here) {
    if (here?.layer === this.here?.layer && here?.head === this.here?.head) return
    this.here = here
    this.board.style.cursor = here && !isClosed(this.data, here.layer) ? "pointer" : ""
    this.draw()
    this.tell(here)
  }

  open(here) {
    if (here && !isClosed(this.data, here.layer)) this.emit({ do: "look", layer: here.layer, head: here.head, key: -1 })
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return
    const start = this.here ?? { layer: this.data.layer, head: Math.max(0, this.data.head) }
    if (event.key === "Enter" || event.key === " ") this.open(start)
    else {
      const next = this.grid.flow ? this.stepInFlow(event.key, start) : stepHead(event.key, start, this.data, this.grid.across)
      if (!next) return
      this.hover({ layer: next.layer, head: next.head })
    }
    event.preventDefault()
    event.stopPropagation() // the page's own keys step the run
  }

  stepInFlow(key, start) {
    const index = this.items.findIndex((item) => item.layer === start.layer && item.head === start.head)
    const next = stepFlow(key, Math.max(0, index), this.items.length, this.grid.columns)
    return next === null ? null : (this.items[index < 0 ? 0 : next] ?? null)
  }

  // ---- words

  tell(here) {
    const { data } = this
    const s = data.strings
    const { layer, head } = here ?? { layer: data.layer, head: data.head }
    const name = el("b", {}, headName(layer, head, s))
    const open = !here && head >= 0 ? el("span", { class: "faint" }, ` ${s.in_view}`) : null
    const window = data.windows[layer]
    const seen = el("p", { class: "faint" }, window === null ? "" : fmt(s.window, { n: window }))
    const facts = head < 0 ? [] : headFacts(data, layer, head)
    const known = data.known.includes(layer)
    this.told.replaceChildren(el("p", {}, name, open),
      known ? el("dl", {}, facts.map(([term, value]) => el("div", {}, el("dt", {}, term), el("dd", {}, value))))
        : el("p", {}, isClosed(data, layer) ? s.closed : s.not_read),
      window === null ? "" : seen)
    this.board.setAttribute("aria-label", fmt(s.grid_label, { layers: data.layers, heads: data.heads }))
    const pen = this.preview.getContext("2d")
    pen.clearRect(0, 0, 96, 96)
    pen.imageSmoothingEnabled = false
    const picture = this.small.get(layer * data.heads + head)
    if (picture) pen.drawImage(picture, 0, 0, 96, 96)
  }

  drawTools() {
    this.tools.replaceChildren(...toolNodes(this))
  }

  choose(name) {
    Object.assign(this, { by: name, limit: null, descending: true, sorted: Boolean(name) && this.sorted })
    this.again()
  }

  turn(descending) {
    Object.assign(this, { descending, limit: null })
    this.again()
  }

  sort(sorted) {
    this.sorted = sorted
    this.again()
  }

  again() {
    keepFocus(this.root, () => {
      this.drawTools()
      this.redraw()
      this.fillTable()
    })
  }

  fillTable() {
    if (!this.data) return
    this.summary.textContent = this.data.strings.grid_table
    const items = this.shown().filter((item) => item.known && passes(item, this.limit, this.descending))
    const rows = this.table.open ? [headsTable(this.data, items, (layer, head) => this.open({ layer, head }))] : []
    keepFocus(this.table, () => {
      while (this.summary.nextSibling) this.summary.nextSibling.remove()
      this.table.append(...rows)
    })
  }

  resize() {
    if (!this.data || Math.abs(this.board.clientWidth - this.width) < 2) return
    this.redraw()
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  root.dataset.theme = themeOf(parentElement)
  root.lang = data.lang
  if (!grids.has(root)) grids.set(root, new HeadsGrid(root))
  const grid = grids.get(root)
  grid.update(data, root.dataset.theme, (event) => setTriggerValue("action", event))
  return () => {
    grid.observer.disconnect()
    grids.delete(root)
  }
}
