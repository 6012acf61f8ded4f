import { uuidv7LowerBound } from '../../../db/values/uuidv7.ts';

// Keys of events begin with their time, and keys of deliveries with that of their event: a span of time is a range of the
// primary key, and needs no index of its own.

/** How far the clocks of two processes may differ; the conditions on the time itself are exact. */
const CLOCK_DIFFERENCE_MS = 60_000;

/** No event from this time on, or delivery of one, has a smaller key. */
export function firstIdFrom(time: Date): string {
  return uuidv7LowerBound(new Date(time.getTime() - CLOCK_DIFFERENCE_MS));
}

/** No event from before this time, or delivery of one, has this key or a greater one. */
export function endIdBefore(time: Date): string {
  return uuidv7LowerBound(new Date(time.getTime() + CLOCK_DIFFERENCE_MS));
}
