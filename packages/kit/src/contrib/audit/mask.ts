import { BoundedMap } from '../../db/bounded-map.ts';
import { isSensitiveName, MASK } from '../../middleware/masking.ts';

/** Names that were looked at before; bounded, because a client may choose the names in a JSON value. */
const judged = new BoundedMap<string, boolean>(2000);

function isSensitive(name: string): boolean {
  let sensitive = judged.get(name);
  if (sensitive === undefined) {
    sensitive = isSensitiveName(name);
    judged.set(name, sensitive);
  }
  return sensitive;
}

/**
 * A copy in which no member with a sensitive name shows its value, at any depth. `sensitive` are names that the app's models mark. The
 * value is plain JSON.
 */
export function masked(value: unknown, sensitive: ReadonlySet<string>): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => masked(item, sensitive));
  const copy: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(value)) {
    const shown = member !== null && (sensitive.has(name) || isSensitive(name)) ? MASK : masked(member, sensitive);
    // Assigning __proto__ would set the prototype; defined, it stays a member.
    if (name === '__proto__') Object.defineProperty(copy, name, { value: shown, enumerable: true });
    else copy[name] = shown;
  }
  return copy;
}
