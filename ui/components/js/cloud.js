// Rows of a matrix as points of a plane or of space: projection, and labels that don't collide. Pure.

// [x, y, depth] of a point, turned by `yaw` around the upright axis and tilted by `pitch`.
export function cloudTurn([x, y, z], yaw, pitch) {
  const [a, b] = [x * Math.cos(yaw) + z * Math.sin(yaw), z * Math.cos(yaw) - x * Math.sin(yaw)]
  return [a, y * Math.cos(pitch) - b * Math.sin(pitch), b * Math.cos(pitch) + y * Math.sin(pitch)]
}

// How many earlier points stand at exactly the same place: the ring on which each is drawn.
export function cloudRings(spots) {
  const seen = new Map()
  return spots.map((spot) => {
    const key = spot.join()
    const ring = seen.get(key) ?? 0
    seen.set(key, ring + 1)
    return ring
  })
}

// A function from points to pixels with one scale for all axes, so that distances can be compared.
export function cloudFit(points, width, height, margin) {
  const xs = points.map((p) => p[0])
  const ys = points.map((p) => p[1])
  const [left, right] = [Math.min(...xs), Math.max(...xs)]
  const [low, high] = [Math.min(...ys), Math.max(...ys)]
  const room = [width - margin.left - margin.right, height - margin.top - margin.bottom]
  const scale = Math.min(room[0] / (right - left || 1), room[1] / (high - low || 1))
  const middle = [(left + right) / 2, (low + high) / 2]
  const centre = [margin.left + room[0] / 2, margin.top + room[1] / 2]
  return (p) => [centre[0] + (p[0] - middle[0]) * scale, centre[1] - (p[1] - middle[1]) * scale]
}

// The same for space: nothing leaves the drawing however it is turned.
export function cloudFitSpace(points, width, height, margin) {
  const far = Math.max(...points.map((p) => Math.hypot(...p))) || 1
  const room = Math.min(width - margin.left - margin.right, height - margin.top - margin.bottom)
  const centre = [margin.left + (width - margin.left - margin.right) / 2, height / 2]
  return (p) => [centre[0] + (p[0] * room) / (2 * far), centre[1] - (p[1] * room) / (2 * far)]
}

// Where labels of `items` ({x, y, r, w, h}, most important first) find room: {x, y} of the left end
// and middle of each, or null. Tried: right, left, above, below.
export function cloudLabels(items, width, height, least = 0) {
  const taken = items.map(({ x, y, r }) => [x - r, y - r, x + r, y + r])
  return items.map(({ x, y, r, w, h }, own) => {
    const spots = [[x + r + 3, y], [x - r - 3 - w, y], [x - w / 2, y - r - h / 2], [x - w / 2, y + r + h / 2]]
    for (const [left, middle] of spots) {
      const box = [left, middle - h / 2, left + w, middle + h / 2]
      const inside = box[0] >= least && box[1] >= 0 && box[2] <= width && box[3] <= height
      if (inside && !taken.some((other, i) => i !== own && cloudMeet(box, other))) {
        taken.push(box)
        return { x: left, y: middle }
      }
    }
    return null
  })
}

function cloudMeet(a, b) {
  return a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

// Pixels of a label in a font of `size`, Chinese letters and emoji counted as squares.
export function cloudWidth(label, size) {
  let width = 0
  for (const char of label) width += char.codePointAt(0) >= 0x1100 ? 1 : 0.58
  return width * size
}

// A label cut for a drawing.
export function cloudShort(label, most = 18) {
  const letters = [...label]
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : label
}
