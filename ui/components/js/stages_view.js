// The Probabilities page's component: sliders re-weight the whole vocabulary at once in the
// browser; on release the settings go to Python, whose choice is the authoritative one.
import { el, fmt, percent, themeOf } from "./dom.js"
import { prepare, probabilityAt } from "./decode.js"
import { storeGet, storeWait } from "./store.js"
import { STAGES_OFF, STAGES_ORDER, stagesFolded, stagesIsOff, stagesMoved, stagesOutcome } from "./stages.js"
import { stagesRow, stagesSame, stagesSearch, stagesText, stagesTiny, stagesTop, stagesUsual, stagesWith } from "./stages.js"
import { TEXT_STAGES } from "./stages_text.js"
import { cardAttribute, cardText, cardsOf } from "./stages_cards.js"
import { drawBarOf } from "./stages_draw.js"
import { furtherOf } from "./stages_further.js"
import { rowOf, rowsOf, rowsPlace } from "./stages_rows.js"

const VIEW_PATIENCE = 10000
const VIEW_TRIES = 2
const VIEW_FOUND = 8
const views = new WeakMap()

class StagesView {
  constructor(root) {
    this.root = root
    this.rows = 20
    this.log = false
    this.query = ""
    // Counts on from a different number after each mount, so that no old answer fits.
    this.serial = Date.now() % 1e9
    this.awaited = null
    this.holding = null
    this.stops = []
  }

  // ---- data from Python

  update({ data, parentElement, setTriggerValue }) {
    this.root.dataset.theme = themeOf(parentElement)
    this.root.lang = data.lang
    this.emit = setTriggerValue
    const fresh = this.data?.logits !== data.logits || this.data?.labels !== data.labels ||
      this.data?.lang !== data.lang || this.data?.step !== data.step
    this.data = data
    this.named = new Map(data.top)
    if (this.awaited !== null && data.ack === this.awaited) this.settle()
    if (this.awaited === null && this.holding === null) this.settings = { ...data.settings }
    if (fresh) this.load()
    else this.schedule()
  }

  load() {
    this.stop()
    const { data } = this
    this.prepared = null
    this.spot ??= this.focused()
    if (storeGet(data.logits) === undefined) {
      this.root.replaceChildren(el("p", { class: "loading", role: "status" }, data.strings.loading))
    }
    this.stops.push(storeWait(data.logits, (logits) => {
      this.prepared = prepare(logits)
      this.build()
    }))
    if (data.labels) {
      this.stops.push(storeWait(data.labels, (labels) => {
        this.labels = labels
        this.folded = null
        if (this.prepared) this.build()
      }))
    }
  }

  stop() {
    for (const stop of this.stops) stop()
    this.stops = []
  }

  labelOf(id) {
    return this.named.get(id) ?? (this.data.labels && this.labels?.[id]) ?? `#${id}`
  }

  // Where the focus is among the controls; a new set of scores makes new ones in the same order.
  focused() {
    const at = this.places().indexOf(this.root.getRootNode().activeElement)
    return at < 0 ? null : at
  }

  places() {
    return [...this.root.querySelectorAll("button, input")]
  }

  // ---- the skeleton, once for each set of scores

  build() {
    const spot = this.focused() ?? this.spot
    this.spot = null
    const { strings: words, lang } = this.data
    const labelOf = (id) => this.labelOf(id)
    const force = this.data.can_force ? (id) => this.emit("action", { do: "force", step: this.data.step, id }) : null
    this.look = { words, prepared: this.prepared, number: (n) => n.toLocaleString(lang), labelOf, force }
    this.cards = cardsOf(words, this.prepared, lang, labelOf, {
      set: (name, value, done) => this.set(name, value, done),
      move: (name, by) => this.move(name, by),
      held: (name, yes) => (this.holding = yes ? name : null),
    })
    this.draw = drawBarOf(words, labelOf, lang)
    this.table = rowsOf(words, this.prepared, lang, labelOf, force)
    this.notes = { order: el("p", { class: "hint" }), greedy: el("p", { class: "hint" }) }
    const usual = stagesUsual(STAGES_ORDER.slice(0, 4))
    this.reset = el("button", { type: "button", class: "reset", title: words.reset_help, onclick: () => this.all({ ...STAGES_OFF, order: usual }) }, words.reset)
    this.further = furtherOf(words, this.prepared.order.length, this.data.has_text, (name, value) => this.set(name, value, true))
    this.tiles = viewTiles(words)
    this.said ??= el("p", { class: "sr-only", "aria-live": "polite" })
    this.foot = { speed: el("span", { class: "speed" }), agree: el("span", { class: "agree" }) }
    const found = this.prepared.order.length > 100 ? this.searchBox() : null
    this.root.replaceChildren(
      this.cards.node,
      el("div", { class: "under" }, this.further.node, this.reset, this.notes.order, this.notes.greedy),
      this.tiles.node,
      this.draw.node,
      el("div", { class: "heading" }, el("h2", null, words.chart), viewLegend(words), this.choices()),
      this.table.node,
      force ? el("p", { class: "hint" }, words.force_hint) : "",
      found ?? "",
      el("p", { class: "foot" }, this.foot.speed, " ", this.foot.agree),
      this.said,
    )
    this.paint()
    if (spot !== null) this.places()[spot]?.focus({ preventScroll: true })
  }

