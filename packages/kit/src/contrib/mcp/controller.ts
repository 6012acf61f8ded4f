import { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import type { FastifyReply } from 'fastify';
import type { McpHttpHandler } from '@modelcontextprotocol/server';
import { Controller } from '../../http/controller.ts';
import type { Exchange } from '../../http/exchange.ts';
import type { HandlerContext } from '../../http/handler-context.ts';
import { jsonSchema } from '../../http/json-schema.ts';
import { raw, type RawContent } from '../../http/raw.ts';
import { route, type Route } from '../../http/route.ts';
import { exchangeOf } from '../../http/serve-route.ts';
import { isAuthenticated } from '../../permissions/built-ins.ts';
import { type McpRequest, withLists } from './protocol.ts';

/** What the endpoint needs of the running module. */
export interface McpEndpoint {
  readonly handler: McpHttpHandler;
  /** Throws where the whole request must be rejected before the protocol sees it. */
  admit(exchange: Exchange, messages: readonly Message[]): Promise<void>;
}

/** A message of JSON-RPC, not checked. */
export interface Message {
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: { readonly name?: unknown; readonly arguments?: unknown; readonly _meta?: { readonly progressToken?: unknown } };
}

/** Work of a message that came over stdio, by the headers of its request. */
export const stdioWork = new WeakMap<object, (exchange: Exchange) => Promise<void>>();

/** `POST` on the path itself. A route of the table, so that throttles, failed-credential limits, logs and metrics hold for every message. */
export function mcpController(endpoint: () => McpEndpoint): Controller {
  class KitMcpController extends Controller {
    static override readonly tags = ['mcp'];

    message: Route = {
      ...route.post(
        '/',
        {
          body: jsonSchema<unknown>({}),
          response: raw('application/json'),
          permission: isAuthenticated,
          hidden: true,
          tool: false,
          // The operation that a call runs has its own.
          timeoutMs: 0,
          summary: 'Messages of the Model Context Protocol',
        },
        (context) => respond(context, endpoint()),
      ),
      // A page could make a browser send a cookie; no page knows a key.
      ignoresCookies: true,
    };
  }
  return new KitMcpController();
}

async function respond(context: Pick<HandlerContext, 'request' | 'reply' | 'body'>, endpoint: McpEndpoint): Promise<RawContent> {
  const exchange = exchangeOf(context.request);
  const local = stdioWork.get(context.request.headers);
  if (local !== undefined) {
    await local(exchange);
    return '';
  }
  const messages = messagesOf(context.body);
  await endpoint.admit(exchange, messages);
  const isFollowed = messages.some(({ params }) => params?._meta?.progressToken !== undefined);
  const lists = new Map<string, string>();
  const request: McpRequest = { exchange, argumentsOf: (id) => argumentsOf(messages, id), ...(isFollowed ? {} : { lists }) };
  const authInfo = { token: '', clientId: exchange.principal?.user.id ?? '', scopes: [], extra: { request } };
  const response = await endpoint.handler.fetch(webRequest(exchange), { authInfo, parsedBody: context.body });
  // Most responses end with their first event: then their status can still be that of a rejected call.
  const text = isFollowed && isStream(response) ? undefined : await response.text();
  if (request.refusal !== undefined && text !== undefined) {
    const { status, headers, body } = request.refusal;
    context.reply.code(status).headers(headers as Record<string, string>);
    return body as string;
  }
  sendHeaders(context.reply, response);
  return text === undefined ? Readable.fromWeb(response.body as ReadableStream) : withLists(text, lists);
}

function messagesOf(body: unknown): readonly Message[] {
  const given: readonly unknown[] = Array.isArray(body) ? body : [body];
  return given.filter((each): each is Message => typeof each === 'object' && each !== null);
}

function argumentsOf(messages: readonly Message[], id: unknown): Readonly<Record<string, unknown>> | undefined {
  const given = messages.find((each) => each.id === id)?.params?.arguments;
  return typeof given === 'object' && given !== null ? (given as Readonly<Record<string, unknown>>) : undefined;
}

function isStream({ headers, body }: Response): boolean {
  return body !== null && (headers.get('content-type') ?? '').startsWith('text/event-stream');
}

/**
 * What the protocol library reads of a request; the body is parsed already, with our limits. A `Request` of the platform follows the signal by weak
 * references, which keep everything that belongs to a message until the next full garbage collection: a fifth of the cost of a call.
 */
function webRequest({ headers, url, signal }: Exchange): Request {
  const get = (name: string): string | null => {
    const value = headers[name.toLowerCase()];
    return typeof value === 'string' ? value : null;
  };
  const request: Pick<Request, 'method' | 'url' | 'signal'> & { readonly headers: Pick<Headers, 'get' | 'has'> } = {
    method: 'POST',
    url: `http://${String(headers['host'])}${url}`,
    signal,
    headers: { get, has: (name) => get(name) !== null },
  };
  return request as unknown as Request;
}

function sendHeaders(reply: FastifyReply, response: Response): void {
  reply.code(response.status).headers(Object.fromEntries([...response.headers].filter(([name]) => name !== 'content-length')));
}
