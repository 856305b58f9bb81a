// The draw as a bar from 0 to 1, the needle at u, and a magnified part where u falls on little.

import { el, fmt, percent, svg } from "./dom.js"

const LETTER = 9

// Decimals with which the ends of a stretch and its width can be told apart.
export function decimals(low, high) {
  const width = high - low
  return width > 0 ? Math.min(9, Math.max(3, 1 - Math.floor(Math.log10(width)))) : 3
}

// [low, high] of the part to magnify: so that the stretch of the needle can be seen; or null.
export function zoomWindow(segments, u, smallest = 0.03) {
  if (u === null) return null
  const here = segments.find((x) => u >= x.low && u < x.high) ?? segments.at(-1)
  const width = here.high - here.low
  if (width >= smallest) return null
  const size = Math.min(1, Math.max(width * 6, 1e-9))
  const low = Math.min(1 - size, Math.max(0, (here.low + here.high - size) / 2))
  return [low, low + size]
}

function segment(x, [from, to], pixels, data, force) {
  const s = data.strings
  const span = to - from
  const left = Math.max(x.low, from)
  const right = Math.min(x.high, to)
  const d = decimals(x.low, x.high)
  const values = { low: x.low.toFixed(d), high: x.high.toFixed(d) }
  const chosen = x.id === data.bar.chosen
  const title = x.id === null ? fmt(s.segment_gap, { ...values, n: x.count.toLocaleString("en") })
    : fmt(s.segment, { ...values, token: x.label, p: percent(x.high - x.low) })
  const room = ((right - left) / span) * pixels
  const text = x.id !== null && room > LETTER * Math.min(x.label.length, 4) + 10 ? x.label : ""
  const state = [x.id === null ? "gap" : "one", chosen && "chosen", x.id !== null && x.id === data.bar.dice && "dice"]
  return el("div", {
    class: `segment ${state.filter(Boolean).join(" ")}`, title,
    style: { left: `${(100 * (left - from)) / span}%`, width: `${(100 * (right - left)) / span}%` },
    onclick: x.id === null || chosen ? null : () => force(x.id),
  }, text && el("bdi", {}, text))
}

function track(window, pixels, data, force) {
  const [from, to] = window
  const { segments, u } = data.bar
  const shown = segments.filter((x) => x.high > from && x.low < to)
  const node = el("div", { class: "track" }, shown.map((x) => segment(x, window, pixels, data, force)))
  if (u !== null) {
    const needle = (kind, at, title) => el("div", { class: kind, title, style: { left: `${(100 * (at - from)) / (to - from)}%` } })
    const earlier = (data.dice?.before ?? []).filter((at) => at >= from && at < to)
    node.append(...earlier.map((at) => needle("needle earlier", at, fmt(data.strings.earlier, { u: at.toFixed(3) }))))
    node.append(needle("needle", u))
  }
  return node
}

// Two lines from the part of the upper bar to the ends of the lower one.
function funnel([from, to]) {
  const shape = `${100 * from},0 ${100 * to},0 100,10 0,10`
  return svg("svg", { class: "funnel", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("polygon", { points: shape }))
}

export function barNode(data, pixels, force) {
  const s = data.strings
  const { u, segments, count } = data.bar
  const window = zoomWindow(segments, u)
  const d = window ? decimals(...window) : 3
  const parts = [track([0, 1], pixels, data, force)]
  if (window) {
    const times = Math.round(1 / (window[1] - window[0])).toLocaleString("en")
    parts.push(funnel(window), track(window, pixels, data, force),
      el("div", { class: "ends" }, el("span", {}, window[0].toFixed(d)),
        el("span", {}, fmt(s.zoom, { n: times })), el("span", {}, window[1].toFixed(d))))
  } else parts.push(el("div", { class: "ends" }, el("span", {}, "0"), el("span", {}, "1")))
  if (u === null) parts.push(el("p", { class: "dim" }, s.bar_greedy))
  else {
    const at = window ? (u - window[0]) / (window[1] - window[0]) : u
    const words = fmt(s.needle, { u: u.toFixed(d) })
    const late = at > 0.6
    parts.push(el("div", { class: `u ${late ? "high" : "low"}`, style: { left: `${100 * at}%` } },
      late ? `${words} ▲` : `▲ ${words}`))
  }
  const label = fmt(s.bar_label, { n: count.toLocaleString("en"), why: data.why })
  return el("div", { class: "draw", role: "img", "aria-label": label }, parts)
}
