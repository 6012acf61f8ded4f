import { createMcpHandler, ProtocolError, ProtocolErrorCode, ResourceNotFoundError, Server } from '@modelcontextprotocol/server';
import type { CallToolResult, McpHttpHandler, McpRequestContext, ServerContext } from '@modelcontextprotocol/server';
import type { App } from '../../../app/declare/module.ts';
import type { Exchange } from '../../../http/exchange/exchange.ts';
import { throttledError } from '../../../throttle/enforce.ts';
import { callTool, type ToolCall } from '../calls/call-tool.ts';
import type { CallerTools } from '../tools/caller-tools.ts';
import { confirmationOf } from '../calls/confirm-call.ts';
import { followStartedJob, type ProgressReport } from '../calls/job-progress.ts';
import type { McpSettings } from '../options.ts';
import type { CallAnswer } from '../../../http/serve/call-route.ts';
import type { RouteTool } from '../tools/tool.ts';
import { fillPrompt, listPrompts } from './prompts.ts';
import { followResources } from './followed-resources.ts';
import { listResources, listTemplates, readResource } from './resources.ts';
import type { ConnectionSubscriptions } from './stdio-subscriptions.ts';
import { isListen, serveSubscription } from './subscriptions.ts';

/** Tools of one page of the list. Clients read all pages before they begin; a request more costs as much CPU as 70 tools (640 µs and 9 µs). */
const TOOLS_PER_PAGE = 200;
/** More than this fills the context of an agent before it has begun. */
const TOOLS_WARNED = 50;
const LIST_BYTES_WARNED = 65_536;
/** How long a client may use the list: rights change. */
const LIST_TTL_MS = 60_000;
const LIST_CACHE = { ttlMs: LIST_TTL_MS, cacheScope: 'private' } as const;
const CLIENT_LENGTH_MAX = 100;

type Arguments = Readonly<Record<string, unknown>>;

/** One request of a client, with its caller. */
export interface McpRequest {
  readonly exchange: Exchange;
  /** The arguments as they were parsed, by the id of their message: the protocol library hands on copies, `given`. */
  readonly argumentsOf: (id: unknown, given: Arguments | undefined) => Arguments | undefined;
  /** Set when a client throttle has rejected a call: the response to the whole request, where it has no other message. */
  refusal?: CallAnswer;
}

export interface McpServerParts {
  readonly app: App;
  readonly settings: McpSettings;
  readonly tools: CallerTools;
}

/** Serves both eras of the protocol: 2026-07-28, and without sessions the versions of 2025. Only the first one has subscriptions, by requests that last. */
export function mcpHandler(parts: McpServerParts): Pick<McpHttpHandler, 'fetch' | 'close'> {
  const create = ({ authInfo, era }: McpRequestContext) => {
    const request = requestOf(authInfo) as McpRequest;
    return mcpServer(parts, async (work) => work(request), era === 'modern' ? 'listened' : undefined);
  };
  const handler = createMcpHandler(create, { onerror: (err) => parts.app.log.debug({ err }, 'mcp: a message was rejected') });
  return {
    fetch(request, options = {}) {
      const mcpRequest = requestOf(options.authInfo);
      if (!isListen(options.parsedBody) || mcpRequest === undefined) return handler.fetch(request, options);
      return serveSubscription(create, request, options, (...asked) => followResources(parts.tools, mcpRequest.exchange, ...asked));
    },
    close: () => handler.close(),
  };
}

/** The library hands on what the controller gave it. */
function requestOf(authInfo: McpRequestContext['authInfo']): McpRequest | undefined {
  return authInfo?.extra?.['request'] as McpRequest | undefined;
}

/** Runs work for the caller of one message. Over HTTP the caller is known; over stdio the message is admitted first. */
export type WithCaller = <T>(work: (request: McpRequest) => Promise<T>) => Promise<T>;

/**
 * A server of the protocol that keeps nothing between messages. `subscriptions`: those of a connection that lasts, or that they are served by what the
 * server is connected to.
 */
