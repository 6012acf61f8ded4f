import type { App, Module } from '../../app/declare/module.ts';
import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import type { Exchange } from '../../http/exchange/exchange.ts';
import type { Middleware } from '../../http/exchange/middleware.ts';
import { CallerTools } from './tools/caller-tools.ts';
import { mcpCommand } from './commands.ts';
import { type McpEndpoint, mcpController, type Message } from './controller.ts';
import { allowedHosts, refuseForeignHost } from './serve/host-guard.ts';
import { type McpOptions, readMcpOptions } from './options.ts';
import { agentsPortal } from './portal.ts';
import { metadataMounts, ProtectedResource } from './serve/protected-resource.ts';
import { mcpHandler, type McpServerParts } from './serve/protocol.ts';
import { routeAt } from './serve/resources.ts';
import { askedUris, isListen } from './serve/subscriptions.ts';
import { toolFaults, toolRoutes } from './tools/tool-table.ts';

interface Running extends McpServerParts, McpEndpoint {
  readonly handler: ReturnType<typeof mcpHandler>;
  readonly hosts: ReadonlySet<string>;
  readonly resource: ProtectedResource;
}

/**
 * Offers operations to AI agents as tools of the Model Context Protocol. A caller's tools are the operations that its credential can reach; a call is a
 * request of the operation. Needs the package `@modelcontextprotocol/server`.
 */
export function mcp(options: McpOptions = {}): Module {
  const settings = readMcpOptions(options);
  let running: Running | undefined;
  const inUse = (): Running => {
    if (running === undefined) throw new Error('mcp() is used before the app is ready.');
    return running;
  };
  const guard: Middleware = {
    name: 'mcp',
    appliesTo: ({ controller }) => controller.startsWith('KitMcp'),
    onRequest: ({ headers }) => refuseForeignHost(headers, inUse().hosts),
    onResponse: (exchange) => inUse().resource.challenge(exchange),
  };
  return {
    name: 'mcp',
    middleware: [guard],
    mount: { [settings.path]: mcpController(inUse), ...metadataMounts(settings.path, () => running?.resource) },
    commands: [mcpCommand(inUse)],
    portal: agentsPortal(inUse),
    checks: [{ name: 'mcp_tools', run: (app) => toolFaults(toolRoutes(app.routes, settings)) }],
    setup(app) {
      running = start(app);
    },
    async stop() {
      await running?.handler.close();
      running = undefined;
    },
  };

  function start(app: App): Running {
    const tools = new CallerTools(toolRoutes(app.routes, settings), settings.confirms);
    const resource = new ProtectedResource(app, settings, tools);
    const parts: McpServerParts = { app, settings, tools };
    const admit = async (exchange: Exchange, messages: readonly Message[]): Promise<void> => {
      resource.refuseForeignToken(exchange);
      if (exchange.principal?.claims !== undefined) await refuseMissingScope(exchange, messages, tools, resource);
    };
    return { ...parts, handler: mcpHandler(parts), hosts: allowedHosts(settings.hosts, app), resource, admit };
  }
}

/** Only for access tokens, whose clients can ask their user for more; what a key lacks does not exist. */
async function refuseMissingScope(
  exchange: Exchange,
  messages: readonly Message[],
  tools: CallerTools,
  resource: ProtectedResource,
): Promise<void> {
  for (const message of messages)
    for (const route of askedRoutes(message, tools)) {
      const standing = await tools.standing(route, exchange);
      if (standing.kind === 'scope') throw resource.insufficientScope(exchange, standing.scope);
    }
}

function askedRoutes(message: Message, tools: CallerTools): readonly CompiledRoute[] {
  const { method, params } = message;
  if (method === 'tools/call' && typeof params?.name === 'string') return asList(tools.route(params.name));
  const uris = method === 'resources/read' ? [params?.uri] : isListen(message) ? askedUris(message) : [];
  return uris.flatMap((uri) => (typeof uri === 'string' ? asList(routeAt(tools, uri)?.route) : []));
}

function asList<T>(value: T | undefined): readonly T[] {
  return value === undefined ? [] : [value];
}
