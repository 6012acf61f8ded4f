import { randomUUID } from 'node:crypto';
import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import { callRoute } from '../../../http/serve/call-route.ts';
import type { CompiledRoute } from '../../../http/exchange/compiled-route.ts';
import { isKitError } from '../../../errors/kit-error.ts';
import { noteInexactNumbers } from '../../../http/json/inexact-numbers.ts';
import { type JsonLimits, parseJson } from '../../../http/json/parse-json.ts';
import { stdioWork } from '../controller.ts';
import type { CallerTools } from '../tools/caller-tools.ts';
import { followResources, type FollowResources } from './followed-resources.ts';
import type { WithCaller } from './protocol.ts';

type Arguments = Readonly<Record<string, unknown>>;

/** Admits each message as a request of the endpoint with this key: its throttles, the key's state and the log are those of HTTP. */
export function callerOverStdio(endpoint: CompiledRoute, key: string, more: Readonly<Record<string, string>> = {}): WithCaller {
  return async (work) => {
    const headers = { authorization: `Bearer ${key}`, host: 'localhost', 'user-agent': 'kit mcp', ...more };
    let outcome: { readonly value: Awaited<ReturnType<typeof work>> } | { readonly error: unknown } | undefined;
    stdioWork.set(headers, async (exchange) => {
      try {
        outcome = { value: await work({ exchange, argumentsOf: (_id, given) => checked(given, exchange.host.inputLimits) }) };
      } catch (error) {
        outcome = { error };
      }
    });
    const call = { url: endpoint.path, headers, params: {}, body: {}, requestId: randomUUID(), remoteAddress: '127.0.0.1', parent: null };
    const { body } = await callRoute(endpoint, call, new AbortController().signal);
    if (outcome === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidRequest, detailOf(body));
    if ('error' in outcome) throw outcome.error;
    return outcome.value;
  };
}

/** Follows resources in a request of the endpoint that lasts as long: it is admitted like any other. */
export function followingOverStdio(tools: CallerTools, withCaller: WithCaller): FollowResources {
  return (...asked) =>
    new Promise((resolve, reject) => {
      const follow = withCaller(async ({ exchange }) => {
        const followed = await followResources(tools, exchange, ...asked);
        resolve(followed);
        await followed.ended;
      });
      follow.catch(reject);
    });
}

/** The library has parsed the message: the limits and rules of a request's body hold for the arguments, and an integer beyond 2^53 may have been another one. */
function checked(given: Arguments | undefined, limits: JsonLimits): Arguments | undefined {
  if (given === undefined) return undefined;
  try {
    const value = parseJson(Buffer.from(JSON.stringify(given)), limits) as Arguments;
    noteInexactNumbers(value, unsafeIntegers(value));
    return value;
  } catch (error) {
    // Without a detail it is the library's stack that overflowed.
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, isKitError(error) ? error.detail : 'The arguments are nested too deep.');
  }
}

function unsafeIntegers(value: unknown): (string | number)[][] {
  if (typeof value === 'number') return Number.isInteger(value) && !Number.isSafeInteger(value) ? [[]] : [];
  if (typeof value !== 'object' || value === null) return [];
  const members: [string | number, unknown][] = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  return members.flatMap(([name, inner]) => unsafeIntegers(inner).map((path) => [name].concat(path)));
}

function detailOf(body: unknown): string {
  try {
    return String((JSON.parse(String(body)) as { readonly detail?: unknown }).detail);
  } catch {
    return 'The request was rejected.';
  }
}
