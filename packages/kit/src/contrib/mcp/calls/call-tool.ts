import { requestChannel } from '../../../auth/request/request-channel.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import { FAULTS_MAX } from '../../../errors/fault-collector.ts';
import { type FieldError, isKitError, type KitError } from '../../../errors/kit-error.ts';
import { callRoute, type CallAnswer, type RouteCall } from '../../../http/serve/call-route.ts';
import type { CompiledRoute } from '../../../http/exchange/compiled-route.ts';
import type { Exchange } from '../../../http/exchange/exchange.ts';
import { compileInput } from '../../../http/input/read-input.ts';
import { callHeaders } from '../tools/call-headers.ts';
import type { RouteTool } from '../tools/tool.ts';
import { toolRequest } from './tool-request.ts';
import { toolResult, type ToolResult } from './tool-result.ts';

export interface ToolCall {
  readonly arguments: Readonly<Record<string, unknown>>;
  /** What the client calls itself. */
  readonly client: string | null;
  /** The trace that the client continues; undefined for that of the request. */
  readonly traceparent: string | undefined;
  readonly signal: AbortSignal;
  /** Follows a job that the call has started; undefined where the client does not ask for progress. */
  readonly follow?: ((answer: CallAnswer) => Promise<CallAnswer>) | undefined;
}

/** What a call came to. */
export interface ToolOutcome {
  readonly result: ToolResult;
  /** The response of the route, where a client throttle rejected the call: it concerns the connection, not the agent. */
  readonly refusal?: CallAnswer;
}

/** Calls the route of a tool: the same admission, rules, transaction and audit entry as its HTTP request. */
export async function callTool(
  tool: RouteTool,
  parent: Exchange,
  { arguments: given, client, traceparent, signal, follow }: ToolCall,
  resultBytesMax: number,
): Promise<ToolOutcome> {
  const call = requestOf(tool, parent, given, traceparent);
  const answer = await requestChannel.run({ via: 'mcp', client }, () => callRoute(tool.route, call, signal));
  if (answer.exchange.throttledIn === 'client') return { result: toolResult(tool, answer, resultBytesMax), refusal: answer };
  return { result: toolResult(tool, follow === undefined ? answer : await follow(answer), resultBytesMax) };
}

/** The request that a call stands for. */
export function requestOf(tool: RouteTool, parent: Exchange, given: ToolCall['arguments'], traceparent?: string): RouteCall {
  const { url, params, headers, body, faults } = toolRequest(tool, given);
  return {
    url,
    params,
    body,
    headers: {
      ...callHeaders(parent),
      ...(traceparent === undefined ? {} : { traceparent }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    requestId: parent.requestId,
    remoteAddress: parent.request.raw.socket.remoteAddress ?? '',
    parent,
    bodyError: argumentError(tool.route, parent, body, faults),
  };
}

/** Arguments that no request of the route can have, or that the caller's tool does not have: reported with everything else that the schemas reject. */
function argumentError(route: CompiledRoute, parent: Exchange, body: unknown, faults: readonly FieldError[]): RouteCall['bodyError'] {
  if (faults.length > 0) return (exchange) => inputError(route, exchange, faults);
  if (!isTooLarge(body, route.bodyBytesMax, parent)) return undefined;
  return async () => coreErrors.body_too_large({ extensions: { bytes_max: route.bodyBytesMax } });
}

/** What the route rejects before it looks at names, such as an id that cannot be one, comes first here, too. */
async function inputError(route: CompiledRoute, exchange: Exchange, faults: readonly FieldError[]): Promise<KitError> {
  const own = await routeInputError(route, exchange);
  // Without an id there is no request to compare with: then the missing argument is what the agent has to know.
  const hasAddress = !faults.some(({ location: [part] }) => part === 'params');
  if (own !== null && own.status !== 422 && hasAddress) return own;
  const places = new Set(faults.map(({ location }) => location.join('.')));
  const others = (own?.errors ?? []).filter(({ location }) => !places.has(location.join('.')));
  return coreErrors.validation_error({ errors: [...faults, ...others].slice(0, FAULTS_MAX) });
}

async function routeInputError(route: CompiledRoute, exchange: Exchange): Promise<KitError | null> {
  try {
    await compileInput(route)(exchange);
    return null;
  } catch (error) {
    return isKitError(error) ? error : null;
  }
}

/** The request around the call is never shorter than the body of the call, so most calls need not be measured. */
function isTooLarge(body: unknown, bytesMax: number, { headers }: Exchange): boolean {
  const sent = Number(headers['content-length'] ?? Number.POSITIVE_INFINITY);
  return body !== undefined && sent > bytesMax && Buffer.byteLength(JSON.stringify(body) ?? '') > bytesMax;
}
