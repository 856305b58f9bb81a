// The pictures of the rotation: the dial of one pair, the curves over the distance, the wavelengths.
import { el, fmt, svg } from "./dom.js"
import { rotationAngle, rotationBands, rotationPair, rotationPoint, rotationTicks, rotationTurn, rotationWave, rotationWhole } from "./rotation_math.js"

const DIAL = 320
const DIAL_R = 128
const CURVE_H = 112

export function dialNumber(x, digits = 3) {
  if (!Number.isFinite(x)) return "∞"
  return x.toFixed(digits).replace("-", "−")
}

// Degrees for people: within one turn, with the whole turns before it.
export function dialAngle(position, frequency, s) {
  const { whole, degrees } = rotationAngle(position, frequency)
  const text = `${degrees.toFixed(1).replace("-", "−")}°`
  return whole ? fmt(s.turns, { n: Math.abs(whole), angle: text }) : text
}

function dialArrow(kind, [x, y], scale, solid) {
  const [tx, ty] = [x * scale, -y * scale]
  const long = Math.hypot(tx, ty)
  const line = svg("line", { class: `arrow ${kind}${solid ? "" : " before"}`, x1: 0, y1: 0, x2: tx, y2: ty })
  if (!solid || long < 3) return [line]
  const size = Math.min(11, long)
  const [ux, uy] = [tx / long, ty / long]
  const points = [[tx, ty], [tx - size * ux + size * 0.45 * uy, ty - size * uy - size * 0.45 * ux],
    [tx - size * ux - size * 0.45 * uy, ty - size * uy + size * 0.45 * ux]]
  const name = kind === "q" ? "q" : "k"
  const out = Math.min(long + 15, DIAL_R + 22)
  return [line, svg("polygon", { class: `tip ${kind}`, points: points.map((p) => p.map((v) => v.toFixed(1)).join()).join(" ") }),
    svg("text", { class: `name ${kind}`, x: ux * out, y: uy * out + 5 }, name)]
}

// An arc from one direction to another, the way it turned, at most one round.
function dialArc(kind, from, angle, radius) {
  const turn = angle % (2 * Math.PI)
  if (Math.abs(turn) < 0.01) return svg("path", { class: `sweep ${kind}` })
  const start = Math.atan2(from[1], from[0])
  const at = (t) => `${(radius * Math.cos(t)).toFixed(1)} ${(-radius * Math.sin(t)).toFixed(1)}`
  const wide = Math.abs(turn) > Math.PI ? 1 : 0
  return svg("path", { class: `sweep ${kind}`, d: `M${at(start)}A${radius} ${radius} 0 ${wide} ${turn > 0 ? 0 : 1} ${at(start + turn)}` })
}

export function dial(view) {
  const { rope, pair, q, k, places, words } = view
  const [p, r] = [rotationPoint(q, pair, rope), rotationPoint(k, pair, rope)]
  const speed = rope.frequencies[pair]
  const scale = DIAL_R / (Math.max(Math.hypot(...p), Math.hypot(...r)) || 1)
  const [pm, rn] = [rotationTurn(p, places.m * speed), rotationTurn(r, places.n * speed)]
  const [x, y] = view.members
  return svg("svg", { class: "dial", viewBox: `${-DIAL / 2} ${-DIAL / 2} ${DIAL} ${DIAL}`, role: "img", "aria-label": words.dial_label },
    [1, 0.5].map((f) => svg("circle", { class: "ring", r: DIAL_R * f })),
    svg("path", { class: "cross", d: `M${-DIAL_R - 8} 0H${DIAL_R + 8}M0 ${-DIAL_R - 8}V${DIAL_R + 8}` }),
    svg("text", { class: "axis-name", x: DIAL_R + 8, y: -6, "text-anchor": "end" }, fmt(words.dial_number, { i: x })),
    svg("text", { class: "axis-name", x: 6, y: -DIAL_R - 12 }, fmt(words.dial_number, { i: y })),
    dialArc("q", p, places.m * speed, 46), dialArc("k", r, places.n * speed, 32),
    dialArrow("q", p, scale, false), dialArrow("k", r, scale, false),
    dialArrow("k", rn, scale, true), dialArrow("q", pm, scale, true))
}

