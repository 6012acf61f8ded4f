import type { AdminContext } from '../../app/admin/declaration.ts';
import type { PortalDeclaration } from '../../app/admin/portal-page.ts';
import type { AdminSection } from '../../app/admin/sections.ts';
import type { App } from '../../app/declare/module.ts';
import { Exchange } from '../../http/exchange/exchange.ts';
import { probeRoute } from '../../http/serve/call-route.ts';
import { asProgram } from '../../http/serve/could-call.ts';
import { callHeaders } from './tools/call-headers.ts';
import type { CallerTools } from './tools/caller-tools.ts';
import type { RouteTool } from './tools/tool.ts';

/** What the page needs of the running module. */
export interface AgentsEndpoint {
  readonly tools: CallerTools;
  readonly settings: { readonly path: string };
  readonly resource: { url(exchange: Exchange): string };
}

/** Tools shown; an app with more has them for agents all the same. */
const TOOLS_MAX = 500;
const SCOPE_OF_ANY = 'any key';

/** The page where customers see what agents can do for them, and how to connect one. */
export function agentsPortal(endpoint: () => AgentsEndpoint): PortalDeclaration {
  return {
    pages: [],
    texts: [
      {
        name: 'agents',
        label: 'Agents',
        group: 'API',
        icon: 'job',
        description:
          'AI agents call this API by the Model Context Protocol, with an API key of yours. A tool does what its operation does, with the same limits.',
        read: (context) => sectionsFor(context, endpoint()),
      },
    ],
  };
}

async function sectionsFor(context: AdminContext, { tools, settings, resource }: AgentsEndpoint): Promise<readonly AdminSection[]> {
  const { exchange } = context;
  if (!(exchange instanceof Exchange)) throw new Error('The page of agents needs the request that asks for it.');
  const app = context.app as App;
  const url = resource.url(exchange);
  const found = await toolsOfKeys(app, tools, settings.path, exchange);
  return [...connecting(url, nameOf(app.title)), toolTable(found)];
}

/** The tools of a key of this person that has every scope. */
async function toolsOfKeys({ routes }: App, tools: CallerTools, path: string, exchange: Exchange): Promise<readonly RouteTool[]> {
  const endpoint = routes.find((route) => route.method === 'POST' && route.path === path);
  const program = asProgram(exchange, endpoint === undefined ? [] : [endpoint]);
  if (endpoint === undefined || program === null) return [];
  const asked = probeRoute(endpoint, exchange, { headers: callHeaders(exchange) });
  asked.principal = program.principal;
  asked.authenticator = program.authenticator;
  return (await tools.page(asked, undefined, TOOLS_MAX)) ?? [];
}

const nameOf = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '') || 'api';

const VARIABLE = 'API_KEY';

/** What the usual clients want to read. A key stands in none of it: each client has a place for it. */
function connecting(url: string, name: string): readonly AdminSection[] {
  const json = (value: object): string => JSON.stringify(value, null, 2);
  const code = (title: string, text: string): AdminSection => ({ kind: 'text', title, text, code: true });
  return [
    {
      kind: 'facts',
      title: 'Connection',
      columns: [
        { name: 'url', label: 'Address', kind: 'code' },
        { name: 'transport', label: 'Transport', kind: 'text' },
        { name: 'key', label: 'Credential', kind: 'text' },
      ],
      values: { url, transport: 'Streamable HTTP', key: 'An API key as a bearer token. Give it only the scopes that the agent needs.' },
    },
    code('Claude Code', `claude mcp add --transport http ${name} ${url} --header "Authorization: Bearer $${VARIABLE}"`),
    code('Cursor: ~/.cursor/mcp.json', json({ mcpServers: { [name]: { url, headers: { Authorization: `Bearer \${env:${VARIABLE}}` } } } })),
    code(
      'VS Code: .vscode/mcp.json',
      json({
        inputs: [{ type: 'promptString', id: 'api-key', description: 'API key', password: true }],
        servers: { [name]: { type: 'http', url, headers: { Authorization: 'Bearer ${input:api-key}' } } },
      }),
    ),
    code('Codex: ~/.codex/config.toml', `[mcp_servers.${name}]\nurl = ${JSON.stringify(url)}\nbearer_token_env_var = "${VARIABLE}"`),
  ];
}

function toolTable(tools: readonly RouteTool[]): AdminSection {
  return {
    kind: 'table',
    title: 'Tools',
    columns: [
      { name: 'name', label: 'Tool', kind: 'code' },
      { name: 'does', label: 'What it does', kind: 'text' },
      { name: 'changes', label: 'Changes', kind: 'state' },
      { name: 'scope', label: 'Scope of the key', kind: 'code' },
    ],
    rows: tools.map(({ entry, route, confirms }) => ({
      id: entry.name,
      title: entry.name,
      values: { name: entry.name, does: entry.description, changes: changesOf(entry, confirms), scope: route.scope ?? SCOPE_OF_ANY },
      details: [{ kind: 'json', title: 'Arguments', value: entry.inputSchema }],
    })),
    empty: 'There are no tools for your keys.',
  };
}

function changesOf({ annotations }: RouteTool['entry'], confirms: boolean) {
  if (annotations.readOnlyHint) return { value: 'reads', tone: 'good' } as const;
  const hint = confirms ? 'The agent asks you before each call.' : undefined;
  const state = annotations.destructiveHint ? ({ value: 'changes', tone: 'warning' } as const) : ({ value: 'adds', tone: 'info' } as const);
  return hint === undefined ? state : { ...state, hint };
}
