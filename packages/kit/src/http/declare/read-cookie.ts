/** The values of each cookie by name, as they were sent. */
export function cookieValues(header: string | readonly string[] | undefined): ReadonlyMap<string, readonly string[]> {
  const values = new Map<string, string[]>();
  if (header === undefined) return values;
  for (const each of (typeof header === 'string' ? header : header.join('; ')).split(';')) {
    const pair = each.trim();
    const equals = pair.indexOf('=');
    if (equals === -1) continue;
    const [name, value] = [pair.slice(0, equals), pair.slice(equals + 1)];
    const same = values.get(name);
    if (same === undefined) values.set(name, [value]);
    else same.push(value);
  }
  return values;
}

/** The value of one cookie; null when absent, or when sent twice, because then it is unknown which one is ours. */
export function readCookie(header: string | readonly string[] | undefined, name: string): string | null {
  const values = cookieValues(header).get(name) ?? [];
  return values.length === 1 ? (values[0] ?? null) : null;
}
