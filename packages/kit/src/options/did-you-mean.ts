import { INPUT_LIMITS } from './input-limits.ts';

/** ` Did you mean "tags"?` when a known name is near, else an empty string: hints end sentences. */
export function didYouMean(given: string, known: readonly string[]): string {
  const near = nearest(given, known);
  return near === undefined ? '' : ` Did you mean "${near}"?`;
}

/**
 * The known name that differs least, if it differs by few enough letters to be a slip. Bounded, because callers send these names: a long name, and
 * one among more than `max`, gets no hint.
 */
export function nearest(given: string, known: readonly string[], max = INPUT_LIMITS.suggestedNames): string | undefined {
  if (given.length > INPUT_LIMITS.suggestedNameLength || known.length > max) return undefined;
  const slack = Math.max(1, Math.floor(given.length / 3));
  let best: string | undefined;
  let bestDistance = slack + 1;
  for (const candidate of known) {
    // They differ by this many letters at least; and a name of a megabyte is not compared letter by letter.
    if (Math.abs(given.length - candidate.length) >= bestDistance) continue;
    const distance = editDistance(given.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** Optimal string alignment: insert, remove, replace or swap neighbours, one step each. */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const current = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let distance = Math.min((previous[j] as number) + 1, (current[j - 1] as number) + 1, (previous[j - 1] as number) + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) distance = Math.min(distance, (before[j - 2] as number) + 1);
      current.push(distance);
    }
    [before, previous] = [previous, current];
  }
  return previous[b.length] as number;
}
