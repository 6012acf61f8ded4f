/**
 * Whether an `Accept` header asks for the events of an address that also has an ordinary response: the type is named, not refused by `q=0`, and JSON is not
 * named as the better one. A wildcard asks for nothing in particular.
 */
export function prefersEvents(accept: string): boolean {
  const events = weightIn(accept, 'text/event-stream');
  return events > 0 && events >= weightIn(accept, 'application/json');
}

/** 0 where the type is not named. */
function weightIn(accept: string, type: string): number {
  for (const each of accept.split(',')) {
    const [name = '', ...parameters] = each.split(';').map((part) => part.trim().toLowerCase());
    if (name !== type) continue;
    const quality = parameters.find((parameter) => parameter.startsWith('q='));
    const weight = quality === undefined ? 1 : Number(quality.slice(2));
    return Number.isNaN(weight) ? 0 : weight;
  }
  return 0;
}
