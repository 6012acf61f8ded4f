/** What an application or profile name may look like, in server.toml and in a URL alike. */
const SEGMENT = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export function isSegment(text: string): boolean {
  return SEGMENT.test(text);
}
