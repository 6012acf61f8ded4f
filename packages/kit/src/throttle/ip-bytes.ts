import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * The 4 or 16 bytes of an IP address; null for any other text. Strict forms only, as a resolver or a socket reports them: ipaddr.js alone
 * would also read `0x7f.1`, octal numbers and zone ids, so Node decides what an address is.
 */
export function ipBytes(text: string): number[] | null {
  const family = isIP(text);
  if (family === 0 || text.includes('%')) return null;
  // ipaddr.js 2.5 takes the deprecated form ::1.2.3.4 for ::ffff:1.2.3.4. The URL standard writes every IPv6 address without dots.
  const plain = family === 6 && text.includes('.') ? new URL(`http://[${text}]`).hostname.slice(1, -1) : text;
  return ipaddr.parse(plain).toByteArray();
}