  choices() {
    const { words } = this.look
    const rows = this.prepared.order.length > 20 && viewGroup(words.show, [[20, "20"], [50, "50"], [100, "100"]], this.rows, (n) => {
      this.rows = n
      this.schedule()
    })
    const scale = viewGroup(words.scale, [[false, words.linear], [true, words.log]], this.log, (log) => {
      this.log = log
      this.schedule()
    })
    scale.title = words.log_help
    return el("div", { class: "choices" }, rows, scale)
  }

  searchBox() {
    const { words } = this.look
    this.hits = { body: el("tbody"), note: el("p", { class: "hint", role: "status" }), made: new Map() }
    const input = el("input", { type: "search", placeholder: words.search_hint, autocomplete: "off", spellcheck: "false", maxlength: 100, value: this.query })
    input.oninput = () => {
      this.query = input.value
      this.schedule()
    }
    return el("div", { class: "search" }, el("label", null, el("span", null, words.search), input),
      el("table", { class: "rows found" }, this.hits.body), this.hits.note)
  }

  // ---- what the reader does

  set(name, value, done) {
    const focused = this.root.getRootNode().activeElement
    this.settings = stagesWith(this.settings, name, value)
    if (done) this.commit()
    if (!stagesIsOff(name, value) || !focused?.closest(`[data-stage="${name}"]`)) return this.schedule()
    // Its card may be gone with the next painting, and the focus must not go with it.
    this.paint()
    if (!focused.isConnected) this.further.focus(name)
  }

  move(name, by) {
    const order = stagesMoved(this.settings.order, name, by)
    if (order === this.settings.order) return
    const place = order.indexOf(name) + 1
    this.all({ order })
    this.paint()
    this.cards.focus(name, by)
    const { words } = this.look
    cardText(this.said, fmt(words.moved, { name: words[`${name}_term`], n: place, count: order.length }))
  }

  all(changes) {
    this.settings = { ...this.settings, ...changes }
    this.commit()
    this.schedule()
  }

  // One event is on its way at a time, with all settings; what changed meanwhile follows when the
  // answer is there. A click elsewhere can make Python miss an event, so it is repeated.
  commit() {
    this.speak = true
    this.unsent = true
    if (this.awaited === null) this.transmit(VIEW_TRIES)
  }

  transmit(tries) {
    this.unsent = false
    this.awaited = ++this.serial
    clearTimeout(this.patience)
    this.patience = setTimeout(() => (tries > 1 ? this.transmit(tries - 1) : this.giveUp()), VIEW_PATIENCE)
    // Typed numbers have no text: what looks at one rests, and stays as the run has it.
    const resting = this.data.has_text ? [] : TEXT_STAGES
    const told = Object.entries(this.settings).filter(([name]) => !resting.includes(name))
    this.emit("action", { do: "settings", serial: this.serial, ...Object.fromEntries(told) })
  }

  settle() {
    clearTimeout(this.patience)
    this.awaited = null
    if (this.unsent) this.transmit(VIEW_TRIES)
  }

  giveUp() {
    this.awaited = null
    this.settings = { ...this.data.settings }
    this.schedule()
  }

  // ---- painting, at most once a frame

