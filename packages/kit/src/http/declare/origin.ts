/** Whether the text is an origin as browsers send it: scheme, host and port, without a path or a wildcard. */
export function isOrigin(text: unknown): text is string {
  const parsed = typeof text === 'string' ? URL.parse(text) : null;
  return parsed !== null && parsed.origin === text && /^https?:$/.test(parsed.protocol) && !parsed.host.includes('*');
}
