// The player as a pure state machine: time and answers come in as events, and what is to be
// sent comes out. The component owns the clock and the wire.
//
// state: mode "paused" | "playing" (one step at a time, at a speed) | "running" (to the end);
//        sentAt: when the last unanswered request went out, or null;
//        due: earliest time of the next tick; lost: an answer did not come.

export const SPEEDS = [0.5, 1, 2, 4]
export const LOST_AFTER = 15000
const RUN_COUNT = 4

export function newPlayer(speed = 1) {
  return { mode: "paused", speed, sentAt: null, due: 0, lost: false }
}

// Nothing lies ahead: the last step made is in view, and the run has stopped.
export function atEnd(run) {
  return Boolean(run.stop) && run.view >= run.made - 1
}

// [state, command or null]. `run` is {view, made, stop}; `now` is in milliseconds.
export function play(state, run, now) {
  const next = { ...state, mode: "playing", due: now, lost: false }
  if (!atEnd(run) || run.made < 2) return tick(next, run, now)
  // Like any player: play at the end starts over, with the steps already made.
  return [sent(next, now), { do: "goto", step: 0 }]
}

export function runToEnd(state, run, now) {
  return tick({ ...state, mode: "running", due: now, lost: false }, run, now)
}

export function pause(state) {
  return { ...state, mode: "paused" }
}

export function setSpeed(state, speed) {
  if (!SPEEDS.includes(speed)) return state
  const sped = state.due - 1000 / state.speed + 1000 / speed
  return { ...state, speed, due: state.mode === "playing" ? sped : state.due }
}

// A request that somebody makes by hand: it ends the play, and its answer is awaited too.
export function manual(state, now) {
  return sent({ ...pause(state), lost: false }, now)
}

// The page answered: new data is here.
export function ack(state, run) {
  const next = { ...state, sentAt: null, lost: false }
  return atEnd(run) ? pause(next) : next
}

// The clock went on: send the next step, wait, or give up a lost answer.
export function tick(state, run, now) {
  if (state.sentAt !== null) {
    if (now - state.sentAt < LOST_AFTER) return [state, null]
    return [{ ...pause(state), sentAt: null, lost: true }, null]
  }
  if (state.mode === "paused") return [state, null]
  if (atEnd(run)) return [pause(state), null]
  if (now < state.due) return [state, null]
  const count = state.mode === "running" ? RUN_COUNT : 1
  return [sent(state, now), count === 1 ? { do: "step" } : { do: "step", count }]
}

// Milliseconds until `tick` has something to do, or null.
export function wait(state, now) {
  if (state.sentAt !== null) return Math.max(0, state.sentAt + LOST_AFTER - now)
  return state.mode === "paused" ? null : Math.max(0, state.due - now)
}

function sent(state, now) {
  const gap = state.mode === "playing" ? 1000 / state.speed : 0
  return { ...state, sentAt: now, due: now + gap }
}

const TYPING = ["input", "textarea", "select"]
const ARROW_ROLES = ["slider", "spinbutton", "radio", "tab", "listbox", "option", "combobox",
  "menuitem", "treeitem", "grid", "gridcell", "textbox", "application"]
const SPACE_TAGS = ["button", "summary", "a", "audio", "video"]

// What a key press means: "step", "back", "toggle" or null. `target` is {tag, role, editable}
// of the element that has the focus.
export function keyAction({ key, ctrl, meta, alt, shift }, { tag, role, editable }) {
  if (ctrl || meta || alt || shift || editable) return null
  if (TYPING.includes(tag) || ARROW_ROLES.includes(role)) return null
  if (key === "ArrowRight") return "step"
  if (key === "ArrowLeft") return "back"
  const pressable = SPACE_TAGS.includes(tag) || ["button", "switch", "checkbox", "link"].includes(role)
  return key === " " && !pressable ? "toggle" : null
}
