import { randomFillSync } from 'node:crypto';
import { type Clock, systemClock } from '../clock.ts';
import { requireArguments } from '../../options/read-options.ts';
import { clock as aClock } from '../../options/value-rule.ts';

interface Sequence {
  timestamp: number;
  counter: number;
  /** How keys of this timestamp begin: thousands may share it. */
  prefix: string;
}

/** 12 bits sit beside the timestamp (RFC 9562, method 1). */
const COUNTER_MAX = 0xfff;
/** Two bytes for where the counter begins, eight for the end of the key. */
const BYTES_PER_KEY = 10;
/** Random bytes are drawn for many keys at once: one call per key costs more than the rest of the key. */
const block = new Uint8Array(400 * BYTES_PER_KEY);
let used = block.length;
const sequences = new WeakMap<Clock, Sequence>();
const hex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/** Where in the block the random bytes of the next key are. */
function draw(): number {
  if (used === block.length) {
    randomFillSync(block);
    used = 0;
  }
  const at = used;
  used += BYTES_PER_KEY;
  return at;
}

/** Later keys of one process sort after earlier ones, also within a millisecond and when the clock steps back. */
function next(clock: Clock, random: number): Sequence {
  const now = clock.now().getTime();
  let sequence = sequences.get(clock);
  if (sequence === undefined) sequences.set(clock, (sequence = { timestamp: -1, counter: 0, prefix: '' }));
  if (now > sequence.timestamp) {
    // Half of the range stays free for the keys that follow within this millisecond.
    begin(sequence, now, random & 0x7ff);
  } else if (sequence.counter === COUNTER_MAX) {
    begin(sequence, sequence.timestamp + 1, 0);
  } else {
    sequence.counter += 1;
  }
  return sequence;
}

function begin(sequence: Sequence, timestamp: number, counter: number): void {
  const time = timestamp.toString(16).padStart(12, '0');
  sequence.timestamp = timestamp;
  sequence.counter = counter;
  sequence.prefix = `${time.slice(0, 8)}-${time.slice(8)}-`;
}

/** A new UUID version 7: sortable by creation time, 62 random bits. */
export function uuidv7(clock: Clock = systemClock): string {
  if (typeof clock?.now !== 'function') requireArguments('uuidv7()', { clock }, { clock: aClock });
  const at = draw();
  const byte = (index: number): number => block[at + index] ?? 0;
  const h = (value: number): string => hex[value] ?? '';
  const { prefix, counter } = next(clock, (byte(8) << 8) | byte(9));
  const tail = h(0x80 | (byte(0) & 0x3f)) + h(byte(1));
  const node = h(byte(2)) + h(byte(3)) + h(byte(4)) + h(byte(5)) + h(byte(6)) + h(byte(7));
  block.fill(0, at, at + BYTES_PER_KEY); // a used byte must not linger in memory dumps or be handed out twice
  return `${prefix}${h(0x70 | (counter >> 8))}${h(counter & 0xff)}-${tail}-${node}`;
}

/** Below every UUIDv7 made at this time or later, above all earlier ones: a range of time is a range of keys. */
export function uuidv7LowerBound(at: Date): string {
  const time = Math.max(0, at.getTime()).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`;
}
