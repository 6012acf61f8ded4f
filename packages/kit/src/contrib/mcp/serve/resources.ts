import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError } from '@modelcontextprotocol/server';
import type { CompiledRoute } from '../../../http/exchange/compiled-route.ts';
import type { CallAnswer } from '../../../http/serve/call-route.ts';
import type { Exchange } from '../../../http/exchange/exchange.ts';
import { jsonValue } from '../../../db/values/json-value.ts';
import { callTool, type ToolCall } from '../calls/call-tool.ts';
import type { McpSettings } from '../options.ts';
import type { CallerTools } from '../tools/caller-tools.ts';
import type { RouteTool } from '../tools/tool.ts';

const JSON_TYPE = 'application/json';

interface Described {
  readonly name: string;
  readonly description: string;
  readonly mimeType: string;
  // The types of the protocol are open.
  [member: string]: unknown;
}

/** `/v1/orders/:id` → `kit://v1/orders/{id}`. */
function uriOf(path: string): string {
  return `kit:/${path.replaceAll(/:(\w+)/g, '{$1}')}`;
}

/** Tools that only read, by an address that says everything they need: what an agent attaches as context instead of calling a tool. */
function isResource({ route, entry, arguments: known, confirms }: RouteTool): boolean {
  const required = (entry.inputSchema['required'] ?? []) as readonly string[];
  return (
    route.method === 'GET' && !confirms && entry.outputSchema !== undefined && required.every((name) => known.get(name)?.part === 'params')
  );
}

/** Lists, and other reads whose address has no parameter. */
export async function listResources(tools: CallerTools, exchange: Exchange): Promise<(Described & { readonly uri: string })[]> {
  const found = await readable(tools, exchange, ({ path }) => !path.includes(':'));
  return found.map((tool) => described(tool, { uri: uriOf(tool.route.path) }));
}

/** Records: their address has the key. */
export async function listTemplates(tools: CallerTools, exchange: Exchange): Promise<(Described & { readonly uriTemplate: string })[]> {
  const found = await readable(tools, exchange, ({ path }) => path.includes(':'));
  return found.map((tool) => described(tool, { uriTemplate: uriOf(tool.route.path) }));
}

async function readable(tools: CallerTools, exchange: Exchange, has: (route: CompiledRoute) => boolean): Promise<RouteTool[]> {
  const found: RouteTool[] = [];
  for (const route of tools.routes) {
    const tool = route.method === 'GET' && has(route) ? await tools.listed(route, exchange) : undefined;
    if (tool !== undefined && isResource(tool)) found.push(tool);
  }
  return found;
}

function described<A extends object>({ entry: { name, description } }: RouteTool, address: A): A & Described {
  return { ...address, name, description, mimeType: JSON_TYPE };
}

interface Contents {
  readonly contents: { readonly uri: string; readonly mimeType: string; readonly text: string }[];
  [member: string]: unknown;
}

/** Reads by a call of the tool: the same request, rules and limits. What the caller cannot see is as unknown as what does not exist. */
export async function readResource(
  { tools, settings }: { readonly tools: CallerTools; readonly settings: Pick<McpSettings, 'resultBytesMax'> },
  exchange: Exchange,
  uri: string,
  call: Omit<ToolCall, 'arguments' | 'follow'>,
  onRefusal: (answer: CallAnswer) => void,
): Promise<Contents> {
  const found = await resourceAt(tools, exchange, uri);
  if (found === undefined) throw new ResourceNotFoundError(uri);
  const { result, refusal } = await callTool(found.tool, exchange, { ...call, arguments: found.given }, settings.resultBytesMax);
  if (refusal !== undefined) onRefusal(refusal);
  const text = result.content.at(-1)?.text ?? '';
  if (result.isError === true) throw readingError(uri, text);
  return { contents: [{ uri, mimeType: JSON_TYPE, text }] };
}

/** The tool that reads it, and its arguments; undefined where the caller has none. */
export async function resourceAt(
  tools: CallerTools,
  exchange: Exchange,
  uri: string,
): Promise<{ readonly tool: RouteTool; readonly given: Readonly<Record<string, string | undefined>> } | undefined> {
  const found = routeAt(tools, uri);
  const tool = found === undefined ? undefined : await tools.listed(found.route, exchange);
  if (found === undefined || tool === undefined || !isResource(tool)) return undefined;
  const given = Object.fromEntries(
    [...tool.arguments].flatMap(([name, { part, name: inside }]) => (part === 'params' ? [[name, found.params[inside ?? '']]] : [])),
  );
  return { tool, given };
}

function readingError(uri: string, text: string): ProtocolError {
  const { status, detail, ...problem } = jsonValue(text) as { readonly status?: number; readonly detail?: string };
  if (status === 404) return new ResourceNotFoundError(uri);
  const code = status === undefined || status >= 500 ? ProtocolErrorCode.InternalError : ProtocolErrorCode.InvalidRequest;
  return new ProtocolError(code, detail ?? 'The resource could not be read.', { status, ...problem });
}

interface RouteAt {
  readonly route: CompiledRoute;
  readonly params: Readonly<Record<string, string>>;
}

/** The tool's route that the address leads to, by segments; one without parameters comes before one with them. */
export function routeAt({ routes }: Pick<CallerTools, 'routes'>, uri: string): RouteAt | undefined {
  if (!uri.startsWith('kit://')) return undefined;
  const segments = uri.slice('kit://'.length).split('/');
  let best: RouteAt | undefined;
  for (const route of routes) {
    if (route.method !== 'GET') continue;
    const params = paramsOf(route.path.slice(1).split('/'), segments);
    if (params === undefined) continue;
    if (Object.keys(params).length === 0) return { route, params };
    best ??= { route, params };
  }
  return best;
}

function paramsOf(pattern: readonly string[], segments: readonly string[]): Record<string, string> | undefined {
  if (pattern.length !== segments.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, part] of pattern.entries()) {
    const given = segments[index] as string;
    if (!part.startsWith(':')) {
      if (part !== given) return undefined;
      continue;
    }
    if (given === '') return undefined;
    try {
      params[part.slice(1)] = decodeURIComponent(given);
    } catch {
      return undefined;
    }
  }
  return params;
}
