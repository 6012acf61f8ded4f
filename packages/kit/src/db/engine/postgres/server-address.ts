import { didYouMean } from '../../../options/did-you-mean.ts';

const SESSIONS = ['any', 'read-write', 'read-only', 'primary', 'standby', 'prefer-standby'] as const;

/** libpq's `target_session_attrs`: which of several servers a connection may lead to. */
export type WantedSession = (typeof SESSIONS)[number];

export interface ServerAddress {
  /** One URL per host, in the order in which they are tried. */
  readonly hosts: readonly string[];
  readonly wanted: WantedSession;
  /** `load_balance_hosts=random`: each connection tries the hosts in an order of its own. */
  readonly isBalanced: boolean;
  /** `connect_timeout` of the URL. */
  readonly connectMsMax: number | undefined;
  /** `keepalives_idle` of the URL, or 0 for `keepalives=0`. */
  readonly keepAliveMs: number | undefined;
}

const UNREADABLE_URL =
  'The database URL cannot be read. It looks like postgres://user:password@host:5432/name, or postgres://user:password@host1:5432,host2:5432/name?target_session_attrs=read-write; in user and password write / as %2F, # as %23, ? as %3F, @ as %40, a comma as %2C and % as %25.';

/** What only libpq and this layer know, and the driver would take for names of its own. */
const OWN = ['target_session_attrs', 'load_balance_hosts', 'connect_timeout', 'keepalives', 'keepalives_idle'];

/** Reads a URL as libpq does, with one host or several. Throws what is wrong with it, never the URL: it may hold a password. */
export function readServerAddress(url: string): ServerAddress {
  const parts = /^(postgres(?:ql)?:\/\/)([^/?#]*)([^?#]*)(?:\?([^#]*))?$/s.exec(url);
  if (parts === null) throw new Error(UNREADABLE_URL);
  const [, scheme = '', authority = '', path = '', query = ''] = parts;
  const at = authority.lastIndexOf('@');
  const user = authority.slice(0, at + 1);
  const parameters = new URLSearchParams(query);
  const own = new Map(OWN.map((name) => [name, parameters.get(name)]));
  for (const name of OWN) parameters.delete(name);
  const hosts = hostsOf(authority.slice(at + 1), parameters).map((host) => hostUrl(`${scheme}${user}`, host, path, parameters));
  return {
    hosts,
    wanted: oneOf('target_session_attrs', own.get('target_session_attrs') ?? 'any', SESSIONS),
    isBalanced: oneOf('load_balance_hosts', own.get('load_balance_hosts') ?? 'disable', ['disable', 'random']) === 'random',
    connectMsMax: seconds('connect_timeout', own.get('connect_timeout')),
    keepAliveMs: own.get('keepalives') === '0' ? 0 : seconds('keepalives_idle', own.get('keepalives_idle')),
  };
}

interface Host {
  /** As it stands before the path; empty for a host that is a parameter. */
  readonly place: string;
  readonly parameters: Readonly<Record<string, string>>;
}

/** The hosts before the path, or several of the parameters `host` and `port`, which take precedence. */
function hostsOf(places: string, parameters: URLSearchParams): Host[] {
  const hosts = parameters.get('host')?.split(',');
  const ports = parameters.get('port')?.split(',') ?? [];
  if ((hosts === undefined || hosts.length === 1) && ports.length < 2) return places.split(',').map((place) => ({ place, parameters: {} }));
  const names = hosts ?? places.split(',');
  if (ports.length > 1 && ports.length !== names.length)
    throw new Error(
      `The database URL has ${names.length} hosts and ${ports.length} ports: give one port for all of them, or one for each.`,
    );
  parameters.delete('host');
  parameters.delete('port');
  return names.map((name, index) => {
    const port = ports[index] ?? ports[0];
    return { place: '', parameters: { host: name, ...(port === undefined ? {} : { port }) } };
  });
}

/** The URL with this host alone, as the driver takes it. */
function hostUrl(start: string, host: Host, path: string, shared: URLSearchParams): string {
  const parameters = new URLSearchParams(shared);
  for (const [name, value] of Object.entries(host.parameters)) parameters.set(name, value);
  // The driver reads + as a plus and %20 as a blank.
  const query = parameters.size === 0 ? '' : `?${parameters.toString().replaceAll('+', '%20')}`;
  const url = `${start}${host.place}${path}${query}`;
  // Without a host the driver takes that of the environment, or this machine.
  if (!URL.canParse(host.place === '' ? `postgres://host${path}${query}` : url)) throw new Error(UNREADABLE_URL);
  return url;
}

function oneOf<T extends string>(name: string, value: string, allowed: readonly T[]): T {
  if ((allowed as readonly string[]).includes(value)) return value as T;
  throw new Error(`The database URL has ${name}=${value.slice(0, 40)}; use one of ${allowed.join(', ')}.${didYouMean(value, allowed)}`);
}

/** As in libpq, 0 is no limit; here it means the default. */
function seconds(name: string, value: string | null | undefined): number | undefined {
  if (value === null || value === undefined || value === '') return undefined;
  if (!/^\d{1,6}$/.test(value)) throw new Error(`The database URL has ${name}=${value.slice(0, 40)}; use a number of seconds.`);
  return value === '0' ? undefined : Number(value) * 1000;
}
