// Keys of events begin with their time, and keys of deliveries with that of their event: a span of time is a range of the
// primary key, and needs no index of its own.

/** How far the clocks of two processes may differ; the conditions on the time itself are exact. */
const CLOCK_DIFFERENCE_MS = 60_000;

/** No event from this time on, or delivery of one, has a smaller key. */
export function firstIdFrom(time: Date): string {
  return idAt(time.getTime() - CLOCK_DIFFERENCE_MS);
}

/** No event from before this time, or delivery of one, has this key or a greater one. */
export function endIdBefore(time: Date): string {
  return idAt(time.getTime() + CLOCK_DIFFERENCE_MS);
}

function idAt(milliseconds: number): string {
  const time = Math.max(0, milliseconds).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`;
}
