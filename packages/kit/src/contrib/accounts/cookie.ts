/** The session cookie's fixed facts. */
export interface CookieOptions {
  /** Off only in development over plain http. */
  readonly secure: boolean;
}

/**
 * `__Host-` makes the browser itself insist on Secure, Path=/ and no Domain, so a sibling subdomain cannot plant a
 * session; it is impossible without Secure.
 */
export function sessionCookieName({ secure }: CookieOptions): string {
  return secure ? '__Host-kit_session' : 'kit_session';
}

export function sessionCookie(token: string, maxAgeSeconds: number, options: CookieOptions): string {
  const parts = [`${sessionCookieName(options)}=${token}`, 'Path=/', `Max-Age=${maxAgeSeconds}`, 'HttpOnly', 'SameSite=Lax'];
  return (options.secure ? [...parts, 'Secure'] : parts).join('; ');
}

export function clearedSessionCookie(options: CookieOptions): string {
  return sessionCookie('', 0, options);
}

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