export function mcpServer(parts: McpServerParts, withCaller: WithCaller, subscriptions?: ConnectionSubscriptions | 'listened'): Server {
  const { app, settings, tools } = parts;
  const subscribes = subscriptions !== undefined && tools.tellsNews;
  const server = new Server(
    { name: app.title, version: app.version },
    {
      capabilities: {
        tools: {},
        resources: subscribes ? { subscribe: true } : {},
        ...(settings.prompts.length === 0 ? {} : { prompts: {} }),
      },
      cacheHints: {
        'tools/list': LIST_CACHE,
        'resources/list': LIST_CACHE,
        'resources/templates/list': LIST_CACHE,
        'resources/read': { ttlMs: 0, cacheScope: 'private' },
        'prompts/list': LIST_CACHE,
      },
      ...(settings.instructions === undefined ? {} : { instructions: settings.instructions }),
    },
  );
  server.setRequestHandler('tools/list', async ({ params }) =>
    guarded(app, () => withCaller(({ exchange }) => listTools(parts, exchange, params?.cursor))),
  );
  server.setRequestHandler('tools/call', async ({ params }, context) =>
    guarded(
      app,
      () =>
        withCaller(async (request) => {
          const tool = await findTool(parts, request.exchange, params.name);
          const given = request.argumentsOf(context.mcpReq.id, params.arguments) ?? {};
          const question = await confirmationOf(app, tool, request.exchange, given, context);
          if (question !== undefined) return question as CallToolResult;
          const call: ToolCall = {
            arguments: given,
            ...callOf(context, server, request.exchange),
            follow: progressOf(parts, tool, request.exchange, context),
          };
          const { result, refusal } = await callTool(tool, request.exchange, call, settings.resultBytesMax);
          if (refusal !== undefined) request.refusal = refusal;
          return server.projectCallToolResult(result, tool.entry.outputSchema);
        }),
      context.mcpReq.signal,
    ),
  );
  server.setRequestHandler('resources/list', async () =>
    guarded(app, () => withCaller(async ({ exchange }) => ({ resources: await listResources(parts.tools, exchange) }))),
  );
  server.setRequestHandler('resources/templates/list', async () =>
    guarded(app, () => withCaller(async ({ exchange }) => ({ resourceTemplates: await listTemplates(parts.tools, exchange) }))),
  );
  server.setRequestHandler('resources/read', async ({ params }, context) =>
    guarded(
      app,
      () =>
        withCaller((request) => {
          const { exchange } = request;
          return readResource(parts, exchange, params.uri, callOf(context, server, exchange), (refusal) => (request.refusal = refusal));
        }),
      context.mcpReq.signal,
    ),
  );
  if (subscribes && subscriptions !== 'listened') offerSubscriptions(app, server, subscriptions);
  if (settings.prompts.length === 0) return server;
  server.setRequestHandler('prompts/list', async () =>
    guarded(app, () => withCaller(async ({ exchange }) => ({ prompts: await listPrompts(settings.prompts, exchange) }))),
  );
  server.setRequestHandler('prompts/get', async ({ params }) =>
    guarded(app, () => withCaller(({ exchange }) => fillPrompt(settings.prompts, exchange, params.name, params.arguments))),
  );
  return server;
}

/** The versions of 2025 subscribe by a request, and are told by notifications of the connection. */
function offerSubscriptions(app: App, server: Server, subscriptions: ConnectionSubscriptions): void {
  server.setRequestHandler('resources/subscribe', async ({ params: { uri } }) =>
    guarded(app, async () => {
      if (!(await subscriptions.add(uri, () => void server.sendResourceUpdated({ uri }).catch(() => undefined))))
        throw new ResourceNotFoundError(uri);
      return {};
    }),
  );
  server.setRequestHandler('resources/unsubscribe', ({ params: { uri } }) => {
    subscriptions.remove(uri);
    return {};
  });
}

/** What every call has of its message. */
function callOf(context: ServerContext, server: Server, exchange: Exchange): Pick<ToolCall, 'client' | 'traceparent' | 'signal'> {
  return {
    client: clientName(context, server, exchange),
    traceparent: textOf(metaOf(context)?.['traceparent']),
    signal: context.mcpReq.signal,
  };
}

