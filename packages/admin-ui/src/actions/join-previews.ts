import type { AdminPreview, AdminTone } from '../api/shapes.ts';
import { formatNumber, plural } from '../values/format.ts';

/** Reasons that a preview spells out; the rest is a number. */
const REASONS_MAX = 3;

/** The worse first. */
const TONES: readonly AdminTone[] = ['bad', 'warning', 'info'];

/** The answers for the batches of a selection as one: `5 orders will be paid, 8 cannot: …`. */
export function joinPreviews(
  parts: readonly AdminPreview[],
  outcome: string | undefined,
  [one, many]: readonly [string, string],
): AdminPreview | null {
  const [first] = parts;
  if (first === undefined || outcome === undefined || first.able === undefined) return first ?? null;
  const able = parts.reduce((sum, part) => sum + (part.able ?? 0), 0);
  const failures = parts.flatMap((part) => part.failures ?? []);
  const will = `${plural(able, one, many)} will be ${outcome}`;
  const notes = [...new Set(parts.flatMap(({ note }) => note ?? []))].map((note) => ` ${note}`).join('');
  const worst = TONES.find((tone) => parts.some((part) => part.note !== undefined && part.tone === tone));
  if (failures.length === 0) return { tone: worst ?? 'good', message: `${will}.${notes}`, able, failures };
  const reasons = [...Map.groupBy(failures, ({ message }) => message)].toSorted(([, a], [, b]) => b.length - a.length);
  const said = reasons
    .slice(0, REASONS_MAX)
    .map(([reason, some]) => (reasons.length === 1 ? reason : `${formatNumber(some.length)} × ${reason}`));
  const more = reasons.length > REASONS_MAX ? [`${reasons.length - REASONS_MAX} other reasons.`] : [];
  const tone: AdminTone = able === 0 ? 'bad' : 'warning';
  return { tone, message: `${will}, ${formatNumber(failures.length)} cannot: ${[...said, ...more].join(' ')}${notes}`, able, failures };
}
