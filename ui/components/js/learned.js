import { el, fmt, themeOf } from "./dom.js"
import { heatAt, heatFloats, heatGrid, heatNumber, heatPaint } from "./heat.js"

// Learned positions: the token's row, plus the position's row, is what enters the first layer.
const learnedViews = new WeakMap()

class LearnedView {
  constructor(root) {
    this.root = root
    this.width = 0
    new ResizeObserver(() => {
      if (this.data && Math.abs(root.clientWidth - this.width) >= 4) this.draw()
    }).observe(root)
  }

  draw() {
    const { data, root } = this
    const s = data.strings
    this.width = root.clientWidth
    const grid = heatGrid(data.width, Math.max(200, this.width - 40))
    const canvases = []
    const said = el("p", { class: "reading", role: "status" }, s.learned_hover)
    const rows = data.rows.map((row) => ({ ...row, values: heatFloats(row.values) }))
    const point = (event) => {
      const i = heatAt(grid, event.offsetX, event.offsetY)
      if (i >= 0) said.textContent = fmt(s.learned_sum, { i, a: heatNumber(rows[0].values[i]), b: heatNumber(rows[1].values[i]), c: heatNumber(rows[2].values[i]) })
    }
    root.replaceChildren(
      rows.map((row, i) => {
        const canvas = el("canvas", { role: "img", "aria-label": row.title, onpointermove: point, onpointerdown: point })
        canvases.push(canvas)
        return el("div", { class: "line" }, el("p", {}, el("b", { class: "sign" }, ["", "+", "="][i]), " ", el("bdi", {}, row.title)), canvas)
      }).reduce((box, node) => { box.append(node); return box }, el("section", { class: "box" })),
      said,
      el("ul", { class: "checks" }, el("li", { class: data.check.good ? "good" : "bad" }, data.check.text)),
      el("section", { class: "box" }, el("h3", {}, s.learned_alike), el("p", { class: "dim" }, fmt(s.learned_alike_text, { n: data.at })), this.alike()))
    rows.forEach((row, i) => heatPaint(canvases[i], row.values, grid, data.saturation[i], root.dataset.theme))
  }

  // Cosines of the position's row to the rows of the first positions, as bars around 0.
  alike() {
    const cosines = heatFloats(this.data.cosines)
    return el("div", { class: "bars", role: "img", "aria-label": this.data.strings.learned_alike }, Array.from(cosines, (c, i) =>
      el("span", { class: `bar${i === this.data.at ? " here" : ""}${c < 0 ? " below" : ""}`, title: `${i}: ${heatNumber(c, 3)}`, style: { height: `${(Math.abs(c) * 50).toFixed(1)}%` } })))
  }
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  root.dataset.theme = themeOf(parentElement)
  root.lang = data.lang
  if (!learnedViews.has(root)) learnedViews.set(root, new LearnedView(root))
  const view = learnedViews.get(root)
  view.data = data
  view.draw()
}
