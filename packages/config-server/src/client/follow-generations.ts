import { setTimeout as delay } from 'node:timers/promises';
import { CLIENT_ERROR_CODES, RemoteSourceError } from './errors.ts';
import { parseCount, parseSectionOptions, refuseUnknown, SECTION_OPTION_NAMES, throwFaults } from './options.ts';
import type { SectionAddress, SectionOptions } from './options.ts';
import { reconnectDelay } from './reconnect-delay.ts';
import { readGenerations, type Generation } from './read-generations.ts';

export interface FollowOptions extends SectionOptions {
  /** Ends the iteration, at once and without an error. */
  signal?: AbortSignal;
  /** Milliseconds until the stream must have been opened. Default 10,000. */
  timeout?: number;
  /** Milliseconds without any byte after which a connection counts as dead. Default 45,000: three of the server's heartbeats. */
  silenceMs?: number;
  /** Longest wait between two attempts, in milliseconds. Default 30,000. */
  retryMaxMs?: number;
  /** Sent as Last-Event-ID on the first connection. */
  lastGeneration?: number;
  /** Called for every failure that leads to a reconnect. */
  onRetry?: (error: RemoteSourceError, delayMs: number) => void;
}

interface Follow {
  readonly address: SectionAddress;
  readonly signal: AbortSignal | undefined;
  readonly timeout: number;
  readonly silenceMs: number;
  readonly retryMaxMs: number;
  readonly lastGeneration: number | undefined;
  readonly onRetry: (error: RemoteSourceError, delayMs: number) => void;
}

const KNOWN = [...SECTION_OPTION_NAMES, 'signal', 'timeout', 'silenceMs', 'retryMaxMs', 'lastGeneration', 'onRetry'];

/**
 * Reads the stream of generation numbers and reconnects by itself until the signal aborts or the server refuses the caller.
 * Every connection begins with one event, so a consumer that refreshes on each also notices what happened while it was cut off.
 * A consumer that is slower than the events gets the newest one only.
 *
 * Without `onGeneration` it returns an async iterator, which throws on an `auth` error. With it, it returns a promise that resolves on
 * abort and rejects on an `auth` error or when the callback throws; the callback is awaited before the next call.
 */
export function followGenerations(options: FollowOptions): AsyncGenerator<Generation, void, undefined>;
export function followGenerations(options: FollowOptions, onGeneration: (event: Generation) => unknown): Promise<void>;
export function followGenerations(
  options: FollowOptions,
  onGeneration?: (event: Generation) => unknown,
): AsyncGenerator<Generation, void, undefined> | Promise<void> {
  const follow = parseFollowOptions(options);
  return onGeneration === undefined ? iterate(follow) : callEach(iterate(follow), onGeneration);
}

function parseFollowOptions(options: FollowOptions): Follow {
  if (typeof options !== 'object' || options === null)
    throw new RemoteSourceError('option', 'followGenerations: options must be an object');
  const faults: string[] = [];
  refuseUnknown(options, KNOWN, faults);
  const address = parseSectionOptions(options, faults);
  const { signal, lastGeneration, onRetry = () => undefined } = options;
  if (signal !== undefined && !(signal instanceof AbortSignal)) faults.push('signal must be an AbortSignal');
  if (lastGeneration !== undefined && (!Number.isSafeInteger(lastGeneration) || lastGeneration < 0)) {
    faults.push('lastGeneration must be an integer');
  }
  if (typeof onRetry !== 'function') faults.push('onRetry must be a function');
  const timeout = parseCount('timeout', options.timeout, 10_000, faults);
  const silenceMs = parseCount('silenceMs', options.silenceMs, 45_000, faults);
  const retryMaxMs = parseCount('retryMaxMs', options.retryMaxMs, 30_000, faults);
  throwFaults('followGenerations', faults);
  return { address, signal, timeout, silenceMs, retryMaxMs, lastGeneration, onRetry };
}

async function callEach(events: AsyncGenerator<Generation>, onGeneration: (event: Generation) => unknown): Promise<void> {
  for await (const event of events) await onGeneration(event);
}

/** Connections are read by a task of their own, so that a busy consumer neither delays dead-peer detection nor queues up events. */
async function* iterate(follow: Follow): AsyncGenerator<Generation, void, undefined> {
  const stop = new AbortController();
  const signal = follow.signal === undefined ? stop.signal : AbortSignal.any([stop.signal, follow.signal]);
  let newest: Generation | undefined;
  let ended = false;
  let wake = (): void => undefined;
  const pumping = pump(follow, signal, (event) => {
    newest = event;
    wake();
  }).finally(() => {
    ended = true;
    wake();
  });
  // Its failure is reported by the consumer's next step; until then it must not count as unhandled.
  const over = pumping.catch(() => undefined);
  try {
    while (!signal.aborted) {
      if (newest !== undefined) {
        const event = newest;
        newest = undefined;
        yield event;
      } else if (ended) {
        await pumping;
        return;
      } else {
        await new Promise<void>((resolve) => (wake = resolve));
      }
    }
  } finally {
    stop.abort();
    await over;
  }
}

/** One connection after the other. Resolves on abort, rejects when retrying cannot help. */
async function pump(follow: Follow, signal: AbortSignal, onEvent: (event: Generation) => void): Promise<void> {
  let lastGeneration = follow.lastGeneration;
  let failures = 0;
  let retryMs: number | undefined;
  while (!signal.aborted) {
    try {
      await readGenerations(follow.address, { ...follow, lastGeneration, signal }, (event, advised) => {
        failures = 0;
        retryMs = advised ?? retryMs;
        lastGeneration = event.generation;
        onEvent(event);
      });
    } catch (error) {
      if (signal.aborted) return;
      const failure = error as RemoteSourceError;
      if (CLIENT_ERROR_CODES[failure.code]?.kind !== 'remote') throw failure;
      const waitMs = reconnectDelay(
        { failures, retryMs, retryAfterMs: failure.retryAfterMs, retryMaxMs: follow.retryMaxMs },
        Math.random(),
      );
      failures += 1;
      follow.onRetry(failure, waitMs);
      await delay(waitMs, undefined, { signal }).catch(() => undefined);
    }
  }
}
