// Which URLs webhooks may be sent to: the static half (on save and before each send) and the address half (at connect).
import { contains, embeddedIn, metadataBlock, parseAddress, parseCidr, specialBlock } from './address.ts';
import type { Address } from './address.ts';
import { type OptionRules, readOptions } from '../../../options/read-options.ts';
import { filledText, flag, listOf, parsedBy, wholeNumber } from '../../../options/value-rule.ts';

export const URL_LENGTH_MAX = 2048;

/** All a tenant is told about a refusal. Anything more would turn the check into a map of the private network. */
export const URL_NOT_ALLOWED = 'This URL is not allowed as a webhook endpoint.';

export interface URLPolicyOptions {
  /** Permits `http:` (and port 80). */
  readonly allowHttp?: boolean;
  /** For development: permits every address, metadata included, local names, and every port unless `allowPorts` is given. */
  readonly allowPrivateNetworks?: boolean;
  /** Special addresses to permit, such as `10.20.0.0/16`. Metadata addresses stay refused. */
  readonly allowCidrs?: readonly string[];
  /** Ports to permit besides 443 (and 80 with `allowHttp`). */
  readonly allowPorts?: readonly number[];
  /** Names to permit whatever they look like and resolve to, such as `hooks.corp.internal`. Metadata addresses stay refused. */
  readonly allowHosts?: readonly string[];
}

const rules: OptionRules<URLPolicyOptions> = {
  allowHttp: flag,
  allowPrivateNetworks: flag,
  allowCidrs: listOf(parsedBy(parseCidr)),
  allowPorts: listOf(wholeNumber(1, 65_535)),
  allowHosts: listOf(filledText),
};

export interface AllowedURL {
  /** The URL is allowed. */
  readonly ok: true;
  /** The scheme, with its colon. */
  readonly protocol: 'http:' | 'https:';
  /** A lowercase name, or an address without brackets. */
  readonly hostname: string;
  /** The port, the scheme's default where the URL has none. */
  readonly port: number;
  /** Scheme, host and port: what a connection belongs to. */
  readonly origin: string;
  /** Path and query. */
  readonly path: string;
}

export interface RefusedURL {
  /** The URL is not allowed. */
  readonly ok: false;
  /** For logs and operators only; tenants see `URL_NOT_ALLOWED`. */
  readonly detail: string;
}

export interface URLPolicy {
  /** Decides when an endpoint is created or changed, and again before each request. */
  checkUrl(url: unknown): AllowedURL | RefusedURL;
  /** Why a connection for `hostname` must not go to this address, or null. */
  refuseAddress(address: string, hostname: string): string | null;
  /** Whether names of this host may be looked up in local sources (hosts file, search domains). */
  isLocal(hostname: string): boolean;
}

/** Names that mean "this network" wherever they are looked up (RFC 6761, 6762, 8375, 9476, and common private roots). */
const LOCAL_SUFFIXES = [
  'localhost',
  'localdomain',
  'local',
  'internal',
  'intranet',
  'intra',
  'private',
  'corp',
  'home',
  'lan',
  'home.arpa',
  'onion',
  'alt',
  'invalid',
];

// The exact shape is demanded before parsing: the URL standard also reads `https:/host`, `https:\\host`, tabs inside the
// host and surrounding spaces, each of which another parser reads differently.
const SHAPE = /^https?:\/\/(?<authority>[^/?#\\]+)(?:[/?#]|$)/i;
// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const UNSAFE_CHARACTERS = /[\u0000-\u0020\u007f-\u00a0\u2028\u2029\ufeff\\]/;
const HOST_NAME = /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

/** Decides to which URLs webhooks may be sent; private and local addresses are rejected by default. */
export function URLPolicy(options: URLPolicyOptions = {}): URLPolicy {
  const { allowHttp = false, allowPrivateNetworks = false, allowPorts = [] } = readOptions('URLPolicy()', options, rules);
  const cidrs = (options.allowCidrs ?? []).map((text) => parseCidr(text));
  const hosts = new Set((options.allowHosts ?? []).map((host) => host.toLowerCase()));
  const ports = new Set([443, ...(allowHttp ? [80] : []), ...allowPorts]);
  const anyPort = allowPrivateNetworks && options.allowPorts === undefined;

  function checkUrl(value: unknown): AllowedURL | RefusedURL {
    if (typeof value !== 'string') return refused('the URL is not a string');
    if (value.length > URL_LENGTH_MAX) return refused(`the URL is longer than ${URL_LENGTH_MAX} characters`);
    if (UNSAFE_CHARACTERS.test(value)) return refused('the URL holds whitespace, a control character or a backslash');
    const authority = SHAPE.exec(value)?.groups?.['authority'];
    if (authority === undefined) return refused('the URL does not begin with https:// and a host');
    if (authority.includes('@')) return refused('the URL carries user info');
    if (authority.includes('%')) return refused('the host is percent-encoded or carries a zone id');
    if (!URL.canParse(value)) return refused('the URL cannot be parsed');
    const url = new URL(value);
    if (url.protocol !== 'https:' && !(allowHttp && url.protocol === 'http:')) return refused('the URL is not https');
    const protocol = url.protocol === 'http:' ? 'http:' : 'https:';
    const port = url.port === '' ? (protocol === 'http:' ? 80 : 443) : Number(url.port);
    if (!anyPort && !ports.has(port)) return refused(`port ${port} is not allowed`);
    const hostname = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
    const detail = refuseHost(hostname);
    if (detail !== null) return refused(detail);
    return { ok: true, protocol, hostname, port, origin: url.origin, path: url.pathname + url.search };
  }

  function refuseHost(hostname: string): string | null {
    if (parseAddress(hostname) !== null) return refuseAddress(hostname, hostname);
    if (isLocal(hostname)) return HOST_NAME.test(hostname) ? null : 'the host is not a valid name';
    if (hostname.endsWith('.')) return 'the host ends with a dot';
    if (!HOST_NAME.test(hostname)) return 'the host is not a valid name';
    if (!hostname.includes('.')) return 'the host is a single label';
    const suffix = LOCAL_SUFFIXES.find((local) => hostname.endsWith(`.${local}`));
    return suffix === undefined ? null : `the host is a local name (.${suffix})`;
  }

  function refuseAddress(text: string, hostname: string): string | null {
    const address = parseAddress(text);
    if (address === null) return 'the resolver returned something that is not an address';
    if (allowPrivateNetworks) return null;
    const metadata = metadataOf(address);
    if (metadata !== null) return `the address is refused: ${metadata}`;
    if (hosts.has(hostname)) return null;
    const special = refusedBlock(address);
    return special === null ? null : `the address is refused: ${special}`;
  }

  /** The special block that refuses an address. An allowed prefix that carries IPv4 addresses does not excuse these. */
  function refusedBlock(address: Address): string | null {
    const special = specialBlock(address);
    if (special === null) return null;
    if (!cidrs.some((cidr) => contains(cidr, address))) return special;
    for (const inner of embeddedIn(address)?.addresses ?? []) {
      const block = refusedBlock(inner);
      if (block !== null) return block;
    }
    return null;
  }

  function isLocal(hostname: string): boolean {
    return allowPrivateNetworks || hosts.has(hostname);
  }

  return Object.freeze({ checkUrl, refuseAddress, isLocal });
}

function metadataOf(address: Address): string | null {
  const inner = (embeddedIn(address)?.addresses ?? []).map((v4) => metadataBlock(v4)).find((name) => name !== null);
  return metadataBlock(address) ?? inner ?? null;
}

function refused(detail: string): RefusedURL {
  return { ok: false, detail };
}
