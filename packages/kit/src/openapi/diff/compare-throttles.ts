import { isMembers } from '../../options/value-rule.ts';
import type { Report } from './document-change.ts';
import { type Json } from './flat-schema.ts';

/** `x-throttles`: `[{ name, requests, seconds }]`; a limit that depends on the caller has a name only. Names of limits of the document are replaced before. */
interface Limit {
  readonly requests: number | undefined;
  readonly seconds: number | undefined;
}

function limitsOf({ 'x-throttles': throttles }: Json): Map<string, Limit> {
  const number = (value: unknown) => (typeof value === 'number' ? value : undefined);
  return new Map(
    (Array.isArray(throttles) ? throttles : [])
      .filter(isMembers)
      .map(({ name, requests, seconds }) => [String(name), { requests: number(requests), seconds: number(seconds) }]),
  );
}

/** Limits of an operation, or those of the document that it inherits. */
export function compareThrottles(before: Json, after: Json, report: Report): void {
  // A document of another program, or of an older version of this one, does not list them.
  if (before['x-throttles'] === undefined && after['x-throttles'] === undefined) return;
  const [old, current] = [limitsOf(before), limitsOf(after)];
  for (const [name, limit] of old) {
    const now = current.get(name);
    if (now === undefined) report('throttle-removed', `throttle ${name}`, 'was removed.');
    else if (described(now) !== described(limit)) {
      const isTighter = isLess(now, limit);
      report(isTighter ? 'throttle-tightened' : 'throttle-loosened', `throttle ${name}`, `is ${described(now)}, was ${described(limit)}.`);
    }
  }
  for (const [name, limit] of current) if (!old.has(name)) report('throttle-added', `throttle ${name}`, `is new: ${described(limit)}.`);
}

/** Fewer requests in total, or fewer at once. */
function isLess(now: Limit, was: Limit): boolean {
  if (now.requests === undefined || now.seconds === undefined) return false;
  if (was.requests === undefined || was.seconds === undefined) return true;
  return now.requests / now.seconds < was.requests / was.seconds || now.requests < was.requests;
}

function described({ requests, seconds }: Limit): string {
  return requests === undefined ? 'a limit per caller' : `${requests} requests in ${seconds} s`;
}
