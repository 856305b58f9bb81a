// The map: the tokens' rows on the plane, or in the space, of their principal components.
import { el, fmt, svg } from "./dom.js"
import { cloudFit, cloudFitSpace, cloudLabels, cloudRings, cloudShort, cloudTurn, cloudWidth } from "./cloud.js"

const MAP_FONT = 13.5
const MAP_RING = 3
const MAP_RINGS = 3

// Lives as long as the component; keeps the reader's choice of map and angle.
export class EmbeddingMap {
  constructor(look) {
    this.look = look
    this.space = false
    this.among = false
    this.yaw = 0.6
    this.pitch = 0.35
    this.node = el("div", { class: "map" })
  }

  update(data) {
    this.data = data
    const s = data.strings
    this.said = el("p", { class: "dim" })
    this.picture = svg("svg", { role: "group", "aria-label": s.map_label })
    this.turn = el("input", { type: "range", min: -180, max: 180, step: 1, value: Math.round((this.yaw * 180) / Math.PI) })
    this.turn.oninput = () => { this.yaw = (this.turn.valueAsNumber * Math.PI) / 180; this.draw() }
    this.picture.onpointerdown = (event) => this.grab(event)
    this.node.replaceChildren(
      el("div", { class: "choices" },
        this.group(s.map_dimensions, [[false, s.plane], [true, s.space]], "space"),
        data.map.among && this.group(s.map_rows, [[false, s.map_alone], [true, s.map_among]], "among")),
      this.picture,
      this.turner = el("label", { class: "turn" }, s.turn, this.turn),
      this.said)
    this.draw()
  }

  group(label, options, field) {
    const buttons = options.map(([value, text]) => el("button", {
      type: "button", "aria-pressed": String(value === this[field]),
      onclick: (event) => {
        this[field] = value
        for (const other of buttons) other.setAttribute("aria-pressed", String(other === event.currentTarget))
        this.draw()
      },
    }, text))
    return el("div", { class: "group", role: "group", "aria-label": label }, buttons)
  }

  grab(event) {
    if (!this.space || event.target.closest?.("[data-position]")) return
    let [x, y] = [event.clientX, event.clientY]
    this.picture.setPointerCapture(event.pointerId)
    this.picture.onpointermove = (move) => {
      this.yaw += (move.clientX - x) / 120
      this.pitch = Math.max(-1.5, Math.min(1.5, this.pitch + (move.clientY - y) / 120))
      ;[x, y] = [move.clientX, move.clientY]
      this.turn.value = String(Math.round((((this.yaw * 180) / Math.PI + 540) % 360) - 180))
      this.draw()
    }
    this.picture.onpointerup = this.picture.onpointercancel = () => { this.picture.onpointermove = null }
  }

