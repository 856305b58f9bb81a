// How one weight came about: q and k, q·k, scaling, mask, softmax, and the check.
import { el, fmt, keepFocus, themeOf } from "./dom.js"
import { numberText, weightText } from "./attention_maps.js"
import { strips, valuesTable } from "./cell_strips.js"
import { softmaxTable } from "./cell_rows.js"

const cells = new WeakMap()

class Cell {
  constructor(root) {
    this.root = root
    this.all = false
    this.observer = new ResizeObserver(() => this.strips?.paint())
    this.observer.observe(root)
  }

  update(data, theme, emit) {
    Object.assign(this, { data, theme, emit })
    this.draw()
  }

  draw() {
    const { data, root } = this
    const s = data.strings
    root.dataset.equal = String(data.equal)
    root.dataset.weight = String(data.weight)
    this.strips = null
    const steps = el("ol", { class: "steps" }, this.vectors(), this.dot(), this.scaled(), this.masked(), this.softmax())
    keepFocus(root, () => root.replaceChildren(this.heading(), steps, this.check()))
    this.strips?.paint(this.theme)
    root.setAttribute("aria-label", s.cell_title)
  }

  token(position) {
    return el("span", { class: "tok" }, el("small", {}, position), el("bdi", {}, this.data.tokens[position].label))
  }

  step(n, title, ...children) {
    return el("li", { class: "step" }, el("h3", {}, el("span", { class: "badge" }, n), title), children)
  }

  heading() {
    const { data } = this
    const s = data.strings
    return el("p", { class: "which" }, fmt(s.head_of, { layer: data.layer + 1, head: data.head + 1 }), s.colon,
      s.query_axis, " ", this.token(data.query), " → ", s.key_axis, " ", this.token(data.key), " = ",
      el("b", { class: "value" }, weightText(data.weight)),
      el("button", { type: "button", class: "quiet", onclick: () => this.emit({ do: "look", key: -1 }) }, s.close))
  }

  vectors() {
    const { data } = this
    const s = data.strings
    const shared = data.sharing.length > 1
      ? el("p", { class: "faint" }, fmt(s.sharing, { heads: data.sharing.map((n) => n + 1).join(s.comma), kv: data.kv_head + 1, groups: "" })) : null
    if (!data.k) return this.step(1, s.step_vectors, el("p", {}, s.key_dropped))
    const products = data.q.map((value, i) => value * data.k[i])
    const rows = [{ name: "q", help: fmt(s.q_help, { n: data.query }), values: data.q },
      { name: "k", help: fmt(s.k_help, { n: data.key }), values: data.k }, { name: "q × k", help: s.product_help, values: products }]
    this.strips = strips(rows, s)
    const table = el("details", { class: "table" }, el("summary", {}, fmt(s.all_values, { d: data.dim })))
    table.ontoggle = () => table.open && table.children.length < 2 && table.append(valuesTable(rows, s))
    return this.step(1, s.step_vectors, el("p", {}, fmt(s.vectors_text, { d: data.dim })), this.strips.node, shared, table)
  }

  dot() {
    const { data } = this
    const s = data.strings
    return this.step(2, s.step_dot, el("p", {}, fmt(s.dot_text, { d: data.dim })),
      el("p", { class: "formula" }, "q·k = Σ qᵢkᵢ = ", el("b", {}, numberText(data.dot))))
  }

  scaled() {
    const { data } = this
    const s = data.strings
    const dot = numberText(data.dot)
    const root = data.plain_scaling ? `${dot} × 1/\u2060√${data.dim} = ` : ""
    const score = data.dot === null ? null : data.dot * data.scaling
    return this.step(3, s.step_scale, el("p", {}, data.plain_scaling ? fmt(s.scale_plain, { d: data.dim }).replace("/√", "/\u2060√") : fmt(s.scale_own, { d: data.dim })),
      el("p", { class: "formula" }, `${root}${dot} × ${numberText(data.scaling, 5)} = `, el("b", {}, numberText(score))))
  }

  masked() {
    const { data } = this
    const s = data.strings
    const text = data.visible ? s.mask_open : data.future ? s.mask_hides_future : fmt(s.mask_hides_window, { n: data.window ?? "?" })
    return this.step(4, s.step_mask, el("p", {}, text), data.window === null ? null : el("p", { class: "faint" }, fmt(s.window, { n: data.window })),
      el("p", { class: "formula" }, data.visible ? `${s.score} + 0` : `${s.score} − ∞ = −∞`))
  }

  softmax() {
    const { data } = this
    const s = data.strings
    const mine = data.rows.find((row) => row[0] === data.key)
    const formula = mine && data.visible
      ? el("p", { class: "formula" }, `e^(${numberText(mine[2])} − ${numberText(data.highest)}) ÷ ${numberText(data.sum)} = ${numberText(mine[3])} ÷ ${numberText(data.sum)} = `,
        el("b", {}, weightText(data.weight)))
      : el("p", { class: "formula" }, "e^(−∞) = ", el("b", {}, "0"))
    const more = data.rows.length > 13
      ? el("button", { type: "button", class: "quiet", "aria-pressed": String(this.all), onclick: () => ((this.all = !this.all), this.draw()) },
        this.all ? s.fewer : fmt(s.show_all, { n: data.rows.length })) : null
    const open = (key) => this.emit({ do: "look", key })
    return this.step(5, s.step_softmax, el("p", {}, s.softmax_text), formula, softmaxTable(data, this.all, open), more)
  }

  check() {
    const { data } = this
    const s = data.strings
    const words = { difference: data.difference_text, model: weightText(data.captured) }
    return el("p", { class: `check ${data.equal ? "good" : "bad"}`, role: "status" }, el("b", {}, data.equal ? "✓ " : "✗ "),
      fmt(data.equal ? s.check_equal : s.check_differs, words))
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  root.dataset.theme = themeOf(parentElement)
  root.lang = data.lang
  if (!cells.has(root)) cells.set(root, new Cell(root))
  const cell = cells.get(root)
  cell.update(data, root.dataset.theme, (event) => setTriggerValue("action", event))
  return () => {
    cell.observer.disconnect()
    cells.delete(root)
  }
}
