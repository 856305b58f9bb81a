// Large arrays that travel once and are shared by the components of a page: labels, logits.
// One map per browser tab; `storeWait` calls back at once, or when the entry arrives.

const STORE_EVENT = "tbt-store"
const STORE_KEEP = 4

function storeEntries() {
  globalThis.tbtStore ??= new Map()
  return globalThis.tbtStore
}

// Keep `value` under `id`, forgetting the oldest of its kind (the part of the id before ":").
export function storePut(id, value) {
  const map = storeEntries()
  map.delete(id)
  map.set(id, value)
  const kind = id.split(":", 1)[0] + ":"
  const same = [...map.keys()].filter((key) => key.startsWith(kind))
  for (const key of same.slice(0, -STORE_KEEP)) map.delete(key)
  globalThis.dispatchEvent(new CustomEvent(STORE_EVENT, { detail: id }))
}

export function storeGet(id) {
  return storeEntries().get(id)
}

// Calls `found(value)` as soon as `id` is there; returns a function that stops waiting.
export function storeWait(id, found) {
  if (storeEntries().has(id)) {
    found(storeGet(id))
    return () => {}
  }
  const listen = (event) => {
    if (event.detail !== id) return
    globalThis.removeEventListener(STORE_EVENT, listen)
    found(storeGet(id))
  }
  globalThis.addEventListener(STORE_EVENT, listen)
  return () => globalThis.removeEventListener(STORE_EVENT, listen)
}

// What the page sends: the id on a line of its own, then bytes of the id's kind: float32 logits,
// float64 logits of typed numbers (little-endian), or UTF-8 labels, one a line.
export function storeTake(bytes) {
  const end = bytes.indexOf(10)
  const id = new TextDecoder().decode(bytes.subarray(0, end))
  if (storeGet(id) === undefined) storePut(id, storeRead(id, bytes.subarray(end + 1)))
  return id
}

function storeRead(id, bytes) {
  const kind = id.split(":", 1)[0]
  if (kind === "labels") return bytes.byteLength ? new TextDecoder().decode(bytes).split("\n") : []
  const own = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength)
  return kind === "logits64" ? new Float64Array(own) : new Float32Array(own)
}
