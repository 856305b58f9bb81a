// Up, down, Home and End walk over a list of buttons; left and right belong to the player.

// Where a key leads from place `here` in a list of `count`; null when it leads nowhere.
export function walkTo(key, here, count) {
  const moves = { ArrowUp: -1, ArrowDown: 1, Home: -Infinity, End: Infinity }
  if (!(key in moves) || here < 0) return null
  return Math.min(count - 1, Math.max(0, here + moves[key]))
}

// Moves the focus, and the one tab stop of the list; says whether the event came from the list.
export function walk(event, buttons) {
  const here = buttons.indexOf(event.target)
  const next = walkTo(event.key, here, buttons.length)
  if (next === null) return here >= 0
  event.preventDefault()
  for (const button of buttons) button.tabIndex = -1
  buttons[next].tabIndex = 0
  buttons[next].focus()
  return true
}
