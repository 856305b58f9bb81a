// The rows of stages: the scores and what looks at the text, then the filters in their order.
import { el, fmt, percent } from "./dom.js"
import { entropyAfter } from "./decode.js"
import { STAGES_OFF, STAGES_ORDER, stagesFirst, stagesIsOff, stagesLegal, stagesNearest } from "./stages.js"
import { stagesNumber, stagesParameter, stagesRangeOf, stagesSpans, stagesTicks } from "./stages.js"
import { TEXT_STAGES } from "./stages_text.js"
import { chartOf, chartOfLogits } from "./stages_charts.js"
import { movesOf } from "./stages_moves.js"

// `hands` = {set(name, value, done), move(name, by), held(name, yes)}: what the cards may do.
export function cardsOf(words, prepared, language, labelOf, hands) {
  const size = prepared.order.length
  const look = { words, size, labelOf, number: (n) => n.toLocaleString(language) }
  const all = [...TEXT_STAGES, ...STAGES_ORDER]
  const cards = Object.fromEntries(all.map((name) => [name, cardOf(name, look, hands)]))
  const text = el("ol", { class: "lane text", "aria-label": words.processed_first })
  const list = el("ol", { class: "lane cards", "aria-label": words.stages })
  const first = el("li", { class: "step" }, cardOfLogits(words, prepared, look.number))
  let shown = ""
  function place(on, order) {
    if (shown === [on, order].join(";")) return
    shown = [on, order].join(";")
    const before = on.length ? [first, ...on.map((name) => cards[name].node)] : []
    const filters = [...(on.length ? [] : [first]), ...order.map((name) => cards[name].node)]
    cardsFill(text, before)
    cardsFill(list, filters)
    order.forEach((name, i) => cards[name].place(i, order.length))
  }
  function update(settings, outcome, log) {
    const steps = outcome.text?.steps ?? []
    place(steps.map((step) => step.name), settings.order)
    for (const step of steps) cards[step.name].update(settings[step.name], null, step, log)
    let before = outcome.result.prepared.model
    for (const stage of outcome.result.stages) {
      cards[stage.name].update(settings[stage.name], before, stage, log)
      before = stage.interval
    }
  }
  return {
    node: el("div", { class: "rows-of-cards" }, text, list),
    update,
    focus: (name, by) => cards[name].focus(by),
    say: (name, words) => cards[name].say(words),
  }
}

// Cards of one list, and how wide each is where 6, 5 or 3 of them fit side by side.
function cardsFill(list, items) {
  list.hidden = items.length === 0
  const spans = [6, 5, 3].map((most) => [most, stagesSpans(items.length, most)])
  items.forEach((item, i) => {
    for (const [most, widths] of spans) item.style.setProperty(`--of${most}`, widths[i])
  })
  list.replaceChildren(...items)
}

function cardOfLogits(words, prepared, number) {
  const { sorted } = prepared
  let last = sorted.length - 1
  while (sorted[last] === -Infinity) last--
  const impossible = sorted.length - 1 - last
  const range = fmt(words.logits_range, {
    n: number(sorted.length), low: stagesNumber(sorted[last], 1), high: stagesNumber(sorted[0], 1),
  })
  const ends = sorted.length > 60
    ? [stagesNumber(sorted[last], 1), stagesNumber(sorted[0], 1)]
    : [words.axis_first, number(sorted.length)]
  return el(
    "section",
    { class: "card scores", "aria-label": `${words.logits_plain} (${words.logits_term})` },
    el("header", null, el("h2", null, words.logits_plain, el("small", null, words.logits_term))),
    chartOfLogits(prepared, words),
    el("div", { class: "axis", "aria-hidden": "true" }, ends.map((text) => el("span", null, text))),
    el("p", { class: "left" }, range, impossible > 0 && el("span", null, " · ", fmt(words.logits_impossible, { n: number(impossible) }))),
    el("p", { class: "rule" }, words.softmax),
  )
}

