import { el, fmt, keepFocus, themeOf } from "./dom.js"
import { heatFloats } from "./heat.js"
import { curvePair, curveWhole, dial, dialAngle, dialNumber, rotationSelect, waveText, waves } from "./rotation_draw.js"
import { rotationDot, rotationMembers, rotationMove, rotationPair, rotationPoint, rotationRanges } from "./rotation_math.js"
import { rotationTerms, rotationWave, rotationWhole } from "./rotation_math.js"

const rotationViews = new WeakMap()
const ROTATION_PATIENCE = 3000 // milliseconds for which the reader's pair outweighs an older answer

class RotationView {
  constructor(root) {
    this.root = root
    this.width = 0
    this.observer = new ResizeObserver(() => {
      if (!this.data || Math.abs(root.clientWidth - this.width) < 4) return
      this.build()
    })
    this.observer.observe(root)
  }

  update({ data, setTriggerValue }) {
    // The answer to what is drawn already: nothing moves, least of all under the reader's finger.
    const answer = this.data && this.query === data.query && this.key === data.key &&
      ["layer", "head", "read", "lang", "q"].every((name) => this.data[name] === data[name])
    this.data = data
    this.emit = (event) => setTriggerValue("action", event)
    this.root.removeAttribute("aria-busy")
    if (answer && (data.pair === this.pair || Date.now() - this.sent < ROTATION_PATIENCE)) return
    this.rope = data
    this.rows = { q: heatFloats(data.q), k: heatFloats(data.k), dots: heatFloats(data.dots) }
    this.query = data.query
    this.key = data.key
    this.pair = data.pair
    if (!answer) this.home()
    const ranges = rotationRanges(data.read, data.context)
    if (!ranges.includes(this.last + 1)) this.last = ranges[0] - 1
    this.build()
  }

  home() {
    this.places = { m: this.query, n: this.key }
  }

  vector(which, position) {
    const at = this.data.tokens.findIndex((token) => token.position === position)
    return this.rows[which].subarray(at * this.data.width, (at + 1) * this.data.width)
  }

  token(position) {
    return this.data.tokens.find((token) => token.position === position)
  }

  look(changes) {
    this.root.setAttribute("aria-busy", "true")
    this.emit({ do: "look", ...changes })
  }

  // Other tokens are here already: they are drawn at once, and the address follows.
  take(which, position) {
    this[which] = position
    if (this.key > this.query) this[which === "key" ? "query" : "key"] = position
    this.home()
    this.build()
    this.emit({ do: "look", at: this.query, key: this.key })
  }

  choose(pair, done) {
    this.pair = pair
    this.redraw()
    if (!done) return
    this.sent = Date.now()
    this.emit({ do: "look", pair })
  }

  build() {
    const { data, root } = this
    const s = data.strings
    this.width = root.clientWidth
    this.q = this.vector("q", this.query)
    this.k = this.vector("k", this.key)
    this.terms = rotationTerms(this.q, this.k, this.rope)
    const box = (name, attributes) => (this.parts[name] = el("div", { class: name, ...attributes }))
    this.parts = { law: el("p", { class: "law" }), pairName: el("b"), pairSlider: this.pairSlider() }
    const fixed = data.width > data.dims ? fmt(s.fixed, { n: data.width - data.dims }) : ""
    const made = [
      this.controls(),
      el("div", { class: "stage" },
        el("section", { class: "box left" }, box("dial"), box("numbers", { role: "status" })),
        el("section", { class: "box" }, this.sliders(),
          el("p", { class: "curve-title" }, this.parts.pairName, el("span", { class: "dim" }, s.curve_axis)), box("pair"),
          el("p", { class: "curve-title" }, el("b", {}, fmt(s.curve_whole, { n: data.dims / 2 })), el("span", { class: "dim" }, fixed)), box("whole"),
          this.parts.law)),
      el("section", { class: "box" },
        el("h3", {}, s.waves), el("p", { class: "dim" }, s.waves_text), this.parts.pairSlider.node, box("waves")),
      el("ul", { class: "checks" }, data.checks.map((check) => el("li", { class: check.good ? "good" : "bad" }, check.text))),
    ]
    keepFocus(root, () => root.replaceChildren(...made))
    this.redraw()
  }

