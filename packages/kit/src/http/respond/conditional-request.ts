import { hash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { User } from '../../auth/people/principal.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { Exchange } from '../exchange/exchange.ts';

/** What `If-Match` asks for: any record, or one with one of these strong tags, without their quotes. */
export type IfMatch = { readonly any: true } | { readonly any: false; readonly tags: readonly string[] };

/** Undefined without the header. Weak tags never match. */
export function readIfMatch(header: string | undefined): IfMatch | undefined {
  if (header === undefined) return undefined;
  if (header.trim() === '*') return { any: true };
  return { any: false, tags: tagsOf(header).flatMap(({ tag, weak }) => (weak ? [] : [tag])) };
}

/** The version of a row that a tag is of: what comes after a `-` tells its representations apart. */
export function rowVersionOf(tag: string): string {
  return tag.split('-', 1)[0] as string;
}

/** Whether `If-None-Match` names the tag: weak comparison, a list, or `*`. */
export function matchesNone(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  if (header.trim() === '*') return true;
  const bare = etag.replace(/^W\//, '').slice(1, -1);
  return tagsOf(header).some(({ tag }) => tag === bare);
}

function tagsOf(header: string): { readonly tag: string; readonly weak: boolean }[] {
  return [...header.slice(0, 4096).matchAll(/(W\/)?"([^"]*)"/g)].map(([, weak, tag = '']) => ({ tag, weak: weak !== undefined }));
}

/** 96 bits: tags tell representations apart, they guard nothing. */
export function shortHash(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, 16);
}

const TAG_TEXT = /^[\x21\x23-\x7e]{1,200}$/;

function tagOf(version: string | number): string {
  const text = String(version);
  if (!TAG_TEXT.test(text)) throw new TypeError('The version of an ETag is 1 to 200 visible ASCII characters without quotes.');
  return `"${text}"`;
}

interface Tagged {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly user: User | null;
}

const READS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'QUERY']);

/** Sets the tag of a response and what caches must know about it. True: the caller has this response already, and gets 304 without a body. */
export function isNotModified({ request, reply, user }: Tagged, etag: string): boolean {
  reply.header('etag', etag);
  if (user !== null) {
    if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'private, no-cache');
    const vary = reply.getHeader('vary');
    reply.header('vary', vary === undefined ? CREDENTIALS : `${String(vary)}, ${CREDENTIALS}`);
  }
  if (!READS.has(request.method) || !matchesNone(request.headers['if-none-match'], etag)) return false;
  reply.code(304);
  return true;
}

const CREDENTIALS = 'Authorization, X-API-Key, Cookie';

/** 428 where the route requires `If-Match` and the request has none. */
export function requirePrecondition({ headers, route }: Exchange): void {
  if (route?.route.options.etag === 'required' && headers['if-match'] === undefined) throw coreErrors.precondition_required();
}

/** 412 unless `If-Match` names the version, is `*`, or is absent. */
export function requireMatch(exchange: Exchange, version: string | number): void {
  refuseWithoutOption(exchange, 'ifMatch()');
  exchange.isMatchDecided = true;
  const wanted = readIfMatch(exchange.headers['if-match'] as string | undefined);
  const etag = tagOf(version);
  if (wanted === undefined || wanted.any || wanted.tags.some((tag) => names(tag, version))) return;
  throw coreErrors.precondition_failed({ extensions: { etag }, headers: { etag } });
}

/** A number is the version of a row, also in tags of generic CRUD: those of one row with other fields differ after the version. */
function names(tag: string, version: string | number): boolean {
  return typeof version === 'number' ? rowVersionOf(tag) === String(version) : tag === version;
}

/** The version that the response is of. */
export function setTag(exchange: Exchange, version: string | number): void {
  refuseWithoutOption(exchange, 'etag()');
  exchange.etag = tagOf(version);
}

function refuseWithoutOption({ route }: Exchange, call: string): void {
  if (route?.route.options.etag === undefined)
    throw new Error(`${call} needs the option of the route: add etag: true (or 'required') to ${route?.operationId ?? 'it'}.`);
}

/** The text of a response of a route with `etag`: by the version that the handler set, else by its body where that is read. Null: 304. */
export function conditionalText(
  exchange: Exchange,
  context: Tagged,
  value: unknown,
  serialize: ((value: unknown) => string) | undefined,
): string | null {
  const { method, headers, route } = exchange;
  const isRead = READS.has(method);
  if (!isRead && headers['if-match'] !== undefined && !exchange.isMatchDecided)
    throw new Error(
      `${route?.operationId ?? 'The route'} has etag, and its handler ignored If-Match: call ifMatch(version) before the change.`,
    );
  const text = serialize === undefined ? '' : serialize(value);
  const etag = exchange.etag ?? (isRead && serialize !== undefined ? `"${shortHash(text)}"` : undefined);
  return etag !== undefined && isNotModified(context, etag) ? null : text;
}