// A card with a slider and a number, or with the rule alone for stages that work with texts.
function cardOf(name, look, hands) {
  const { words, size } = look
  const title = words[`${name}_term`]
  const range = stagesRangeOf(name)
  const text = TEXT_STAGES.includes(name)
  const parts = {
    badge: text ? el("span", { class: "badge look", "aria-hidden": "true" }, "¶") : el("span", { class: "badge", "aria-hidden": "true" }),
    toggle: el("button", { type: "button", class: "switch", role: "switch", "aria-label": fmt(words.switch, { name: title }) }),
    rule: el("p", { class: "rule" }),
    left: el("p", { class: "left" }),
    problem: el("p", { class: "problem", role: "status" }),
    ...(range && cardDials(name, look, title)),
    ...(!text && cardMoves(words, title)),
  }
  const picture = text ? movesOf(look) : chartOf(name, size, words[`chart_${name}`])
  const card = el(
    "section",
    { class: text ? "card text" : "card", "data-stage": name, "aria-label": `${words[`${name}_plain`]} (${title})` },
    el("header", null, parts.badge, el("h2", null, words[`${name}_plain`], el("small", null, title)), parts.toggle),
    picture.node,
    !text && el("div", { class: "axis", "aria-hidden": "true" }, el("span", null, words.axis_first), el("span", null, size > 60 ? fmt(words.axis_log, { n: look.number(size) }) : look.number(size))),
    range && el("div", { class: "dials" }, parts.slider, parts.number),
    parts.problem,
    parts.rule,
    el("footer", null, parts.left, !text && el("span", { class: "moves" }, parts.earlier, parts.later)),
  )
  const state = { ...look, name, ticks: range ? stagesTicks(name, size) : [], parts, card, last: null, typing: false }
  cardWire(state, hands)
  return {
    node: el("li", { class: "step" }, card),
    place(index, count) {
      parts.badge.textContent = String(index + 1)
      parts.earlier.disabled = index === 0
      parts.later.disabled = index === count - 1
    },
    focus(by) {
      const wanted = by < 0 ? parts.earlier : parts.later
      ;(wanted.disabled ? (by < 0 ? parts.later : parts.earlier) : wanted).focus()
    },
    say: (words) => cardText(parts.problem, words),
    update(value, before, stage, log) {
      cardShow(state, value)
      picture.update(before, stage, log)
      if (text) cardSayText(state, value, stage)
      else cardSay(state, value, before, stage)
    },
  }
}

function cardDials(name, { words, size }, title) {
  const { low, step } = stagesRangeOf(name)
  const last = stagesTicks(name, size).length - 1
  return {
    slider: el("input", { type: "range", min: 0, max: last, step: 1, "aria-label": fmt(words.slider, { name: title }) }),
    number: el("input", { type: "number", step, min: low, inputmode: "decimal", placeholder: words.off, "aria-label": fmt(words.number, { name: title }) }),
  }
}

function cardMoves(words, title) {
  const button = (text, label) => el("button", { type: "button", class: "move", "aria-label": label, title: label }, text)
  return {
    earlier: button("←", fmt(words.earlier, { name: title })),
    later: button("→", fmt(words.later, { name: title })),
  }
}

function cardWire(state, hands) {
  const { name, parts } = state
  parts.toggle.onclick = () => {
    const on = parts.toggle.getAttribute("aria-checked") === "true"
    hands.set(name, on ? STAGES_OFF[name] : (state.last ?? stagesFirst(name, state.size)), true)
  }
  if (parts.slider) cardWireDials(state, hands)
  if (!parts.earlier) return
  parts.earlier.onclick = () => hands.move(name, -1)
  parts.later.onclick = () => hands.move(name, 1)
}