  draw() {
    const { data } = this
    const map = (this.among && data.map.among) || data.map.alone
    const width = Math.max(260, this.node.clientWidth)
    const height = Math.round(Math.min(440, Math.max(280, width * 0.62)))
    this.turner.hidden = !this.space
    this.picture.classList.toggle("space", this.space)
    for (const [name, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, width, height })) this.picture.setAttribute(name, value)
    const flat = (spot) => (this.space ? cloudTurn(spot, this.yaw, this.pitch) : [spot[0], spot[1], 0])
    const every = [...map.spots, ...map.others.map((o) => o.spot)]
    const margin = { left: 30, right: 74, top: 22, bottom: 30 }
    const place = this.space ? cloudFitSpace(every, width, height, margin) : cloudFit(every.map(flat), width, height, margin)
    const shown = [...this.own(map, flat, place), ...this.others(map, flat, place)]
    const room = cloudLabels(shown.map((p) => ({ ...p, w: cloudWidth(p.text, MAP_FONT) + 2, h: MAP_FONT + 3 })), width, height, this.space ? 0 : margin.left)
    const far = [...shown].sort((a, b) => a.depth - b.depth)
    this.picture.replaceChildren(
      ...this.axes(every, flat, place, width, height),
      ...far.flatMap((p) => this.circles(p)),
      ...shown.map((p, i) => room[i] && svg("text", { class: `name ${p.kind}`, x: room[i].x, y: room[i].y + MAP_FONT * 0.35 }, p.text)).filter(Boolean))
    this.said.textContent = this.explained(map)
  }

  // One entry for each place; the positions that share it are its rings.
  own(map, flat, place) {
    const { tokens, at } = this.data
    const rings = cloudRings(map.spots)
    const points = new Map()
    tokens.forEach((token, i) => {
      const key = map.spots[i].join()
      const known = points.get(key)
      if (known) known.tokens.push({ token, ring: rings[i] })
      else points.set(key, { ...this.point(map.spots[i], flat, place), kind: token.source, tokens: [{ token, ring: 0 }] })
    })
    const found = [...points.values()]
    for (const point of found) {
      const ring = Math.min(point.tokens.length - 1, MAP_RINGS)
      point.r = 5.5 + ring * MAP_RING
      const times = point.tokens.length > 1 ? ` ×${point.tokens.length}` : ""
      point.text = cloudShort(point.tokens[0].token.label) + times
      point.here = point.tokens.some(({ token }) => token.position === at)
      if (point.here) point.kind += " here"
    }
    return found.sort((a, b) => Number(b.here) - Number(a.here))
  }

  others(map, flat, place) {
    return map.others.map((other) => ({
      ...this.point(other.spot, flat, place), kind: "other", r: 4, text: cloudShort(other.label), tokens: [], label: other.label,
    }))
  }

  point(spot, flat, place) {
    const turned = flat(spot)
    const [x, y] = place(turned)
    return { x, y, depth: turned[2] }
  }

  circles(p) {
    const s = this.data.strings
    if (!p.tokens.length) return [svg("circle", { class: "other", cx: p.x, cy: p.y, r: p.r }, svg("title", {}, p.label))]
    return p.tokens.map(({ token, ring }) => svg("circle", {
      class: `spot ${token.source}${token.position === this.data.at ? " here" : ""}${ring ? " ring" : ""}`,
      "data-position": token.position, cx: p.x, cy: p.y, r: 5.5 + Math.min(ring, MAP_RINGS) * MAP_RING,
      onclick: () => this.look(token.position),
    }, svg("title", {}, fmt(s.token_help, { token: token.label, id: token.id, position: token.position })))).reverse()
  }

  // In the plane the frame's lower and left edge; in space three arrows from the mean of the rows.
  axes(every, flat, place, width, height) {
    const s = this.data.strings
    const { explained } = (this.among && this.data.map.among) || this.data.map.alone
    const name = (i) => fmt(s.axis, { n: i + 1, p: `${(100 * explained[i]).toFixed(0)} %` })
    if (!this.space) {
      return [
        svg("path", { class: "axis", d: `M24 8V${height - 22}H${width - 8}` }),
        svg("text", { class: "axis-name", x: width - 8, y: height - 7, "text-anchor": "end" }, `${name(0)} →`),
        svg("text", { class: "axis-name", x: -10, y: 15, transform: "rotate(-90)", "text-anchor": "end" }, `${name(1)} →`),
      ]
    }
    const size = Math.max(...every.map((p) => Math.hypot(...p))) || 1
    return [0, 1, 2].flatMap((i) => {
      const tip = [0, 0, 0]
      tip[i] = size * 0.9
      const [from, to] = [place(flat([0, 0, 0])), place(flat(tip))]
      return [svg("line", { class: "axis", x1: from[0], y1: from[1], x2: to[0], y2: to[1] }),
        svg("text", { class: "axis-name", x: to[0], y: to[1] }, name(i))]
    })
  }

  explained(map) {
    const s = this.data.strings
    if (map.rows < 2) return s.map_one
    const known = map.explained.slice(0, this.space ? 3 : 2)
    const share = (p) => `${(100 * p).toFixed(1)} %`
    return fmt(this.space ? s.explained_space : s.explained_plane, {
      p: share(known.reduce((a, b) => a + b, 0)), parts: known.map(share).join(" + "), n: map.rows })
  }
}
