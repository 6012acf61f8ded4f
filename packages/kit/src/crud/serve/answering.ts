import type { FastifyReply } from 'fastify';
import { isNotModified } from '../../http/respond/conditional-request.ts';
import { rememberInput } from '../../http/compile/sensitive-inputs.ts';
import type { Route } from '../../http/declare/route.ts';
import { exchangeOf } from '../../http/serve/serve-route.ts';
import type { Item } from '../declare/item.ts';
import { onceJson } from '../mount/once-schema.ts';
import type { Policy } from '../policy/policy.ts';
import { bodyTag, type TagSource } from '../read/etag.ts';
import type { ListResult } from '../read/list.ts';
import type { Context } from '../read/list-access.ts';

/** What the answer of an operation is, besides its value. */
interface AnswerFacts {
  /** The value it was made for: a wrapper may have answered with another. */
  readonly value: unknown;
  readonly tag: TagSource | undefined;
  readonly headers: Readonly<Record<string, string>> | undefined;
}

const answerFacts: unique symbol = Symbol('kit.crud.answer');
type CrudReply = FastifyReply & { [answerFacts]?: AnswerFacts };

/** The tag of the bytes that are sent. */
export const BODY_TAG: TagSource = Object.freeze({ kind: 'body' });

/** Headers and tags of the answers of one controller. */
export class Answering {
  readonly #hasTags: boolean;

  constructor({ etag }: { readonly etag?: 'required' | 'optional' | false }) {
    this.#hasTags = etag !== false;
  }

  answerWith(context: Context, value: unknown, tag: TagSource, headers?: Readonly<Record<string, string>>): void {
    (context.reply as CrudReply)[answerFacts] = { value, tag: this.#hasTags ? tag : undefined, headers };
  }

  /** The item with values that are shown once: no cache and no record of idempotency keys may have the response. */
  withOnce(context: Context, policy: Policy, item: Item, once: ReadonlyMap<string, string | null>): Item {
    if (once.size === 0) return item;
    exchangeOf(context.request).isShownOnce = true;
    context.reply.header('cache-control', 'no-store');
    const shown = { ...item, ...Object.fromEntries(once) };
    rememberInput(shown, onceJson([...once.keys()], policy));
    return shown;
  }

  /** Headers and 304, once everything around the handler is done. */
  readonly finish: NonNullable<Route['finish']> = (context, value, serialize) => {
    const reply = context.reply as CrudReply;
    const facts = reply[answerFacts];
    if (facts === undefined) return serialize(value);
    for (const name in facts.headers) appendHeader(reply, name, facts.headers[name] as string);
    if (facts.tag === undefined) return serialize(value);
    // A wrapper that answers with something else has another body than the version stands for.
    const tag: TagSource = facts.value === value || facts.tag.kind !== 'version' ? facts.tag : { kind: 'body' };
    let text: string | undefined;
    const etag = tag.kind === 'version' ? tag.tag : bodyTag(tag, (text = serialize(value)));
    return isNotModified(context, etag) ? null : (text ?? serialize(value));
  };
}

export function pageHeaders({ next, previous, first, totalCount }: ListResult): Record<string, string> {
  const headers: Record<string, string> = {};
  if (totalCount !== undefined) headers['x-total-count'] = totalCount;
  if (next === null && previous === null) return headers;
  let link = `<${first}>; rel="first"`;
  if (next !== null) link += `, <${next}>; rel="next"`;
  if (previous !== null) link += `, <${previous}>; rel="prev"`;
  headers['link'] = link;
  return headers;
}

function appendHeader(reply: FastifyReply, name: string, value: string): void {
  const before = reply.getHeader(name);
  reply.header(name, (name === 'link' || name === 'vary') && before !== undefined ? `${String(before)}, ${value}` : value);
}