function cardWireDials(state, hands) {
  const { name, ticks, parts, words } = state
  const { slider, number } = parts
  slider.onpointerdown = () => hands.held(name, true)
  slider.onpointerup = slider.onpointercancel = () => hands.held(name, false)
  slider.oninput = () => hands.set(name, ticks[Number(slider.value)], false)
  slider.onchange = () => {
    hands.held(name, false)
    hands.set(name, ticks[Number(slider.value)], true)
  }
  number.oninput = () => {
    state.typing = true
    const value = stagesLegal(name, number.value)
    cardText(parts.problem, value === null && number.value !== "" ? words[`bad_${name}`] : "")
    if (value !== null) hands.set(name, value, false)
  }
  number.onchange = () => {
    const value = stagesLegal(name, number.value)
    if (value !== null) hands.set(name, value, true)
    else if (number.value === "" && !number.validity.badInput) hands.set(name, STAGES_OFF[name], true)
    else cardText(parts.problem, words[`bad_${name}`])
    if (value !== null) state.typing = false
  }
  number.onblur = () => (state.typing = false)
}

// The controls of a card, where the reader is not busy with them.
function cardShow(state, value) {
  const { name, parts, words, ticks, card, size } = state
  const off = stagesIsOff(name, value)
  if (!off) state.last = value
  cardAttribute(parts.toggle, "aria-checked", String(!off))
  cardText(parts.toggle, off ? words.off : words.on)
  cardAttribute(card, "data-off", String(off))
  if (!parts.slider) return
  const shown = name === "temperature" ? value : (value ?? state.last ?? stagesFirst(name, size))
  const spoken = off && name !== "temperature" ? words.value_off : stagesParameter(value)
  const position = String(stagesNearest(ticks, shown))
  if (parts.slider.value !== position) parts.slider.value = position
  cardAttribute(parts.slider, "aria-valuetext", off && name === "temperature" ? `${spoken} (${words.value_off})` : spoken)
  if (state.typing) return
  const text = value === null ? "" : stagesParameter(value)
  if (parts.number.value !== text) parts.number.value = text
  cardText(parts.problem, "")
}

function cardSay(state, value, before, stage) {
  const { parts, words, number, size } = state
  cardText(parts.rule, cardRule(state, value, before, stage))
  const left = fmt(words.left, { n: number(stage.survivors), size: number(size) })
  cardText(parts.left, stage.survivors === before.length ? left : `${left} · ${fmt(words.mass, { p: percent(stage.mass).replace(" ", "\u00a0") })}`)
  cardAttribute(state.card, "data-survivors", String(stage.survivors))
  cardAttribute(state.card, "data-mass", String(stage.mass))
}

function cardRule({ words, number }, value, before, stage) {
  const { name, survivors } = stage
  if (stagesIsOff(name, value)) return words.rule_off
  const shown = stagesParameter(value)
  if (name === "temperature") {
    const key = value === 0 ? "temperature_rule_zero" : value < 1 ? "temperature_rule_sharp" : "temperature_rule_flat"
    return fmt(words[key], { value: shown })
  }
  if (name === "typical_p") return fmt(words.typical_p_rule, { value: shown, bits: entropyAfter(before).bits.toFixed(2) })
  const best = 1 / before.total
  const line = percent(value * best)
  return fmt(words[`${name}_rule`], { value: name === "top_k" ? number(value) : shown, n: number(survivors), best: percent(best), line })
}

// What a stage did that looks at the text: how many scores it changed, how many it made impossible.
function cardSayText(state, value, step) {
  const { parts, words, number, name, card } = state
  const shown = typeof value === "number" ? stagesParameter(value).replace("-", "−") : `\u2068${[value].flat().join(" · ")}\u2069`
  cardText(parts.rule, fmt(words[`${name}_rule`], { value: shown }))
  const said = [
    step.changed > 0 && fmt(words.changed, { n: number(step.changed) }),
    step.forbidden > 0 && fmt(words.forbidden, { n: number(step.forbidden) }),
  ].filter(Boolean)
  cardText(parts.left, !step.known ? words.awaited : said.join(" · ") || words.unchanged)
  cardAttribute(card, "data-changed", String(step.changed))
  cardAttribute(card, "data-forbidden", String(step.forbidden))
}

export function cardText(node, text) {
  if (node.shownText === text) return
  node.shownText = text
  node.textContent = text
}

export function cardAttribute(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value)
}