  // The pictures, inside boxes that stay: a slider that is being dragged must not be replaced.
  redraw() {
    const { parts } = this
    const room = (node) => Math.max(240, node.clientWidth)
    const pick = (distance) => this.moveTo(distance)
    this.curves = [curvePair(this.view(), room(parts.pair), pick), curveWhole(this.view(), room(parts.whole), pick)]
    parts.pair.replaceChildren(this.curves[0].node)
    parts.whole.replaceChildren(this.curves[1].node)
    parts.waves.replaceChildren(waves(this.view(), room(parts.waves), (pair) => this.choose(pair, true)))
    parts.pairName.textContent = fmt(this.data.strings.curve_pair, { i: this.pair })
    parts.pairSlider.show(this.pair)
    this.paint()
  }

  view() {
    const { data } = this
    const real = this.query - this.key
    return { rope: this.rope, pair: this.pair, q: this.q, k: this.k, terms: this.terms, places: this.places, last: this.last, words: data.strings,
      real, read: data.read, context: data.context, members: rotationMembers(this.pair, data.dims, data.layout) }
  }

  controls() {
    const { data } = this
    const s = data.strings
    const count = (n) => Array.from({ length: n }, (_, i) => [i, String(i + 1)])
    const tokens = data.tokens.map((token) => [token.position, `${token.position} · ${token.label.slice(0, 40)}`])
    const shared = data.heads > data.kv_heads ? fmt(s.shared, { n: data.heads / data.kv_heads, kv: data.kv_head + 1 }) : ""
    return el("div", { class: "controls" },
      rotationSelect(s.layer, count(data.layers).filter(([layer]) => !data.closed.includes(layer)), data.layer, (layer) => this.look({ layer })),
      rotationSelect(s.head, count(data.heads), data.head, (head) => this.look({ head })),
      rotationSelect(s.query, tokens, this.query, (position) => this.take("query", position)),
      rotationSelect(s.key, tokens, this.key, (position) => this.take("key", position)),
      el("span", { class: "dim" }, shared, data.closed.length ? ` ${s.rope_hybrid}` : "", data.tokens.length < data.read ? ` ${fmt(s.offered, { n: data.tokens.length })}` : ""))
  }

  sliders() {
    const s = this.data.strings
    const slider = (which, label) => {
      const input = el("input", { type: "range", min: 0, max: this.last, step: 1, "data-focus": `slider-${which}`, class: which })
      input.oninput = () => this.move(which, input.valueAsNumber)
      const value = el("output", {})
      this.inputs = { ...this.inputs, [which]: { input, value } }
      return el("label", { class: `slide ${which}` }, el("span", {}, label), input, value)
    }
    const ranges = rotationRanges(this.data.read, this.data.context)
    const choice = ranges.length > 1 && el("span", { class: "group", role: "group", "aria-label": s.range },
      ranges.map((n) => el("button", { type: "button", "data-focus": `range-${n}`, "aria-pressed": String(n - 1 === this.last), onclick: () => this.stretch(n - 1) }, n.toLocaleString("en"))))
    return el("div", { class: "sliders" },
      slider("m", fmt(s.slider_m, { token: this.token(this.query).label })),
      slider("n", fmt(s.slider_n, { token: this.token(this.key).label })),
      slider("both", s.slider_both),
      el("div", { class: "under" },
        this.back = el("button", { type: "button", class: "plain", "data-focus": "home", onclick: () => { this.home(); this.paint() } },
          fmt(s.home, { m: this.query, n: this.key })),
        choice && el("span", {}, s.range, " ", choice)))
  }

  pairSlider() {
    const s = this.data.strings
    const most = this.data.dims / 2 - 1
    const input = el("input", { type: "range", min: 0, max: most, step: 1, value: this.pair, "data-focus": "pair" })
    const value = el("output", {})
    input.oninput = () => this.choose(input.valueAsNumber, false)
    input.onchange = () => this.choose(input.valueAsNumber, true)
    const show = (pair) => {
      if (input.valueAsNumber !== pair) input.value = String(pair)
      value.textContent = String(pair)
    }
    return { node: el("label", { class: "slide pair-slide" }, el("span", {}, s.pair), input, value), show }
  }

