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
