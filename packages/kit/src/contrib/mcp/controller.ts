import { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import type { FastifyReply } from 'fastify';
import type { McpHttpHandler } from '@modelcontextprotocol/server';
import { coreErrors } from '../../errors/core-errors.ts';
import { Controller } from '../../http/compile/controller.ts';
import type { Exchange } from '../../http/exchange/exchange.ts';
import type { HandlerContext } from '../../http/declare/handler-context.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { raw, type RawContent } from '../../http/declare/raw.ts';
import { route, type Route } from '../../http/declare/route.ts';
import { exchangeOf } from '../../http/serve/serve-route.ts';
import { throttledError } from '../../throttle/enforce.ts';
import { isAuthenticated } from '../../permissions/built-ins.ts';
import type { McpRequest } from './serve/protocol.ts';
import { isListen } from './serve/subscriptions.ts';

/** What the endpoint needs of the running module. */
export interface McpEndpoint {
  readonly handler: Pick<McpHttpHandler, 'fetch'>;
  /** Throws where the whole request must be rejected before the protocol sees it. */
  admit(exchange: Exchange, messages: readonly Message[]): Promise<void>;
}

/** A message of JSON-RPC, not checked. */
export interface Message {
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: {
    readonly name?: unknown;
    readonly uri?: unknown;
    readonly arguments?: unknown;
    readonly _meta?: { readonly progressToken?: unknown };
  };
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
      // An agent understands the error of a tool; its library may give up after a 429.
      respondsToThrottles: true,
    };
  }
  return new KitMcpController();
}

async function respond(context: Pick<HandlerContext, 'request' | 'reply' | 'body'>, endpoint: McpEndpoint): Promise<RawContent> {
  const exchange = exchangeOf(context.request);
  const local = stdioWork.get(context.request.headers);
  const messages = local === undefined ? messagesOf(context.body) : [];
  refuseAmbiguous(messages);
  const { spentBudget } = exchange;
  // Each call is rejected by itself, with the error of a tool.
  if (spentBudget !== null && local === undefined && !messages.every(({ method }) => method === 'tools/call'))
    throw throttledError(spentBudget);
  await endpoint.admit(exchange, messages);
  if (local !== undefined) {
    await local(exchange);
    return '';
  }
  const request: McpRequest = { exchange, argumentsOf: (id) => argumentsOf(messages, id) };
  const authInfo = { token: '', clientId: exchange.principal?.user.id ?? '', scopes: [], extra: { request } };
  const response = await endpoint.handler.fetch(webRequest(exchange), { authInfo, parsedBody: context.body });
  const isFollowed = messages.some((each) => isListen(each) || each.params?._meta?.progressToken !== undefined);
  // Most responses end with their first event: then their status can still be that of a rejected call. Other calls of a batch have results.
  const whole = isFollowed && isStream(response) ? undefined : Buffer.from(await response.arrayBuffer());
  if (request.refusal !== undefined && whole !== undefined && messages.length === 1) {
    const { status, headers, body } = request.refusal;
    context.reply.code(status).headers(headers as Record<string, string>);
    return body as string;
  }
  sendHeaders(context.reply, response);
  return whole ?? Readable.fromWeb(response.body as ReadableStream);
}

function messagesOf(body: unknown): readonly Message[] {
  const given: readonly unknown[] = Array.isArray(body) ? body : [body];
  return given.filter((each): each is Message => typeof each === 'object' && each !== null);
}

/** Two messages of one id cannot be told apart; and the budget of a request is that of one list. */
function refuseAmbiguous(messages: readonly Message[]): void {
  const ids = messages.flatMap(({ id }) => (id === undefined ? [] : [id]));
  if (new Set(ids).size < ids.length) throw coreErrors.malformed_body({ detail: 'Two messages of the batch have the same id.' });
  if (messages.filter(({ method }) => typeof method === 'string' && method.endsWith('/list')).length > 1)
    throw coreErrors.malformed_body({ detail: 'The batch has more than one list. Send each in its own request.' });
}

function argumentsOf(messages: readonly Message[], id: unknown): Readonly<Record<string, unknown>> | undefined {
  const given = messages.find((each) => each.id === id)?.params?.arguments;
  return typeof given === 'object' && given !== null ? (given as Readonly<Record<string, unknown>>) : undefined;
}

function isStream({ headers, body }: Response): boolean {
  return body !== null && (headers.get('content-type') ?? '').startsWith('text/event-stream');
}

/** The body is parsed already, with our limits. */
function webRequest(exchange: Exchange): Request {
  const headers = Object.entries(exchange.headers).filter((each): each is [string, string] => typeof each[1] === 'string');
  return new Request(`http://${String(exchange.headers['host'])}${exchange.url}`, { method: 'POST', headers, signal: exchange.signal });
}

/** Of the connection, which is the server's: the library keeps every connection open, also for a client that asks to close it, or a server that stops. */
const OF_THE_CONNECTION: ReadonlySet<string> = new Set(['connection', 'content-length', 'keep-alive', 'transfer-encoding']);

function sendHeaders(reply: FastifyReply, response: Response): void {
  reply.code(response.status).headers(Object.fromEntries([...response.headers].filter(([name]) => !OF_THE_CONNECTION.has(name))));
}
