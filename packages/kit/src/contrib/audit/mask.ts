import { isSensitiveName, MASK } from '../../middleware/masking.ts';

/** A copy in which no member with a sensitive name shows its value, at any depth. `sensitive` are names the app's models marked so. */
export function masked(value: unknown, sensitive: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map((item) => masked(item, sensitive));
  if (typeof value !== 'object' || value === null) return value;
  const copy: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(value)) {
    const hidden = member !== null && (sensitive.has(name) || isSensitiveName(name));
    // defineProperty: a member named __proto__ stays a member.
    Object.defineProperty(copy, name, { value: hidden ? MASK : masked(member, sensitive), enumerable: true });
  }
  return copy;
}
