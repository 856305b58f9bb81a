// Small helpers for building DOM out of hostile text: textContent and attributes only.

const SVG = "http://www.w3.org/2000/svg"

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue
    if (name.startsWith("on")) node[name] = value
    else if (name === "style") Object.assign(node.style, value)
    else node.setAttribute(name, value === true ? "" : String(value))
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue
    node.append(typeof child === "object" ? child : document.createTextNode(String(child)))
  }
  return node
}

// An HTML element; `style` is an object, `on…` are functions, children are nodes or text.
export function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children)
}

// The same in the SVG namespace.
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children)
}

// Run `draw`, which replaces nodes in `root`, and give the focus back to what stands where the
// focused node stood: a reader at the keyboard must not be thrown to the top of the page.
export function keepFocus(root, draw) {
  const home = root.getRootNode()
  const held = home.activeElement
  const inside = held && held !== root && root.contains(held)
  const key = inside ? held.dataset.key : undefined
  const path = []
  for (let node = held; inside && node !== root; node = node.parentElement) {
    path.unshift([...node.parentElement.children].indexOf(node))
  }
  draw()
  if (!inside || home.activeElement === held) return
  const named = key === undefined ? null : root.querySelector(`[data-key="${CSS.escape(key)}"]`)
  const there = named ?? path.reduce((node, index) => node?.children[index], root)
  const next = there?.localName === held.localName ? there : root.querySelector("button, select, input, summary, [tabindex]")
  next?.focus({ preventScroll: true })
}

// Fill the placeholders of a message: fmt("{n} left", {n: 3}).
export function fmt(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, key) => (key in values ? String(values[key]) : whole))
}

// A probability for people: 77.3 %, 0.04 %, < 0.01 %, 0 %; 100.0 % is said of everything only.
export function percent(p) {
  if (!(p > 0)) return "0 %"
  if (p < 1e-4) return "< 0.01 %"
  if (p >= 0.9995 && p < 1 - 1e-12) return "> 99.9 %"
  return `${(100 * p).toFixed(p < 0.01 ? 2 : 1)} %`
}

// "dark" or "light", from the background that the theme gives to the host element.
export function themeOf(parentElement) {
  const host = parentElement.host ?? parentElement
  const colour = getComputedStyle(host).getPropertyValue("--st-background-color").trim()
  return isDark(colour) ? "dark" : "light"
}

export function isDark(colour) {
  const hex = /^#([0-9a-f]{6})/i.exec(colour)
  const rgb = hex
    ? [0, 2, 4].map((i) => parseInt(hex[1].slice(i, i + 2), 16))
    : (colour.match(/[\d.]+/g) ?? [255, 255, 255]).slice(0, 3).map(Number)
  return 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2] < 128
}
