import { BlockList, isIP, isIPv4 } from 'node:net';

/** Decides the client's address. Only proxies named in the options are believed, hop by hop from the socket outwards. */
export class TrustedProxies {
  readonly #list = new BlockList();
  readonly #isEmpty: boolean;

  /** Addresses (`10.0.0.7`), subnets (`10.0.0.0/8`) or `loopback`. Throws a sentence for anything else. */
  constructor(proxies: readonly string[] = []) {
    this.#isEmpty = proxies.length === 0;
    for (const proxy of proxies) this.#add(proxy);
  }

  #add(proxy: string): void {
    if (proxy === 'loopback') {
      this.#list.addSubnet('127.0.0.0', 8, 'ipv4');
      this.#list.addAddress('::1', 'ipv6');
      return;
    }
    const [address = '', bits, ...more] = proxy.split('/');
    const family = isIP(address);
    // Digits only: an empty text would count as 0, and "10.0.0.0/" would believe everybody.
    const length = bits === undefined ? undefined : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
    const lengthMax = family === 4 ? 32 : 128;
    if (family === 0 || more.length > 0 || (length !== undefined && !(length <= lengthMax))) {
      throw new TypeError(
        `TRUSTED_PROXIES or trustedProxies: ${JSON.stringify(proxy)} is neither an IP address, a subnet such as "10.0.0.0/8", nor "loopback"`,
      );
    }
    const name = family === 4 ? 'ipv4' : 'ipv6';
    if (length === undefined) this.#list.addAddress(address, name);
    else this.#list.addSubnet(address, length, name);
  }

  /** Whether what this neighbour says about others is believed. */
  trusts(socketAddress: string): boolean {
    return !this.#isEmpty && this.#isTrusted(plainAddress(socketAddress));
  }

  /** `forwarded` is the X-Forwarded-For header; it counts only as far as each hop that added to it is trusted. */
  clientAddress(socketAddress: string, forwarded: string | string[] | undefined): string {
    const nearest = plainAddress(socketAddress);
    if (this.#isEmpty || forwarded === undefined || !this.#isTrusted(nearest)) return nearest;
    const hops = (typeof forwarded === 'string' ? forwarded : forwarded.join(',')).split(',');
    let address = nearest;
    for (let index = hops.length - 1; index >= 0; index -= 1) {
      const hop = plainAddress(withoutPort((hops[index] as string).trim()));
      // The chain is trusted up to the first entry that is not an address.
      if (isIP(hop) === 0) return address;
      address = hop;
      if (!this.#isTrusted(hop)) return address;
    }
    return address;
  }

  #isTrusted(address: string): boolean {
    const family = isIP(address);
    return family !== 0 && this.#list.check(address, family === 4 ? 'ipv4' : 'ipv6');
  }
}

/** Some proxies, such as Azure's, write the port of the client, too: `192.0.2.1:51234`, `[2001:db8::1]:51234`. */
function withoutPort(hop: string): string {
  const [, bracketed, plain] = /^\[([^\]]*)\](?::\d{1,5})?$|^([\d.]+):\d{1,5}$/.exec(hop) ?? [];
  return bracketed ?? plain ?? hop;
}

/** Dual-stack sockets report IPv4 clients as `::ffff:192.0.2.1`. */
function plainAddress(address: string): string {
  const mapped = address.startsWith('::ffff:') ? address.slice(7) : address;
  return isIPv4(mapped) ? mapped : address;
}
