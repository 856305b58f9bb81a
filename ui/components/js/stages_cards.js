// The row of stages: the scores, the four filters in their order, and what is left at the end.
import { el, fmt, percent } from "./dom.js"
import { STAGES_ORDER, stagesFirst, stagesIsOff, stagesLegal, stagesNearest } from "./stages.js"
import { stagesNumber, stagesParameter, stagesTicks } from "./stages.js"
import { chartOf, chartOfLogits } from "./stages_charts.js"

// `hands` = {set(name, value, done), move(name, by), held(name, yes)}: what the cards may do.
export function cardsOf(words, prepared, language, hands) {
  const size = prepared.order.length
  const number = (n) => n.toLocaleString(language)
  const cards = Object.fromEntries(
    STAGES_ORDER.map((name) => [name, cardOf(name, words, size, number, hands)]),
  )
  const list = el("ol", { class: "cards", "aria-label": words.stages })
  const first = el("li", { class: "step" }, cardOfLogits(words, prepared, number))
  list.append(first)
  let order = ""
  function update(settings, outcome, log) {
    if (order !== settings.order.join()) {
      order = settings.order.join()
      for (const name of settings.order) list.append(cards[name].node)
      settings.order.forEach((name, i) => cards[name].place(i))
    }
    let before = prepared.model
    for (const stage of outcome.result.stages) {
      cards[stage.name].update(settings[stage.name], before, stage, log)
      before = stage.prefix
    }
  }
  return { node: list, update, focus: (name, by) => cards[name].focus(by), say: (name, text) => cards[name].say(text) }
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
    el("header", null, el("h3", null, words.logits_plain, el("small", null, words.logits_term))),
    chartOfLogits(prepared, words),
    el("div", { class: "axis", "aria-hidden": "true" }, ends.map((text) => el("span", null, text))),
    el("p", { class: "left" }, range, impossible > 0 && el("span", null, " · ", fmt(words.logits_impossible, { n: number(impossible) }))),
    el("p", { class: "rule" }, words.softmax),
  )
}

function cardOf(name, words, size, number, hands) {
  const title = words[`${name}_term`]
  const ticks = stagesTicks(name, size)
  const step = { temperature: 0.1, top_k: 1, top_p: 0.01, min_p: 0.01 }[name]
  const parts = {
    badge: el("span", { class: "badge", "aria-hidden": "true" }),
    toggle: el("button", { type: "button", class: "switch", role: "switch", "aria-label": fmt(words.switch, { name: title }) }),
    slider: el("input", { type: "range", min: 0, max: ticks.length - 1, step: 1, "aria-label": fmt(words.slider, { name: title }) }),
    number: el("input", { type: "number", step, min: 0, inputmode: "decimal", placeholder: words.off, "aria-label": fmt(words.number, { name: title }) }),
    rule: el("p", { class: "rule" }),
    left: el("p", { class: "left" }),
    problem: el("p", { class: "problem", role: "status" }),
    earlier: el("button", { type: "button", class: "move", "aria-label": fmt(words.earlier, { name: title }), title: fmt(words.earlier, { name: title }) }, "←"),
    later: el("button", { type: "button", class: "move", "aria-label": fmt(words.later, { name: title }), title: fmt(words.later, { name: title }) }, "→"),
  }
  const chart = chartOf(name, size, words[`chart_${name}`])
  const card = el(
    "section",
    { class: "card", "data-stage": name, "aria-label": `${words[`${name}_plain`]} (${title})` },
    el("header", null, parts.badge, el("h3", null, words[`${name}_plain`], el("small", null, title)), parts.toggle),
    chart.node,
    el("div", { class: "axis", "aria-hidden": "true" }, el("span", null, words.axis_first), el("span", null, size > 60 ? fmt(words.axis_log, { n: number(size) }) : number(size))),
    el("div", { class: "dials" }, parts.slider, parts.number),
    parts.problem,
    parts.rule,
    el("footer", null, parts.left, el("span", { class: "moves" }, parts.earlier, parts.later)),
  )
  const state = { name, words, size, ticks, parts, card, last: null, typing: false, number }
  cardWire(state, hands)
  return {
    node: el("li", { class: "step" }, card),
    place(index) {
      parts.badge.textContent = String(index + 1)
      parts.earlier.disabled = index === 0
      parts.later.disabled = index === STAGES_ORDER.length - 1
    },
    focus(by) {
      const wanted = by < 0 ? parts.earlier : parts.later
      ;(wanted.disabled ? (by < 0 ? parts.later : parts.earlier) : wanted).focus()
    },
    say: (text) => cardText(parts.problem, text),
    update(value, before, stage, log) {
      cardShow(state, value)
      chart.update(before, stage, log)
      cardSay(state, value, before, stage)
    },
  }
}

function cardWire(state, hands) {
  const { name, ticks, parts, words, size } = state
  const { slider, number, toggle } = parts
  slider.onpointerdown = () => hands.held(name, true)
  slider.onpointerup = slider.onpointercancel = () => hands.held(name, false)
  slider.oninput = () => hands.set(name, ticks[Number(slider.value)], false)
  slider.onchange = () => {
    hands.held(name, false)
    hands.set(name, ticks[Number(slider.value)], true)
  }
  toggle.onclick = () => {
    const on = toggle.getAttribute("aria-checked") === "true"
    const value = on ? (name === "temperature" ? 1 : null) : (state.last ?? stagesFirst(name, size))
    hands.set(name, value, true)
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
    else if (number.value === "" && !number.validity.badInput) hands.set(name, name === "temperature" ? 1 : null, true)
    else cardText(parts.problem, words[`bad_${name}`])
    if (value !== null) state.typing = false
  }
  number.onblur = () => (state.typing = false)
  parts.earlier.onclick = () => hands.move(name, -1)
  parts.later.onclick = () => hands.move(name, 1)
}

// The controls of a card, where the reader is not busy with them.
function cardShow(state, value) {
  const { name, parts, words, ticks, card, size } = state
  const off = stagesIsOff(name, value)
  if (!off) state.last = value
  const shown = name === "temperature" ? value : (value ?? state.last ?? stagesFirst(name, size))
  const spoken = off && name !== "temperature" ? words.value_off : stagesParameter(value)
  const position = String(stagesNearest(ticks, shown))
  if (parts.slider.value !== position) parts.slider.value = position
  cardAttribute(parts.slider, "aria-valuetext", off && name === "temperature" ? `${spoken} (${words.value_off})` : spoken)
  cardAttribute(parts.toggle, "aria-checked", String(!off))
  cardText(parts.toggle, off ? words.off : words.on)
  cardAttribute(card, "data-off", String(off))
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
  const best = 1 / before.total
  const line = percent(value * best)
  return fmt(words[`${name}_rule`], { value: name === "min_p" ? shown : name === "top_k" ? number(value) : shown, n: number(survivors), best: percent(best), line })
}

export function cardText(node, text) {
  if (node.shownText === text) return
  node.shownText = text
  node.textContent = text
}

export function cardAttribute(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value)
}