/** Undefined unless the client asks for progress. */
function progressOf(parts: McpServerParts, { route }: RouteTool, exchange: Exchange, context: ServerContext): ToolCall['follow'] {
  const progressToken = metaOf(context)?.['progressToken'];
  if (typeof progressToken !== 'string' && typeof progressToken !== 'number') return undefined;
  const { signal, notify } = context.mcpReq;
  const report = (progress: ProgressReport) => notify({ method: 'notifications/progress', params: { progressToken, ...progress } });
  return (answer) => followStartedJob(route, exchange, answer, { ...parts, signal, report });
}

/** What is not an error of the protocol is logged, and its text is not sent. A client that has gone away is no error: clients could fill the log. */
async function guarded<T>(app: App, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ProtocolError || signal?.aborted === true) throw error;
    app.log.error({ err: error }, 'mcp: a message could not be handled');
    throw new ProtocolError(ProtocolErrorCode.InternalError, 'Internal error');
  }
}

interface ToolPage {
  readonly tools: RouteTool['entry'][];
  readonly nextCursor?: string;
  [member: string]: unknown;
}

const warned = new WeakSet<CallerTools>();

async function listTools({ app, tools }: McpServerParts, exchange: Exchange, cursor: string | undefined): Promise<ToolPage> {
  // Over stdio; over HTTP the whole request was rejected.
  if (exchange.spentBudget !== null) throw new ProtocolError(ProtocolErrorCode.InvalidRequest, throttledError(exchange.spentBudget).detail);
  const found = await tools.page(exchange, cursor === undefined ? undefined : nameOf(cursor), TOOLS_PER_PAGE + 1);
  if (found === null) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'Unknown cursor');
  const entries = found.slice(0, TOOLS_PER_PAGE).map(({ entry }) => entry);
  const hasMore = found.length > TOOLS_PER_PAGE;
  if (!warned.has(tools) && (entries.length > TOOLS_WARNED || isLong(entries))) {
    warned.add(tools);
    app.log.warn(
      { credential_id: exchange.principal?.credentialId },
      `mcp: a caller has more than ${TOOLS_WARNED} tools or ${LIST_BYTES_WARNED / 1024} kB of descriptions, which fill the context of an agent; use credentials with fewer scopes, or include fewer operations`,
    );
  }
  const last = entries.at(-1);
  return { tools: entries, ...(hasMore && last !== undefined ? { nextCursor: cursorOf(last.name) } : {}) };
}

const bytesKnown = new WeakMap<RouteTool['entry'], number>();

/** An entry is measured once: it is shared by all callers of one kind. */
function bytesOf(entry: RouteTool['entry']): number {
  const known = bytesKnown.get(entry) ?? Buffer.byteLength(JSON.stringify(entry));
  bytesKnown.set(entry, known);
  return known;
}

function isLong(entries: readonly RouteTool['entry'][]): boolean {
  return entries.reduce((sum, entry) => sum + bytesOf(entry), 0) > LIST_BYTES_WARNED;
}

function cursorOf(name: string): string {
  return Buffer.from(name).toString('base64url');
}

function nameOf(cursor: string): string {
  return Buffer.from(cursor, 'base64url').toString();
}

/** A tool that the caller does not have is as unknown as one that does not exist, to the byte. */
async function findTool({ tools }: McpServerParts, exchange: Exchange, name: string): Promise<RouteTool> {
  const route = tools.route(name);
  const tool = route === undefined ? undefined : await tools.listed(route, exchange);
  if (tool !== undefined) return tool;
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${name.slice(0, 128)}`);
}

function metaOf(context: ServerContext): Readonly<Record<string, unknown>> | undefined {
  return context.mcpReq._meta;
}

/** From the envelope of the message, else from `initialize` or the `User-Agent`. Chosen by the client: shown, never trusted. */
function clientName(context: ServerContext, server: Server, { headers }: Exchange): string | null {
  const given: unknown = metaOf(context)?.['io.modelcontextprotocol/clientInfo'] ?? server.getClientVersion();
  const info = typeof given === 'object' && given !== null ? (given as { readonly name?: unknown }) : undefined;
  const name = textOf(info?.name) ?? textOf(headers['user-agent']);
  // Cut first: half of a surrogate pair cannot be stored, and is removed with the other characters that are not text.
  return name === undefined ? null : name.slice(0, CLIENT_LENGTH_MAX).replaceAll(/\p{C}/gu, '');
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