  schedule() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null
      this.paint()
    })
  }

  paint() {
    if (!this.prepared) return
    const began = performance.now()
    const { data, prepared, settings } = this
    const { words, number } = this.look
    const outcome = stagesOutcome(prepared, settings, data, this.seen())
    this.cards.update(settings, outcome, this.log)
    this.draw.update(outcome, data.u)
    const ids = Array.from(prepared.order.slice(0, this.rows))
    const apart = [...new Set([outcome.chosen, outcome.drawn])].filter((id) => prepared.rank[id] >= this.rows)
    this.table.update(outcome, ids, apart, this.log)
    this.tiles.update(outcome, prepared.order.length, number)
    this.find(outcome)
    this.note(outcome)
    this.further.update(settings)
    // Not "disabled", which would drop the focus of a reader who has just pressed it.
    const asUsual = this.notes.order.hidden && Object.keys(STAGES_OFF).every((name) => stagesIsOff(name, settings[name]))
    cardAttribute(this.reset, "aria-disabled", String(asUsual))
    this.compare(outcome)
    if (this.speak) cardText(this.said, `${this.draw.sentence()} ${this.tiles.sentence()}`)
    this.speak = false
    const ms = performance.now() - began
    cardText(this.foot.speed, fmt(words.speed, { n: number(prepared.order.length), ms: ms.toFixed(ms < 10 ? 1 : 0) }))
    this.root.dataset.ms = ms.toFixed(2)
    this.root.dataset.chosen = outcome.chosen
    this.root.dataset.rule = outcome.rule
  }

  // What the stages that look at the text make of the scores; worked out anew only for theirs.
  seen() {
    const { data, prepared, settings } = this
    const key = JSON.stringify(TEXT_STAGES.map((name) => settings[name]))
    if (this.textKey === key && this.textData === data && this.textFrom === prepared) return this.text
    Object.assign(this, { textKey: key, textData: data, textFrom: prepared })
    const any = data.has_text && TEXT_STAGES.some((name) => !stagesIsOff(name, settings[name]))
    return (this.text = any ? stagesText(prepared, settings, data) : null)
  }

  note(outcome) {
    const { order, greedy } = this.notes
    const { words } = this.look
    const usual = stagesUsual(this.settings.order)
    order.hidden = this.settings.order.join() === usual.join()
    cardText(order, fmt(words.order_note, { names: usual.map((name) => words[`${name}_term`]).join(words.comma) }))
    greedy.hidden = !outcome.greedy
    cardText(greedy, outcome.text ? words.greedy_note_text : words.greedy_note)
  }

  find(outcome) {
    if (!this.hits) return
    const { words } = this.look
    if (this.query && !this.labels) return cardText(this.hits.note, words.search_wait)
    if (this.query) this.folded ??= stagesFolded(this.labels)
    const { ids, total } = this.query ? stagesSearch(this.folded, this.prepared, this.query, VIEW_FOUND) : { ids: [], total: 0 }
    const { made } = this.hits
    for (const id of ids) if (!made.has(id)) made.set(id, rowOf(this.look, id))
    rowsPlace(this.hits.body, ids.map((id) => made.get(id)))
    const values = ids.map((id) => stagesRow(this.prepared, outcome, id))
    const top = stagesTop(Math.max(0, ...values.map((v) => Math.max(v.model, v.after))))
    values.forEach((value) => made.get(value.id).update(value, outcome, { log: this.log, top }))
    const more = total > ids.length ? fmt(words.search_more, { n: this.look.number(total - ids.length) }) : ""
    cardText(this.hits.note, this.query.trim() && !total ? words.search_none : more)
  }

  // Python made its own choice for data.settings: where they are the settings shown, compare.
  compare(outcome) {
    const { words } = this.look
    const { check, settings } = this.data
    const same = Object.keys(settings).every((name) => stagesSame(settings[name], this.settings[name]))
    if (!same) {
      cardAttribute(this.root, "data-agrees", "waiting")
      return cardText(this.foot.agree, words.waiting)
    }
    const { interval } = outcome.result
    let worst = check.chosen === outcome.chosen ? 0 : 1
    check.ids.forEach((id, i) => {
      worst = Math.max(worst, Math.abs(probabilityAt(outcome.result.prepared, interval, id) - check.after[i]))
    })
    const agrees = worst <= 1e-6
    cardAttribute(this.root, "data-agrees", agrees ? "yes" : "no")
    cardText(this.foot.agree, fmt(agrees ? words.agree : words.disagree, { d: stagesTiny(worst) }))
  }

  dispose() {
    this.stop()
    clearTimeout(this.patience)
    if (this.frame) cancelAnimationFrame(this.frame)
    this.frame = null
  }
}

function viewTiles(words) {
  const tile = (title) => {
    const parts = { value: el("strong"), help: el("span", { class: "help" }) }
    return { parts, node: el("div", { class: "tile" }, el("span", { class: "title" }, title), parts.value, parts.help) }
  }
  const left = tile(words.survivors)
  const open = tile(words.undecided)
  const equal = (bits) => Number((2 ** bits).toPrecision(3)).toLocaleString("en")
  function update(outcome, size, number) {
    cardText(left.parts.value, fmt(words.survivors_value, { n: number(outcome.kept), size: number(size) }))
    cardText(left.parts.help, fmt(words.survivors_help, { p: percent(outcome.heldByModel) }))
    const [before, after] = [outcome.bitsModel, outcome.bitsAfter]
    cardText(open.parts.value, fmt(words.undecided_value, { before: before.toFixed(2), after: after.toFixed(2) }))
    cardText(open.parts.help, fmt(words.undecided_help, { before: equal(before), after: equal(after) }))
  }
  return {
    node: el("div", { class: "tiles" }, left.node, open.node),
    update,
    sentence: () => `${words.survivors}: ${left.parts.value.textContent}.`,
  }
}

function viewLegend(words) {
  return el("p", { class: "legend", "aria-hidden": "true" },
    el("span", { class: "key model" }), words.legend_model, el("span", { class: "key after" }), words.legend_after)
}

function viewGroup(label, options, chosen, pick) {
  const buttons = options.map(([value, text]) => {
    const button = el("button", { type: "button", "aria-pressed": String(value === chosen) }, text)
    button.onclick = () => {
      for (const other of buttons) cardAttribute(other, "aria-pressed", String(other === button))
      pick(value)
    }
    return button
  })
  return el("div", { class: "group", role: "group", "aria-label": label }, el("span", { class: "group-name" }, label), buttons)
}

export default function (component) {
  const root = component.parentElement.querySelector(".root")
  if (!views.has(root)) views.set(root, new StagesView(root))
  const view = views.get(root)
  view.update(component)
  return () => view.dispose()
}
