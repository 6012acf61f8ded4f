// Opening a connection for a webhook: resolve, vet every address, connect to a vetted one, look at who answered, and
// only then send the first byte (of TLS or of HTTP).
import { Resolver, lookup } from 'node:dns/promises';
import { connect as connectTcp, isIP } from 'node:net';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { SecureContextOptions } from 'node:tls';
import { callbackify } from 'node:util';
import type { buildConnector } from 'undici';
import { parseAddress } from './address.ts';
import { boundAnswer } from './bound-answer.ts';
import { skipContinue } from './skip-continue.ts';
import type { URLPolicy } from './url-policy.ts';

/** All addresses of a name, in the order they should be tried. */
export type ResolveHost = (hostname: string) => Promise<readonly string[]>;

export type ConnectFailureReason = 'timeout' | 'connection' | 'tls' | 'blocked_address';

export class ConnectFailure extends Error {
  override readonly name = 'ConnectFailure';
  readonly reason: ConnectFailureReason;

  constructor(reason: ConnectFailureReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

export interface ConnectOptions {
  readonly policy: URLPolicy;
  readonly resolve: ResolveHost;
  /** From the first DNS query to the end of the TLS handshake. */
  readonly timeoutMs: number;
  /** Certificate authorities to trust instead of the system's. */
  readonly ca?: SecureContextOptions['ca'];
}

/** While other addresses are left, one that does not answer is given up after this long. */
const ADDRESS_PATIENCE_MS = 1000;
/** A name may list hundreds of addresses; trying more of them only burns the deadline. */
const ADDRESSES_TRIED_MAX = 4;

type Target = buildConnector.Options;

/** The connector undici calls once per new connection. */
export function pinnedConnector(options: ConnectOptions): buildConnector.connector {
  const connect = callbackify((target: Target) => open(target, options));
  return (target, callback) => {
    connect(target, (error, socket) => (error === null ? callback(null, socket) : callback(error, null)));
  };
}

async function open(target: Target, options: ConnectOptions): Promise<Socket> {
  const deadline = AbortSignal.timeout(options.timeoutMs);
  const addresses = await vettedAddresses(target.hostname, options, deadline);
  const socket = await connectToAny(addresses, target, deadline);
  const refusal = refusePeer(socket, addresses, target.hostname, options.policy);
  if (refusal !== null) {
    socket.destroy();
    throw new ConnectFailure('blocked_address', refusal);
  }
  const secured = target.protocol === 'https:' ? await secure(socket, target, options, deadline) : socket;
  return skipContinue(boundAnswer(secured, () => new ConnectFailure('connection', 'The response is too long.')));
}

/** One refused address refuses the name: a mixture of public and private answers is how rebinding begins. */
async function vettedAddresses(hostname: string, { policy, resolve }: ConnectOptions, deadline: AbortSignal): Promise<readonly string[]> {
  const addresses = isIP(hostname) === 0 ? await withDeadline(resolve(hostname), deadline) : [hostname];
  if (addresses.length === 0) throw new ConnectFailure('connection', 'The name has no address.');
  for (const address of addresses) {
    const refusal = policy.refuseAddress(address, hostname);
    if (refusal !== null) throw new ConnectFailure('blocked_address', refusal);
  }
  return addresses;
}

async function withDeadline<T>(promise: Promise<T>, deadline: AbortSignal): Promise<T> {
  const { promise: expired, reject } = Promise.withResolvers<never>();
  const expire = (): void => reject(new ConnectFailure('timeout', 'The name was not resolved in time.'));
  deadline.addEventListener('abort', expire, { once: true });
  try {
    return await Promise.race([promise, expired]);
  } catch (error) {
    if (error instanceof ConnectFailure) throw error;
    throw new ConnectFailure('connection', `The name could not be resolved (${codeOf(error)}).`);
  } finally {
    deadline.removeEventListener('abort', expire);
  }
}

async function connectToAny(addresses: readonly string[], target: Target, deadline: AbortSignal): Promise<Socket> {
  const candidates = addresses.slice(0, ADDRESSES_TRIED_MAX);
  let failure: unknown;
  for (const [index, address] of candidates.entries()) {
    const isLast = index === candidates.length - 1;
    try {
      return await connectOnce(address, target, isLast ? deadline : AbortSignal.any([deadline, AbortSignal.timeout(ADDRESS_PATIENCE_MS)]));
    } catch (error) {
      failure = error;
      if (deadline.aborted) break;
    }
  }
  throw failure;
}

function connectOnce(address: string, { protocol, port }: Target, signal: AbortSignal): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connectTcp({ host: address, port: Number(port) || (protocol === 'https:' ? 443 : 80), noDelay: true, keepAlive: true });
  const give = (): void => fail(new ConnectFailure('timeout', 'The connection was not accepted in time.'));
  const fail = (error: Error): void => {
    signal.removeEventListener('abort', give);
    socket.destroy();
    reject(error instanceof ConnectFailure ? error : new ConnectFailure('connection', `The connection failed (${codeOf(error)}).`));
  };
  if (signal.aborted) give();
  signal.addEventListener('abort', give, { once: true });
  socket.on('error', fail);
  socket.once('connect', () => {
    signal.removeEventListener('abort', give);
    resolve(socket);
  });
  return promise;
}

/** The address on the socket counts, not the one asked for. */
function refusePeer(socket: Socket, addresses: readonly string[], hostname: string, policy: URLPolicy): string | null {
  const peer = parseAddress(socket.remoteAddress ?? '');
  if (peer === null) return 'the connected peer has no address';
  const pinned = addresses.some((address) => {
    const vetted = parseAddress(address);
    return vetted?.family === peer.family && vetted.bits === peer.bits;
  });
  if (!pinned) return 'the connected peer is not the address that was vetted';
  return policy.refuseAddress(socket.remoteAddress ?? '', hostname);
}

function secure(tcp: Socket, { hostname }: Target, { ca }: ConnectOptions, deadline: AbortSignal): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connectTls({
    socket: tcp,
    host: hostname,
    // Addresses are not sent as server names (RFC 6066); the certificate is then checked against `host`.
    servername: isIP(hostname) === 0 ? hostname : '',
    ALPNProtocols: ['http/1.1'],
    // Said outright, so that NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment cannot switch the check off.
    rejectUnauthorized: true,
    ...(ca === undefined ? {} : { ca }),
  });
  const give = (): void => fail(new ConnectFailure('timeout', 'The TLS handshake did not end in time.'));
  const fail = (error: Error): void => {
    deadline.removeEventListener('abort', give);
    socket.destroy();
    tcp.destroy();
    reject(error instanceof ConnectFailure ? error : handshakeFailure(error));
  };
  if (deadline.aborted) give();
  deadline.addEventListener('abort', give, { once: true });
  socket.on('error', fail);
  socket.once('secureConnect', () => {
    deadline.removeEventListener('abort', give);
    resolve(socket);
  });
  return promise;
}

