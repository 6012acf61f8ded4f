import { isIP, isIPv4 } from 'node:net';

export interface BindAddress {
  /** A name or an IP address, without brackets. */
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
}

/** `host:port`, an IPv6 host in brackets. Undefined when the text is neither. */
export function parseBindAddress(text: string): BindAddress | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|([^\s:[\]/]+)):(\d{1,5})$/.exec(text);
  if (match === null) return undefined;
  const [, bracketed, plain, portText] = match;
  const port = Number(portText);
  if (port > 65_535 || (bracketed !== undefined && isIP(bracketed) !== 6)) return undefined;
  return { host: (bracketed ?? plain)!, port };
}

export function formatAddress({ host, port }: BindAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Whether traffic to a resolved address stays on this machine. */
export function isLoopback(address: string): boolean {
  if (isIPv4(address)) return address.startsWith('127.');
  return address === '::1' || /^::ffff:127\./i.test(address);
}
