import { randomUUID } from 'node:crypto';
import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import { callRoute } from '../../http/call-route.ts';
import type { CompiledRoute } from '../../http/compiled-route.ts';
import { noteInexactNumbers } from '../../http/json/inexact-numbers.ts';
import { stdioWork } from './controller.ts';
import type { WithCaller } from './protocol.ts';

/** Admits each message as a request of the endpoint with this key: its throttles, the key's state and the log are those of HTTP. */
export function callerOverStdio(endpoint: CompiledRoute, key: string): WithCaller {
  return async (work) => {
    const headers = { authorization: `Bearer ${key}`, host: 'localhost', 'user-agent': 'kit mcp' };
    let outcome: { readonly value: Awaited<ReturnType<typeof work>> } | { readonly error: unknown } | undefined;
    stdioWork.set(headers, async (exchange) => {
      try {
        outcome = { value: await work({ exchange, argumentsOf: noted }) };
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

/** The library has parsed the message, so an integer beyond 2^53 may have been another one. */
const noted = (_id: unknown, given: Readonly<Record<string, unknown>> | undefined): Readonly<Record<string, unknown>> | undefined => {
  if (given !== undefined) noteInexactNumbers(given, unsafeIntegers(given));
  return given;
};

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