  move(which, value) {
    this.places = rotationMove(this.places, which, value, this.last)
    this.paint()
  }

  moveTo(distance) {
    const n = Math.min(this.places.n, this.last - distance)
    this.places = { m: n + distance, n }
    this.paint()
  }

  stretch(last) {
    this.last = last
    this.ensure()
    this.build()
  }

  ensure() {
    const over = this.places.m - this.last
    if (over > 0) this.places = { m: this.last, n: Math.max(0, Math.min(this.places.n, this.last)) }
  }

  paint() {
    const { places } = this
    for (const [which, { input, value }] of Object.entries(this.inputs)) {
      const at = which === "m" ? places.m : places.n
      input.value = String(at)
      value.textContent = which === "both" ? fmt(this.data.strings.distance, { n: places.m - places.n }) : String(at)
    }
    this.parts.dial.replaceChildren(dial(this.view()))
    this.curves.forEach((each) => each.mark(places.m - places.n))
    this.parts.numbers.replaceChildren(...this.numbers())
    this.parts.law.textContent = this.law()
    this.back.setAttribute("aria-disabled", String(places.m === this.query && places.n === this.key))
    Object.assign(this.root.dataset, { m: places.m, n: places.n, pair: this.pair, dot: rotationWhole(this.terms, this.rope, places.m - places.n) })
  }

  numbers() {
    const s = this.data.strings
    const { places, rope, pair } = this
    const speed = rope.frequencies[pair]
    const point = (which) => rotationPoint(this[which], pair, rope).map((v) => dialNumber(v, 2)).join(", ")
    const row = (kind, name, text) => el("div", { class: `fact ${kind}` }, el("span", {}, name), el("b", {}, text))
    return [
      row("", fmt(s.pair_speed, { i: pair }), fmt(s.speed, { theta: speed < 1e-3 ? speed.toExponential(2).replace("-", "−") : speed.toFixed(4), n: waveText(rotationWave(speed)) })),
      row("q", fmt(s.q_plain, { point: point("q") }), fmt(s.turned, { n: places.m, angle: dialAngle(places.m, speed, s) })),
      row("k", fmt(s.k_plain, { point: point("k") }), fmt(s.turned, { n: places.n, angle: dialAngle(places.n, speed, s) })),
      row("sum", s.product_pair, dialNumber(rotationPair(this.terms, rope, pair, places.m - places.n))),
      row("sum", s.product_whole, dialNumber(rotationWhole(this.terms, rope, places.m - places.n))),
    ]
  }

  // Turned for these two places and multiplied, against the formula of the distance; where the
  // places are the text's own, against the model's numbers too.
  law() {
    const s = this.data.strings
    const { m, n } = this.places
    const long = rotationDot(this.q, this.k, this.rope, m, n)
    const short = rotationWhole(this.terms, this.rope, m - n)
    const text = fmt(s.law, { m, n, d: m - n, long: dialNumber(long, 4), short: dialNumber(short, 4) })
    const model = this.model()
    if (m !== this.query || n !== this.key || model === null) return text
    return `${text}${fmt(s.law_model, { model: dialNumber(model, 4) })}`
  }

  // The model's own product of the two tokens, if it was sent.
  model() {
    const { data } = this
    const row = data.dot_rows.indexOf(this.query)
    const column = data.tokens.findIndex((token) => token.position === this.key)
    return row < 0 || column < 0 ? null : this.rows.dots[row * data.tokens.length + column]
  }
}

export default function (component) {
  const { data, parentElement } = component
  const root = parentElement.querySelector(".root")
  root.dataset.theme = themeOf(parentElement)
  root.lang = data.lang
  if (!rotationViews.has(root)) rotationViews.set(root, new RotationView(root))
  rotationViews.get(root).update(component)
}