// ---- the curves

function curveShape(bands, x, y) {
  const top = bands.map((b, i) => `${i ? "L" : "M"}${x(b.from).toFixed(1)} ${y(b.high).toFixed(1)}`)
  if (bands.every((b) => b.from === b.to)) return { line: top.join(""), area: "" }
  const back = [...bands].reverse().map((b) => `L${x(b.from).toFixed(1)} ${y(b.low).toFixed(1)}`)
  return { line: "", area: `${top.join("")}${back.join("")}Z` }
}

// The values that an axis must hold; 0 too, unless the curve would be a ripple far above it.
function curveRange(bands) {
  const [low, high] = [Math.min(...bands.map((b) => b.low)), Math.max(...bands.map((b) => b.high))]
  if (low <= 0 && high >= 0) return { low, high }
  const near = high - low > 0.5 * Math.max(Math.abs(low), Math.abs(high))
  const edge = 0.08 * (high - low)
  return near ? { low: Math.min(0, low), high: Math.max(0, high) } : { low: low - edge, high: high + edge }
}

// {node, mark(distance)}: value against distance 0 … last; `real` is the distance in the text.
export function curve(kind, view, width, f, pick) {
  const { last, words, real } = view
  const pad = { left: 46, right: 14, top: 10, bottom: 22 }
  const bands = rotationBands(f, last, Math.max(40, Math.floor((width - pad.left - pad.right) / 1.5)))
  const { low, high } = curveRange(bands)
  const x = (d) => pad.left + ((width - pad.left - pad.right) * d) / Math.max(1, last)
  const y = (v) => pad.top + ((CURVE_H - pad.top) * (high - v)) / (high - low || 1)
  const { line, area } = curveShape(bands, x, y)
  const base = low <= 0 && high >= 0 ? 0 : low
  const hair = svg("line", { class: "hair", y1: pad.top, y2: CURVE_H })
  const dot = svg("circle", { class: `dot ${kind}`, r: 6 })
  const node = svg("svg", { class: "curve", viewBox: `0 0 ${width} ${CURVE_H + pad.bottom}`, width, height: CURVE_H + pad.bottom,
    role: "img", "aria-label": words[`curve_label_${kind}`] },
  svg("line", { class: "zero", x1: pad.left, x2: width - pad.right, y1: y(base), y2: y(base), "stroke-dasharray": base === 0 ? null : "3 4" }),
  [...new Set([low, base, high])].map((v) => Math.abs(y(v) - y(base)) > 11 || v === base
    ? svg("text", { class: "tick", x: pad.left - 6, y: y(v) + 4, "text-anchor": "end" }, dialNumber(v, Math.abs(high - low) < 2 ? 2 : 1)) : ""),
  rotationTicks(last).map((d) => svg("text", {
    class: "tick", x: x(d), y: CURVE_H + 17, "text-anchor": d === 0 ? "start" : d === last ? "end" : "middle" }, d)),
  svg("path", { class: `area ${kind}`, d: area }), svg("path", { class: `line ${kind}`, d: line }),
  real === null || real > last ? "" : svg("path", { class: "real", d: `M${x(real)} ${CURVE_H}l-5 8h10z` }, svg("title", {}, words.real)),
  hair, dot)
  node.onpointerdown = node.onpointermove = (event) => {
    if (event.type === "pointermove" && !event.buttons) return
    const box = node.getBoundingClientRect()
    const along = ((event.clientX - box.left) * width) / box.width - pad.left
    pick(Math.max(0, Math.min(last, Math.round((along * last) / (width - pad.left - pad.right)))))
  }
  const mark = (distance) => {
    const inside = distance >= 0 && distance <= last
    for (const part of [hair, dot]) part.setAttribute("visibility", inside ? "visible" : "hidden")
    hair.setAttribute("x1", x(distance))
    hair.setAttribute("x2", x(distance))
    dot.setAttribute("cx", x(distance))
    dot.setAttribute("cy", y(f(distance)))
  }
  return { node, mark }
}

