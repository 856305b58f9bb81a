// A vector as a heat strip: every number of it is a cell, line by line. Pure but for the painting.

export const HEAT_COLOURS = {
  light: { negative: "0,114,178", positive: "213,94,0" },
  dark: { negative: "86,180,233", positive: "240,132,60" },
}

// Base64 of little-endian float32, as numbers.
export function heatFloats(text) {
  return new Float32Array(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer)
}

// Cells in a line: a divisor of `count` whose cells are 9 to 26 pixels wide, else what fits well.
export function heatColumns(count, pixels) {
  const most = Math.max(1, Math.min(count, Math.floor(pixels / 9)))
  const least = Math.min(most, Math.ceil(pixels / 26))
  for (let n = most; n >= least; n--) if (count % n === 0) return n
  return Math.max(1, Math.min(most, Math.floor(pixels / 13)))
}

// The grid of `count` cells in `pixels`; `lines` of `columns` cells of `wide` × `high` pixels.
export function heatGrid(count, pixels) {
  const columns = heatColumns(count, pixels)
  const wide = pixels / columns
  return { count, columns, wide, high: Math.max(10, Math.min(18, Math.round(wide))), lines: Math.ceil(count / columns) }
}

// Index of the cell under a point; -1 outside.
export function heatAt(grid, x, y) {
  const column = Math.floor(x / grid.wide)
  const line = Math.floor(y / grid.high)
  if (column < 0 || column >= grid.columns || line < 0) return -1
  const index = line * grid.columns + column
  return index < grid.count ? index : -1
}

// How strongly a value is coloured: sign, and its share of the value at which colours saturate.
export function heatTone(value, saturation) {
  return saturation > 0 ? Math.max(-1, Math.min(1, value / saturation)) : 0
}

// A number with a real minus, and as many digits as tell it from 0.
export function heatNumber(value, digits = 4) {
  if (value === 0) return "0"
  const text = Math.abs(value) < 10 ** -digits ? value.toExponential(2) : value.toFixed(digits)
  return text.replaceAll("-", "−")
}

export function heatPaint(canvas, values, grid, saturation, theme) {
  const ratio = globalThis.devicePixelRatio || 1
  canvas.style.height = `${grid.lines * grid.high}px`
  canvas.width = Math.round(grid.wide * grid.columns * ratio)
  canvas.height = Math.round(grid.lines * grid.high * ratio)
  const pen = canvas.getContext("2d")
  const edge = (i, size) => Math.round(i * size * ratio)
  values.forEach((value, i) => {
    const [line, column] = [Math.floor(i / grid.columns), i % grid.columns]
    const t = heatTone(value, saturation)
    const { negative, positive } = HEAT_COLOURS[theme]
    pen.fillStyle = `rgba(${t < 0 ? negative : positive},${Math.abs(t).toFixed(3)})`
    const [x, y] = [edge(column, grid.wide), edge(line, grid.high)]
    pen.fillRect(x, y, edge(column + 1, grid.wide) - x, edge(line + 1, grid.high) - y - Math.round(ratio))
  })
}

// A frame around one cell, above the painting.
export function heatFrame(mark, grid, index) {
  mark.hidden = index < 0
  if (index < 0) return
  const [line, column] = [Math.floor(index / grid.columns), index % grid.columns]
  Object.assign(mark.style, {
    left: `${column * grid.wide}px`, top: `${line * grid.high}px`, width: `${grid.wide}px`, height: `${grid.high - 1}px`,
  })
}
