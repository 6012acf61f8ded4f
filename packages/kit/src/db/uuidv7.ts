import { randomFillSync } from 'node:crypto';
import { type Clock, systemClock } from './clock.ts';

interface Sequence {
  timestamp: number;
  counter: number;
}

/** 12 bits sit beside the timestamp (RFC 9562, method 1). */
const COUNTER_MAX = 0xfff;
/** Random bytes are drawn in blocks: one call per key costs more than the rest of the key. */
const BLOCK = 4096;

const block = new Uint8Array(BLOCK);
let used = BLOCK;
const sequences = new WeakMap<Clock, Sequence>();
const hex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

function randomByte(): number {
  if (used === BLOCK) {
    randomFillSync(block);
    used = 0;
  }
  const byte = block[used] ?? 0;
  block[used++] = 0; // a used byte must not linger in memory dumps or be handed out twice
  return byte;
}

/** Later keys of one process sort after earlier ones, also within a millisecond and when the clock steps back. */
function next(clock: Clock): Sequence {
  const now = clock.now().getTime();
  let sequence = sequences.get(clock);
  if (sequence === undefined) sequences.set(clock, (sequence = { timestamp: -1, counter: 0 }));
  if (now > sequence.timestamp) {
    sequence.timestamp = now;
    // Half of the range stays free for the keys that follow within this millisecond.
    sequence.counter = ((randomByte() << 8) | randomByte()) & 0x7ff;
  } else if (sequence.counter === COUNTER_MAX) {
    sequence.timestamp += 1;
    sequence.counter = 0;
  } else {
    sequence.counter += 1;
  }
  return sequence;
}

/** A new UUID version 7: sortable by creation time, 62 random bits. */
export function uuidv7(clock: Clock = systemClock): string {
  const { timestamp, counter } = next(clock);
  const time = timestamp.toString(16).padStart(12, '0');
  const h = (byte: number): string => hex[byte] ?? '';
  const tail = h(0x80 | (randomByte() & 0x3f)) + h(randomByte());
  const node = h(randomByte()) + h(randomByte()) + h(randomByte()) + h(randomByte()) + h(randomByte()) + h(randomByte());
  return `${time.slice(0, 8)}-${time.slice(8)}-7${counter.toString(16).padStart(3, '0')}-${tail}-${node}`;
}