export function curvePair(view, width, pick) {
  return curve("pair", view, width, (d) => rotationPair(view.terms, view.rope, view.pair, d), pick)
}

export function curveWhole(view, width, pick) {
  return curve("whole", view, width, (d) => rotationWhole(view.terms, view.rope, d), pick)
}

// ---- the wavelengths: one bar a pair, on a logarithmic scale; a click picks the pair

export function waves(view, width, pick) {
  const { rope, pair, read, context, words } = view
  const lengths = rope.frequencies.map(rotationWave)
  const finite = lengths.filter(Number.isFinite)
  const [low, high] = [Math.log10(Math.min(...finite, 2)), Math.log10(Math.max(...finite, context, 10))]
  const pad = { left: 62, right: 12, top: 10, bottom: 22 }
  const height = 150
  const inner = width - pad.left - pad.right
  const y = (n) => pad.top + ((height - pad.top) * (high - Math.log10(n))) / (high - low || 1)
  const step = inner / lengths.length
  // The first bars are the short ones, so there is room for words above them.
  const level = (n, text) => [svg("line", { class: "level", x1: pad.left, x2: width - pad.right, y1: y(n), y2: y(n) }),
    svg("text", { class: "level-name", x: pad.left + 4, y: y(n) - 5 }, text)]
  const powers = []
  for (let e = Math.ceil(low); e <= high; e++) powers.push(10 ** e)
  const every = Math.max(1, Math.ceil(lengths.length / Math.max(2, Math.floor(inner / 34))))
  const node = svg("svg", { class: "waves", viewBox: `0 0 ${width} ${height + pad.bottom}`, width, height: height + pad.bottom, role: "img",
    "aria-label": words.waves_label },
  powers.map((n) => svg("text", { class: "tick", x: pad.left - 6, y: y(n) + 4, "text-anchor": "end" }, n.toLocaleString("en"))),
  lengths.map((n, i) => svg("rect", { class: `wave${i === pair ? " here" : ""}`, "data-pair": i,
    x: pad.left + i * step + step * 0.12, width: step * 0.76, y: Number.isFinite(n) ? y(n) : pad.top, height: Math.max(1, height - (Number.isFinite(n) ? y(n) : pad.top)) },
  svg("title", {}, fmt(words.wave_help, { i, n: waveText(n) })))),
  lengths.map((_, i) => (i % every ? "" : svg("text", { class: "tick", x: pad.left + (i + 0.5) * step, y: height + 16, "text-anchor": "middle" }, i))),
  level(Math.max(read, 2), fmt(words.wave_text, { n: read })), context > read * 2 ? level(context, fmt(words.wave_context, { n: context.toLocaleString("en") })) : "")
  node.onclick = (event) => {
    const box = node.getBoundingClientRect()
    const i = Math.floor((((event.clientX - box.left) * width) / box.width - pad.left) / step)
    if (i >= 0 && i < lengths.length) pick(i)
  }
  return node
}

export function waveText(n) {
  if (!Number.isFinite(n)) return "∞"
  return n < 100 ? n.toFixed(2) : Math.round(n).toLocaleString("en")
}

export function rotationSelect(label, options, chosen, change) {
  const select = el("select", { "aria-label": label, onchange: () => change(Number(select.value)) },
    options.map(([value, text]) => el("option", { value, selected: value === chosen }, text)))
  return el("label", { class: "pick" }, el("span", {}, label), select)
}
