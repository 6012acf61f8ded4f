import { requestChannel } from '../../auth/request-channel.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { FAULTS_MAX } from '../../errors/fault-collector.ts';
import { type FieldError, isKitError, type KitError } from '../../errors/kit-error.ts';
import { renderError } from '../../errors/render.ts';
import { callRoute, type CallAnswer, probeRoute, type RouteCall } from '../../http/call-route.ts';
import type { CompiledRoute } from '../../http/compiled-route.ts';
import type { Exchange } from '../../http/exchange.ts';
import { compileInput } from '../../http/read-input.ts';
import { callHeaders } from './call-headers.ts';
import type { RouteTool } from './tool.ts';
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

/** The response of a call that the whole request ends with, instead of a result. */
export interface HttpRefusal {
  readonly refusal: CallAnswer;
}

/** Calls the route of a tool: the same admission, rules, transaction and audit entry as its HTTP request. */
export async function callTool(
  tool: RouteTool,
  parent: Exchange,
  { arguments: given, client, traceparent, signal, follow }: ToolCall,
  resultBytesMax: number,
): Promise<ToolResult | HttpRefusal> {
  const { route } = tool;
  const { url, params, headers, body, faults } = toolRequest(tool, given);
  const call: RouteCall = {
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
  };
  const refused = await argumentError(tool, parent, call, faults);
  if (refused !== undefined) return toolResult(tool, refused, resultBytesMax);
  const answer = await requestChannel.run({ via: 'mcp', client }, () => callRoute(route, call, signal));
  // The budget of a client is not the agent's to wait for: it is the connection's.
  if (answer.exchange.throttledIn === 'client') return { refusal: answer };
  return toolResult(tool, follow === undefined ? answer : await follow(answer), resultBytesMax);
}

/** Arguments that no request of the route can have, or that the caller's tool does not have: reported with everything else that the schemas reject. */
async function argumentError(
  { route }: RouteTool,
  parent: Exchange,
  call: RouteCall,
  faults: readonly FieldError[],
): Promise<CallAnswer | undefined> {
  const error =
    faults.length > 0
      ? await inputError(route, parent, call, faults)
      : isTooLarge(call.body, route.bodyBytesMax, parent)
        ? coreErrors.body_too_large({ extensions: { bytes_max: route.bodyBytesMax } })
        : undefined;
  if (error === undefined) return undefined;
  const rendered = renderError(error, { format: parent.host.errorFormat, requestId: parent.requestId });
  return { status: rendered.status, headers: rendered.headers, body: rendered.body, exchange: parent };
}

/** What the route rejects before it looks at names, such as an id that cannot be one, comes first here, too. */
async function inputError(route: CompiledRoute, parent: Exchange, call: RouteCall, faults: readonly FieldError[]): Promise<KitError> {
  const own = await routeInputError(route, parent, call);
  // Without an id there is no request to compare with: then the missing argument is what the agent has to know.
  const hasAddress = !faults.some(({ location: [part] }) => part === 'params');
  if (own !== null && own.status !== 422 && hasAddress) return own;
  return coreErrors.validation_error({ errors: [...faults, ...(own?.errors ?? [])].slice(0, FAULTS_MAX) });
}

async function routeInputError(route: CompiledRoute, parent: Exchange, call: RouteCall): Promise<KitError | null> {
  const probe = probeRoute(route, parent, call);
  try {
    await compileInput(route)(probe);
    return null;
  } catch (error) {
    return isKitError(error) ? error : null;
  } finally {
    // Ends services that a rule of the route asked for.
    probe.reply.raw.destroy();
  }
}

/** The request around the call is never shorter than the body of the call, so most calls need not be measured. */
function isTooLarge(body: unknown, bytesMax: number, { headers }: Exchange): boolean {
  const sent = Number(headers['content-length'] ?? Number.POSITIVE_INFINITY);
  return body !== undefined && sent > bytesMax && Buffer.byteLength(JSON.stringify(body) ?? '') > bytesMax;
}
