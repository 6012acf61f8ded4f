/** The address without its password. Greedy: a password may hold `@`, `/` and `:` unescaped, and too much masked is no leak. */
export function maskPassword(url: string): string {
  return url.replace(/^([a-z]+:\/\/[^:@/]*):.*@/s, '$1:***@').replaceAll(/([?&]password=)[^&]*/gi, '$1***');
}