function handshakeFailure(error: Error): ConnectFailure {
  const code = codeOf(error);
  if (isNetworkCode(code)) return new ConnectFailure('connection', `The connection broke during the TLS handshake (${code}).`);
  return new ConnectFailure('tls', `The TLS handshake failed (${code}).`);
}

const NETWORK_CODES = new Set(['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENETUNREACH', 'EHOSTUNREACH', 'ENETDOWN', 'ECONNABORTED']);

export function isNetworkCode(code: string): boolean {
  return NETWORK_CODES.has(code);
}

export function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^[A-Z0-9_]{1,60}$/.test(code) ? code : 'unknown error';
}

/**
 * Public names are asked of DNS directly: `lookup` runs on four shared threads, so a few endpoints whose name servers
 * never answer would stall every other name (and the file system). Local names, where the policy allows them, need the
 * hosts file and search domains and use `lookup`.
 */
export function systemResolver(policy: URLPolicy, dns: Resolver = new Resolver({ timeout: 3000, tries: 2 })): ResolveHost {
  return async (hostname) => {
    if (policy.isLocal(hostname)) return (await lookup(hostname, { all: true, order: 'verbatim' })).map(({ address }) => address);
    const [v4, v6] = await Promise.allSettled([dns.resolve4(hostname), dns.resolve6(hostname)]);
    if (v4.status === 'rejected' && v6.status === 'rejected') throw v4.reason;
    // A family that could not be asked is not vetted, and not used either.
    return [...(v4.status === 'fulfilled' ? v4.value : []), ...(v6.status === 'fulfilled' ? v6.value : [])];
  };
}
