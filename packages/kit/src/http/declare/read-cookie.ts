/** The value of one cookie; null when absent, or when sent twice, because then it is unknown which one is ours. */
export function readCookie(header: string | readonly string[] | undefined, name: string): string | null {
  if (header === undefined) return null;
  const values = (typeof header === 'string' ? header : header.join('; '))
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
  return values.length === 1 ? (values[0] ?? null) : null;
}
