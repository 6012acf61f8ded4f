import { once } from 'node:events';
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import type { Command, CommandContext } from '../../app/declare/command.ts';
import type { App } from '../../app/declare/module.ts';
import { keyFromEnvironment } from './serve/config.ts';
import { mcpServer, type McpServerParts } from './serve/protocol.ts';
import { callerOverStdio, followingOverStdio } from './serve/stdio.ts';
import { ConnectionSubscriptions, SubscribingTransport } from './serve/stdio-subscriptions.ts';

/** `kit mcp`: tools for an agent on this machine, which starts the program and talks to it by its standard input and output. */
export function mcpCommand(running: () => McpServerParts): Command<App> {
  return {
    name: 'mcp',
    summary: 'serve tools to an AI agent over standard input and output, with the API key of KIT_API_KEY',
    configure(command, context) {
      command.option('--tenant <name>', 'act in this tenant, by its slug or id').action(async ({ tenant }: { tenant?: string }) => {
        const key =
          keyFromEnvironment() ??
          context.fail(
            'KIT_API_KEY is not set. Set it to an API key whose scopes are those that the agent should have: kit apikey create.',
          );
        const app = await context.app();
        await app.ready();
        await app.fastify.ready();
        const parts = running();
        const endpoint = app.routes.find(({ controller }) => controller === 'KitMcpController');
        if (endpoint === undefined) throw new Error('the endpoint of mcp() is not mounted');
        const withCaller = callerOverStdio(endpoint, key, tenantHeaders(app, context, tenant));
        const follow = followingOverStdio(parts.tools, withCaller);
        const subscriptions = new ConnectionSubscriptions(follow);
        const handle = serveStdio(({ era }) => mcpServer(parts, withCaller, era === 'legacy' ? subscriptions : 'listened'), {
          transport: new SubscribingTransport(new StdioServerTransport(), follow),
          onerror: (err) => app.log.debug({ err }, 'mcp: a message was rejected'),
        });
        await once(process.stdin, 'close');
        subscriptions.removeAll();
        await handle.close();
      });
    },
  };
}

/** As a request of the app names its tenant. */
function tenantHeaders({ routes }: App, context: CommandContext<App>, tenant: string | undefined): Readonly<Record<string, string>> {
  if (tenant === undefined) return {};
  const name = routes.find(({ tenantHeader }) => tenantHeader !== undefined)?.tenantHeader;
  return name === undefined
    ? context.fail("No operation takes a tenant in a header. Declare it: tenants({ find: { header: 'X-Tenant' } }).")
    : { [name.toLowerCase()]: tenant };
}
